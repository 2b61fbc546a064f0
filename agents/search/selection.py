"""Selects the edge that a simulation takes, by Gumbel search, PUCT or UCB1, for many nodes at once."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from agents.actions import ILLEGAL
from agents.search.tree import Edges
from envs.game import Array


def legal(edges: Edges) -> Array:
    """Whether an edge exists, bool[M, K]."""
    return edges.logits > ILLEGAL / 2


def best_edge(score: Array, allowed: Array) -> Array:
    """The allowed edge with the highest score, int32[M]; edge 0 if none is allowed."""
    return jnp.where(allowed, score, -jnp.inf).argmax(-1).astype(jnp.int32)


def drop_refuted(edges: Edges) -> Edges:
    """Drops edges that cannot beat a proven result, and clips values to their bounds.

    A node whose own result is proven keeps all its edges, because its choice no longer matters.
    """
    if edges.lower_bound is None or edges.upper_bound is None:
        return edges
    open_ = legal(edges) & (edges.upper_bound > edges.lower_bound.max(-1, keepdims=True))
    kept = open_ | ~open_.any(-1, keepdims=True)
    return edges._replace(
        logits=jnp.where(kept, edges.logits, ILLEGAL),
        edge_values=jnp.clip(edges.edge_values, edges.lower_bound, edges.upper_bound),
    )


def final_candidates(edges: Edges) -> Edges:
    """The edges to choose from after a search: drops edges proven worse than others and clips values to their bounds.
    Unlike `drop_refuted`, it keeps the best proven win or draw."""
    if edges.lower_bound is None or edges.upper_bound is None:
        return edges
    pruned = drop_refuted(edges)
    least = edges.lower_bound.max(-1, keepdims=True)
    secured = legal(edges) & (least > -1) & (edges.lower_bound == least)
    # If the node's own result is proven, `drop_refuted` keeps all edges.
    done = least == edges.upper_bound.max(-1, keepdims=True)
    kept = secured | (legal(pruned) & ~(done & (least > -1)))
    return pruned._replace(logits=jnp.where(kept, edges.logits, ILLEGAL))


def prefer_proven(edges: Edges, chosen: Array) -> Array:
    """The move to play at a root, given the move chosen by values and visits. A proven win or draw replaces the chosen
    move if no better result is possible, or if the chosen move's value is lower."""
    if edges.lower_bound is None or edges.upper_bound is None:
        return chosen
    least, most = edges.lower_bound.max(-1), edges.upper_bound.max(-1)
    proven = best_edge(edges.visits, legal(edges) & (edges.lower_bound == least[:, None]))
    worth = jnp.take_along_axis(
        jnp.clip(edges.edge_values, edges.lower_bound, edges.upper_bound), chosen[:, None], axis=-1
    )[:, 0]
    return jnp.where((least > -1) & ((least == most) | (worth < least)), proven, chosen)


def completed_q(edges: Edges) -> Array:
    """Values of all edges for the mover, float32[M, K]. An unvisited or dropped edge gets the node's mixed value: its
    raw value and the values of the other visited edges, weighted by their priors (Danihelka et al. 2022, "Policy
    improvement by planning with Gumbel", appendix D)."""
    counted = (edges.visits > 0) & legal(edges)
    total = jnp.where(counted, edges.visits, 0).sum(-1)
    prior = jnp.maximum(jax.nn.softmax(edges.logits), jnp.finfo(jnp.float32).tiny)
    seen = jnp.where(counted, prior, 0.0)
    mean = (seen * edges.edge_values).sum(-1) / jnp.where(total > 0, seen.sum(-1), 1.0)
    mixed = (edges.raw_value + total * mean) / (total + 1)
    return jnp.where(counted, edges.edge_values, mixed[:, None])


def searched_value(edges: Edges, policy: Array) -> Array:
    """Value of each node for its mover after a search, within proven bounds; float32[M].

    This is the mean of the completed values under the improved policy [M, K] (Danihelka et al. 2022, section 4). The
    mean over all visits does not estimate the node: sequential halving spends half of the visits evenly on moves that
    are mostly bad.
    """
    value = (policy * completed_q(final_candidates(edges))).sum(-1)
    if edges.lower_bound is None or edges.upper_bound is None:
        return value
    return jnp.clip(value, edges.lower_bound.max(-1), edges.upper_bound.max(-1))


VISIT_OFFSET = 50.0  # added to every node's visits: c_visit of Danihelka et al. 2022, as in mctx


def completed_values(edges: Edges, gumbel_value_scale: float, rescale: bool) -> Array:
    """Values of all edges, scaled to be added to their logits, float32[M, K].

    With `rescale`, the `completed_q` are spread over [0, 1] before they are weighted by `gumbel_value_scale` and visits
    (Danihelka et al. 2022, section 3.4, appendix F).
    """
    values = completed_q(edges)
    if rescale:
        # A refuted move still sets the range. Otherwise the range may be that of two nearly equal moves, and every move
        # that loses at once is tried before the search returns to the good one.
        refuted = jnp.where((edges.visits > 0) & ~legal(edges), edges.edge_values, jnp.inf).min(-1, keepdims=True)
        low, high = jnp.minimum(values.min(-1, keepdims=True), refuted), values.max(-1, keepdims=True)
        values = (values - low) / jnp.maximum(high - low, 1e-8)
    return (VISIT_OFFSET + edges.visits.max(-1, keepdims=True)) * gumbel_value_scale * values


def gumbel_inner(edges: Edges, values: Array) -> Array:
    """Below the root: the edge whose visits lag most behind the improved policy (Danihelka et al. 2022, section 5).

    `values` are the `completed_values` of the edges.
    """
    improved = jax.nn.softmax(edges.logits + values)
    lag = improved - edges.visits / (1 + edges.visits.sum(-1, keepdims=True))
    return lag.argmax(-1).astype(jnp.int32)


def gumbel_score(edges: Edges, values: Array, noise: Array) -> Array:
    """Noise, prior and value of each edge combined; the best of the most visited edges is played."""
    logits = edges.logits - edges.logits.max(-1, keepdims=True)
    return jnp.maximum(noise + logits + values, ILLEGAL)


def puct(
    edges: Edges, c_puct: float, rescale: bool, first_play: float, c_base: float = 19652.0, urge: Array | float = 0.0
) -> Array:
    """Value plus a bonus for prior and few visits (Silver et al. 2018, pseudocode); `c_puct` grows with visits.

    Values are mapped to [0, 1]. With `rescale` they are spread over the range of the visited edges and the node itself,
    and an unvisited edge counts as the lowest (Schrittwieser et al. 2020, appendix B). Without it, the value of an
    unvisited edge is the node's value less `first_play` times the square root of the visited share of the prior
    (Wu 2019). `urge` [M, K] is added unscaled.
    """
    visited, prior = edges.visits > 0, jax.nn.softmax(edges.logits)
    value = edges.value[:, None]
    if rescale:
        known = jnp.where(visited, edges.edge_values, value)
        low = jnp.minimum(value, known.min(-1, keepdims=True))
        high = jnp.maximum(value, known.max(-1, keepdims=True))
        q = (jnp.where(visited, edges.edge_values, low) - low) / jnp.maximum(high - low, 1e-8)
    else:
        seen = jnp.where(visited, prior, 0.0).sum(-1, keepdims=True)
        q = (jnp.where(visited, edges.edge_values, jnp.maximum(value - first_play * jnp.sqrt(seen), -1.0)) + 1) / 2
    total = edges.total[:, None]
    factor = c_puct + jnp.log((total + c_base + 1) / c_base)
    return best_edge(q + jnp.sqrt(total) * factor * prior / (edges.visits + 1) + urge, legal(edges))


def divergence(policy: Array, logits: Array) -> Array:
    """Kullback-Leibler divergence of `policy` [M, K] from the softmax of `logits`, nats; float32[M]."""
    log_ratio = jnp.log(jnp.maximum(policy, 1e-30)) - jax.nn.log_softmax(logits)
    return jnp.where(policy > 0, policy * log_ratio, 0.0).sum(-1)


def ucb1(edges: Edges, exploration: float) -> Array:
    """Kocsis and Szepesvari 2006 for results in [-1, 1]; unvisited edges come first, by descending logit.

    `exploration` is C_p of the survey of Browne et al. 2012, section 3.3.1.
    """
    bonus = jnp.sqrt(2 * jnp.log(edges.total[:, None]) / jnp.maximum(edges.visits, 1))
    score = jnp.where(edges.visits > 0, edges.edge_values + 2 * exploration * bonus, 1e3 + edges.logits)
    return best_edge(score, legal(edges))
