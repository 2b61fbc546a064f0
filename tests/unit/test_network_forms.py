"""Networks computed in the forms that a TPU's compiler likes, against those of other devices."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents.actions import random_action
from agents.network.network import make_network
from agents.storage.weights import load_network

MODELS = pathlib.Path(__file__).parents[2] / "models"


def positions(game) -> jax.Array:
    """Planes of 16 positions after six random moves."""
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 16))
    for key in jax.random.split(jax.random.key(1), 6):
        states = jax.vmap(game.step)(states, random_action(key, jax.vmap(game.mask)(states)))
    return jax.vmap(game.observe)(states)


@pytest.fixture
def for_a_tpu(monkeypatch):
    """From its call on, forms for a TPU are chosen. Returns the list of these choices."""

    def begin() -> list[bool]:
        chosen = []

        def choose(*given, tpu=None, default=None, **others):
            chosen.append(tpu is not None)
            return (tpu or default)(*given)

        monkeypatch.setattr(jax.lax, "platform_dependent", choose)
        return chosen

    return begin


@pytest.mark.parametrize("name", ["connect_four", "foq", "foq_multi", "go_5x5"])
def test_the_forms_for_a_tpu_give_the_same_answers(name, for_a_tpu):
    trained = load_network(MODELS / name)
    planes = positions(trained.game)
    answers = lambda: make_network(trained.game, trained.config).apply(trained.weights, planes)
    logits, values = answers()
    chosen = for_a_tpu()
    near_logits, near_values = answers()
    assert any(chosen)
    assert np.std(logits) > 0.1 and np.std(values) > 0.1
    np.testing.assert_allclose(near_logits, logits, atol=1e-3)
    np.testing.assert_allclose(near_values, values, atol=1e-4)


@pytest.mark.parametrize("name", ["connect_four", "foq_multi", "go_5x5"])
def test_the_forms_for_a_tpu_learn_the_same(name, for_a_tpu):
    """Gradients and running statistics where twelve of the rows count."""
    trained = load_network(MODELS / name)
    planes, counted = positions(trained.game), jnp.arange(16) < 12

    def learned():
        net = make_network(trained.game, trained.config)

        def of_params(params):
            heads, weights = net.train({**trained.weights, "params": params}, planes, None, counted)
            return jnp.square(heads.policy).mean() + jnp.square(heads.value).mean(), weights["batch_stats"]

        return jax.grad(of_params, has_aux=True)(trained.weights["params"])

    gradients, statistics = learned()
    chosen = for_a_tpu()
    near_gradients, near_statistics = learned()
    assert any(chosen)
    largest = max(np.abs(x).max() for x in jax.tree.leaves(gradients))
    assert largest > 0.1
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4 * largest), near_gradients, gradients)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4), near_statistics, statistics)
