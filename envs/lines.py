"""Rows of stones on a board, for pictures, for the checks of records, and in words."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from envs.game import Array

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))  # down, right


def in_rows(board: Any, length: int, exact: bool = False) -> Any:
    """bool[R, C]: cells in a row of at least `length` equal stones, or of exactly `length`.

    Args:
        board: [R, C], 0 or False for an empty cell; an array of numpy or of jax, and so is the result.
        length: number of stones.
        exact: whether longer rows do not count.
    """
    (rows, cols), edge = board.shape, length + 1
    pad = np.pad if isinstance(board, np.ndarray) else jnp.pad

    def seen(x: Any, down: int, right: int) -> Any:
        """What lies `down` and `right` of every cell, 0 beyond the edge."""
        return pad(x, edge)[edge + down : edge + down + rows, edge + right : edge + right + cols]

    found = board != board
    for down, right in DIRECTIONS:
        starts = board != 0
        for i in range(1, length):
            starts = starts & (seen(board, i * down, i * right) == board)
        if exact:
            starts = starts & (seen(board, -down, -right) != board)
            starts = starts & (seen(board, length * down, length * right) != board)
        for i in range(length):
            found = found | seen(starts, -i * down, -i * right)
    return found


def completing(seen: Callable[[int, int, int], Array], length: int, exact: bool = False) -> Array:
    """Cells that are in a row of `length` stones, or of more unless `exact`, once they have a stone.

    Args:
        seen: (down, right, distance) -> cells with a stone `distance` steps away in the direction (down, right), one of
            `DIRECTIONS`. A negative distance looks the other way. The cells are of any type that has `&`, `|` and `~`.
        length: number of stones, 2 or more.
        exact: whether longer rows do not count.
    """
    rows = []
    for direction in DIRECTIONS:
        ahead, behind = ([seen(*direction, sign * i) for i in range(1, length)] for sign in (1, -1))
        ahead, behind = (list(itertools.accumulate(found, operator.and_)) for found in (ahead, behind))
        for i in range(length):
            rest = length - 1 - i  # stones behind the cell, if i are ahead
            row = ahead[i - 1 : i] + behind[rest - 1 : rest]
            ends = [~seen(*direction, i + 1), ~seen(*direction, -rest - 1)] if exact else []
            rows.append(functools.reduce(operator.and_, row + ends))
    return functools.reduce(operator.or_, rows)


def in_a_row(length: int) -> str:
    """`four in a row`; large numbers as digits."""
    return f"{NUMBERS[length] if length < len(NUMBERS) else length} in a row"
