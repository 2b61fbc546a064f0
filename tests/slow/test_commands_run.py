"""All commands of the guides run, one by one, with settings so small that each ends within minutes."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from documents import CASES, ROOT

import envs
from envs import saved

PAGES = ("start", "playing", "training", "measuring", "troubleshooting", "your_game")
GUIDES = ["README.md", *(f"docs/{name}.md" for name in PAGES)]
TINY = ["--num_envs=16", "--num_simulations=2", "--channels=8", "--blocks=1", "--batch_size=32", "--iterations=1"]
LESS = {"match": ["--games=6"], "gate": ["--games=6"], "ladder": ["--games=6"], "prove": ["--minutes=0.2"]}
RUNS = ("NAME", "A", "B", "NEW", "BEST", "first")
NAMES = {"GAME": "docs/domineering.py"} | {f"runs/{name}": "runs/tiny" for name in RUNS}


def small(words: list[str]) -> list[str]:
    """The same command for the tiny run, with less to do: of an option that comes twice the last one counts."""
    words = [NAMES.get(word) or re.sub(r"runs/NAME", "runs/tiny", word) for word in words]
    if words[0] == "train.py":
        going_on = any(word.startswith("--resume=") for word in words)
        return words + (["--iterations=2", "--minutes=60"] if going_on else [*TINY, "--no_preflight"])
    return words + LESS.get(words[1] if len(words) > 1 else "", [])


def to_run() -> list[list[str]]:
    """Once each, in the order in which the guides build on them. People, and pages for browsers, have tests of their
    own; benchmarks are not for small machines."""
    different = dict.fromkeys(tuple(words) for path, words in CASES if path in GUIDES and "person" not in words)
    pages = lambda words: words[0] == "play.py" and not any(word.startswith("--ui=") for word in words)
    return [list(words) for words in different if not pages(words) and not words[0].startswith("benchmarks/")]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder that looks like the project's, where commands may leave what they like, with a run of a moment."""
    folder = tmp_path_factory.mktemp("home")
    for name in ("train.py", "evaluate.py", "play.py", "envs", "agents", "tests", "docs"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "models", folder / "models")
    game = envs.make("tictactoe")
    (folder / "game.json").write_text(saved.to_file(game, *saved.replay(game, game.init(), ["b2", "a1"])))
    code, said = typed(folder, ["train.py", "--env=foq", "--out=runs/tiny", *TINY, "--no_preflight"])
    assert code == 0, said
    return folder


def typed(folder, words, answers=""):
    path = os.environ["PATH"] + ":/usr/games"  # where Debian has GNU Go
    ended = subprocess.run(
        [sys.executable, *words], cwd=folder, input=answers, env={**os.environ, "PATH": path}, text=True, timeout=900,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return ended.returncode, ended.stdout[-3000:]


@pytest.mark.parametrize("words", to_run(), ids=" ".join)
def test_commands_run(home, words):
    code, said = typed(home, small(words), "quit\n" if "--ui=gtp" in words else "")
    assert code in ((0, 1) if words[1:2] == ["gate"] else (0,)), said
