"""Networks that see only the first planes of their game."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest
from random_network import random_weights

import envs
from agents import config as config_lib
from agents.config import Config
from agents.network.network import make_network
from envs.game import Game

CONFIG = Config(env="othello", channels=8, blocks=1, future_weight=1.0, input_planes=2)


@pytest.fixture(scope="module")
def game() -> Game:
    return envs.make("othello")


@pytest.fixture(scope="module")
def planes(game) -> jax.Array:
    """Random numbers, as no two planes of them depend on each other."""
    return jax.random.normal(jax.random.key(3), (4, *game.observe(game.init()).shape))


@pytest.mark.parametrize("canonical", [False, True])
def test_the_other_planes_do_not_matter(game, planes, canonical):
    config = dataclasses.replace(CONFIG, canonical=canonical)
    net = make_network(game, config)
    weights = jax.tree.map(lambda x: x + 0.1, net.init(jax.random.key(0)))  # no head starts at zero
    asked = (net.apply, net.heads, lambda weights, planes: net.train(weights, planes, None)[0])
    for ask in asked:
        answers = lambda x, ask=ask: jax.tree.leaves(ask(weights, x))
        whole, cut, other = answers(planes), answers(planes.at[..., 2:].set(0)), answers(planes.at[..., 1].set(0))
        assert all(np.array_equal(x, y) for x, y in zip(whole, cut, strict=True))
        assert not all(np.array_equal(x, y) for x, y in zip(whole, other, strict=True))


@pytest.mark.parametrize("options", [{"canonical": True}, {"network": "equivariant"}])
def test_symmetries_that_exchange_planes_do_so_with_the_first_ones(options):
    """Images of a position of Hex have one policy. A half turn exchanges top and bottom, and so planes 3 and 4."""
    game = envs.make("hex:size=4")
    half_turn = game.symmetries[1]
    net = make_network(game, dataclasses.replace(CONFIG, env=game.name, future_weight=0.0, input_planes=5, **options))
    weights = random_weights(jax.eval_shape(net.init, jax.random.key(0)), 1)
    planes = jax.random.normal(jax.random.key(3), (4, *game.observe(game.init()).shape))
    policy = lambda planes: net.apply(weights, planes)[0]
    unlike = planes.at[..., [3, 4]].set(planes[..., [4, 3]])
    turned = policy(jax.vmap(half_turn.planes)(planes))
    np.testing.assert_allclose(turned[:, half_turn.actions], policy(planes), rtol=1e-4, atol=1e-4)
    assert abs(policy(unlike) - policy(planes)).max() > 0.01


def test_kernels_have_the_size_of_what_they_see(game):
    widths = {
        count: make_network(game, dataclasses.replace(CONFIG, input_planes=count))
        .init(jax.random.key(0))["params"]["Conv_0"]["kernel"]
        .shape[2]
        for count in (0, 2, 5)
    }
    assert widths == {0: 5, 2: 2, 5: 5}


def test_more_planes_than_the_game_has_are_refused(game):
    with pytest.raises(ValueError, match="--input_planes: expected at most 5, the planes of othello, got 6"):
        make_network(game, dataclasses.replace(CONFIG, input_planes=6))


@pytest.mark.parametrize(
    ("env", "planes"),
    [("connect_four:rows=6,cols=7,connect=4", 2), ("hex:size=7", 3), ("foq:rows=8,cols=9", 0), ("tictactoe", 0)],
)
def test_networks_of_before_see_the_planes_of_then(env, planes):
    saved = dataclasses.asdict(Config(env=env))
    assert config_lib.config_of_record(saved).input_planes == 0
    del saved["input_planes"]
    assert config_lib.config_of_record(saved).input_planes == planes
