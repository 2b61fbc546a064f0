"""Writes values into trees, by a scatter or by a one-hot select over whole arrays.

The cost of a scatter follows the number of writes, which suits CPUs and GPUs. A TPU executes the writes of a scatter
one by one, but passes over a whole array at full memory speed. There a tree of a few dozen nodes uses the select.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp

from envs.game import Array

Form = Literal["auto", "scatter", "one_hot"]

Put = Callable[[Array, tuple[Array, ...], Array], Array]
"""(x [B, ...], places, values [B, ...]) -> x with the values written at the places. A place is (lane, node) or
(lane, node, edge), each an int32[B]. Places out of bounds are skipped."""


def scatter(x: Array, places: tuple[Array, ...], values: Any) -> Array:
    return x.at[places].set(values, mode="drop")


def one_hot(x: Array, places: tuple[Array, ...], values: Any) -> Array:
    """The lanes, `places[0]`, must be 0, 1, 2... in this order; any of them may be out of bounds instead."""
    hit = jnp.bool_(True)
    for axis, place in enumerate(places):
        rank = [1] * len(places)
        rank[axis] = -1
        here = jnp.arange(x.shape[axis]).reshape(rank)
        hit &= here == place.reshape(-1, *[1] * (len(places) - 1))
    hit = hit.reshape(*hit.shape, *[1] * (x.ndim - len(places)))
    values = jnp.expand_dims(jnp.asarray(values), tuple(range(1, len(places))))
    return jnp.where(hit, values, x).astype(x.dtype)


def in_form(form: Form, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function(*arrays, put=...)` with the requested form of writes. `auto` chooses when the program is lowered:
    `one_hot` for a TPU, otherwise `scatter`."""
    scattered, selected = functools.partial(function, put=scatter), functools.partial(function, put=one_hot)
    if form == "auto":
        return functools.partial(jax.lax.platform_dependent, tpu=selected, default=scattered)
    return scattered if form == "scatter" else selected
