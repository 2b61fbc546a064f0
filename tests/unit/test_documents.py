"""What the documents tell people to type: every option is one that the programs take.

That the programs then do what is said is tested where they are. The slow tests run all commands of the guides.
"""

import pytest
from documents import CASES, ROOT, where

import envs
import evaluate
from agents.config import Config
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
