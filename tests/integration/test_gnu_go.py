"""Whole games of the GTP engine with GNU Go."""

import contextlib
import os
import shutil
import subprocess

import pytest
from gtp_dialogue import ask, stones

GNUGO = shutil.which("gnugo", path=f"{os.environ.get('PATH', '')}:/usr/games")


class Gnugo:
    """GNU Go as a referee or an opponent."""

    def __init__(self):
        assert GNUGO, "GNU Go is missing: apt-get install gnugo"
        options = "--mode gtp --level 1 --seed 1 --chinese-rules --capture-all-dead --never-resign"
        command = [GNUGO, *options.split()]
        self.process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        said = ""
        while not said.endswith("\n\n"):
            part = self.process.stdout.readline()
            assert part, f"GNU Go is gone after {line}"
            said += part
        assert said.startswith("="), said
        return said[1:].strip()


@pytest.fixture
def gnugo():
    program = Gnugo()
    yield program
    with contextlib.suppress(BrokenPipeError):
        program.process.communicate("quit\n", timeout=10)
    program.process.kill()


@pytest.mark.parametrize("both", [True, False], ids=["gnugo plays both", "we play black"])
def test_whole_games_with_gnu_go(engine, gnugo, both):
    """Every move is legal for both, the boards are the same after each of them, and so is the score at the end."""
    for line in ("boardsize 5", "clear_board", "komi 24.5"):
        gnugo(line)
    passes, plies = 0, 0
    while passes < 2:
        colour = "bw"[plies % 2]
        mover, other = (lambda line: ask(engine, line), gnugo) if colour == "b" and not both else (
            gnugo, lambda line: ask(engine, line)
        )  # fmt: skip
        move = mover(f"genmove {colour}")
        assert move.upper() != "RESIGN"
        other(f"play {colour} {move}")
        passes = passes + 1 if move.upper() == "PASS" else 0
        plies += 1
        assert plies <= 50
        for name, cell in (("black", 1), ("white", -1)):
            assert stones(engine, cell) == set(gnugo(f"list_stones {name}").split()), f"after move {plies}"
    assert plies >= 10
    # Both captured what is dead: nothing is left to be judged.
    assert gnugo("final_status_list dead") == ""
    assert ask(engine, "final_score") == gnugo("final_score")
