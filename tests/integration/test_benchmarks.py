"""The benchmarks that time whole parts of the engine still fit it: one small row of each."""

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
