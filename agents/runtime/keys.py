"""Random keys: one for a whole batch, or one for each lane. All functions accept both a key [] and keys [B].

Self-play gives every lane its own key. A lane's games then depend on the seed, the iteration and the lane's number in
the run, but not on how lanes are divided among devices. Play uses one key for the batch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

APART = 2**31 - 1  # for `fold_in`: differs from every lane, split, iteration and simulation number


def of_lanes(key: Array, lanes: Array) -> Array:
    """Keys [B] for the lane numbers `lanes`, int32[B], from one key."""
    return jax.vmap(functools.partial(jax.random.fold_in, key))(lanes)


def split(key: Array, num: int = 2) -> Array:
    """`num` new keys, [num] or [num, B]."""
    return jax.random.split(key, num) if key.ndim == 0 else jax.vmap(lambda k: jax.random.split(k, num), 0, 1)(key)


def fold_in(key: Array, data: Any) -> Array:
    """`jax.random.fold_in`, applied to every lane's key if there are several."""
    return jax.random.fold_in(key, data) if key.ndim == 0 else jax.vmap(lambda k: jax.random.fold_in(k, data))(key)


def of_simulations(key: Array, first: Any, width: int) -> Array:
    """Keys of `width` simulations side by side in every lane, [B * width], numbered from `first`. One key stays one."""
    if key.ndim == 0 or width == 1:
        return fold_in(key, first)
    return jax.vmap(lambda k: of_lanes(k, first + jnp.arange(width)))(key).reshape(-1)


def each(key: Array, count: int) -> Array:
    """Keys [count]: the lanes' own keys, or `count` keys split off one key."""
    return jax.random.split(key, count) if key.ndim == 0 else key


def draw_lanes(sample: Callable[..., Array], key: Array, shape: tuple[int, ...], *arguments: Array) -> Array:
    """`sample(key, shape, *arguments)`, lane by lane if each lane has a key. Shape and arguments lead with [B]."""
    if key.ndim == 0:
        return sample(key, shape, *arguments)
    return jax.vmap(lambda key, *arguments: sample(key, shape[1:], *arguments))(key, *arguments)
