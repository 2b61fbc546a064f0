"""Networks of every kind keep their outputs when they grow."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from growing import GAME, SMALL, enlarged, played_planes, random_weights

import envs
from agents.network.network import make_network
from agents.network.transfer import add_planes


@pytest.fixture(scope="module")
def planes():
    return played_planes()


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


@pytest.mark.parametrize("network", ["resnet", "strips", "mlp", "equivariant"])
def test_outputs_stay_with_more_planes(network):
    """Further planes change nothing until their kernels learn, and these can learn."""
    game = envs.make("connect_four:rows=4,cols=4")
    board = game.observe(game.init()).shape[:2]
    few, many = (dataclasses.replace(SMALL, network=network, slides=False, input_planes=n) for n in (2, 5))
    narrow, wide = make_network(game, few), make_network(game, many)
    fresh = jax.eval_shape(wide.init, jax.random.key(0))
    weights = random_weights(jax.eval_shape(narrow.init, jax.random.key(0)), 1)
    grown = add_planes(weights, fresh, (2, 5))
    assert jax.tree.map(jnp.shape, grown) == jax.tree.map(jnp.shape, fresh)
    planes = jax.random.normal(jax.random.key(2), (8, *board, 5))
    for answers in (lambda net, w: net.apply(w, planes), lambda net, w: net.train(w, planes, None)[0]):
        before, after = answers(narrow, weights), answers(wide, grown)
        assert np.ptp(before[0]) > 0.1
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=2e-4, atol=2e-4), before, after)
    gradient = jax.grad(lambda w: (wide.apply(w, planes)[0] ** 2).sum())(grown)
    leaves = zip(*map(jax.tree.leaves, (weights, grown, gradient)), strict=True)
    (slopes,) = [slopes for x, y, slopes in leaves if x.shape != y.shape]
    new = slopes.reshape(*slopes.shape[:-2], -1, 5, slopes.shape[-1])[..., 2:, :]
    assert (jnp.abs(new).max((*range(new.ndim - 2), -1)) > 0).all()
