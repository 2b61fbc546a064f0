"""Facts about Flight of Queen positions that need no search, for proofs of results.

A queen never leaves an area of free squares, joined by king's steps, once she has entered it. All other areas next to
her are then lost. Squares that no queen can ever reach are as good as ripped. An area next to only one queen is hers,
because nobody disturbs her there. In it she has as many moves as the longest king's walk, since a single step wastes
nothing.

Sets of squares are `Bits`, uint32[..., R]: one word per row, the first square in the lowest bit.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

Array = jax.Array

Bits = Array
MOST_AREAS = 4  # next to one queen: at most four of the squares around her are pairwise not adjacent

# `s` is a state of `foq` or `foq_single`.


def places(queens: Array, shape: tuple[int, ...]) -> Array:
    """bool[n, R, C]: the square of each queen on a board of this shape."""
    return (jnp.arange(shape[0] * shape[1]) == queens[:, None]).reshape(-1, *shape)


def bits(board: Array) -> Bits:
    """The squares of bool[..., R, C]."""
    return (board.astype(jnp.uint32) << jnp.arange(board.shape[-1], dtype=jnp.uint32)).sum(-1, dtype=jnp.uint32)


def board(rows: Bits, width: int) -> Array:
    """bool[..., R, width], the inverse of `bits`."""
    return (rows[..., None] >> jnp.arange(width, dtype=jnp.uint32) & 1).astype(bool)


def above(x: Bits) -> Bits:
    """For each row the row above; nothing above the first."""
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(1, 0)])[..., :-1]


def below(x: Bits) -> Bits:
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, 1)])[..., 1:]


def near(x: Bits) -> Bits:
    """The squares within a king's step of `x`, including `x`; bits beside the board may be set too."""
    x = x | x << 1 | x >> 1
    return above(x) | x | below(x)


def lowest(x: Bits) -> Bits:
    """Only the first square of uint32[..., R], in the first row that has a square."""
    first = (x != 0) & (jnp.cumsum(x != 0, axis=-1) == 1)
    return jnp.where(first, x & (~x + 1), 0)


def count(x: Bits) -> Array:
    """int32[...], number of squares."""
    return jax.lax.population_count(x).sum(-1, dtype=jnp.int32)


def flood(start: Bits, free: Bits) -> Bits:
    """The free squares that king's steps over free squares join to `start`."""

    def grow(carry):
        area, _ = carry
        grown = near(area | start) & free
        return grown, (grown != area).any()

    return jax.lax.while_loop(lambda carry: carry[1], grow, (jnp.zeros_like(start), jnp.bool_(True)))[0]


def regions(s: Any) -> Array:
    """bool[n, R, C]: free squares to which each queen could walk if she were alone."""
    free = bits(~s.ripped)
    found = flood(bits(places(s.queens, s.ripped.shape)), jnp.broadcast_to(free, (len(s.queens), *free.shape)))
    return board(found, s.ripped.shape[1])


def areas(start: Bits, free: Bits) -> Bits:
    """uint32[..., MOST_AREAS, R]: the areas of free squares next to a queen; unused entries are empty."""

    def another(left, _):
        area = flood(lowest(left), free) | lowest(left)
        return left & ~area, area

    found = jax.lax.scan(another, near(start) & free, None, length=MOST_AREAS)[1]
    return jnp.moveaxis(found, 0, -2)


def ways(x: Bits) -> tuple[Bits, Bits, Bits, Bits]:
    """The number of squares of `x` around each square, as binary digits, lowest first."""
    exactly = lambda a, b, c: (a ^ b ^ c, a & b | c & (a | b))  # sum and carry
    left, right = x << 1, x >> 1
    row, rows = exactly(left, x, right)
    ones, carried = exactly(above(row), below(row), left ^ right)
    twos, fours = exactly(above(rows), below(rows), left & right)
    more = twos & carried
    return ones, twos ^ carried, fours ^ more, fours & more


def walk(start: Bits, area: Bits, enough: Array) -> Array:
    """int32[...], length of a king's walk over each area, at most `enough`: a lower bound on the longest walk. The king
    goes where the fewest ways lead on, and into a dead end only last (Warnsdorff's rule)."""

    def prefer(some: Bits, those: Bits) -> Bits:
        return jnp.where((some & those).any(-1, keepdims=True), some & those, some)

    def step(carry):
        here, left, length = carry
        digits, best = ways(left), near(here) & left
        best = prefer(best, digits[0] | digits[1] | digits[2] | digits[3])
        for digit in reversed(digits):
            best = prefer(best, ~digit)
        here = jnp.where((length < enough)[..., None], lowest(best), 0)
        return here, left & ~here, length + (here != 0).any(-1)

    more = lambda carry: ((near(carry[0]) & carry[1]).any(-1) & (carry[2] < enough)).any()
    return jax.lax.while_loop(more, step, (start, area, jnp.zeros_like(enough)))[2]


def known_result(s: Any) -> Array:
    """float32[], the mover's result in the double game if one queen surely walks longer in an area of her own than the
    other queen anywhere, else NaN. No walk is longer than its area has squares."""
    start, free = bits(places(s.queens, s.ripped.shape)), bits(~s.ripped)
    area = areas(start, jnp.broadcast_to(free, start.shape))
    size = count(area)
    hers = jnp.where((area & near(start)[::-1, None]).any(-1), 0, size)
    widest = jnp.take_along_axis(area, hers.argmax(1)[:, None, None], axis=1)[:, 0]
    needed = size.max(1)[::-1] + (jnp.arange(2) == s.to_move)
    wins = walk(start, widest, jnp.where(hers.max(1) < needed, 0, needed)) >= needed
    result = jnp.where(wins[s.to_move], 1.0, jnp.where(wins[1 - s.to_move], -1.0, jnp.nan))
    return jnp.where(s.forfeit < 0, result, jnp.nan).astype(jnp.float32)


def canonical(s: Any) -> Any:
    """The position seen from the mover, with all squares ripped that no queen can reach. Positions with equal images
    have the same result for the player to move."""
    reachable = regions(s).any(0)
    queens = jnp.where(s.to_move == 0, s.queens, s.queens[::-1])
    return s._replace(ripped=~reachable, queens=queens, to_move=jnp.int8(0), forfeit=(s.forfeit >= 0).astype(jnp.int8))
