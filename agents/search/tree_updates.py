"""How numbers get into trees: scattered to their places, or selected over whole arrays.

A scatter costs what it writes, which is right on CPU and GPU. A TPU does the writes of a scatter one after the other,
but goes over a whole array at the full speed of its memory; there a tree of a few dozen nodes is selected over.
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
"""(x [B, ...], places, values [B, ...]) -> x with the values at the places (lane, node) or (lane, node, edge), each an
int32[B]. Nothing is written where a place is out of bounds."""


def scatter(x: Array, places: tuple[Array, ...], values: Any) -> Array:
    return x.at[places].set(values, mode="drop")


def one_hot(x: Array, places: tuple[Array, ...], values: Any) -> Array:
    """The lanes must be 0, 1, 2... in this order, or out of bounds."""
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
    """`function(*arrays, put=...)` with the form of writes that is asked for; `auto` leaves the choice to the lowering
    of the program: `one_hot` for a TPU, else `scatter`."""
    scattered, selected = functools.partial(function, put=scatter), functools.partial(function, put=one_hot)
    if form == "auto":
        return functools.partial(jax.lax.platform_dependent, tpu=selected, default=scattered)
    return scattered if form == "scatter" else selected
