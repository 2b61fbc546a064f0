"""What the documents tell people to type: every option is one that the programs take, and the README's Python runs.

That the programs then do what is said is tested where they are. With `-m slow` all commands of the guides are run too,
one by one, with settings so small that each ends within minutes.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest

import envs
import evaluate
from agents.run.options import Training
from agents.runtime import cli
from agents.serve.options import Options
from envs import saved

ROOT = pathlib.Path(__file__).parents[1]
DOCUMENTS = ["README.md", *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("docs/*.md")))]
DOCUMENTS += [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("models/*/README.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(path: str) -> list[list[str]]:
    """The words behind `python` of every command of a document, in its blocks and its sentences."""
    text = (ROOT / path).read_text()
    shell = "".join(content for kind, content in BLOCK.findall(text) if kind == "bash").replace("\\\n", " ")
    lines = shell.splitlines() + [" ".join(said.split()) for said in re.findall(r"`([^`]+)`", BLOCK.sub("", text))]
    said = [match[1] for line in lines if (match := re.search(r"(?:^|[\s|&])python3? (\S.*)", line))]
    alone = [words.removesuffix('"') if words.count('"') % 2 else words for words in said]  # one ends a quotation
    return [shlex.split(words, comments=True) for words in alone]


def where(words: list[str]) -> str:
    """The file of a program or module."""
    return words[1].replace(".", "/") + ".py" if words[0] == "-m" else words[0]


CASES = [(path, words) for path in DOCUMENTS for words in commands(path) if words[0] != "-c" and words[1:2] != ["venv"]]


@pytest.mark.parametrize(("path", "words"), CASES, ids=[f"{path}: {' '.join(words)}" for path, words in CASES])
def test_commands_are_understood(path, words):
    program, arguments = where(words), words[1:]
    assert (ROOT / program).is_file()
    for word in arguments:  # games, networks and positions that come along
        if word.startswith("--env="):
            assert envs.make(word.removeprefix("--env=")).num_actions
        if word.startswith(("models/", "tests/", "docs/")) and "MINE" not in word:
            assert (ROOT / word.split("@")[0]).exists()
    if program == "train.py":
        cli.parse(Training, [word for word in arguments if word not in ("--help", "${options[@]}")], Training())
    elif program == "evaluate.py" and arguments:
        cli.parse(evaluate.Command, arguments)
    elif program == "play.py":
        cli.parse(Options, arguments)
    elif program.startswith("benchmarks/"):
        source = (ROOT / program).read_text() + (ROOT / "benchmarks/rounds.py").read_text()
        assert all(word.split("=")[0].lstrip("-") in source for word in arguments)


GUIDES = ["README.md", "docs/playing.md", "docs/training.md", "docs/troubleshooting.md", "docs/your_game.md"]
TINY = ["--num_envs=16", "--num_simulations=2", "--channels=8", "--blocks=1", "--batch_size=32", "--iterations=1"]
LESS = {"match": ["--games=6"], "gate": ["--games=6"], "ladder": ["--games=6"], "prove": ["--minutes=0.2"]}
NAMES = {"GAME": "docs/domineering.py"} | {f"runs/{name}": "runs/tiny" for name in ("NAME", "A", "B", "NEW", "BEST")}


def small(words: list[str]) -> list[str]:
    """The same command for the tiny run, with less to do: of an option that comes twice the last one counts."""
    words = [NAMES.get(word) or re.sub(r"runs/NAME", "runs/tiny", word) for word in words]
    if words[0] == "train.py":
        going_on = any(word.startswith("--resume=") for word in words)
        return words + (["--iterations=2", "--minutes=60"] if going_on else [*TINY, "--no_preflight"])
    return words + LESS.get(words[1] if len(words) > 1 else "", [])


def to_run() -> list[list[str]]:
    """Once each. People, and pages for browsers, have tests of their own; benchmarks are not for small machines."""
    different = {tuple(words) for path, words in CASES if path in GUIDES and "human" not in words}
    pages = lambda words: words[0] == "play.py" and not any(word.startswith("--ui=") for word in words)
    return [list(words) for words in sorted(different) if not pages(words) and not words[0].startswith("benchmarks/")]


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


def typed(folder, words, told=""):
    path = os.environ["PATH"] + ":/usr/games"  # where Debian has GNU Go
    ended = subprocess.run(
        [sys.executable, *words], cwd=folder, input=told, env={**os.environ, "PATH": path}, text=True, timeout=900,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return ended.returncode, ended.stdout[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize("words", to_run(), ids=" ".join)
def test_commands_run(home, words):
    code, said = typed(home, small(words), "quit\n" if "--ui=gtp" in words else "")
    assert code in ((0, 1) if words[1:2] == ["gate"] else (0,)), said


def test_the_documents_have_commands():
    seen = {where(words) for _, words in CASES}
    assert {
        "train.py",
        "evaluate.py",
        "play.py",
        "agents/run/report.py",
        "agents/storage/export.py",
        "envs/draw.py",
    } <= seen
    assert len(CASES) > 40


def test_the_python_of_the_readme_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    rules, depth = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    names = {}
    exec(rules, names)
    assert names["reached"].shape == (1024, 8, 9)
    assert names["torn"].shape == (1024, 8, 9)
    exec(depth, names)
    after = names["analysis"].report(names["analyst"], names["trees"])["moves"]
    assert after
    assert all(envs.foq.mask(names["s"])[names["game"].parse_action(move["action"])] for move in after)
