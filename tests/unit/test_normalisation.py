"""Batch normalisation against Flax and by hand, and in the form for a TPU."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents.network.network import rectified
from agents.network.normalisation import BatchNorm, moments, moments_of_boards, moments_of_sum


def activations(seed: int, dtype=jnp.float32):
    """Output of a convolution and a shift of every board whose mean is large, as networks learn them."""
    keys = jax.random.split(jax.random.key(seed), 3)
    near = jax.random.normal(keys[0], (64, 8, 9, 5)) * jnp.array([0.1, 0.5, 1.0, 2.0, 8.0]) + 0.3
    shift = jax.random.normal(keys[1], (64, 5)) * jnp.array([0.1, 0.3, 0.5, 1.0, 2.0]) - jnp.array([0.3, 2, 3, 5, 20])
    return near.astype(dtype), shift.astype(dtype), jax.random.bernoulli(keys[2], 0.7, (64,))


@pytest.mark.parametrize("some", [False, True])
def test_it_is_the_batch_normalisation_of_flax(some):
    """Output, running statistics and derivative, with all rows and with some."""
    near, shift, counted = activations(0)
    x, rows = near + shift[:, None, None], counted if some else None
    flax = nn.BatchNorm(use_running_average=False, momentum=0.95)
    of_flax = lambda weights, x: flax.apply(
        weights, x, mask=counted[:, None, None, None] if some else None, mutable=["batch_stats"]
    )
    ours = BatchNorm(True, None, rows)
    of_ours = lambda weights, x: ours.apply(weights, x, (near, shift), mutable=["batch_stats"])
    weights = flax.init(jax.random.key(1), x)
    weights["params"] = {"scale": jnp.linspace(0.5, 2, 5), "bias": jnp.linspace(-1, 1, 5)}
    gain = jax.random.normal(jax.random.key(2), x.shape)
    for of_norm in (lambda f: f(weights, x), lambda f: jax.grad(lambda x: (f(weights, x)[0] * gain).sum())(x)):
        expected, found = of_norm(of_flax), of_norm(of_ours)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), found, expected)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_a_tpu_finds_the_moments_of_a_sum_from_its_parts(dtype):
    """By NumPy in double precision. The variance is what counts: it is the small difference of large numbers."""
    near, shift, counted = activations(3, dtype)
    x = np.asarray(near, np.float64) + np.asarray(shift, np.float64)[:, None, None]
    rows = x[np.asarray(counted)].reshape(-1, 5)
    mean, square = moments_of_boards(near, shift, counted)
    error = 1e-3 if dtype == jnp.float32 else 0.02
    np.testing.assert_allclose((mean - rows.mean(0)) / rows.std(0), 0, atol=error)
    np.testing.assert_allclose(square - mean**2, rows.var(0), rtol=error)


def test_a_tpu_derives_the_moments_of_a_sum_through_the_sum(monkeypatch):
    monkeypatch.setattr(jax.lax, "platform_dependent", lambda *given, tpu, default: tpu(*given))
    near, shift, counted = activations(4)
    x = near + shift[:, None, None]
    gain = jnp.linspace(-1, 1, 5)
    of = lambda found: ((found[0] + 0.1 * found[1]) * gain).sum()
    expected = jax.grad(lambda x: of(moments(x, counted)))(x)
    found = jax.grad(lambda x, near, shift: of(moments_of_sum(x, near, shift, counted)), (0, 1, 2))(x, near, shift)
    np.testing.assert_allclose(found[0], expected, rtol=1e-5)
    assert np.abs(expected).max() > 1e-5
    assert not np.any(found[1]) and not np.any(found[2])  # they count through the sum alone


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_the_rectifier_of_a_tpu_has_the_derivative_of_relu(dtype):
    x = jnp.array([-3e38, -2.0, -1e-20, 0.0, 1e-20, 0.5, 3e38], dtype)
    np.testing.assert_array_equal(rectified(x), [0, 0, 0, 0, x[4], 0.5, x[6]])
    derivative = jax.vmap(jax.grad(lambda x: 3 * rectified(x)))(x)
    np.testing.assert_array_equal(derivative, [0, 0, 0, 0, 3, 3, 3])
