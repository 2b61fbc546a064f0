"""Random keys, one for a batch or one for each of its lanes.

Self-play gives every lane a key of its own, so what a lane meets depends on the seed, the iteration and the lane's
number in the whole run, and not on how lanes are divided among devices. Where a batch is one piece, as in play, one key
serves all of it. These functions work alike on a key [] and on keys [B].
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
from jax import Array

APART = 2**31 - 1  # for `fold_in`: a number that no lane, split, iteration or simulation has


def of_lanes(key: Array, lanes: Array) -> Array:
    """Keys [B] for the lanes of those numbers, int32[B], from one key."""
    return jax.vmap(functools.partial(jax.random.fold_in, key))(lanes)


def split(key: Array, num: int = 2) -> Array:
    """`num` new keys, [num] or [num, B]."""
    return jax.random.split(key, num) if key.ndim == 0 else jax.vmap(lambda k: jax.random.split(k, num), 0, 1)(key)


def fold_in(key: Array, data: Any) -> Array:
    """A new key for one number."""
    return jax.random.fold_in(key, data) if key.ndim == 0 else jax.vmap(lambda k: jax.random.fold_in(k, data))(key)


def each(key: Array, count: int) -> Array:
    """Keys [count]: those of the lanes themselves, or as many split off one key."""
    return jax.random.split(key, count) if key.ndim == 0 else key


def draw(sample: Callable[..., Array], key: Array, shape: tuple[int, ...], *arguments: Array) -> Array:
    """`sample(key, shape, *arguments)`; with a key for each lane, lane by lane. Shape and arguments lead with [B]."""
    if key.ndim == 0:
        return sample(key, shape, *arguments)
    return jax.vmap(lambda key, *arguments: sample(key, shape[1:], *arguments))(key, *arguments)
