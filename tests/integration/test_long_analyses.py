"""Analyses on several devices and of tens of thousands of simulations."""

import dataclasses

import jax
import numpy as np
import pytest
from toys import blank_network, noisy_network

import envs
from agents.config import Config
from agents.players.analysis import analyse, make_analyst, report
from agents.runtime import mesh
from agents.search.tree import ROOT

CONFIG = Config(num_simulations=32, max_num_considered_actions=16)
KINDS = ["gumbel", "puct"]


def tictactoe(picture: str):
    cells = [{"X": 1, "O": -1, ".": 0}[c] for c in picture.replace(" ", "")]
    return envs.make("tictactoe").from_record({"board": cells, "to_move": 1 if sum(cells) == 0 else -1})


@pytest.mark.parametrize("kind", KINDS)
def test_copies_on_several_devices(kind):
    """The first tree goes without noise, wherever the others are; those see other noise on every device."""
    game = envs.make("foq:rows=4,cols=5")
    config = dataclasses.replace(CONFIG, search=kind)
    grown = {}
    for copies, devices in ((1, 1), (4, 1), (4, 2)):
        there = mesh.make_mesh(copies, copies, devices)
        analyst = make_analyst(game, noisy_network(20), config, max_nodes=100, copies=copies, devices=there)
        trees = analyst.begin({}, jax.random.key(1), game.init())
        grown[copies, devices] = jax.device_get(analyse(analyst, {}, jax.random.key(0), trees, simulations=64))
    for trees in grown.values():
        np.testing.assert_array_equal(trees.edge_visits[0], grown[1, 1].edge_visits[0])
        assert (trees.visits[:, ROOT] == 65).all()
    for trees in (grown[4, 1], grown[4, 2]):
        assert len(np.unique(trees.edge_visits[:, ROOT], axis=0)) > 2


@pytest.mark.parametrize("kind", KINDS)
def test_visits_are_counted_as_far_as_there_is_room_for_the_count(kind):
    """Three empty cells make at most sixteen positions: the tree never fills, but its counts would run over."""
    config = dataclasses.replace(CONFIG, search=kind, num_simulations=256)
    analyst = make_analyst(envs.make("tictactoe"), blank_network(9), config, max_nodes=4096)
    trees = analyst.begin({}, jax.random.key(1), tictactoe("XOX XOO OX."))
    trees = analyse(analyst, {}, jax.random.key(0), trees, simulations=40_000)
    visits = np.asarray(trees.edge_visits)
    assert visits.min() == 0
    assert 2**15 - 256 - 1 <= visits[0, ROOT].sum() == int(trees.visits[0, ROOT]) - 1 < 2**15
    assert report(analyst, trees)["proven"] is not None
