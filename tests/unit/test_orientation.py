"""The canonical orientation: the same image from wherever a position is seen, and answers for the position as it is."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_network import random_planes, random_weights

import envs
from agents.config import Config
from agents.network.network import make_network
from agents.network.orientation import least_image


def test_the_least_image_by_hand():
    """One stone of tic-tac-toe: the least image has its first stone last, so corners meet in the last cell, edges in
    the middle of the last row, and the centre stays."""
    game = envs.make("tictactoe")
    corner, edge = {0, 2, 6, 8}, {1, 3, 5, 7}
    planes = np.zeros((9, 3, 3, game.observe(game.init()).shape[-1]), np.float32)
    for cell in range(9):
        planes[cell, cell // 3, cell % 3, 0] = 1
    seen, which = least_image(game, jnp.asarray(planes))
    for cell in range(9):
        (place,) = np.flatnonzero(np.asarray(seen)[cell, ..., 0])
        assert place == (8 if cell in corner else 7 if cell in edge else 4)
        turned = game.symmetries[int(which[cell])].planes(planes[cell])
        np.testing.assert_array_equal(turned, seen[cell])


@pytest.mark.parametrize("spec", ["tictactoe", "foq:rows=4,cols=5", "go:size=5,history=2", "hex:size=4"])
def test_turning_the_board_turns_the_answers(spec):
    game = envs.make(spec)
    net = make_network(game, Config(env=game.name, channels=8, blocks=1, future_weight=1.0, canonical=True))
    weights, planes = random_weights(jax.eval_shape(net.init, jax.random.key(0)), 1), random_planes(game, 1)
    logits, value = net.apply(weights, planes)
    in_training = lambda planes: net.train(weights, planes, None)[0].future
    in_play = lambda planes: net.heads(weights, planes).future
    assert np.ptp(logits) > 0.01
    for symmetry in game.symmetries:
        turned = jax.vmap(symmetry.planes)(planes)
        there, its = net.apply(weights, turned)
        np.testing.assert_allclose(there[:, symmetry.actions], logits, atol=1e-5)
        np.testing.assert_allclose(its, value, atol=1e-5)
        np.testing.assert_allclose(net.heads(weights, turned).policy, there, atol=1e-5)
        for future in (in_training, in_play):
            assert abs(future(turned)[:, symmetry.actions] - future(planes)).max() < 1e-5


def test_in_its_own_orientation_the_network_is_as_it_was():
    game = envs.make("tictactoe")
    config = {"env": game.name, "network": "resnet", "channels": 8, "blocks": 1}
    plain, turning = (make_network(game, Config(**config, canonical=on)) for on in (False, True))
    weights, planes = random_weights(jax.eval_shape(plain.init, jax.random.key(0)), 2), random_planes(game, 2)
    seen, which = least_image(game, planes)
    logits, value = plain.apply(weights, seen)
    got, its = turning.apply(weights, planes)
    for row, symmetry in enumerate(np.asarray(which)):
        np.testing.assert_allclose(got[row], logits[row][game.symmetries[symmetry].actions], atol=1e-5)
    np.testing.assert_allclose(its, value, atol=1e-5)
