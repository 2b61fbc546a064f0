"""Networks computed in the forms that a TPU's compiler likes, against those of other devices."""

import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents.actions import random_action
from agents.network.network import make_network
from agents.storage.weights import load_network

MODELS = pathlib.Path(__file__).parents[2] / "models"
OTHERS = [pytest.param(name, marks=pytest.mark.nightly) for name in ("foq_multi", "go_5x5")]


def positions(game, seed: int = 0) -> jax.Array:
    """Planes of 16 positions after six random moves."""
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(seed), 16))
    for key in jax.random.split(jax.random.key(seed + 1), 6):
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


@pytest.mark.parametrize("name", ["connect_four", "foq", *OTHERS])
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


@pytest.mark.parametrize("name", ["connect_four", *OTHERS])
def test_the_forms_for_a_tpu_learn_the_same(name, for_a_tpu):
    """Gradients and running statistics where twelve of the rows count. Gradients jump where rounding decides on which
    side of zero an input of a rectifier lies, so one batch of the three may differ."""
    trained = load_network(MODELS / name)
    batches, counted = [positions(trained.game, seed) for seed in (0, 2, 4)], jnp.arange(16) < 12

    def learned(planes):
        net = make_network(trained.game, trained.config)

        def of_params(params):
            heads, weights = net.train({**trained.weights, "params": params}, planes, None, counted)
            return jnp.square(heads.policy).mean() + jnp.square(heads.value).mean(), weights["batch_stats"]

        return jax.grad(of_params, has_aux=True)(trained.weights["params"])

    def apart(a, b):
        """The largest difference as a share of the largest gradient."""
        pairs = list(zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))
        largest = max(np.abs(y).max() for _, y in pairs)
        assert largest > 0.1
        return max(np.abs(x - y).max() for x, y in pairs) / largest

    usual = [learned(planes) for planes in batches]
    chosen = for_a_tpu()
    near = [learned(planes) for planes in batches]
    assert any(chosen)
    assert sum(apart(a[0], b[0]) < 1e-4 for a, b in zip(near, usual, strict=True)) >= 2
    for (_, near_statistics), (_, statistics) in zip(near, usual, strict=True):
        same = functools.partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-4)
        jax.tree.map(same, near_statistics, statistics)
