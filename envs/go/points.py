"""Points of a board: their names, their neighbours, and sets of points.

A set of points is one word per row with column c in bit c, so its neighbours take two bit shifts and two row shifts.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from envs.game import Array

# Names

LETTERS = "ABCDEFGHJKLMNOPQRST"


def point_name(action: int, size: int) -> str:
    """`A9` is the top left of 9 x 9, `J1` the bottom right; the letter I is left out."""
    return "pass" if action == size * size else f"{LETTERS[action % size]}{size - action // size}"


def parse_point(text: str, size: int) -> int:
    """Inverse of `point_name`, in upper or lower case; ValueError if no action has this name."""
    word = text.strip().upper()
    names = [point_name(action, size).upper() for action in range(size * size + 1)]
    if word not in names:
        last = point_name(size - 1, size)
        raise ValueError(f"no point '{text}': expected A1 to {last} (letters without I) or pass")
    return names.index(word)


# Neighbours


@functools.lru_cache(maxsize=16)
def near_table(size: int) -> np.ndarray:
    """int16[size * size + 1, 4]: neighbours of each point; off the board, and for the pass, the point itself."""
    points = np.arange(size * size, dtype=np.int16).reshape(size, size)
    around = np.pad(points, 1, constant_values=-1)
    sides = np.stack([around[:-2, 1:-1], around[2:, 1:-1], around[1:-1, :-2], around[1:-1, 2:]], axis=-1)
    near = np.where(sides >= 0, sides, points[..., None]).reshape(-1, 4)
    return np.concatenate([near, np.full((1, 4), size * size, np.int16)])


@functools.lru_cache(maxsize=16)
def neighbours_of(size: int) -> list[list[int]]:
    """Neighbours of each point, on the host."""
    return [sorted({int(q) for q in row} - {p}) for p, row in enumerate(near_table(size)[:-1])]


# Sets, in the shape of a board, of rows, or as cells on the host


def to_rows(board: Array) -> Array:
    """uint32[..., n] from bool[..., n, n]."""
    bits = jnp.uint32(1) << jnp.arange(board.shape[-1], dtype=jnp.uint32)
    return jnp.sum(jnp.where(board, bits, 0), axis=-1, dtype=jnp.uint32)


def to_board(rows: Array) -> Array:
    """bool[..., n, n] from uint32[..., n]."""
    return (rows[..., None] >> jnp.arange(rows.shape[-1], dtype=jnp.uint32) & 1) == 1


def one_point(point: Array, size: int) -> Array:
    """uint32[n]: the set of one point; empty for the pass and for numbers out of range."""
    bit = jnp.uint32(1) << (point % size).astype(jnp.uint32)
    return jnp.where(jnp.arange(size) == point // size, bit, jnp.uint32(0))


def beside(rows: Array) -> Array:
    """uint32[..., n]: the neighbours of all points of a set; may include points of the set itself."""
    return rows << 1 & 2 ** rows.shape[-1] - 1 | rows >> 1 | above_and_below(rows)


def above_and_below(rows: Array) -> Array:
    """uint32[..., n]: the neighbours in the rows above and below."""
    none = jnp.zeros_like(rows[..., :1])
    return jnp.concatenate([rows[..., 1:], none], axis=-1) | jnp.concatenate([none, rows[..., :-1]], axis=-1)


def count(rows: Array) -> Array:
    """int32[...]: number of points."""
    return jax.lax.population_count(rows).astype(jnp.int32).sum(-1)


def union(sets: Array) -> Array:
    """uint32[n]: union of uint32[k, n]."""
    return functools.reduce(jnp.bitwise_or, sets)


def either(stones: Array) -> Array:
    """uint32[..., n]: union of both colours of uint32[..., 2, n]."""
    return stones[..., 0, :] | stones[..., 1, :]


def empty_points(stones: Array) -> Array:
    """uint32[n]: empty points."""
    return ~either(stones) & (2 ** stones.shape[-1] - 1)


def cells_of(stones: Array) -> np.ndarray:
    """int8[n * n]: 1 black, -1 white, 0 empty."""
    black, white = np.asarray(stones)[..., None] >> np.arange(stones.shape[-1], dtype=np.uint32) & 1
    return (black.astype(np.int8) - white.astype(np.int8)).ravel()
