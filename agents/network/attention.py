"""The attention policy: moves scored by the cell where they start together with the cell where they end."""

from __future__ import annotations

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from envs.game import Array

FEATURES = 32  # of a cell, by which starts and ends are compared

Offsets = tuple[tuple[int, int], ...]  # `Game.offsets`


class AttentionPolicy(nn.Module):
    """The inner product of features of the cell where a move starts and of the cell where it ends.

    A head over starting cells alone needs the body to carry there whatever stands on the cells in reach. After the
    attention policy of Leela Chess Zero (lczero.org/blog/2024/02/transformer-progress). It starts at zero.
    """

    offsets: Offsets

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Logits float32[B, R * C * k] of the actions of features [B, R, C, F]; 0 for moves that leave the board."""
        batch, rows, cols, _ = x.shape
        cells = x.reshape(batch, rows * cols, -1)
        ones, zeros = nn.initializers.ones, nn.initializers.zeros
        start = nn.Dense(FEATURES, dtype=jnp.float32, bias_init=ones, name="start")(cells)
        end = nn.Dense(FEATURES, dtype=jnp.float32, use_bias=False, kernel_init=zeros, name="end")(cells)
        pairs = jnp.einsum("bsf,bef->bse", start, end) / np.float32(np.sqrt(FEATURES))
        return of_moves(pairs, self.offsets, rows, cols)


def ends_of(offsets: np.ndarray, rows: int, cols: int) -> np.ndarray:
    """int32[R * C, k]: the cell where each kind leads from each cell; -1 off the board."""
    start = np.arange(rows * cols)[:, None]
    row, col = start // cols + offsets[:, 0], start % cols + offsets[:, 1]
    inside = (row >= 0) & (row < rows) & (col >= 0) & (col < cols)
    return np.where(inside, row * cols + col, -1).astype(np.int32)


def of_moves(pairs: Array, offsets: Offsets, rows: int, cols: int) -> Array:
    """The numbers of all actions, float32[B, R * C * k], from one for every pair of start and end, float32[B, R * C,
    R * C]; 0 for actions that leave the board."""
    ends = ends_of(np.array(offsets), rows, cols)

    @jax.custom_vjp
    def taken(pairs: Array) -> Array:
        return _read(pairs, ends)

    back = functools.partial(_gradient, offsets=offsets, rows=rows, cols=cols)
    taken.defvjp(lambda pairs: (_read(pairs, ends), None), lambda _, slopes: (back(slopes),))
    found = jax.lax.platform_dependent(pairs, tpu=functools.partial(by_product, ends=ends), default=taken)
    return found.reshape(len(pairs), -1)


def by_product(pairs: Array, ends: np.ndarray) -> Array:
    """float32[B, S, k], the same by the matrix unit of a TPU, which reads single numbers slowly."""
    chosen = (np.arange(pairs.shape[2])[:, None] == ends[:, None]).astype(np.float32)  # [start, end, kind]
    return jnp.einsum("bse,sek->bsk", pairs, chosen, precision="highest")


def _read(x: Array, places: np.ndarray) -> Array:
    """`x[b, s, places[s, i]]` for float32[B, S, E] and int32[S, I], 0 for the place -1."""
    batch, starts, ends = x.shape
    at = np.arange(starts)[:, None] * ends + np.maximum(places, 0)
    found = x.reshape(batch, -1).at[:, at.ravel().astype(np.uint32)].get(mode="promise_in_bounds")
    return found.reshape(batch, *places.shape) * (places >= 0).astype(np.float32)


def _gradient(slopes: Array, offsets: Offsets, rows: int, cols: int) -> Array:
    """The gradient of `of_moves`, float32[B, R * C, R * C], for `slopes` float32[B, R * C, k] of its results.

    It reads as well: of all kinds that go the same way the sum, and one entry for every pair of cells. The compiler's
    own gradient writes pair by pair, which takes ten times as long on a CPU.
    """
    ways, which = np.unique(np.array(offsets), axis=0, return_inverse=True)
    together = slopes @ np.eye(len(ways), dtype=np.float32)[which.ravel()]
    ends = ends_of(ways, rows, cols)
    start, way = np.nonzero(ends >= 0)
    way_of = np.full((rows * cols, rows * cols), -1, np.int32)
    way_of[start, ends[start, way]] = way
    return _read(together, way_of)
