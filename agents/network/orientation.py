"""The canonical orientation of a position: the least of its images under the symmetries of the game."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from envs.game import Array, Game


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


def map_back(game: Game, of_actions: Array, which: Array) -> Array:
    """Outputs per action of the least images, [B, A, ...], as outputs for the positions themselves.

    Args:
        which: int32[B], the symmetries that led to the images.
    """
    images = np.stack([symmetry.actions for symmetry in game.symmetries])
    index = jnp.asarray(images)[which].reshape(*of_actions.shape[:2], *[1] * (of_actions.ndim - 2))
    return jnp.take_along_axis(of_actions, index, axis=1)
