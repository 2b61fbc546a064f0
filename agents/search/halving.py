"""Sequential halving (Karnin et al. 2013) at the root of a Gumbel search (Danihelka et al. 2022, sections 2 and 3).

A phase visits its contenders equally often, then keeps the better half of them, at least two. There are two orders.
In turn, as in mctx, each simulation picks the best edge that is due by all that is known by then. Side by side, as in
the paper, the contenders are fixed when their phase begins. Their subtrees share nothing, so one step visits all of
them: a search takes fewer steps on larger batches.
"""

from __future__ import annotations

import functools
import math
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from agents.search.selection import best_edge, gumbel_score, legal
from agents.search.tree import Edges
from envs.game import Array

Order = Literal["auto", "in_turn", "side_by_side"]


def order_on(platform: str) -> Order:
    """The order that suits a platform. Steps are expensive on accelerators; on a CPU the larger batches gain nothing,
    and a search in turn spends its simulations better where few moves are legal."""
    return "in_turn" if platform == "cpu" else "side_by_side"


Phase = tuple[tuple[int, int], ...]
"""Batches (edges, times): the phase visits its `edges` best contenders side by side, `times` times."""


@functools.cache
def halving_phases(considered: int, simulations: int) -> tuple[Phase, ...]:
    """The phases of `simulations` that start with `considered` edges.

    Simulations are divided evenly among the rounds and, within a round, among the remaining edges. The last two edges
    share all that is left. The last batch may reach only some contenders.
    """
    if considered <= 1:
        return (((1, simulations),),)
    rounds, edges, left, phases = math.ceil(math.log2(considered)), considered, simulations, []
    while left:
        wanted = max(1, simulations // (rounds * edges)) if edges > 2 else left
        times = min(wanted, left // edges)
        rest = left - times * edges if times < wanted else 0
        phases.append(tuple((width, often) for width, often in ((edges, times), (rest, 1)) if width * often))
        left -= times * edges + rest
        edges = max(2, edges // 2)
    return tuple(phases)


@functools.cache
def halving_table(most_considered: int, simulations: int) -> np.ndarray:
    """Visits that an edge needs for simulation i to visit it in turn, if m edges are considered; int32[m + 1, N]."""
    table = np.zeros((most_considered + 1, simulations), np.int32)
    for considered in range(most_considered + 1):
        batches = [batch for phase in halving_phases(considered, simulations) for batch in phase]
        widths = np.repeat(*np.array(batches).T)
        table[considered] = np.repeat(np.arange(len(widths)), widths)
    return table


def in_turn(edges: Edges, values: Array, noise: Array, before: Array, table: Array) -> Array:
    """The root edge that the next simulation takes, int32[M].

    Args:
        edges: the roots.
        values: `completed_values` of the edges.
        noise: float32[M, K], Gumbel noise.
        before: int32[M, K], visits of the edges before this search; they inform values, not the schedule.
        table: `halving_table`.
    """
    visits = edges.visits - before
    left = legal(edges)
    considered = jnp.minimum(table.shape[0] - 1, left.sum(-1))
    # Visits of edges that proofs have dropped since are no part of the schedule of the others.
    due = _due(edges, visits, table[considered, jnp.where(left, visits, 0).sum(-1)][:, None])
    return best_edge(gumbel_score(edges, values, noise), due)


def contenders(edges: Edges, values: Array, noise: Array, before: Array, visits: int, width: int) -> Array:
    """The `width` best root edges that have had `visits` in this search, int32[M, width], best first; -1 where there
    are fewer. The other arguments are those of `in_turn`."""
    due = _due(edges, edges.visits - before, visits)
    score, edge = jax.lax.top_k(jnp.where(due, gumbel_score(edges, values, noise), -jnp.inf), width)
    return jnp.where(score > -jnp.inf, edge, -1)


def _due(edges: Edges, visits: Array, wanted: Array | int) -> Array:
    """Edges with the wanted visits; all if proofs have dropped every one of these."""
    due = legal(edges) & (visits == wanted)
    return due | (legal(edges) & ~due.any(-1, keepdims=True))
