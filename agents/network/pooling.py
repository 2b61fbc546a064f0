"""Means and maxima over the board."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.game import Array


@jax.custom_jvp
def board_max(x: Array) -> Array:
    """Maximum of every channel over the board, [B, F] from [B, R, C, F]."""
    return x.max((1, 2))


@board_max.defjvp
def board_max_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """The mean tangent of all cells that equal the maximum up to rounding.

    JAX tests which cells equal the maximum. A compiler may recompute `x` for this test and round it differently
    (bfloat16, fused multiply-add). Then no cell equals the maximum, and JAX divides by zero.
    """
    (x,), (change,) = primals, tangents
    y = board_max(x)
    rounding = 4 * jnp.finfo(x.dtype).eps * (1 + abs(y))
    there = (x >= (y - rounding)[:, None, None]).astype(x.dtype)
    return y, (change * there).sum((1, 2)) / jnp.maximum(there.sum((1, 2)), 1)


def board_mean(x: Array, dtype: Any = None) -> Array:
    """Mean of every channel over the board, `dtype`[B, F] from [B, R, C, F]; by default of the type of `x`.

    On a TPU the sum has the type of `x`, because only such a sum is fused into the convolution before it. With bfloat16
    this may cost 1% of a channel's magnitude in precision, and saves a pass over all activations.
    """

    def summed(x: Array) -> Array:
        total = jax.lax.reduce(x, np.zeros((), x.dtype), jax.lax.add, (1, 2))
        return (total / (x.shape[1] * x.shape[2])).astype(dtype or x.dtype)

    return jax.lax.platform_dependent(x, tpu=summed, default=lambda x: x.mean((1, 2), dtype=dtype))


def pooled(x: Array) -> Array:
    """Mean and maximum of every channel over the board, [B, 2 F] from [B, R, C, F]."""
    return jnp.concatenate([board_mean(x), board_max(x)], axis=-1)
