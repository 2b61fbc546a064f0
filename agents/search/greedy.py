"""Greedy play without a tree: moves to the successor with the best value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from agents.actions import legal_slots
from agents.network.inference import make_evaluate
from agents.network.network import Network
from agents.runtime import keys
from envs.game import Array, Game

LOT = 1e-6  # random tie-break among equal values


def value_greedy(game: Game, net: Network) -> Callable[[Any, Array, Any], Array]:
    """`act(weights, key, states) -> int32[B]`, the move to the successor with the highest value for the mover."""
    evaluate = make_evaluate(game, net)

    def act(weights: Any, key: Array, states: Any) -> Array:
        slots = legal_slots(jax.vmap(game.mask)(states), game.max_legal)
        mover = jax.vmap(game.player)(states)

        def worth(action: Array) -> Array:
            after = jax.vmap(game.move)(states, jnp.maximum(action, 0))
            values = evaluate(weights, key, after)[1]
            values = jnp.where(jax.vmap(game.over)(after)[:, None], jax.vmap(game.rewards)(after), values)
            return jnp.where(action < 0, -2.0, jnp.take_along_axis(values, mover[:, None], axis=-1)[:, 0])

        found = jax.lax.map(worth, slots.T).T
        found += LOT * keys.draw_lanes(jax.random.uniform, key, found.shape)
        return jnp.maximum(jnp.take_along_axis(slots, found.argmax(-1)[:, None], axis=-1)[:, 0], 0)

    return act
