"""Chomp: bite off a square with all that lies right of it and below; the player left with the poisoned corner loses."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from envs.own import own_game


class State(NamedTuple):
    left: Array  # bool[R, C], what is left of the chocolate
    to_move: Array  # int8[], player to move, 0 or 1


def mask(s: State) -> Array:
    return s.left.ravel().at[0].set(False)  # nobody bites the poisoned corner


def move(s: State, action: Array) -> State:
    rows, cols = s.left.shape
    bitten = (jnp.arange(rows)[:, None] >= action // cols) & (jnp.arange(cols) >= action % cols)
    return State(s.left & ~bitten, 1 - s.to_move)


def rewards(s: State) -> Array:
    return jnp.where(jnp.arange(2) == s.to_move, -1, 1)  # a player who cannot move loses


def observe(s: State) -> Array:
    return s.left  # the same for both players


def make(rows: int = 4, cols: int = 7):
    start = State(jnp.ones((rows, cols), bool), jnp.int8(0))
    return own_game(__doc__, lambda: start, mask, move, rewards, observe, max_plies=rows * cols)
