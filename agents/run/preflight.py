"""Checks whether a configuration can learn at all: early in a long run, its components learn a solved toy game.

The game is a race to a sum. Players take turns adding 1 to 3, and the player who makes it 12 wins. The player to move
at 0, 4 or 8 has lost. Elsewhere exactly one addition wins: the one to the next multiple of 4. Every value is known, and
values alternate between the two sides. A wrong sign in a target, a head, a loss or a backup thus shows within a few
hundred updates.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

import envs
from agents.config import Config
from agents.network.network import make_network
from agents.runtime import mesh
from agents.search.policies import make_search
from agents.training.algorithms import algorithm_of

TARGET, LARGEST = 12, 3
ITERATIONS = 40
DEMANDED = 0.8  # of values and of moves; wrong signs leave less than half of one, see tests/integration/test_safety.py


TOY_BATCH = 64


class PreflightError(ValueError):
    """The toy game was not learned; the message is for the user."""


class PreflightScore(NamedTuple):
    values: float  # share of positions whose learned value has the right sign
    moves: float  # share of won positions in which the search plays a winning move
    seconds: float


def toy_config(config: Config) -> Config:
    """The configuration for the toy game: the same components at small sizes, so that all of it takes seconds."""
    return dataclasses.replace(
        config,
        env=f"sum_to_100:target={TARGET},largest={LARGEST}",
        seed=0,
        input_planes=0,  # all that the toy game has
        num_envs=64,
        plies_per_iteration=4,
        random_opening_plies=4,  # so that every sum occurs, whatever the players prefer
        num_simulations=min(config.num_simulations, 8),  # the search must need the network
        proofs=False,  # a search with proofs would not need it
        temperature_plies=4,
        channels=min(config.channels, 32),
        blocks=min(config.blocks, 1),
        attention_policy=False,  # the toy game has no cells that a move starts from
        replay_capacity=2048,
        proof_file="",  # it is of another game; proof searches fill the same ring
        replay_ratio=4.0,
        batch_size=TOY_BATCH,
        warmup_positions=min(config.warmup_positions, 20 * TOY_BATCH),
        ema_positions=min(config.ema_positions, 20 * TOY_BATCH),
        rating_games=0,
        gate=False,
        early_urge=0.0,  # the toy game has no `urge`
    )


def rehearse(config: Config) -> PreflightScore:
    """Learns the toy game with the components of `config`, and scores every position."""
    began = time.monotonic()
    config = toy_config(config)
    game = envs.make(config.env)
    net = make_network(game, config)
    alone = Mesh(np.array(jax.local_devices()[:1]), (mesh.GAMES,))
    parts = algorithm_of(config)
    play = jax.jit(parts.make_play(game, net, config, alone), donate_argnums=0)
    learn = jax.jit(parts.make_learn(game, net, config, alone), donate_argnums=0)
    run = mesh.laid_out(lambda: parts.start_run(game, net, config), parts.run_specs, alone)()
    for i in range(ITERATIONS):
        run, *_ = play(run)
        run, _ = learn(run, i / ITERATIONS)
    values, moves = ask_all_sums(game, net, config, run.learning.ema_weights)
    remaining = TARGET - np.arange(TARGET)
    won = remaining % (LARGEST + 1) != 0
    right_values = np.sign(values) == np.where(won, 1, -1)
    right_moves = (moves + 1 == remaining % (LARGEST + 1))[won]
    return PreflightScore(float(right_values.mean()), float(right_moves.mean()), time.monotonic() - began)


def ask_all_sums(game: envs.Game, net: Any, config: Config, weights: Any) -> tuple[np.ndarray, np.ndarray]:
    """For every sum from 0 to TARGET - 1: the network's value for the mover, and the move of the search."""
    states = jax.tree.map(lambda x: jnp.broadcast_to(x, (TARGET, *x.shape)), game.init())
    states = states._replace(total=jnp.arange(TARGET, dtype=states.total.dtype))
    search = make_search(game, net, config, explore=False)
    found = jax.jit(search)(weights, jax.random.key(0), states, jnp.full(TARGET, TARGET))
    return np.asarray(found.raw_value), np.asarray(found.action)


def demand_learning(config: Config) -> PreflightScore:
    """Runs the preflight.

    Raises:
        PreflightError: the toy game is not learned.
    """
    score = rehearse(config)
    if min(score.values, score.moves) < DEMANDED:
        raise PreflightError(
            f"preflight: with these options a solved toy game is not learned: {score.values:.0%} of its values have "
            f"the right sign and {score.moves:.0%} of its won positions are played right, expected {DEMANDED:.0%}; a "
            f"sign is wrong in the code, or an option stands in the way (--learning_rate, --value_lambda); "
            f"--no_preflight starts all the same"
        )
    return score
