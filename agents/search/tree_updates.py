"""Writes values into trees, by a scatter or by a one-hot select over whole arrays.

The cost of a scatter follows the number of writes, which suits CPUs and GPUs. A TPU executes the writes of a scatter
one by one, but passes over a whole array at full memory speed. There a tree of a few dozen nodes uses the select.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax.experimental.layout import Layout, with_layout_constraint

from envs.game import Array

Form = Literal["auto", "scatter", "one_hot"]

Put = Callable[[Array, tuple[Array, ...], Array], Array]
"""(x [B, ...], places, values [M, ...]) -> x with the values written at the places. A place is (lane, node) or
(lane, node, edge), each an int32[M]. Places out of bounds are skipped."""


def scatter(x: Array, places: tuple[Array, ...], values: Any) -> Array:
    return x.at[places].set(values, mode="drop")


NARROW = 8  # numbers of an entry up to which each is written by itself


def one_hot(x: Array, places: tuple[Array, ...], values: Any) -> Array:
    """Writes the same number of values in every lane, side by side in one pass over `x`.

    The lanes, `places[0]`, must be 0, 1, 2... in this order, each repeated M / B times; any may be out of bounds
    instead.
    """
    lane, *within = (place.reshape(len(x), -1) for place in places)
    values = jnp.asarray(values)
    values = values.reshape(*lane.shape, *values.shape[1:])
    shape = x.shape[1 : len(places)]
    here, number, inside = jnp.arange(math.prod(shape)).reshape(shape), jnp.zeros_like(lane), lane < len(x)
    # A place as one number, so that every write compares all places once.
    for size, place in zip(shape, within, strict=True):
        number, inside = number * size + place, inside & (place >= 0) & (place < size)
    number = jnp.where(inside, number, -1)

    def written(x: Array, values: Array) -> Array:
        if x.ndim == 3:  # Node by node a TPU spreads each place over the entries once, tree by tree once a node.
            x = with_layout_constraint(x, Layout(major_to_minor=(1, 0, 2)))
        for i in range(lane.shape[1]):
            hit = here == spread(number[:, i], len(places))
            hit = hit.reshape(*hit.shape, *[1] * (x.ndim - len(places)))
            x = jnp.where(hit, jnp.expand_dims(values[:, i], tuple(range(1, len(places)))), x).astype(x.dtype)
        return x

    if x.ndim == len(places) or x.shape[-1] > NARROW:
        return written(x, values)
    # A TPU would fill the last axis up to 128 numbers. Apart, they are laid out by lanes.
    return jnp.stack([written(x[..., j], values[..., j]) for j in range(x.shape[-1])], axis=-1)


def spread(x: Array, ndim: int) -> Array:
    """One number per lane, [B], with the rank of an array that it is compared with."""
    return x.reshape(-1, *[1] * (ndim - 1))


def in_form(form: Form, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function(*arrays, put=...)` with the requested form of writes. `auto` chooses when the program is lowered:
    `one_hot` for a TPU, otherwise `scatter`."""
    scattered, selected = functools.partial(function, put=scatter), functools.partial(function, put=one_hot)
    if form == "auto":
        return functools.partial(jax.lax.platform_dependent, tpu=selected, default=scattered)
    return scattered if form == "scatter" else selected
