"""What the documents tell people to type, and figures that stand in several of them.

Every option is one that the programs take. That the programs then do what is said is tested where they are. The slow
tests run all commands of the guides.
"""

import re

import pytest
from docstring_parser import parse_from_object
from documents import CASES, ROOT, where

import envs
import evaluate
from agents.config import Config, RunOptions
from agents.run.options import parse_options
from agents.runtime import cli
from agents.serve.options import PlayOptions


@pytest.mark.parametrize(("path", "words"), CASES, ids=[f"{path}: {' '.join(words)}" for path, words in CASES])
def test_commands_are_understood(path, words):
    program, arguments = where(words), words[1:]
    assert (ROOT / program).is_file()
    for word in arguments:  # games, networks and positions that come along
        if word.startswith("--env=") and word != "--env=all":
            assert all(envs.make(name).num_actions for name in word.removeprefix("--env=").split())
        if word.startswith(("models/", "tests/", "docs/")) and "MINE" not in word:
            assert (ROOT / word.split("@")[0]).exists()
    if program == "train.py":
        parse_options([word for word in arguments if word not in ("--help", "${options[@]}")], Config())
    elif program == "evaluate.py" and arguments:
        cli.parse_command(evaluate.Command, arguments)
    elif program == "play.py":
        cli.parse_command(PlayOptions, arguments)
    elif program.startswith("benchmarks/"):
        source = (ROOT / program).read_text() + (ROOT / "benchmarks/rounds.py").read_text()
        assert all(word.split("=")[0].lstrip("-") in source for word in arguments if word.startswith("-"))


@pytest.mark.parametrize("path", ["README.md", "docs/your_game.md"])
def test_the_game_shown_is_the_file(path):
    assert f"```python\n{(ROOT / 'docs/chomp.py').read_text()}```\n" in (ROOT / path).read_text()


def test_the_readme_repeats_the_strengths_of_the_cards():
    repeated = 0
    for row in re.findall(r"^\| \[.*$", (ROOT / "README.md").read_text(), re.MULTILINE):
        for card in re.findall(r"\((models/\w+/README\.md)\)", row):
            strength = re.search(r"^\*\*Strength\*\*: ([\d.]+%)", (ROOT / card).read_text(), re.MULTILINE)
            if strength and card != "models/hex_6x6/README.md":  # its row tells of first moves, as that of hex_5x5
                assert strength[1] in row.split(" | ")[1], card
                repeated += 1
    assert repeated == 15


def test_the_results_repeat_the_strengths_of_the_cards():
    rows = (ROOT / "docs/results.md").read_text().splitlines()
    for card in ROOT.glob("models/*/README.md"):
        strength = re.search(r"^\*\*Strength\*\*: ([\d.]+% \[[^\]]+\])", card.read_text(), re.MULTILINE)
        if strength:
            name = card.parent.name
            assert any(strength[1] in row and re.search(rf"models/{name}\b", row) for row in rows), name


def test_the_help_names_every_game():
    text = " ".join(parse_from_object(RunOptions).params[0].description.split())
    assert all(re.search(rf"\b{name}\b", text) for name in envs.list())


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
