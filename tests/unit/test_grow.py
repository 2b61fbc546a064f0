"""Networks that grow keep their outputs, and what was copied learns to differ; networks move to other boards."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from growing import GAME, SMALL, enlarged, played_planes, random_weights

import envs
from agents.network.network import make_network
from agents.network.transfer import copies, resize


@pytest.fixture(scope="module")
def planes():
    return played_planes()


def test_copies_learn_to_differ(planes):
    narrow, wide = (make_network(GAME, dataclasses.replace(SMALL, channels=channels)) for channels in (8, 16))
    weights = random_weights(jax.eval_shape(narrow.init, jax.random.key(0)), 1)
    grown = enlarged(weights, wide, (8, 16))

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


def test_far_from_the_edges_a_larger_board_is_the_same():
    """Three convolutions see a cell's neighbourhood of 7 x 7, the small board and the middle of the large one."""
    config = dataclasses.replace(SMALL, env="go:size=7", pooling=False, slides=False, normalisation="none")
    small, large = (make_network(envs.make(f"go:size={size}"), config) for size in (7, 9))
    weights = random_weights(jax.eval_shape(small.init, jax.random.key(0)), 1)
    wanted = jax.eval_shape(large.init, jax.random.key(0))
    resized = resize(weights, wanted, ((7, 7), (9, 9)), SMALL.channels)
    assert jax.tree.map(jnp.shape, resized) == jax.tree.map(jnp.shape, wanted)
    board = jax.random.uniform(jax.random.key(2), (4, 7, 7, 11))
    around = jnp.pad(board, ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=0.5)
    logits, _ = small.apply(weights, board)
    moved, _ = large.apply(resized, around)
    assert np.ptp(logits[:, 24]) > 0.1
    np.testing.assert_allclose(moved[:, 40], logits[:, 24], rtol=1e-4, atol=1e-4)


def test_stretched_weights_of_cells():
    """Worked out by hand: a row of two cells becomes one of four, whose middles lie a quarter before and behind the old
    ones; each weighs half as much, as there are twice as many. What is shared by all cells stays."""
    a, b = np.arange(4.0) * 8, np.arange(4.0) * 8 + 80
    kernel = np.concatenate([[5.0, 7.0], a, b])[:, None]
    got = resize({"kernel": kernel}, {"kernel": np.zeros((18, 1))}, ((1, 2), (1, 4)), 1)["kernel"]
    wanted = [[5.0, 7.0], a / 2, (3 * a + b) / 8, (a + 3 * b) / 8, b / 2]
    np.testing.assert_allclose(got[:, 0], np.concatenate(wanted), rtol=1e-6)
    with pytest.raises(ValueError, match=r"kernel is of \[10, 1\] there, of \[19, 1\] here"):
        resize({"kernel": kernel}, {"kernel": np.zeros((19, 1))}, ((1, 2), (1, 4)), 1)
    # As many cells in another order: a column of two has the middle of each in the middle of a row's.
    turned = resize({"kernel": kernel}, {"kernel": np.zeros((10, 1))}, ((1, 2), (2, 1)), 1)["kernel"]
    np.testing.assert_allclose(turned[:, 0], np.concatenate([[5.0, 7.0], (a + b) / 2, (a + b) / 2]), rtol=1e-6)
