"""Weights and inputs at random, for statements that hold for every network."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np


def random_weights(shapes, seed):
    """Nothing stays zero or alike, as after training; scales and variances stay positive."""
    lot = np.random.default_rng(seed)
    drawn = lambda x: 0.3 * (lot.uniform(0.3, 1.3, x.shape) if x.ndim < 2 else lot.normal(size=x.shape))
    return jax.tree.map(lambda x: np.float32(drawn(x)), shapes)


def random_planes(game, seed):
    """float32[3, R, C, P], of no position in particular."""
    return jnp.asarray(np.random.default_rng(seed).normal(size=(3, *game.observe(game.init()).shape)), jnp.float32)
