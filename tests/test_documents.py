"""What the documents tell people to type: every option is one that the programs take, and the README's Python runs.

That the programs then do what is said is tested where they are, with small settings.
"""

import pathlib
import re
import shlex

import pytest

import envs
import evaluate
from agents import cli
from agents.serve.options import Options

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
        cli.parse(cli.Training, [word for word in arguments if word not in ("--help", "${options[@]}")], cli.Training())
    elif program == "evaluate.py" and arguments:
        cli.parse(evaluate.Command, arguments)
    elif program == "play.py":
        cli.parse(Options, arguments)
    elif program.startswith("benchmarks/"):
        source = (ROOT / program).read_text() + (ROOT / "benchmarks/rounds.py").read_text()
        assert all(word.split("=")[0].lstrip("-") in source for word in arguments)


def test_the_documents_have_commands():
    seen = {where(words) for _, words in CASES}
    assert {"train.py", "evaluate.py", "play.py", "agents/report.py", "agents/export.py", "envs/draw.py"} <= seen
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
