"""An installed copy plays: the wheel goes into a fresh environment, and its commands run in an empty folder.

The environment borrows the dependencies of the one that runs the tests, so nothing large is downloaded.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PIP = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
# Typed one after the other: taken cells are refused, and the next one counts.
CELLS = ["b2", "a1", "c3", "a3", "c1", "b1", "b3", "a2", "c2"]

pytestmark = pytest.mark.integration


def run(command: list[str | Path], folder: Path, typed: str = "") -> str:
    """Standard output of a command that succeeds. Nothing of the checkout is on its path."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, input=typed, env=kept, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run([*PIP, "wheel", "--no-deps", "--wheel-dir", folder, ROOT], folder)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def commands(wheel, tmp_path_factory) -> Path:
    """The folder with the commands of a fresh environment."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder)
    inside = {"base": str(folder), "platbase": str(folder), "installed_base": str(folder)}
    scripts, packages = (Path(sysconfig.get_path(name, "venv", inside)) for name in ("scripts", "purelib"))
    run([*PIP, "--python", scripts / "python", "install", "--no-deps", wheel], folder)
    # Only after the installation: pip must not take the checkout's own copy for the one to replace.
    borrowed = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    (packages / "borrowed.pth").write_text("\n".join(borrowed) + "\n", encoding="utf-8")
    return scripts


def test_the_wheel_carries_programs_networks_and_page_and_little_else(wheel):
    with zipfile.ZipFile(wheel) as file:
        sizes = {entry.filename: entry.compress_size for entry in file.infolist()}
    names = set(sizes)
    networks = {f"agents/{path.relative_to(ROOT).as_posix()}" for path in ROOT.glob("models/*/network.npz")}
    page = {path.relative_to(ROOT).as_posix() for path in (ROOT / "agents/serve/page").iterdir()}
    assert len(networks) >= 10
    assert {"train.py", "evaluate.py", "play.py", *networks, *page} <= names
    ours = {name for name in names if ".dist-info/" not in name}
    assert {Path(name).parts[0] for name in ours} == {"agents", "envs", "train.py", "evaluate.py", "play.py"}
    assert {Path(name).suffix for name in ours} <= {".py", ".npz", ".md", ".html", ".js", ".css"}
    assert sum(size for name, size in sizes.items() if name not in networks) < 600_000


def test_an_installed_copy_plays_in_the_terminal(commands, tmp_path):
    """A whole game against the shipped network, through a pipe."""
    place = run([commands / "python", "-c", "import agents; print(agents.__file__)"], tmp_path)
    assert not Path(place.strip()).is_relative_to(ROOT)
    typed = "".join(f"{line}\n" for line in (*CELLS, "quit"))
    printed = run([commands / "ripzero-play", "--env=tictactoe", "--ui=text", "--seconds=600"], tmp_path, typed)
    assert "models/tictactoe plays" in printed
    assert re.search(r"after \d moves", printed)
    assert "X wins" not in printed  # the network makes no mistake


def test_an_installed_copy_serves_the_page(commands, tmp_path):
    command = [commands / "ripzero-play", "--env=tictactoe", "--port=0", "--no_open"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = re.search(r"http://\S+", server.stdout.readline())
            assert address
            for name in ("", "page.js", "style.css"):
                with urllib.request.urlopen(f"{address[0]}/{name}", timeout=60) as answer:
                    assert answer.status == 200
        finally:
            server.kill()


def test_an_installed_copy_advises_its_own_commands(commands, tmp_path):
    """`python train.py` and `pip install -e` hold in a checkout alone."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [commands / "ripzero-evaluate"]
    done = subprocess.run(command, cwd=tmp_path, env=kept, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert "train one first: ripzero-train --env=foq" in done.stderr
    for name, example in {"play": "ripzero-play --env=foq", "evaluate": "ripzero-evaluate match"}.items():
        said = run([commands / f"ripzero-{name}", "--help"], tmp_path)
        assert example in said and "python" not in said
    code = "from agents.runtime import advice; print(advice.extra('play'))"
    assert run([commands / "python", "-c", code], tmp_path) == "pip install 'ripzero[play]'\n"


def test_an_installed_copy_measures_and_trains(commands, tmp_path):
    match = ["match", "models/tictactoe@0", "random", "--games=20", "--json"]
    assert json.loads(run([commands / "ripzero-evaluate", *match], tmp_path))["games"] == 20
    assert "--num_envs" in run([commands / "ripzero-train", "--env=tictactoe", "--help"], tmp_path)


def test_documents_name_the_version_of_the_project():
    version = PROJECT["version"]
    assert f"\n## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
