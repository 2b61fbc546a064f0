"""Normalisation of the channels of a layer.

It was chosen by measurement (`benchmarks/networks.py`, table in docs/notes). Within the same processor time a residual
network learns Flight of Queen best with batch normalisation, then with layer normalisation, and clearly worse with
neither. In play, batch normalisation is only a scale and a shift, so it costs nothing.

Its price is a difference between training and play, because running statistics lag behind the weights. Therefore the
statistics move quickly and are averaged together with the weights that play. Use `layer` for few lanes or small
batches. Batch statistics cover the whole batch, so learning does not depend on the number of devices.
"""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from agents.network import pooling
from envs.game import Array

MOMENTUM = 0.95  # share of the running statistics that an update keeps
EPSILON = 1e-5  # added to variances


class Norm(nn.Module):
    """Normalisation of the given kind; `none` is a learned scale and shift per channel. With `train`, statistics come
    from the `counted` rows of the batch, over the devices of `axis` if it is given."""

    kind: str
    train: bool
    axis: str | None
    counted: Array | None

    @nn.compact
    def __call__(self, x: Array, parts: tuple[Array, Array] | None = None) -> Array:
        """`x` [B, ..., F] normalised, of the same type. `parts` are near and shift of `moments_of_sum`, if `x` is their
        sum."""
        if self.kind == "batch":
            return BatchNorm(self.train, self.axis, self.counted)(x, parts)
        if self.kind == "layer":
            return nn.LayerNorm(dtype=x.dtype)(x)
        scale = self.param("scale", nn.initializers.ones, (x.shape[-1],))
        bias = self.param("bias", nn.initializers.zeros, (x.shape[-1],))
        return x * scale.astype(x.dtype) + bias.astype(x.dtype)


class BatchNorm(nn.Module):
    """Batch normalisation (Ioffe and Szegedy 2015) in float32, the fields as those of `Norm`.

    Weights have the names of `flax.linen.BatchNorm`, which could not use the `parts` of a sum.
    """

    train: bool
    axis: str | None
    counted: Array | None

    @nn.compact
    def __call__(self, x: Array, parts: tuple[Array, Array] | None) -> Array:
        features = x.shape[-1:]
        running_mean = self.variable("batch_stats", "mean", jnp.zeros, features)
        running_variance = self.variable("batch_stats", "var", jnp.ones, features)
        scale = self.param("scale", nn.initializers.ones, features)
        bias = self.param("bias", nn.initializers.zeros, features)
        mean, variance = running_mean.value, running_variance.value
        if self.train:
            found = moments_of_sum(x, *parts, self.counted) if parts else moments(x, self.counted)
            mean, square = found if self.axis is None else jax.lax.pmean(jnp.stack(found), self.axis)
            variance = jnp.maximum(0.0, square - jnp.square(mean))
            running_mean.value = MOMENTUM * running_mean.value + (1 - MOMENTUM) * mean
            running_variance.value = MOMENTUM * running_variance.value + (1 - MOMENTUM) * variance
        y = (x - mean) * (jax.lax.rsqrt(variance + EPSILON) * scale) + bias
        return y.astype(x.dtype)


def over_rows(x: Array, counted: Array | None) -> Array:
    """Mean of every channel over the rows `counted` bool[B] and all cells, [F] from [B, ..., F]."""
    where = None if counted is None else counted.reshape(-1, *[1] * (x.ndim - 1))
    return x.mean(tuple(range(x.ndim - 1)), where=where)


def moments(x: Array, counted: Array | None) -> tuple[Array, Array]:
    """Mean and mean square of every channel of `x` [B, ..., F], float32[F] both, over the rows `counted` bool[B]."""
    x = x.astype(jnp.float32)
    square = jnp.square(x)  # Before the means: in this order XLA's program for a CPU takes 5% less time.
    return over_rows(x, counted), over_rows(square, counted)


def moments_of_boards(near: Array, shift: Array, counted: Array | None) -> tuple[Array, Array]:
    """`moments` of near [B, R, C, F] + shift [B, F] from means over every board, rounded as `pooling.board_mean` does.

    Rounding the squares of `near` is safe if it comes from a convolution without a bias: it then has no large mean that
    would swamp the variance. Learned shifts have one.
    """
    mean, square = (pooling.board_mean(y).astype(jnp.float32) for y in (near, jnp.square(near)))
    shift = shift.astype(jnp.float32)
    return over_rows(mean + shift, counted), over_rows(square + shift * (2 * mean + shift), counted)


@jax.custom_jvp
def moments_of_sum(x: Array, near: Array, shift: Array, counted: Array | None) -> tuple[Array, Array]:
    """`moments` of `x`, which is near + shift. A TPU takes `moments_of_boards`: it fuses the means into the convolution
    that makes `near`, and so spares a pass over all activations."""
    of_cells = lambda x, near, shift, counted: moments(x, counted)
    of_boards = lambda x, near, shift, counted: moments_of_boards(near, shift, counted)
    return jax.lax.platform_dependent(x, near, shift, counted, tpu=of_boards, default=of_cells)


@moments_of_sum.defjvp
def moments_of_sum_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    """The derivative of `moments`."""
    x, counted = primals[0], primals[3]
    return moments_of_sum(*primals), jax.jvp(lambda x: moments(x, counted), (x,), tangents[:1])[1]
