"""What Flight of Queen tells about a position without any search, for whoever proves results.

A queen never leaves the area of free squares, joined by king's steps, that she once entered, and all other areas next
to her are lost then. Squares that no queen can ever come to are as good as ripped. An area next to one queen alone is
hers: nobody disturbs her there, and she has as many moves left as the longest king's walk in it, since a single step
wastes nothing.

Sets of squares are `Bits`, uint32[..., R]: a row in each, its first square the lowest bit.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from envs.game import Array

Bits = Array
MOST_AREAS = 4  # next to one queen: of the squares around her no more are without one beside them

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
    """The row above each, nothing above the first."""
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(1, 0)])[..., :-1]


def below(x: Bits) -> Bits:
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, 1)])[..., 1:]


def near(x: Bits) -> Bits:
    """The squares within a king's step of those, themselves included; also such as lie beside the board."""
    x = x | x << 1 | x >> 1
    return above(x) | x | below(x)


def lowest(x: Bits) -> Bits:
    """The first square of uint32[..., R] alone, in the first row that has one."""
    first = (x != 0) & (jnp.cumsum(x != 0, axis=-1) == 1)
    return jnp.where(first, x & (~x + 1), 0)


def count(x: Bits) -> Array:
    """int32[...], how many squares."""
    return jax.lax.population_count(x).sum(-1, dtype=jnp.int32)


def flood(start: Bits, free: Bits) -> Bits:
    """The free squares that king's steps over free squares join to those."""

    def grow(carry):
        area, _ = carry
        grown = near(area | start) & free
        return grown, (grown != area).any()

    return jax.lax.while_loop(lambda carry: carry[1], grow, (jnp.zeros_like(start), jnp.bool_(True)))[0]


def regions(s: Any) -> Array:
    """bool[n, R, C]: free squares to which each queen could walk, were it alone."""
    free = bits(~s.ripped)
    found = flood(bits(places(s.queens, s.ripped.shape)), jnp.broadcast_to(free, (len(s.queens), *free.shape)))
    return board(found, s.ripped.shape[1])


def areas(start: Bits, free: Bits) -> Bits:
    """uint32[..., MOST_AREAS, R]: the areas of free squares next to a queen, as many as there are."""

    def another(left, _):
        area = flood(lowest(left), free) | lowest(left)
        return left & ~area, area

    found = jax.lax.scan(another, near(start) & free, None, length=MOST_AREAS)[1]
    return jnp.moveaxis(found, 0, -2)


def ways(x: Bits) -> tuple[Bits, Bits, Bits, Bits]:
    """How many of those squares lie around each square: the binary digits of this number, the last ones first."""
    exactly = lambda a, b, c: (a ^ b ^ c, a & b | c & (a | b))  # a sum and what it carries
    left, right = x << 1, x >> 1
    row, rows = exactly(left, x, right)
    ones, carried = exactly(above(row), below(row), left ^ right)
    twos, fours = exactly(above(rows), below(rows), left & right)
    more = twos & carried
    return ones, twos ^ carried, fours ^ more, fours & more


def walk(start: Bits, area: Bits, enough: Array) -> Array:
    """int32[...], how far a king walks over each area, `enough` at most, who always goes where fewest ways lead on, and
    into a dead end only at last (Warnsdorff's rule): the longest walk is as long or longer."""

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
    """float32[], the result for the mover of the double game where one queen surely walks longer in an area of her own
    than the other anywhere; NaN elsewhere. No walk is longer than its area has squares."""
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
    """The position with squares that no queen can come to ripped, seen from the mover: positions that look the same now
    have the same result for who is to move."""
    reachable = regions(s).any(0)
    queens = jnp.where(s.to_move == 0, s.queens, s.queens[::-1])
    return s._replace(ripped=~reachable, queens=queens, to_move=jnp.int8(0), forfeit=(s.forfeit >= 0).astype(jnp.int8))
