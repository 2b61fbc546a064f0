"""MCTS without a network: UCB1 in the tree, random playouts at its leaves."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from agents.actions import ILLEGAL, at_slots, random_action
from agents.runtime import keys
from agents.search import selection
from agents.search import tree as tree_search
from agents.search.expansion import make_expand, make_leaf, tree_slots
from agents.search.policies import TreePolicy, assemble_tree_policy
from agents.search.puct import visit_shares
from agents.search.tree import Edges, root_edges
from envs.game import Array, Game


def make_uct(game: Game, num_simulations: int) -> Callable[[Array, Any], Edges]:
    """`run_simulations(key, states [B]) -> Edges` of the roots after MCTS without a network."""
    tree_policy = uct_tree_policy(game, num_simulations)

    def run_simulations(key, states):
        root_key, search_key = jax.random.split(key)
        tree = tree_policy.init_tree({}, root_key, states, num_simulations + 1)
        return root_edges(
            tree_policy.run_simulations({}, search_key, tree, jnp.zeros(len(tree.visits), jnp.int32), False)[2]
        )

    return run_simulations


def uct_tree_policy(game: Game, num_simulations: int, exploration: float = 2**-0.5) -> TreePolicy:
    """MCTS without a network, `num_simulations` at a time: UCB1 in the tree, one random playout at each new node.

    It plays the most visited move, and ignores weights, plies and `explore`. Kocsis and Szepesvari 2006; `exploration`
    is C_p of the survey of Browne et al. 2012, here with results in [-1, 1].
    """

    def play_out(key, states):
        def ply(carry):
            states, key = carry
            key, action_key = keys.split(key)
            action = random_action(action_key, jax.vmap(game.mask)(states))
            return jax.vmap(game.step)(states, action), key

        unfinished = lambda carry: (~jax.vmap(game.over)(carry[0])).any()
        end, _ = jax.lax.while_loop(unfinished, ply, (states, key))
        return jax.vmap(game.rewards)(end)

    def evaluate(weights, key, states, slots):
        play_key, lot_key = keys.split(key)
        mask = jax.vmap(game.mask)(states)
        lots = jnp.where(mask, keys.draw_lanes(jax.random.uniform, lot_key, mask.shape), ILLEGAL)
        return lots if slots is None else at_slots(lots, slots, ILLEGAL), play_out(play_key, states)

    select = functools.partial(selection.ucb1, exploration=exploration)
    num_slots = tree_slots(game)
    expand = make_expand(game, evaluate, num_slots=num_slots)

    def run_simulations(weights, key, tree, plies, explore):
        del plies, explore
        tree = tree_search.search(weights, key, tree, expand, select, select, num_simulations)
        edges = root_edges(tree)
        share = edges.visits / jnp.maximum(edges.visits.sum(-1, keepdims=True), 1)
        return selection.best_edge(edges.visits + 0.5 * edges.logits, selection.legal(edges)), share, tree

    def root(weights, key, states, slots):
        return make_leaf(game, states, *evaluate(weights, key, states, slots))

    return assemble_tree_policy(game, root, run_simulations, visit_shares, num_slots)
