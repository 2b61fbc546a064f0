"""Every recipe learns tic-tac-toe, from the command line to the exact table."""

import dataclasses
import pathlib

import numpy as np
import pytest

import train
from agents.arena import solved_positions
from agents.players.players import make_player
from agents.run.options import training

GOLDEN = pathlib.Path(__file__).parent / "golden"
SHORT = {
    "default": ("--iterations=60", "--num_envs=256"),
    "alphazero": (
        "--iterations=160",
        "--num_envs=256",
        "--batch_size=256",
        "--rating_positions=38400",
        "--rating_games=100",
    ),
    "evopawness": ("--iterations=36", "--num_envs=128", "--batch_size=128", "--rating_positions=25600"),
    "value_generations": ("--iterations=4", "--num_envs=3000", "--learning_rate=1e-3", "--channels=256"),
}


LONG = ("alphazero", "evopawness")  # a minute each


@pytest.mark.parametrize("recipe", [pytest.param(r, marks=pytest.mark.slow if r in LONG else ()) for r in SHORT])
def test_a_recipe_learns(recipe, tmp_path, monkeypatch, record_property):
    monkeypatch.chdir(tmp_path)
    arguments = ["--env=tictactoe", f"--recipe={recipe}", "--out=run", "--seed=1", *SHORT[recipe]]
    config, _ = training(arguments)
    train.train(config, None)
    positions = solved_positions.read(GOLDEN / "tictactoe_solved.jsonl.gz", train.envs.make("tictactoe"))
    kept = {}
    for simulations in (0, 32):
        moves = solved_positions.choose(
            make_player(f"run@{simulations}", train.envs.make("tictactoe"), 0), positions, 0
        )
        kept[simulations] = positions.right[np.arange(len(moves)), moves].mean()
    record_property("report", f"{recipe:18s} keeps {kept[0]:.1%} alone, {kept[32]:.1%} with 32 simulations")
    assert dataclasses.asdict(config)["recipe"] == recipe
    assert kept[0] > 0.85  # by chance 58 %
    assert kept[32] > (0.85 if recipe == "value_generations" else 0.97)
