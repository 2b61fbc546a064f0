"""Legal actions packed into slots: for games with thousands of action codes, few of them legal at a time."""

from __future__ import annotations

import math

import jax.numpy as jnp

from envs.game import Array


def legal_slots(mask: Array, num_slots: int) -> Array:
    """Codes of the legal actions in order, int32[B, K] from bool[B, A]; -1 in empty slots.

    The codes are laid out as a square: first the row of the k-th legal one is found, by counting the legal ones of all
    rows, then its place in the row. Compares and sums of about sqrt(A) numbers for each slot, no scatter.
    """
    lanes, codes = mask.shape
    width = math.isqrt(codes - 1) + 1
    rows = jnp.pad(mask, ((0, 0), (0, -codes % width))).reshape(lanes, -1, width)
    count = rows.sum(-1, dtype=jnp.int32)
    upto = jnp.cumsum(count, axis=-1)
    k = jnp.arange(num_slots)
    passed = upto[:, None, :] <= k[:, None]  # rows that end before the k-th legal code
    row = jnp.minimum(passed.sum(-1, dtype=jnp.int32), rows.shape[1] - 1)
    rank = k - jnp.where(passed, count[:, None, :], 0).sum(-1)  # of the code among the legal ones of its row
    inside = jnp.take_along_axis(jnp.cumsum(rows, axis=-1, dtype=jnp.int32), row[:, :, None], axis=1)
    column = (inside <= rank[:, :, None]).sum(-1, dtype=jnp.int32)
    return jnp.where(k < upto[:, -1:], row * width + column, -1)


def at_slots(values: Array, slots: Array, empty: float = 0) -> Array:
    """Entries of `values` [B, A] at the codes in `slots` [B, K]; `empty` in empty slots."""
    return jnp.where(slots < 0, empty, jnp.take_along_axis(values, jnp.maximum(slots, 0), axis=-1))


def from_slots(values: Array, mask: Array) -> Array:
    """Slot values [B, K] back at their codes [B, A]: those of `legal_slots(mask, K)`; 0 where illegal."""
    slot = jnp.minimum(jnp.cumsum(mask, axis=-1, dtype=jnp.int32), values.shape[-1]) - 1
    return jnp.where(mask, jnp.take_along_axis(values, jnp.maximum(slot, 0), axis=-1), 0)
