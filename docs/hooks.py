"""What the site adds to the documents: the pages of all games under play/, and links that leave docs/ lead to the
repository, whose address is that of pyproject.toml. A link to a file that is not there ends the build."""

import hashlib
import posixpath
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
RELATIVE = re.compile(r"\]\((\.\./[^)#\s]+)(#[^)\s]*)?\)")
# Sources of the game pages. They show the strengths that the model cards state.
SOURCES = ("envs/**/*.py", "agents/**/*.py", "agents/serve/*/*.*", "models/*/*.npz", "models/*/README.md", "play.py")


def on_config(config: Any) -> None:
    """A link in the footer. With `repo_url` the theme would ask GitHub for the number of stars on every page."""
    config["extra"]["social"] = [{"icon": "fontawesome/brands/github", "link": REPOSITORY, "name": "Repository"}]


def on_files(files: Any, config: Any) -> None:
    """The pages of the games that play_now.md links to."""
    for path in sorted(games().glob("*.html")):
        files.append(File.generated(config, f"play/{path.name}", abs_src_path=str(path)))


def games() -> Path:
    """The folder of the games' pages. They are written anew after a change of their sources only.

    Raises:
        PluginError: they cannot be written.
    """
    paths = sorted({path for pattern in SOURCES for path in ROOT.glob(pattern) if path.is_file()})
    digest = hashlib.blake2s(b"".join(path.read_bytes() for path in paths), digest_size=8).hexdigest()
    folder = ROOT / ".cache" / "games" / digest
    if not (folder / "index.html").exists():  # the file that is written last
        command = [sys.executable, str(ROOT / "play.py"), "--env=all", f"--export={folder}"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise PluginError(done.stderr)
    return folder


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page with links to files outside docs/ as addresses in the repository.

    Raises:
        PluginError: there is no such file.
    """
    folder = posixpath.dirname(f"docs/{page.file.src_uri}")

    def absolute(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link[1]))
        if path.startswith("docs/"):
            return link[0]
        if not (ROOT / path).exists():
            raise PluginError(f"{page.file.src_uri}: expected a file of the repository, got {path}")
        return f"]({REPOSITORY}/{'tree' if (ROOT / path).is_dir() else 'blob'}/main/{path}{link[2] or ''})"

    return RELATIVE.sub(absolute, markdown)
