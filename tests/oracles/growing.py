"""A small game and network to grow, with weights as after training and positions to look at."""

import jax
import jax.numpy as jnp
import numpy as np

import envs
from agents.config import Config
from agents.network.transfer import grow

GAME = envs.make("foq:rows=4,cols=5")
SMALL = Config(env=GAME.name, channels=8, blocks=1, future_weight=1.0, slides=True, pooling=True)


def random_weights(weights, seed):
    """Nothing stays zero, as after training; scales of normalisation stay positive."""
    lot = np.random.default_rng(seed)

    def drawn(x):
        sign = 1 if x.ndim < 2 else lot.choice([-1, 1], x.shape)
        return np.float32(0.3 * lot.uniform(0.3, 1.3, x.shape) * sign)

    return jax.tree.map(drawn, weights)


def played_planes():
    """Observations of 32 positions after a few random moves."""

    def moved(s, key):
        return GAME.step(s, jax.random.categorical(key, jnp.where(GAME.mask(s), 0.0, -1e9))), None

    def after(key):
        return GAME.observe(jax.lax.scan(moved, GAME.init(), jax.random.split(key, 4))[0])

    return jax.jit(jax.vmap(after))(jax.random.split(jax.random.key(0), 32))


def enlarged(weights, wide, channels):
    return jax.jit(lambda key: grow(weights, wide.init(key), channels, key))(jax.random.key(3))
