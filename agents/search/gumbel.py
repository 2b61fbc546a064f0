"""Gumbel search (Danihelka et al. 2022, "Policy improvement by planning with Gumbel")."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

from agents.actions import ILLEGAL
from agents.config import SearchOptions
from agents.runtime import keys
from agents.search import halving, selection
from agents.search import tree as tree_search
from agents.search.halving import Order
from agents.search.noise import where_noisy
from agents.search.tree import Edges, Tree, root_edges
from agents.search.tree_updates import Form
from envs.game import Array


def run_gumbel(
    weights,
    key,
    tree,
    expand,
    draw,
    plies,
    config: SearchOptions,
    explore: bool | Array,
    writes: Form = "auto",
    order: Order = "in_turn",
):
    """Full Gumbel search of Danihelka et al. 2022, "Policy improvement by planning with Gumbel".

    If the tree was searched before, earlier visits inform the values. Sequential halving and the move to play count
    only visits of this search.

    Args:
        weights: of the network, for `expand`.
        key: one key, or one per lane.
        tree: the trees to grow.
        expand: see `expansion.make_expand`.
        draw: (sample, key) -> float32[B, K], noise for the root edges from `sample(key, shape)`.
        plies: int32[B], moves made in each game; unused, as PUCT needs them.
        config: simulations and constants.
        explore: whether to use the noise of self-play, one bool or bool[B].
        writes: see `tree_updates.in_form`.
        order: see `halving`.

    Returns:
        Edge to play int32[B], improved policy float32[B, K], and the trees.
    """
    del plies
    search_key, noise_key = keys.split(key)  # split as in mctx, so both loops see the same noise
    start = root_edges(tree)
    noise = where_noisy(explore, lambda: draw(jax.random.gumbel, noise_key), jnp.zeros_like(start.logits))
    considered = min(config.max_num_considered_actions, start.logits.shape[-1])
    values = functools.partial(_completed, config=config)

    def below(edges: Edges) -> Array:
        edges = selection.drop_refuted(edges)
        return selection.gumbel_inner(edges, values(edges))

    def grow(tree: Tree, at_root: Callable[[Edges], Array], steps: int, **batch: int) -> Tree:
        return tree_search.search(weights, search_key, tree, expand, at_root, below, steps, writes, **batch)

    if order == "side_by_side":
        tree = _side_by_side(tree, grow, values, noise, halving.halving_phases(considered, config.num_simulations))
    else:
        table = jnp.asarray(halving.halving_table(considered, config.num_simulations))

        def at_root(edges: Edges) -> Array:
            edges = selection.drop_refuted(edges)
            return halving.in_turn(edges, values(edges), noise, start.visits, table)

        tree = grow(tree, at_root, config.num_simulations)
    edges = selection.final_candidates(root_edges(tree))
    found, legal = values(edges), selection.legal(edges)
    visits = jnp.where(legal, edges.visits - start.visits, -1)
    finalists = legal & (visits == visits.max(-1, keepdims=True))
    action = selection.best_edge(selection.gumbel_score(edges, found, noise), finalists)
    return selection.prefer_proven(root_edges(tree), action), improved_policy(tree, config), tree


def _side_by_side(
    tree: Tree,
    grow: Callable[..., Tree],
    values: Callable[[Edges], Array],
    noise: Array,
    phases: tuple[halving.Phase, ...],
) -> Tree:
    """Grows the trees phase by phase; the contenders of a phase are visited side by side."""
    before, visits, done = root_edges(tree).visits, 0, 0
    for phase in phases:
        edges = selection.drop_refuted(root_edges(tree))
        most = max(width for width, _ in phase)
        chosen = halving.contenders(edges, values(edges), noise, before, visits, most)
        for width, times in phase:
            tree = grow(tree, lambda _, best=chosen[:, :width]: best, times, width=width, first=done)
            visits, done = visits + times, done + width * times
    return tree


def _completed(edges: Edges, config: SearchOptions) -> Array:
    return selection.completed_values(edges, config.gumbel_value_scale, config.rescale_values)


def improved_policy(tree: Tree, config: SearchOptions) -> Array:
    """The improved policy: prior and completed values combined (Danihelka et al. 2022, section 4)."""
    edges = selection.final_candidates(root_edges(tree))
    return jax.nn.softmax(jnp.where(selection.legal(edges), edges.logits + _completed(edges, config), ILLEGAL))
