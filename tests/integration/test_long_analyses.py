"""The tree kept after a move, analyses on several devices and of tens of thousands of simulations."""

import dataclasses

import jax
import numpy as np
import pytest
from toys import blank_network, noisy_network

import envs
from agents.config import Config
from agents.players.analysis import advance_trees, analyse, from_tree_policy, make_analyst, report
from agents.runtime import mesh
from agents.search.policies import make_tree_policy
from agents.search.tree import ROOT

CONFIG = Config(num_simulations=32, max_num_considered_actions=16)
KINDS = ["gumbel", "puct"]


def tictactoe(picture: str):
    cells = [{"X": 1, "O": -1, ".": 0}[c] for c in picture.replace(" ", "")]
    return envs.make("tictactoe").from_record({"board": cells, "to_move": 1 if sum(cells) == 0 else -1})


@pytest.mark.parametrize("kind", ["gumbel", pytest.param("puct", marks=pytest.mark.nightly)])
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


def same_below(old, new, there: int, here: int) -> int:
    """Compares node `there` of one tree and `here` of another, and all below; gives the number of nodes."""
    for name in (
        "mover",
        "over",
        "raw_values",
        "values",
        "visits",
        "logits",
        "edge_visits",
        "edge_values",
        "lower_bound",
        "upper_bound",
    ):
        if getattr(old, name) is not None:
            np.testing.assert_array_equal(getattr(old, name)[0, there], getattr(new, name)[0, here])
    for a, b in zip(jax.tree.leaves(old.states), jax.tree.leaves(new.states), strict=True):
        np.testing.assert_array_equal(a[0, there], b[0, here])
    count = 1
    for edge in np.flatnonzero(old.child[0, there] >= 0):
        below, moved = int(old.child[0, there, edge]), int(new.child[0, here, edge])
        assert new.parent[0, moved] == here < moved
        assert new.edge[0, moved] == edge
        count += same_below(old, new, below, moved)
    assert (new.child[0, here] >= 0).sum() == (old.child[0, there] >= 0).sum()
    return count


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("slots", [False, True], ids=["dense", "slots"])
def test_the_tree_under_a_move_is_kept(kind, slots):
    """Every node below the move played, with all that is known of it; then it grows on."""
    game = envs.make("foq:rows=4,cols=5")
    config = dataclasses.replace(CONFIG, search=kind, proofs=True, root_symmetry="average")
    tree_policy = make_tree_policy(game, noisy_network(20), config, slots=slots)
    analyst = from_tree_policy(game, tree_policy, config.num_simulations, max_nodes=200)
    state = game.init()
    trees = analyse(analyst, {}, jax.random.key(0), analyst.begin({}, jax.random.key(1), state), simulations=96)
    old = jax.device_get(trees)
    assert int(old.visits[0, ROOT]) == 97
    edge = int(old.edge_visits[0, ROOT].argmax())
    code = int(np.broadcast_to(analyst.codes(old), old.logits.shape)[0, ROOT, edge])
    after = advance_trees(analyst, {}, jax.random.key(2), trees, code)
    new = jax.device_get(after)
    assert int(new.size[0]) == same_below(old, new, int(old.child[0, ROOT, edge]), ROOT) > 10
    assert new.parent[0, ROOT] == -1
    assert (new.child[0, int(new.size[0]) :] == -1).all()
    assert (new.visits[0, int(new.size[0]) :] == 0).all()
    grown = jax.device_get(analyse(analyst, {}, jax.random.key(3), after, simulations=64))
    assert int(grown.visits[0, ROOT]) == int(new.visits[0, ROOT]) + 64
    assert int(grown.edge_visits[0, ROOT].sum()) == int(grown.visits[0, ROOT]) - 1
    legal = np.asarray(game.mask(game.step(state, code)))
    codes = np.broadcast_to(analyst.codes(grown), grown.logits.shape)[0, ROOT]
    assert legal[codes[grown.edge_visits[0, ROOT] > 0]].all()
