"""Networks of every kind keep their outputs when they grow."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from growing import GAME, SMALL, enlarged, played_planes, random_weights

from agents.network.network import make_network


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
