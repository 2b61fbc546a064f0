"""Action codes: legal actions packed into slots, random legal actions, and the mover's frame.

A game with thousands of codes has few legal actions at a time. Masks, search trees and records use absolute codes.
Networks and stored policies use codes in the mover's frame.
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from agents.runtime import keys
from envs.game import Array, Game

# Replaces minus infinity in logits. It is finite so that a softmax over illegal actions alone gives no NaN.
ILLEGAL = -1e9


def legal_slots(mask: Array, num_slots: int) -> Array:
    """Codes of the legal actions in order, int32[B, K] from bool[B, A]; -1 in empty slots. Needs no scatter."""
    by_words, by_rows = (functools.partial(form, num_slots=num_slots) for form in (_slots_by_words, _slots_by_rows))
    return jax.lax.platform_dependent(mask, tpu=by_rows, default=by_words)


def _slots_by_words(mask: Array, num_slots: int) -> Array:
    """The codes are bits of words. Counting the bits per word gives the word of the k-th legal code, then its bit, by
    halves."""
    lanes, codes = mask.shape
    bits = jnp.pad(mask, ((0, 0), (0, -codes % 32))).reshape(lanes, -1, 32)
    words = jnp.where(bits, jnp.uint32(1) << jnp.arange(32, dtype=jnp.uint32), 0).sum(-1, dtype=jnp.uint32)
    counts = jax.lax.population_count(words).astype(jnp.int32)
    upto = jnp.cumsum(counts, axis=-1)
    k = jnp.arange(num_slots)
    search = functools.partial(jnp.searchsorted, v=k, side="right", method="scan_unrolled")
    number = jnp.minimum(jax.vmap(search)(upto), words.shape[1] - 1).astype(jnp.int32)
    of_word = functools.partial(jnp.take_along_axis, indices=number, axis=1)
    word, rank, code = of_word(words), k - of_word(upto - counts), 32 * number
    for half in (16, 8, 4, 2, 1):
        low = jax.lax.population_count(word & jnp.uint32(2**half - 1)).astype(jnp.int32)
        above = low <= rank
        word = jnp.where(above, word >> half, word)
        rank, code = rank - jnp.where(above, low, 0), code + jnp.where(above, half, 0)
    return jnp.where(k < upto[:, -1:], code, -1)


def _slots_by_rows(mask: Array, num_slots: int) -> Array:
    """The codes are laid out in rows. Counting the legal codes per row gives the row of the k-th legal code. A matrix
    unit multiplies this row by one and all others by zero, faster than a TPU looks up anything; then the counts in the
    row give the column. Rows cost more than columns, so there are a third as many. Whole words make up a row, because
    some masks are made of words. Counts of up to 256 are exact in bfloat16."""
    lanes, codes = mask.shape
    width = min(32 * -(-math.isqrt(3 * codes) // 32), 256)
    rows = jnp.pad(mask, ((0, 0), (0, -codes % width))).reshape(lanes, -1, width)
    # Legal codes of the row up to each column. From words of a mask, a TPU makes words faster than bools.
    legal = jax.lax.optimization_barrier(rows.astype(jnp.int32)).astype(jnp.float32)
    inside = jnp.einsum("brv,vw->brw", legal, np.triu(np.ones((width, width), np.float32)))
    upto = jnp.cumsum(inside[:, :, -1].astype(jnp.int32), axis=-1)
    k = jnp.arange(num_slots)
    passed = upto[:, :, None] <= k  # rows that end before the k-th legal code
    row = jnp.minimum(passed.sum(1, dtype=jnp.int32), rows.shape[1] - 1)
    rank = k - jnp.where(passed, upto[:, :, None], 0).max(1)  # rank of the code among the legal codes of its row
    here = jnp.arange(rows.shape[1])[:, None] == row[:, None]
    in_row = jnp.einsum("brw,brk->bwk", inside, here.astype(jnp.float32))
    column = (in_row <= rank[:, None]).sum(1, dtype=jnp.int32)
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
    column is found first, then the row. This needs no running sum over all codes.
    """
    return jax.lax.platform_dependent(key, mask, tpu=_random_by_products, default=_random_by_squares)


def _random_by_squares(key: Array, mask: Array) -> Array:
    """Sums whole rows of bytes."""
    lanes, codes = mask.shape
    width = math.isqrt(codes - 1) + 1
    square = jnp.pad(mask, ((0, 0), (0, -codes % width))).reshape(lanes, -1, width)
    inside = square.sum(1, dtype=jnp.uint8 if square.shape[1] < 256 else jnp.int32).astype(jnp.int32)
    column, rank = _random_column(key, inside)
    in_column = jnp.take_along_axis(square, column[:, None, None], axis=2)[:, :, 0]
    return _row_of(in_column, rank) * width + column


def _random_by_products(key: Array, mask: Array) -> Array:
    """A matrix unit adds up the columns faster than a TPU moves codes into a square. Counts of up to 256 are exact in
    bfloat16."""
    code = np.arange(mask.shape[1])
    width = math.isqrt(len(code) - 1) + 1
    column_of, row_of = (x[:, None] == np.arange(width) for x in (code % width, code // width))
    legal = jax.lax.optimization_barrier(mask.astype(jnp.int32)).astype(jnp.float32)  # as in _slots_by_rows
    column, rank = _random_column(key, (legal @ column_of.astype(np.float32)).astype(jnp.int32))
    in_column = jnp.where(code % width == column[:, None], legal, 0) @ row_of.astype(np.float32)
    return _row_of(in_column, rank) * width + column


def _random_column(key: Array, inside: Array) -> tuple[Array, Array]:
    """The column of a random legal code and its rank there, int32[B], from the number of legal codes of each column."""
    upto = jnp.cumsum(inside, axis=-1)
    below = lambda key, shape, most: jax.random.randint(key, shape, 0, most)
    r = keys.draw_lanes(below, key, inside.shape[:1], jnp.maximum(upto[:, -1], 1))[:, None]
    column = jnp.minimum((upto <= r).sum(-1, dtype=jnp.int32), inside.shape[1] - 1)
    return column, r[:, 0] - jnp.where(upto <= r, inside, 0).sum(-1)


def _row_of(in_column: Array, rank: Array) -> Array:
    """The row of the legal code with this rank, from the column's entries."""
    row = (jnp.cumsum(in_column, axis=-1, dtype=jnp.int32) <= rank[:, None]).sum(-1, dtype=jnp.int32)
    return jnp.minimum(row, in_column.shape[1] - 1)


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
