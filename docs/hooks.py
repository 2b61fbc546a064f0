"""What the site adds to the documents: links that leave docs/ lead to the repository, whose address is that of
pyproject.toml. A link to a file that is not there ends the build."""

import posixpath
import re
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

ROOT = Path(__file__).parents[1]
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
RELATIVE = re.compile(r"\]\((\.\./[^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: Any) -> None:
    """A link in the footer. With `repo_url` the theme would ask GitHub for the number of stars on every page."""
    config["extra"]["social"] = [{"icon": "fontawesome/brands/github", "link": REPOSITORY, "name": "Repository"}]


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
