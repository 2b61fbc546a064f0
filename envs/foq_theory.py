"""What Flight of Queen tells about a position without any search, for whoever proves results.

Squares that no queen can ever come to are as good as ripped. Queens in regions that no king's walk joins cannot disturb
one another any more: each player then has as many moves left as the longest such walk in his region, since a single
step wastes nothing.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from envs.game import Array

# `s` is a state of `foq` or `foq_single`.


def neighbours(x: Array) -> Array:
    """int8[R, C]: how many squares of `x`, bool[R, C], lie within a king's step of each square, itself included."""
    x = jnp.pad(x.astype(jnp.int8), 1)
    x = x[:-2] + x[1:-1] + x[2:]
    return x[:, :-2] + x[:, 1:-1] + x[:, 2:]


def places(queens: Array, shape: tuple[int, ...]) -> Array:
    """bool[n, R, C]: the square of each queen on a board of this shape."""
    return (jnp.arange(shape[0] * shape[1]) == queens[:, None]).reshape(-1, *shape)


def regions(s: Any) -> Array:
    """bool[n, R, C]: free squares to which each queen could walk, were it alone."""
    free = ~s.ripped

    def grow(carry):
        region, _ = carry
        grown = (jax.vmap(neighbours)(region | starts) > 0) & free
        return grown, (grown != region).any()

    starts = places(s.queens, free.shape)
    return jax.lax.while_loop(lambda carry: carry[1], grow, (starts & False, jnp.bool_(True)))[0]


def walk(start: Array, region: Array) -> Array:
    """int32[], the length of some walk over a region by a king who always goes where fewest ways lead on, and into a
    dead end only at last (Warnsdorff's rule); `start` and `region` are bool[R, C]."""

    def step(carry):
        here, left, length = carry
        ways = neighbours(left)  # the square itself counts as one
        rank = jnp.where(ways == 1, 20, ways)
        near = (neighbours(here) > 0) & left
        best = jnp.argmin(jnp.where(near, rank, 99).ravel())
        here = jnp.where(near.any(), (jnp.arange(here.size) == best).reshape(here.shape), here)
        return here, left & ~here, length + near.any()

    more = lambda carry: ((neighbours(carry[0]) > 0) & carry[1]).any()
    return jax.lax.while_loop(more, step, (start, region, jnp.int32(0)))[2]


def settled(s: Any) -> Array:
    """float32[], the result for the mover of the double game where the queens are apart and one of them surely walks
    longer than the other; NaN elsewhere. A walk is at least as long as one that was found, and at most as long as its
    region has squares."""
    both = regions(s)
    apart = ~both.all(0).any()
    most = both.sum((1, 2))
    least = jax.vmap(walk)(places(s.queens, s.ripped.shape), both & apart)
    mine, other = s.to_move, 1 - s.to_move
    result = jnp.where(least[mine] > most[other], 1.0, jnp.where(most[mine] <= least[other], -1.0, jnp.nan))
    return jnp.where(apart & (s.forfeit < 0), result, jnp.nan).astype(jnp.float32)


def essence(s: Any) -> Any:
    """The position with squares that no queen can come to ripped, seen from the mover: positions that look the same now
    have the same result for who is to move."""
    reachable = regions(s).any(0)
    queens = jnp.where(s.to_move == 0, s.queens, s.queens[::-1])
    return s._replace(ripped=~reachable, queens=queens, to_move=jnp.int8(0), forfeit=(s.forfeit >= 0).astype(jnp.int8))
