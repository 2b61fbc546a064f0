"""Networks computed in the forms that a TPU's compiler likes, against those of other devices."""

import pathlib

import jax
import numpy as np
import pytest

from agents.actions import random_action
from agents.network.network import make_network
from agents.storage.weights import load_network

MODELS = pathlib.Path(__file__).parents[2] / "models"


@pytest.mark.parametrize("name", ["connect_four", "foq", "foq_multi", "go_5x5"])
def test_the_forms_for_a_tpu_give_the_same_answers(name, monkeypatch):
    """On 16 positions after six random moves."""
    trained = load_network(MODELS / name)
    game = trained.game
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 16))
    for key in jax.random.split(jax.random.key(1), 6):
        states = jax.vmap(game.step)(states, random_action(key, jax.vmap(game.mask)(states)))
    planes = jax.vmap(game.observe)(states)
    answers = lambda: make_network(game, trained.config).apply(trained.weights, planes)
    logits, values = answers()
    chosen = []

    def for_a_tpu(*given, tpu=None, default=None, **others):
        chosen.append(tpu is not None)
        return (tpu or default)(*given)

    monkeypatch.setattr(jax.lax, "platform_dependent", for_a_tpu)
    near_logits, near_values = answers()
    assert any(chosen)
    assert np.std(logits) > 0.1 and np.std(values) > 0.1
    np.testing.assert_allclose(near_logits, logits, atol=1e-3)
    np.testing.assert_allclose(near_values, values, atol=1e-4)
