"""A recipe must learn tic-tac-toe, from the command line to the exact table."""

import dataclasses
import pathlib

import numpy as np

import train
from agents.arena import solved_positions
from agents.players.players import make_player
from agents.run.options import training

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"


def learns(recipe, options, tmp_path, monkeypatch, record_property):
    monkeypatch.chdir(tmp_path)
    arguments = ["--env=tictactoe", f"--recipe={recipe}", "--out=run", "--seed=1", *options]
    config, _ = training(arguments)
    train.train(config, None)
    positions = solved_positions.read_positions(GOLDEN / "tictactoe_solved.jsonl.gz", train.envs.make("tictactoe"))
    kept = {}
    for simulations in (0, 32):
        moves = solved_positions.choose(
            make_player(f"run@{simulations}", train.envs.make("tictactoe"), 0), positions, 0
        )
        kept[simulations] = positions.right[np.arange(len(moves)), moves].mean()
    record_property("report", f"{recipe:18s} keeps {kept[0]:.1%} alone, {kept[32]:.1%} with 32 simulations")
    assert dataclasses.asdict(config)["recipe"] == recipe
    assert kept[0] > 0.85  # by chance 58%
    assert kept[32] > (0.85 if recipe == "value_generations" else 0.97)
