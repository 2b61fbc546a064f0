"""Files from others: positions, games, SGF, networks, small files of runs. Each is read or refused in words."""

from __future__ import annotations

import dataclasses
import functools
import io
import json
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from fuzzing import JSON, budget, damaged, mutated

import envs
from agents.arena import solved_positions
from agents.arena.ladder import LADDER, Matches
from agents.config import Config
from agents.run import game_log, report
from agents.run.metrics import METRICS
from agents.serve import sgf
from agents.storage import checkpoint
from agents.storage import weights as models
from envs import saved

ROOT = Path(__file__).parents[2]
OWN = str(ROOT / "docs" / "domineering.py")
SPECS = [*(name for name in envs.list() if name != "evopawness"), "evopawness:history=1", "hex:size=3", OWN]


@functools.cache
def some_records(spec: str) -> list[dict]:
    """Positions of one game played at random, the start first."""
    game, rng = envs.make(spec), np.random.default_rng(0)
    mask, move = saved.compiled(game)
    state, found = game.init(), []
    while len(found) < 12 and mask(state).any():
        found.append(game.to_record(state))
        state = move(state, int(rng.choice(np.flatnonzero(mask(state)))))
    return [json.loads(json.dumps(record)) for record in found]


@budget(400)
@hypothesis.given(st.data())
def test_a_mutated_record_is_a_position_or_refused(data):
    """A record that is taken is one that the game itself writes, types included: true is no 1, and 1.0 is none."""
    game = envs.make(data.draw(st.sampled_from(SPECS)))
    text = json.dumps(data.draw(mutated(data.draw(st.sampled_from(some_records(game.name))))))
    try:
        state = saved.read(game, text).start
    except ValueError as error:
        assert str(error)
        return
    record, again = json.loads(text), json.loads(json.dumps(game.to_record(state)))
    for name in record.keys() & again.keys():
        if name not in ("komi", "moves"):  # a whole number may be written for a komi; Connect Four keeps no moves
            assert json.dumps(sorted_lists(record[name])) == json.dumps(sorted_lists(again[name])), name


def sorted_lists(value):
    """Lists whose order means nothing come back sorted."""
    whole = isinstance(value, list) and all(isinstance(x, int) for x in value)
    return sorted(value, key=repr) if whole else value


@budget(200)
@hypothesis.given(st.data())
def test_a_damaged_game_file_is_a_game_or_refused(data):
    game = envs.make("tictactoe")
    states, actions = saved.replay(game, game.init(), ["b2", "a1", "c3"])
    whole = saved.to_file(game, states, actions, 1)
    text = data.draw(damaged(whole.encode())).decode(errors="replace")
    if data.draw(st.booleans()):
        text = json.dumps(data.draw(mutated(json.loads(whole)) | JSON))
    try:
        found = saved.read(game, text)
        saved.replay(game, found.start, found.actions)
    except ValueError as error:
        assert str(error)


SGF = b"(;FF[4]GM[1]CA[UTF-8]SZ[5]KM[7.5]RE[B+R]AB[aa][bb]AW[cc]PL[W];W[dd]C[a:b\\]];B[ee];W[];B[tt](;W[ab])(;W[ba]))"


@budget(500)
@hypothesis.given(damaged(SGF) | st.sampled_from(["zlib", "rot13", "hex", "utf-16", "idna", "punycode", "x" * 99]).map(
    lambda name: SGF.replace(b"UTF-8", name.encode())
))  # fmt: skip
def test_a_damaged_sgf_is_a_game_or_refused(data):
    game = envs.make("go:size=5,komi=7.5")
    try:
        found = sgf.start_from_sgf(game, data)
        saved.replay(game, found.start, found.actions)
    except ValueError as error:
        assert str(error)


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """A small network's file."""
    config = Config(env="tictactoe", network="mlp", channels=4, blocks=0, normalisation="none")
    weights = jax.tree.map(lambda x: np.ones(x.shape, np.float16), models.shapes_of("tictactoe", config))
    folder = tmp_path_factory.mktemp("network")
    return models.write_network(folder, {"config": config, "iteration": 3, "minutes": 1.0}, weights).read_bytes()


def refused_or_finite(folder: Path) -> None:
    """Loads what lies in the folder. Shapes of absurd sizes are not built: their options are out of range."""
    try:
        about = models.about(folder)
        config = about["config"]
        if max(config.channels * config.blocks, config.channels) > 10_000:
            return
        weights = models.load_arrays(folder, config)
    except ValueError as error:
        assert "\n" not in " ".join(str(error).split()) and str(error)
        return
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(weights))


@budget(200)
@hypothesis.given(st.data())
def test_a_damaged_network_is_refused_or_finite(network, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("damaged")
    (folder / models.NETWORK_FILE).write_bytes(data.draw(damaged(network)))
    refused_or_finite(folder)


@budget(150)
@hypothesis.given(st.data())
def test_a_mutated_record_of_a_network_is_refused_or_finite(network, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("mutated")
    with np.load(io.BytesIO(network)) as file:
        arrays = dict(file)
    record = data.draw(mutated(json.loads(str(arrays[models.ABOUT]))))
    np.savez(folder / models.NETWORK_FILE, **arrays | {models.ABOUT: np.array(json.dumps(record))})
    refused_or_finite(folder)


ROW = {"iteration": 1, "minutes": 0.5, "total_games": 3, "total_plies": 20, "calibration": [[1, 2], [0.5, 1]]}
GAME = {"iteration": 1, "opening": 0, "moves": ["b2", "a1"], "resigned": False, "rewards": [1.0, -1.0]}
RATING = {"player": "a", "elo": 1.0, "interval": [0, 2], "games": 3, "minutes": 1.0}
SMALL = {
    METRICS: (ROW, lambda folder: report.draw_calibration(report.read_metrics(folder))),
    game_log.GAMES_FILE: (GAME, lambda folder: list(game_log.read_games(folder))),
    LADDER: ({"ratings": [RATING]}, report.ladder_panel),
    "matches.jsonl": ({"match": {"a": "x"}, "pairs": [0.5, 1]}, lambda folder: Matches(folder / "matches.jsonl")),
    "solved.jsonl": (
        {"board": [0] * 9, "to_move": 1, "optimal": [4]},
        lambda folder: solved_positions.read_positions(folder / "solved.jsonl", envs.make("tictactoe")),
    ),
}


@budget(300)
@hypothesis.given(st.data())
def test_a_damaged_small_file_is_read_or_named(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("small")
    name = data.draw(st.sampled_from(sorted(SMALL)))
    record, read = SMALL[name]
    whole = json.dumps(record).encode() + b"\n"
    mutant = lambda: json.dumps(data.draw(mutated(record))).encode() + b"\n"
    (folder / name).write_bytes(data.draw(damaged(whole)) if data.draw(st.booleans()) else mutant())
    try:
        read(folder)
    except ValueError as error:
        assert name in str(error)


@budget(200)
@hypothesis.given(JSON | mutated(json.loads(json.dumps(dataclasses.asdict(Config())))).map(lambda x: {"config": x}))
def test_any_record_of_a_checkpoint_is_taken_or_refused(value):
    try:
        found = checkpoint.record(json.dumps(value), "here")
    except checkpoint.CheckpointError as error:
        assert str(error).startswith("here ")
    else:
        assert isinstance(found["config"], Config)
