"""Action codes: legal actions packed into slots, random legal actions, and the mover's frame.

A game with thousands of codes has few legal actions at a time. Masks, search trees and records use absolute codes.
Networks and stored policies use codes in the mover's frame.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from agents.runtime import keys
from envs.game import Array, Game

# Replaces minus infinity in logits. It is finite so that a softmax over illegal actions alone gives no NaN.
ILLEGAL = -1e9


def legal_slots(mask: Array, num_slots: int) -> Array:
    """Codes of the legal actions in order, int32[B, K] from bool[B, A]; -1 in empty slots.

    The codes are laid out as a square. Counting the legal codes per row gives the row of the k-th legal code, then its
    column. Each slot compares and sums about sqrt(A) numbers, without a scatter.
    """
    lanes, codes = mask.shape
    width = math.isqrt(codes - 1) + 1
    rows = jnp.pad(mask, ((0, 0), (0, -codes % width))).reshape(lanes, -1, width)
    inside = jnp.cumsum(rows, axis=-1, dtype=jnp.int32)  # legal codes of the row up to each column
    upto = jnp.cumsum(inside[:, :, -1], axis=-1)
    k = jnp.arange(num_slots)
    passed = upto[:, :, None] <= k  # rows that end before the k-th legal code
    row = jnp.minimum(passed.sum(1, dtype=jnp.int32), rows.shape[1] - 1)
    rank = k - jnp.where(passed, upto[:, :, None], 0).max(1)  # rank of the code among the legal codes of its row

    def looked_up(inside: Array) -> Array:
        in_row = jnp.take_along_axis(inside, row[:, :, None], axis=1)
        return (in_row <= rank[:, :, None]).sum(-1, dtype=jnp.int32)

    def multiplied(inside: Array) -> Array:
        """A matrix unit multiplies by zeros faster than a TPU looks up rows. Exact in any precision, since all are
        small whole numbers."""
        here = (jnp.arange(rows.shape[1])[:, None] == row[:, None]).astype(jnp.float32)
        in_row = jnp.einsum("brw,brk->bwk", inside.astype(jnp.float32), here)
        return (in_row <= rank[:, None]).sum(1, dtype=jnp.int32)

    column = jax.lax.platform_dependent(inside, tpu=multiplied, default=looked_up)
    return jnp.where(k < upto[:, -1:], row * width + column, -1)


def at_slots(values: Array, slots: Array, empty: float = 0) -> Array:
    """Entries of `values` [B, A] at the codes in `slots` [B, K]; `empty` in empty slots."""
    return jnp.where(slots < 0, empty, jnp.take_along_axis(values, jnp.maximum(slots, 0), axis=-1))


def from_slots(values: Array, mask: Array) -> Array:
    """Slot values [B, K] moved back to their codes [B, A], for `legal_slots(mask, K)`; 0 where illegal."""
    slot = jnp.minimum(jnp.cumsum(mask, axis=-1, dtype=jnp.int32), values.shape[-1]) - 1
    return jnp.where(mask, jnp.take_along_axis(values, jnp.maximum(slot, 0), axis=-1), 0)


def random_action(key: Array, mask: Array) -> Array:
    """A uniformly random legal action in each lane, int32[B] from bool[B, A]; meaningless if no action is legal.

    The codes are laid out as a square. One random number per lane picks the r-th legal code, column by column. The
    column is found first, then the row. This sums whole rows of bytes and needs no running sum over all codes.
    """
    lanes, codes = mask.shape
    width = math.isqrt(codes - 1) + 1
    square = jnp.pad(mask, ((0, 0), (0, -codes % width))).reshape(lanes, -1, width)
    inside = square.sum(1, dtype=jnp.uint8 if square.shape[1] < 256 else jnp.int32).astype(jnp.int32)
    upto = jnp.cumsum(inside, axis=-1)
    below = lambda key, shape, most: jax.random.randint(key, shape, 0, most)
    r = keys.draw_lanes(below, key, (lanes,), jnp.maximum(upto[:, -1], 1))[:, None]
    column = jnp.minimum((upto <= r).sum(-1, dtype=jnp.int32), width - 1)
    before = jnp.where(upto <= r, inside, 0).sum(-1, keepdims=True)
    chosen = jnp.take_along_axis(square, column[:, None, None], axis=2)[:, :, 0]
    row = (jnp.cumsum(chosen, axis=-1, dtype=jnp.int32) <= r - before).sum(-1, dtype=jnp.int32)
    return jnp.minimum(row, square.shape[1] - 1) * width + column


def to_mover_frame(game: Game, actions: Array, player: Array) -> Array:
    """Absolute action codes [B, K] converted to the mover's frame; -1 stays."""
    if game.to_mover_frame is None:
        return actions
    viewed = jnp.take_along_axis(jnp.asarray(game.to_mover_frame)[player], jnp.maximum(actions, 0), axis=-1)
    return jnp.where(actions < 0, -1, viewed)


def to_absolute(game: Game, logits: Array, player: Array) -> Array:
    """Logits float32[B, A] converted from the mover's frame to absolute action codes."""
    if game.to_mover_frame is None:
        return logits
    return jnp.take_along_axis(logits, jnp.asarray(game.to_mover_frame)[player], axis=-1)
