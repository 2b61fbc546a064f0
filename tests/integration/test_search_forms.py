"""One search in many forms: our loop and mctx's, trees over codes and over slots, both forms of writes, any batch."""

import dataclasses
import functools
import json

import golden_trees
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import KINDS, blank_network, noisy_network, random_positions

import envs
from agents.config import Config
from agents.search import expansion
from agents.search import tree as tree_search
from agents.search.expansion import tree_slots
from agents.search.policies import make_search, make_tree_policy


@pytest.mark.parametrize("kind", KINDS)
def test_our_trees_are_those_of_mctx_whatever_their_neighbours(kind):
    """Every edge and its visits, as oracles/golden_trees.py wrote them down; among other games and others again."""
    lines = map(json.loads, golden_trees.FILE.read_text().splitlines())
    wanted = [line for line in lines if line["search"] == kind]
    game = envs.make(golden_trees.SPEC)
    config = Config(num_simulations=golden_trees.SIMULATIONS, search=kind)
    tree_policy = make_tree_policy(game, noisy_network(game.num_actions), config)

    @jax.jit
    def grow(states):
        trees = tree_policy.init_tree({}, jax.random.key(0), states, config.num_simulations + 1)
        return tree_policy.run_simulations({}, jax.random.key(0), trees, jnp.zeros(16, jnp.int32), False)[2]

    def paths(tree, lane, node=0, path=()):
        for action in np.flatnonzero(tree.edge_visits[lane, node]).tolist():
            yield " ".join(map(str, (*path, action))), int(tree.edge_visits[lane, node, action])
            yield from paths(tree, lane, tree.child[lane, node, action], (*path, action))

    for spread, first in ((6, 0), (9, 5)):
        neighbours = random_positions(game, 16, spread)
        here = first + np.arange(3)
        put = lambda x, y, here=here: x.at[here].set(y)
        tree = jax.device_get(grow(jax.tree.map(put, neighbours, golden_trees.positions(game))))
        values = tree_search.for_mover(tree.values, tree.mover)
        for lane, line in zip(here, wanted, strict=True):
            assert dict(paths(tree, lane)) == line["visits"]
            assert values[lane, 0] == pytest.approx(line["value"], abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("slots", [False, True], ids=["dense", "slots"])
def test_no_node_of_a_tree_has_been_left_by_an_illegal_move(kind, slots):
    """Noise at the root included; the rules say what is legal."""
    game, net = envs.make("foq:rows=4,cols=5"), noisy_network(20)
    config = Config(num_simulations=60, search=kind)
    tree_policy = make_tree_policy(game, net, config, slots=slots)
    states = random_positions(game, 32, 6)

    @jax.jit
    def grow(key):
        trees = tree_policy.init_tree({}, key, states, 61)
        trees = tree_policy.run_simulations({}, key, trees, jnp.zeros(32, jnp.int32), True)[2]
        legal = jax.vmap(jax.vmap(game.mask))(tree_policy.states(trees))
        return trees, jnp.broadcast_to(tree_policy.codes(trees), trees.logits.shape), legal

    trees, codes, legal = jax.device_get(grow(jax.random.key(0)))
    lane, node, edge = np.nonzero((trees.child >= 0) | (trees.edge_visits > 0))
    assert len(lane) == (trees.size - 1).sum() > 1000  # every node but the roots was met along one edge
    assert (node > 0).sum() > 500
    assert legal[lane, node, codes[lane, node, edge]].all()


@pytest.mark.parametrize("writes", [pytest.param("scatter", marks=pytest.mark.nightly), "one_hot"])
@pytest.mark.parametrize("options", [
    {"search": "puct"}, {"order": "in_turn", "proofs": True}, {"order": "side_by_side", "proofs": True},
], ids=["puct", "in turn", "side by side"])  # fmt: skip
def test_trees_with_nodes_at_the_same_places_are_the_same(options, writes):
    """Near the end of a game simulations meet finished positions again: then a place stays empty in some trees."""
    game, order = envs.make("tictactoe"), options.get("order", "auto")
    config = Config(num_simulations=40, **{k: x for k, x in options.items() if k != "order"})
    tree_policy = make_tree_policy(game, noisy_network(9), config, order=order, writes=writes)
    states = random_positions(game, 32, 5)

    @functools.partial(jax.jit, static_argnums=0)
    def grow(aligned):
        trees = tree_policy.init_tree({}, jax.random.key(1), states, 41)
        trees = tree_search.aligned(trees) if aligned else trees
        return tree_policy.run_simulations({}, jax.random.key(2), trees, jnp.zeros(32, jnp.int32), True)

    (edges, policy, trees), (edges_apart, policy_apart, apart) = jax.device_get((grow(True), grow(False)))
    assert (edges == edges_apart).all()
    np.testing.assert_allclose(policy, policy_apart, atol=1e-6)
    assert trees.size == 41
    assert (apart.size < 41).any()

    def nodes(tree, lane, node=0, path=()):
        """Path, facts and means of every node."""
        about = tree.visits, tree.mover, tree.over, tree.states.board, tree.edge_visits
        means = np.concatenate([tree.values[lane, node], tree.edge_values[lane, node]])
        yield path, [x[lane, node].tolist() for x in about], means
        for edge in np.flatnonzero(tree.child[lane, node] >= 0).tolist():
            child = tree.child[lane, node, edge]
            assert (tree.parent[lane, child], tree.edge[lane, child]) == (node, edge)
            yield from nodes(tree, lane, child, (*path, edge))

    for lane in range(32):
        for node, node_apart in zip(nodes(trees, lane), nodes(apart, lane), strict=True):
            assert node[:2] == node_apart[:2]
            np.testing.assert_allclose(node[2], node_apart[2], atol=1e-5)
    assert ((trees.parent[:, 1:] >= 0).sum(1) == apart.size - 1).all()  # a gap has no parent


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_is_traced_once(kind):
    """Whatever the weights, keys and positions: only shapes may compile anew."""
    game, traces = envs.make("tictactoe"), []
    blank = blank_network(9)

    def apply(weights, planes):
        traces.append(planes.shape)
        return blank.apply(weights, planes)

    search = jax.jit(make_search(game, dataclasses.replace(blank, apply=apply), Config(search=kind), explore=True))
    met = []
    for seed in range(3):
        search({}, jax.random.key(seed), random_positions(game, 4, seed), jnp.full(4, seed))
        met.append(len(traces))
    assert met == [met[0]] * 3
    assert met[0] > 0


@pytest.mark.parametrize("keys_of_lanes", [False, True], ids=["one key", "keys of lanes"])
def test_a_search_in_parts_is_the_same(monkeypatch, keys_of_lanes):
    """A TPU expands 3 positions of 8 at once; here its branch of the program runs on a CPU."""
    game, net = envs.make("foq:rows=4,cols=5"), noisy_network(20)
    states, config = random_positions(game, 8, 6), Config(num_simulations=12)
    key = jax.random.split(jax.random.key(0), 8) if keys_of_lanes else jax.random.key(0)
    run = lambda: jax.jit(make_search(game, net, config, explore=True))({}, key, states, jnp.zeros(8, jnp.int32))
    whole, shapes = run(), []
    apply = lambda weights, planes: shapes.append(len(planes)) or net.apply(weights, planes)
    monkeypatch.setattr(expansion, "TPU_ROWS", 3)
    monkeypatch.setattr(jax.lax, "platform_dependent", lambda *given, tpu, default: tpu(*given))
    parts = jax.jit(make_search(game, dataclasses.replace(net, apply=apply), config, explore=True))(
        {}, key, states, jnp.zeros(8, jnp.int32)
    )
    assert set(shapes) == {8, 3, 2}  # the roots; the parts and the rest
    for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(parts), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_slots_are_the_default_where_few_of_many_actions_are_legal():
    game = envs.make("evopawness")
    assert tree_slots(game) == game.max_legal + 1
    assert tree_slots(game, False) is None
    assert tree_slots(envs.make("foq")) is None


def test_what_mctx_cannot_do_is_refused_by_name():
    game = envs.make("foq:rows=4,cols=5")
    for options, named in (
        ({"proofs": True}, "--proofs"),
        ({"search": "puct", "rescale_values": False}, "--no_rescale_values"),
    ):
        with pytest.raises(ValueError, match=named):
            make_search(game, blank_network(20), Config(search_loop="mctx", **options), explore=False)
