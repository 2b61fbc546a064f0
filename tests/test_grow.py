"""Networks that grow keep their outputs, and what was copied learns to differ."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from agents.config import Config
from agents.grow import copies, grow
from agents.network import make_network

GAME = envs.make("foq:rows=4,cols=5")
SMALL = Config(env=GAME.name, channels=8, blocks=1, future_weight=1.0, slides=True, pooling=True)
KINDS = {
    "as preset": ({}, {"channels": 16, "blocks": 3}),
    "no multiple": ({}, {"channels": 11}),
    "blocks alone": ({"slides": False}, {"blocks": 2}),
    "layer": ({"normalisation": "layer", "reply_weight": 1.0}, {"channels": 16, "blocks": 2}),
    "none": ({"normalisation": "none", "pooling": False, "slides": False}, {"channels": 13, "blocks": 2}),
    "strips": ({"network": "strips", "slides": False}, {"channels": 12}),
    "mlp": ({"network": "mlp", "slides": False}, {"channels": 12}),
}


def random_weights(weights, seed):
    """Nothing stays zero, as after training; scales of normalisation stay positive."""
    leaves, shape = jax.tree.flatten(weights)
    keys = jax.random.split(jax.random.key(seed), len(leaves))
    drawn = [0.3 + jax.random.uniform(key, x.shape) for key, x in zip(keys, leaves, strict=True)]
    signs = [
        1 if x.ndim < 2 else jax.random.choice(key, jnp.array([-1, 1]), x.shape)
        for key, x in zip(keys, leaves, strict=True)
    ]
    return jax.tree.unflatten(shape, [0.3 * x * sign for x, sign in zip(drawn, signs, strict=True)])


@pytest.fixture(scope="module")
def planes():
    """Observations of 32 positions after a few random moves."""

    def moved(s, key):
        mask = GAME.mask(s)
        return GAME.step(s, jax.random.categorical(key, jnp.where(mask, 0.0, -1e9)))

    states = jax.vmap(lambda _: GAME.init())(jnp.arange(32))
    for i in range(4):
        states = jax.vmap(moved)(states, jax.random.split(jax.random.key(i), 32))
    return jax.vmap(GAME.observe)(states)


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_stay(kind, planes):
    base, larger = KINDS[kind]
    small = dataclasses.replace(SMALL, **base)
    large = dataclasses.replace(small, **larger)
    narrow, wide = make_network(GAME, small), make_network(GAME, large)
    weights = random_weights(narrow.init(jax.random.key(0)), 1)
    grown = grow(weights, wide.init(jax.random.key(2)), (small.channels, large.channels), jax.random.key(3))
    assert jax.tree.map(jnp.shape, grown) == jax.tree.map(jnp.shape, wide.init(jax.random.key(0)))
    for one, other in ((narrow.apply, wide.apply), (narrow.train, wide.train)):
        before, after = one(weights, planes), other(grown, planes)
        before, after = (x if one is narrow.apply else x[0] for x in (before, after))
        assert np.ptp(before[0]) > 0.1
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=2e-3, atol=2e-3), before, after)


def test_copies_learn_to_differ(planes):
    narrow, wide = (make_network(GAME, dataclasses.replace(SMALL, channels=channels)) for channels in (8, 16))
    weights = random_weights(narrow.init(jax.random.key(0)), 1)
    grown = grow(weights, wide.init(jax.random.key(2)), (8, 16), jax.random.key(3))

    def loss(params):
        logits, value = wide.apply({**grown, "params": params}, planes)
        return (logits**2).mean() + (value - 0.5).mean()

    gradient = jax.grad(loss)(grown["params"])["ResidualBlock_0"]["Conv_0"]["kernel"]
    apart = jnp.abs(gradient[..., :8] - gradient[..., 8:]).max()
    assert apart > 0.01 * jnp.abs(gradient).max()


def test_copies_of_an_axis():
    """Worked out by hand: the channels twice over and three more entries, from 2 to 3 channels."""
    np.testing.assert_array_equal(copies(7, 9, (2, 3)), [0, 1, 0, 2, 3, 2, 4, 5, 6])
    np.testing.assert_array_equal(copies(4, 4, (2, 3)), [0, 1, 2, 3])
