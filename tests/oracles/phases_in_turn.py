"""Sequential halving with contenders fixed by phase, one simulation after the other, to compare with side by side."""

import jax
import jax.numpy as jnp
import numpy as np
from toys import noisy_network, random_positions

import envs
from agents.config import Config
from agents.runtime import keys
from agents.search import policies
from agents.search import tree as tree_search

GAMES = 24


def in_turn(search):
    """`tree.search` with the simulations of every step one after the other, each from the edge of its turn."""

    def searched(weights, key, tree, expand, select_root, select, steps, writes, *, width, first):
        def simulation(i, tree):
            edge = lambda edges: select_root(edges)[:, i % width]
            return search(weights, key, tree, expand, edge, select, 1, writes, first=first + i)

        return jax.lax.fori_loop(0, steps * width, simulation, tree)

    return searched


def searched_twice(spec, simulations, considered, proofs, forced):
    """Edges to play, policies and trees of a search, and of another one in the trees kept after the move."""
    game = envs.make(spec)
    net = noisy_network(game.num_actions, players=game.num_players, exact=True)
    config = Config(
        num_simulations=simulations, max_num_considered_actions=considered, leaf_symmetry="random", proofs=proofs
    )
    policy = policies.make_tree_policy(game, net, config, order="side_by_side", **forced)
    key, plies = keys.of_lanes(jax.random.key(1), jnp.arange(GAMES)), jnp.zeros(GAMES, jnp.int32)
    states = random_positions(game, GAMES, 4)
    trees = jax.jit(lambda: policy.init_tree({}, key, states, 2 * simulations + 1))()
    run = jax.jit(lambda trees: policy.run_simulations({}, key, trees, plies, True))
    first = run(trees)
    return jax.device_get((first, run(jax.jit(tree_search.advance_root)(first[2], first[0]))))


def compare(monkeypatch, spec, simulations, considered=4, proofs=False, **forced):
    """Asserts that the trees are the same node for node, with the noise of self-play and leaves through random
    symmetries, new trees and kept ones."""
    options = spec, simulations, considered, proofs, forced
    together = searched_twice(*options)
    monkeypatch.setattr(tree_search, "search", in_turn(tree_search.search))
    apart = searched_twice(*options)
    assert together[0][2].visits[:, 0].max() == simulations + 1
    assert together[1][2].visits[:, 0].max() > simulations + 1
    for one, other in zip(jax.tree.leaves(together), jax.tree.leaves(apart), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
