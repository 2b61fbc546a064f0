"""Whole matches of GRhino, an independent program for Othello, against random moves."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
GRHINO = "gtp:gtp-rhino --level=3"


def test_grhino_beats_a_random_player():
    """Level 3 won 40 games of 40, so it loses less than 8% of all (rule of three). Then four losses in 16 games have a
    chance below 4%, and far below at the likely rate; an equal player wins 13 of 16 with a chance of 1%."""
    command = [sys.executable, "evaluate.py", "match", GRHINO, "random", "--env=othello", "--games=16", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["a"], result["games"]) == (GRHINO, 16)
    assert result["wins"] >= 13
