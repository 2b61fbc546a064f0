"""PUCT (Silver et al. 2018, "A general reinforcement learning algorithm that masters chess, shogi, and Go")."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from agents.actions import ILLEGAL
from agents.config import SearchOptions
from agents.runtime import keys
from agents.search import selection
from agents.search import tree as tree_search
from agents.search.noise import where_noisy, with_dirichlet
from agents.search.tree import ROOT, Tree, root_edges
from agents.search.tree_updates import Form
from envs.game import Array


def run_puct(
    weights,
    key,
    tree,
    expand,
    draw,
    plies,
    config: SearchOptions,
    explore: bool | Array,
    writes: Form = "auto",
    urge: Array | float = 0.0,
):
    """PUCT of Silver et al. 2018 with root noise. In the first plies of self-play, moves are drawn in proportion to
    visits.

    Args:
        weights: of the network, for `expand`.
        key: one key, or one per lane.
        tree: the trees to grow.
        expand: see `expansion.make_expand`.
        draw: (sample, key) -> float32[B, K], noise for the root edges from `sample(key, shape)`.
        plies: int32[B], moves made in each game.
        config: simulations and constants.
        explore: whether to use the noise of self-play, one bool or bool[B].
        writes: see `tree_updates.in_form`.
        urge: float32[B, K], added to the scores of the root edges.

    Returns:
        Edge to play int32[B], shares of the visits float32[B, K], and the trees.
    """
    action_key, noise_key, search_key = keys.split(key, 3)

    def noisy() -> Array:
        gamma = draw(lambda key, shape: jax.random.loggamma(key, config.dirichlet_alpha, shape), noise_key)
        return with_dirichlet(tree.logits[:, ROOT], gamma, config.dirichlet_fraction)

    prior = where_noisy(explore, noisy, tree.logits[:, ROOT])
    options = {
        "c_puct": config.c_puct, "rescale": config.rescale_values, "first_play": config.fpu_reduction
    }  # fmt: skip
    select = lambda edges: selection.puct(selection.drop_refuted(edges), **options)
    # The tree keeps the prior without noise.
    at_root = lambda edges: selection.puct(selection.drop_refuted(edges._replace(logits=prior)), **options, urge=urge)
    tree = tree_search.search(weights, search_key, tree, expand, at_root, select, config.num_simulations, writes)
    edges, policy = selection.final_candidates(root_edges(tree)), visit_shares(tree)
    early = explore & (plies < config.temperature_plies)
    logits = jnp.where(selection.legal(edges), jnp.log(jnp.maximum(policy, 1e-12)), ILLEGAL)
    drawn = keys.draw_lanes(lambda key, _, logits: jax.random.categorical(key, logits), action_key, plies.shape, logits)
    action = selection.prefer_proven(root_edges(tree), logits.argmax(-1).astype(jnp.int32))
    return jnp.where(early, drawn, action).astype(jnp.int32), policy, tree


def visit_shares(tree: Tree) -> Array:
    """Each root edge's share of the visits, float32[B, K]."""
    edges = selection.final_candidates(root_edges(tree))
    visits = jnp.where(selection.legal(edges), edges.visits, 0)
    total = visits.sum(-1, keepdims=True)
    # Proofs may have dropped every visited move, or proven an unvisited one.
    return jnp.where(total > 0, visits / jnp.maximum(total, 1), jax.nn.softmax(edges.logits))
