"""Networks of every kind keep their outputs when they grow."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from agents.config import Config
from agents.network.network import make_network
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


@pytest.fixture(scope="module")
def planes():
    """Observations of 32 positions after a few random moves."""

    def moved(s, key):
        return GAME.step(s, jax.random.categorical(key, jnp.where(GAME.mask(s), 0.0, -1e9))), None

    def after(key):
        return GAME.observe(jax.lax.scan(moved, GAME.init(), jax.random.split(key, 4))[0])

    return jax.jit(jax.vmap(after))(jax.random.split(jax.random.key(0), 32))


def enlarged(weights, wide, channels):
    return jax.jit(lambda key: grow(weights, wide.init(key), channels, key))(jax.random.key(3))


KINDS = {
    "as preset": ({}, {"channels": 16, "blocks": 3}),
    "no multiple": ({}, {"channels": 11}),
    "blocks alone": ({"slides": False}, {"blocks": 2}),
    "layer": ({"normalisation": "layer"}, {"channels": 16, "blocks": 2}),
    "none": ({"normalisation": "none", "pooling": False, "slides": False}, {"channels": 13, "blocks": 2}),
    "strips": ({"network": "strips", "slides": False}, {"channels": 12}),
    "mlp": ({"network": "mlp", "slides": False}, {"channels": 12}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_stay(kind, planes):
    base, larger = KINDS[kind]
    small = dataclasses.replace(SMALL, **base)
    large = dataclasses.replace(small, **larger)
    narrow, wide = make_network(GAME, small), make_network(GAME, large)
    weights = random_weights(jax.eval_shape(narrow.init, jax.random.key(0)), 1)
    grown = enlarged(weights, wide, (small.channels, large.channels))
    assert jax.tree.map(jnp.shape, grown) == jax.tree.map(jnp.shape, jax.eval_shape(wide.init, jax.random.key(0)))
    for answers in (lambda net, w: net.apply(w, planes), lambda net, w: net.train(w, planes, None)[0]):
        before, after = answers(narrow, weights), answers(wide, grown)
        assert np.ptp(before[0]) > 0.1
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=2e-3, atol=2e-3), before, after)
