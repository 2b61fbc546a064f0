"""Rows of stones on a board, for pictures, for the checks of records, and in words."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

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


def in_a_row(length: int) -> str:
    """`four in a row`; large numbers as digits."""
    return f"{NUMBERS[length] if length < len(NUMBERS) else length} in a row"
