"""The benchmarks that time whole parts of the engine still fit it: one small row of each. What they refuse."""

import importlib
import os
import sys
from unittest import mock

import jax
import numpy as np
import pytest
from random_network import random_planes, random_weights

import envs
from agents.config import Config
from agents.network.network import make_network
from benchmarks import equivariant_strips, search, selfplay, train


@pytest.fixture(autouse=True)
def one_round(monkeypatch):
    for benchmark in (search, selfplay, train):
        monkeypatch.setattr(benchmark, "ROUNDS", 1)


def test_selfplay_and_its_network_alone(monkeypatch):
    monkeypatch.setattr(selfplay, "CPU", [("tictactoe", 4, 8, 1, 4, 2)])
    other = lambda spec, games, simulations, channels, blocks, plies: lambda: jax.numpy.ones(games)
    (row,) = selfplay.measure(other)
    assert row["moves_per_second"] > 0 and 0 < row["share"] < 2 and row["ratio"] > 0


@pytest.mark.nightly
def test_an_iteration_of_training(monkeypatch):
    monkeypatch.setattr(train, "CPU", [("tictactoe", 4, 8, 1, 4, 2, 4)])
    (row,) = train.measure(None)
    assert row["moves/s"] > 0 and row["updates/s"] > 0 and row["row"] > 0
    assert row["play"] + row["learn"] == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("loop", ["native", "mctx"])
def test_a_search_alone(loop):
    actions, depth = search.searcher(num_actions=5, games=3, simulations=8, kind="gumbel", loop=loop)()
    assert actions.shape == (3,) and depth >= 1


@pytest.mark.parametrize("spec", ["connect_four:rows=4,cols=5", "foq:rows=4,cols=5", "foq_single:rows=4,cols=4"])
def test_equivariant_strips_turn_with_the_board(spec):
    game = envs.make(spec)
    config = Config(env=game.name, network="equivariant_strips", channels=16, blocks=1)
    net = make_network(game, config)
    weights, planes = random_weights(jax.eval_shape(net.init, jax.random.key(0)), 1), random_planes(game, 1)
    logits, value = net.apply(weights, planes)
    assert np.ptp(logits) > 1e-3
    for symmetry in game.symmetries:
        there, its = net.apply(weights, jax.vmap(symmetry.planes)(planes))
        np.testing.assert_allclose(there[:, symmetry.actions], logits, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(its, value, rtol=1e-4, atol=1e-4)


def test_strips_share_as_many_weights_as_there_are_symmetries():
    """Worked out by hand. On a rectangle no symmetry but the identity keeps the frames of an input, so orbits have the
    size of the group, 4; on a square rows and columns are exchanged too, so all orbits have 8."""
    for spec, sizes, symmetries in (("foq:rows=4,cols=5", (4, 5), 4), ("foq_single:rows=4,cols=4", (4, 4), 8)):
        group = equivariant_strips.group_of(envs.make(spec))
        tied = equivariant_strips.tied_strips(group, *sizes)
        assert tied.shape == (sizes[0] ** 2 + sizes[1] ** 2, symmetries, symmetries)
        assert set(np.bincount(tied.ravel())) == {symmetries}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("best_move --games nothing", "models/nothing does not exist"),
        ("best_move --games tictactoe --matches 3", "--matches: expected an even number"),
        ("compiled foq --parts=rules,nothing", "--parts: expected rules or some of step, mask, observe"),
        ("considered nothing", "no checkpoint: nothing does not exist"),
        ("considered models/tictactoe --solved nothing.gz", "nothing.gz: No such file"),
        ("first_reply nothing", "unknown game 'nothing'"),
        ("first_reply tictactoe --guests=0", "--guests: expected 1 or more, got 0"),
        ("halving --games nothing", "unknown game 'nothing'"),
        ("networks --games tictactoe --iterations=1", "--iterations: expected more than 1 for tictactoe"),
        ("precision nothing", "no checkpoint: nothing does not exist"),
        ("selfplay --other=mine.py:nothing", "--other=mine.py:nothing: there is no function nothing in mine.py"),
        ("standalone nothing", "unknown game 'nothing'"),
        ("standalone hex:size=3", "expected a game with a shipped network, got hex:size=3"),
    ],
)
def test_what_a_benchmark_refuses_is_told_in_one_line(line, words, tmp_path, monkeypatch, capsys):
    name, *arguments = line.split()
    monkeypatch.setattr(sys, "argv", [f"benchmarks/{name}.py", *arguments])
    (tmp_path / "mine.py").write_text("nothing = 1\n")
    monkeypatch.chdir(tmp_path)
    with mock.patch.dict(os.environ), pytest.raises(SystemExit) as stop:  # benchmarks/compiled.py chooses the platform
        importlib.import_module(f"benchmarks.{name}").main()
    said = capsys.readouterr().err
    assert (stop.value.code, said.count("\n")) == (2, 1) and words in said


@pytest.mark.parametrize("name", ["envs", "search", "scaling", "train"])
def test_a_benchmark_without_a_parser_explains_itself(name, monkeypatch, capsys):
    benchmark = importlib.import_module(f"benchmarks.{name}")
    monkeypatch.setitem(sys.modules, "__main__", benchmark)
    monkeypatch.setattr(sys, "argv", [f"benchmarks/{name}.py", "--help"])
    with pytest.raises(SystemExit) as stop:
        benchmark.main()
    assert not stop.value.code and capsys.readouterr().out.strip() == (benchmark.__doc__ or "").strip()
