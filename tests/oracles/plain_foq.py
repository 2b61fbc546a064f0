"""A plain walk along the rays of a queen, and a random game to compare with it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import envs

DIRECTIONS = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)]


def slides(ripped: np.ndarray, square: int) -> dict[int, list[int]]:
    """For each square that a queen can slide to, the squares that it enters."""
    rows, cols = ripped.shape
    found = {}
    for down, right in DIRECTIONS:
        row, col = square // cols + down, square % cols + right
        path: list[int] = []
        while 0 <= row < rows and 0 <= col < cols and not ripped[row, col]:
            path.append(row * cols + col)
            found[path[-1]] = list(path)
            row, col = row + down, col + right
    return found


def squares(board: np.ndarray) -> list[int]:
    return np.flatnonzero(board).tolist()


def random_game(spec: str, seed: int):
    """Numpy states of one random game, the last one finished, and what is observed in each."""
    game = envs.make(spec)

    @jax.jit
    def play(key):
        def ply(s, key):
            action = jax.random.categorical(key, jnp.where(game.mask(s), 0.0, -jnp.inf))
            return game.step(s, action), (s, game.observe(s), game.over(s))

        return jax.lax.scan(ply, game.init(), jax.random.split(key, game.max_plies + 1))[1]

    states, planes, over = jax.device_get(play(jax.random.key(seed)))
    plies = int(over.argmax()) + 1
    return jax.tree.map(lambda x: x[:plies], (getattr(states, "now", states), planes))
