"""Matches from the command line: a person at the terminal, a search by the clock, GNU Go."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
GAME = "go:size=5,komi=24.5"
GNUGO = "gtp:gnugo --mode gtp --level 1 --chinese-rules --capture-all-dead"


def evaluate(*arguments, text=""):
    command = [sys.executable, "evaluate.py", "match", *arguments]
    return subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, timeout=300)


def test_somebody_at_the_terminal_plays_a_match():
    """Who names cells in turn until one is free; what is no free cell is asked for again."""
    cells = "".join(f"{column}{row}\n" for column in "abc" for row in "123")
    done = evaluate("person", "random", "--env=tictactoe", "--json", text=f"nonsense\n{100 * cells}")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["a"], result["games"]) == ("person", 2)
    assert "nonsense" in done.stderr
    assert "game 2 of 2: " in done.stderr
    assert done.stderr.split("game 1 of 2: ")[0].splitlines()[-2:][0].split() == [
        "a",
        "b",
        "c",
    ]  # below the final board
    done = evaluate("person", "random", "--env=tictactoe", text="a1\n")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("the input ended before the match did")
    assert "Traceback" not in done.stderr


def test_ctrl_c_ends_a_match_without_a_traceback():
    # Programs begun in the background by a shell, as this may be, ignore the signal, and so do theirs.
    heed = "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    start = f"{heed}; runpy.run_path('evaluate.py', run_name='__main__')"
    command = [sys.executable, "-c", start, "match", "person", "random", "--env=tictactoe"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen(command, cwd=ROOT, text=True, **pipes)
    said = ""
    while not said.endswith("your move as X>"):
        said += process.stderr.read(1)
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output, errors.strip()) == (130, "", "")


@pytest.mark.nightly
def test_a_search_by_the_clock_plays_a_match():
    began = time.monotonic()
    done = evaluate("models/tictactoe@0.05s", "uct:0.05s", "--games=4", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (
        result["score"] >= 0.5
    )  # this network keeps every value by itself, and every opening is played from both seats
    assert result["seconds"] >= 4 * 0.05 * (result["mean_plies"] - 2)
    assert time.monotonic() - began < 200
    done = evaluate("prove:1024,uct:0.05s", "models/tictactoe@0.05s", "--games=4", "--json")
    assert json.loads(done.stdout)["score"] == 0.5  # both keep every value
    done = evaluate("models/tictactoe@0s", "random")
    assert (done.returncode, done.stdout) == (2, "")
    assert "expected more than 0 seconds" in done.stderr


def test_gnu_go_beats_a_random_player_as_the_command_says():
    """White has 24.5 points of komi on 5 x 5, so both win some; GNU Go as Black wins no less than half of all."""
    command = [sys.executable, "evaluate.py", "match", GNUGO, "random", f"--env={GAME}", "--games=6", "--json"]
    done = subprocess.run([*command, "--no-fair"], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["a"], result["b"], result["games"]) == (GNUGO, "random", 6)
    assert result["wins"] + result["draws"] + result["losses"] == 6
    assert result["score"] >= 0.5
    assert result["repeated"] == 0
    assert np.isfinite(result["mean_plies"])
