"""A network that sees every position in one orientation: the least of its images under the symmetries of the game."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from envs.game import Array, Game

if TYPE_CHECKING:
    from agents.network.network import Network


def least_image(game: Game, planes: Array) -> tuple[Array, Array]:
    """The least of each position's images, number by number, and the symmetry that leads to it, the first of several.

    Args:
        game: whose symmetries are meant.
        planes: float32[B, R, C, P].

    Returns:
        float32[B, R, C, P] and int32[B].
    """
    least = planes.reshape(len(planes), -1)
    which = jnp.zeros(len(planes), jnp.int32)
    for i, symmetry in enumerate(game.symmetries[1:], 1):
        image = jax.vmap(symmetry.planes)(planes).reshape(least.shape)
        first = (image != least).argmax(-1, keepdims=True)
        smaller = jnp.take_along_axis(image, first, -1) < jnp.take_along_axis(least, first, -1)
        least, which = jnp.where(smaller, image, least), jnp.where(smaller[:, 0], i, which)
    return least.reshape(planes.shape), which


def canonical(game: Game, net: Network) -> Network:
    """The same network behind `least_image`, in training too; actions are mapped back.

    Images of a position then have the same value and policy. A position that is its own image may still get a lopsided
    policy.
    """
    images = np.stack([symmetry.actions for symmetry in game.symmetries])

    def back(of_actions: Array, which: Array) -> Array:
        index = jnp.asarray(images)[which].reshape(*of_actions.shape[:2], *[1] * (of_actions.ndim - 2))
        return jnp.take_along_axis(of_actions, index, axis=1)

    def apply(weights, planes):
        seen, which = least_image(game, planes)
        logits, value = net.apply(weights, seen)
        return back(logits, which), value

    def train(weights, planes, axis, counted=None):
        seen, which = least_image(game, planes)
        heads, weights = net.train(weights, seen, axis, counted)
        future = None if heads.future is None else back(heads.future, which)
        return heads._replace(policy=back(heads.policy, which), future=future), weights

    return dataclasses.replace(net, apply=jax.jit(apply), train=jax.jit(train, static_argnums=2))
