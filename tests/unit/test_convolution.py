"""Convolutions as CPUs compute them, against sums written out in numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from agents.config import Config
from agents.network import convolution
from agents.network.network import make_network


def written_out(x, kernel, g):
    """The convolution, and the gradients of its sum weighted by `g`, in double precision."""
    x, kernel, g = (np.asarray(y, np.float64) for y in (x, kernel, g))
    rows, columns = x.shape[1:3]
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    y, of_x, of_kernel = np.zeros_like(g), np.zeros_like(padded), np.zeros_like(kernel)
    for i in range(3):
        for j in range(3):
            seen = padded[:, i : i + rows, j : j + columns]
            y += seen @ kernel[i, j]
            of_kernel[i, j] = np.einsum("brci,brco->io", seen, g)
            of_x[:, i : i + rows, j : j + columns] += g @ kernel[i, j].T
    return y, of_x[:, 1:-1, 1:-1], of_kernel


def drawn(rows, board, channels, outputs):
    rng = np.random.default_rng(0)
    shapes = (rows, *board, channels), (3, 3, channels, outputs), (rows, *board, outputs)
    return [jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in shapes]


def close(ours, exact):
    """To a few millionths of the largest number, which is what is left of single precision."""
    np.testing.assert_allclose(ours, exact, atol=1e-5 * np.abs(exact).max())


@pytest.mark.parametrize("board", [(9, 9), (5, 6), (1, 4)])
@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("tile", [2, 3, 4, 5])
def test_fewer_products_give_the_same_sums(board, axis, tile):
    x, kernel, g = drawn(3, board, 3, 5)
    y, _, of_kernel = written_out(x, kernel, g)
    close(jax.jit(convolution.with_fewer_products, static_argnums=(2, 3))(x, kernel, axis, tile), y)
    close(jax.jit(convolution.of_kernel_with_fewer_products, static_argnums=(2, 3))(x, g, axis, tile), of_kernel)


@pytest.mark.parametrize("rows", [4, 300, 131])  # at once, in three parts, a prime number
@pytest.mark.parametrize("channels", [3, convolution.ENOUGH])
def test_convolution_and_gradient(rows, channels):
    x, kernel, g = drawn(rows, (5, 6), channels, 40)

    @jax.jit
    def forth_and_back(x, kernel, g):
        y, backwards = jax.vjp(convolution.convolve, x, kernel)
        return y, *backwards(g)

    for ours, exact in zip(forth_and_back(x, kernel, g), written_out(x, kernel, g), strict=True):
        close(ours, exact)


def test_low_precision_is_not_lowered_further():
    x, kernel, _ = drawn(8, (9, 9), 32, 32)
    assert convolution.worth(x, kernel)
    assert not convolution.worth(x.astype(jnp.bfloat16), kernel.astype(jnp.bfloat16))


@pytest.mark.parametrize("rows", [64, 150])
def test_a_network_answers_row_by_row(rows):
    """However many rows are asked about at once."""
    game = envs.make("foq:rows=3,cols=4")
    net = make_network(game, Config(channels=8, blocks=1))
    weights = net.init(jax.random.key(0))
    weights = jax.tree.map(lambda w: w + 0.1 * jax.random.normal(jax.random.key(1), w.shape), weights)
    shape = jax.eval_shape(lambda: game.observe(game.init())).shape
    planes = jax.random.normal(jax.random.key(2), (rows, *shape))
    logits, value = net.apply(weights, planes)
    some = np.arange(0, rows, 7)
    for ours, alone in zip((logits, value), net.apply(weights, planes[some]), strict=True):
        np.testing.assert_allclose(ours[some], alone, atol=1e-5)
    assert np.abs(np.diff(value)).max() > 1e-3
