"""What the compilers of a TPU and of a GPU make of a small iteration, held so that no change loses it unnoticed.

The compilers may be in another environment, whose Python is named by RIPZERO_COMPILERS; see CONTRIBUTING.md.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest

PYTHON = os.environ.get("RIPZERO_COMPILERS", sys.executable)
ROOT = pathlib.Path(__file__).parents[2]
SMALL = ["num_envs=64", "batch_size=32", "channels=16", "blocks=1", "num_simulations=8", "max_num_considered_actions=4",
         "plies_per_iteration=2", "replay_capacity=1", "random_opening_plies=2"]  # fmt: skip


def rows(chip: str, game: str, parts: str, *options: str) -> list[dict]:
    """The rows of `benchmarks/compiled.py`, compiled as users do it, without the short cuts of this tier."""
    module = "libtpu" if chip.startswith("v") else "jax_cuda12_plugin"
    if subprocess.run([PYTHON, "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip(f"needs {module}, see CONTRIBUTING.md")
    env = {
        name: value for name, value in os.environ.items() if name not in ("JAX_DISABLE_MOST_OPTIMIZATIONS", "XLA_FLAGS")
    }
    command = [PYTHON, "benchmarks/compiled.py", game, *options, f"--chip={chip}", f"--parts={parts}", "--json"]
    done = subprocess.run(command, cwd=ROOT, env=env | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("chip", ["v5e", "h100"])
@pytest.mark.parametrize(
    "game", ["connect_four", "foq", "go:size=9", pytest.param("gomoku:size=9", marks=pytest.mark.nightly)]
)
def test_rules_have_no_loop_of_unknown_length_nor_over_positions(chip, game):
    for row in rows(chip, game, "step"):
        assert row["unknown"] == 0 and (row["rounds"] or 0) < 1000


@pytest.mark.parametrize(
    ("game", "cycles"),
    [
        ("connect_four", 96_701),
        ("hex", 197_303),
        *(pytest.param(*row, marks=pytest.mark.nightly) for row in (("othello", 106_890), ("gomoku:size=9", 217_462))),
    ],
)
def test_rules_on_a_tpu(game, cycles):
    """Figures of libtpu 0.0.42, 2026-11-28, may grow by a quarter."""
    (row,) = rows("v5e", game, "together")
    assert row["cycles"] < 1.25 * cycles


def test_an_iteration_on_a_tpu():
    """Figures of libtpu 0.0.42 from 2026-11-25 to 27; cycles outside products may grow by a quarter."""
    found = rows("v5e", "foq:rows=4,cols=5", "play,learn", *SMALL)
    play, learn = (next(row for row in found if row["program"] == name) for name in ("play", "learn"))
    others = lambda row: row["cycles"] * (1 - row["products"])
    assert (play["unknown"], play["scatters"]) == (4, 3)  # two kinds of steps, each with a descent and a backup
    assert others(play) < 1.25 * 2_970_000
    assert (learn["unknown"], learn["scatters"]) == (1, 1)
    (update,) = (row for row in found if row["program"].endswith(" learn"))
    assert others(update) < 1.25 * 395_000 and update["unknown"] == 0


def test_an_iteration_on_a_gpu():
    """At most 70 kernels a step and 500 an update besides those of the network, and 2 unknown loops a step."""
    found = rows("h100", "foq:rows=4,cols=5", "play,learn", *SMALL)
    (step,) = (row for row in found if row["program"].endswith(" search"))
    (update,) = (row for row in found if row["program"].endswith(" learn"))
    assert step["unknown"] == 2 and step["other"] <= 70
    assert update["unknown"] == 0 and update["other"] <= 500
    assert 0 < step["descent"] < 10 < step["network"]


def test_a_step_of_go_on_a_gpu():
    """Two unknown loops, also where games end in the step and their points are counted."""
    found = rows("h100", "go:size=5", "play", *SMALL)
    (step,) = (row for row in found if row["program"].endswith(" search"))
    assert step["unknown"] == 2


def test_a_match_and_an_analysis_compile():
    found = rows("h100", "connect_four", "match,analysis", *SMALL)
    assert {row["program"] for row in found} >= {"match", "analysis"}
    for step in (row for row in found if row["program"].endswith(" search")):
        assert step["network"] > 0 and step["unknown"] <= 4
