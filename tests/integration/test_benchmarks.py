"""The benchmarks that time whole parts of the engine still fit it: one small row of each."""

import jax
import pytest

from benchmarks import search, selfplay, train


@pytest.fixture(autouse=True)
def one_round(monkeypatch):
    for benchmark in (search, selfplay, train):
        monkeypatch.setattr(benchmark, "ROUNDS", 1)


def test_selfplay_and_its_network_alone(monkeypatch):
    monkeypatch.setattr(selfplay, "CPU", [("tictactoe", 4, 8, 1, 4, 2)])
    other = lambda spec, games, simulations, channels, blocks, plies: lambda: jax.numpy.ones(games)
    (row,) = selfplay.measure(other)
    assert row["moves_per_second"] > 0 and 0 < row["share"] < 2 and row["ratio"] > 0


def test_an_iteration_of_training(monkeypatch):
    monkeypatch.setattr(train, "CPU", [("tictactoe", 4, 8, 1, 4, 2, 4)])
    (row,) = train.measure(None)
    assert row["moves/s"] > 0 and row["updates/s"] > 0 and row["row"] > 0
    assert row["play"] + row["learn"] == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("loop", ["native", "mctx"])
def test_a_search_alone(loop):
    actions, depth = search.searcher(num_actions=5, games=3, simulations=8, kind="gumbel", loop=loop)()
    assert actions.shape == (3,) and depth >= 1
