"""Rows of stones and joined edges, searched for cell by cell: Connect Four, Gomoku and Hex."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np


def has_row(board: np.ndarray, colour: int, length: int) -> bool:
    """Plain search: `length` stones of one colour in a row."""
    for r, c in np.ndindex(board.shape):
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
            line = [(r + down * i, c + right * i) for i in range(length)]
            if all(a < board.shape[0] and 0 <= b < board.shape[1] and board[a, b] == colour for a, b in line):
                return True
    return False


def winning_places(
    board: np.ndarray, turn: int, wins: Callable[[np.ndarray, tuple[int, ...]], bool]
) -> list[np.ndarray]:
    """For the player `turn` and for the other one: the empty cells where a stone of theirs wins, bool[R, C]. `wins`
    looks at the board with that stone, and at its place."""
    planes = [np.zeros(board.shape, bool) for _ in range(2)]
    for place in zip(*np.nonzero(board == 0), strict=True):
        for plane, side in zip(planes, (turn, -turn), strict=True):
            tried = board.copy()
            tried[place] = side
            plane[place] = wins(tried, place)
    return planes


def planes_of_columns(board: np.ndarray, turn: int, connect: int) -> np.ndarray:
    """Planes of Connect Four for the player `turn`: stones of both, empty cells where a stone of either makes a row of
    `connect`, and the lowest empty cells."""
    wins = winning_places(board, turn, lambda tried, place: max(rows_through(tried, *place)) >= connect)
    below = np.pad(board, ((0, 1), (0, 0)), constant_values=1)[1:]
    return np.stack([board == turn, board == -turn, *wins, (board == 0) & (below != 0)], -1)


def planes_of_fives(board: np.ndarray, turn: int, exact: bool) -> np.ndarray:
    """Planes of Gomoku for the player `turn`: stones of both, and for both in turn the empty cells where a stone makes
    five in a row, or more unless `exact`; makes a four; makes fours that two different cells complete."""

    def five(tried: np.ndarray, place: tuple[int, ...]) -> bool:
        lengths = rows_through(tried, *place)
        return 5 in lengths if exact else max(lengths) >= 5

    fours = np.zeros((2, 2, *board.shape), bool)
    for i, side in enumerate((turn, -turn)):
        for place, completing in makes_fours(board, side, exact).items():
            fours[0, i][place], fours[1, i][place] = True, len(completing) >= 2
    return np.stack([board == turn, board == -turn, *winning_places(board, turn, five), *fours[0], *fours[1]], -1)


def makes_fours(board: np.ndarray, side: int, exact: bool) -> dict[tuple[int, int], set[tuple[int, int]]]:
    """Plain search through all fives of the board: the cells where a stone of `side` makes a four, each with the cells
    that complete its fours. With `exact` a five does not touch further stones in its line."""
    found: dict[tuple[int, int], set[tuple[int, int]]] = {}
    at = lambda place: board[place] if min(place) >= 0 and max(place) < len(board) else None
    for r, c in np.ndindex(board.shape):
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
            before, *line, after = ((r + down * i, c + right * i) for i in range(-1, 6))
            held = [at(place) for place in line]
            longer = exact and side in (at(before), at(after))
            if held.count(side) == 3 and held.count(0) == 2 and not longer:
                first, second = (place for place in line if board[place] == 0)
                found.setdefault(first, set()).add(second)
                found.setdefault(second, set()).add(first)
    return found


def rows_through(board: np.ndarray, r: int, c: int) -> list[int]:
    """Plain count: lengths of the four rows through a stone."""
    lengths = []
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        length = 1
        for sign in (1, -1):
            a, b = r + sign * down, c + sign * right
            while 0 <= a < board.shape[0] and 0 <= b < board.shape[1] and board[a, b] == board[r, c]:
                length, a, b = length + 1, a + sign * down, b + sign * right
        lengths.append(length)
    return lengths


NEXT = [(0, -1), (0, 1), (-1, 0), (1, 0), (-1, 1), (1, -1)]  # the same set when turned over, or over the diagonal


def joins(board: np.ndarray, colour: int) -> bool:
    """Whether a player's stones join his two edges."""
    mine = board == colour if colour == 1 else (board == colour).T  # turned so that he joins top and bottom
    return bool(linked(mine)[-1].any())


def linked(mine: np.ndarray) -> np.ndarray:
    """Plain flood, bool[S, S]: the stones `mine` that a chain links to the top row."""
    found = np.zeros_like(mine)
    todo = [(0, c) for c in np.flatnonzero(mine[0])]
    while todo:
        at = todo.pop()
        if not found[at]:
            found[at] = True
            todo += [near for near in beside(at, len(mine)) if mine[near]]
    return found


def beside(at: Sequence[int], size: int) -> list[tuple[int, int]]:
    """The cells of a board of Hex that touch the cell `at`."""
    around = [(at[0] + down, at[1] + right) for down, right in NEXT]
    return [near for near in around if min(near) >= 0 and max(near) < size]


def planes_of_edges(board: np.ndarray, may_swap: bool, over: bool) -> np.ndarray:
    """Planes of Hex for the player 1, who joins top and bottom, while -1 joins left and right: stones of both; whether
    the mover may swap; the stones linked to the top, the bottom, the left and the right; the empty cells that touch
    these stones or that edge. The last eight show an unfinished game only."""
    turns = [  # each brings an edge to the top and, done again, back
        lambda plane: plane,
        lambda plane: plane[::-1, ::-1],
        lambda plane: plane.T,
        lambda plane: plane[::-1, ::-1].T,
    ]
    chains, touched = [], []
    for turn, colour in zip(turns, (1, 1, -1, -1), strict=True):
        chain, free = linked(turn(board) == colour), turn(board) == 0
        touch = np.zeros_like(free)
        for at in np.argwhere(free).tolist():
            touch[*at] = at[0] == 0 or any(chain[near] for near in beside(at, len(board)))
        chains.append(turn(chain))
        touched.append(turn(touch))
    edges = np.stack([*chains, *touched], -1) & (not over)
    return np.concatenate([np.stack([board == 1, board == -1, np.full(board.shape, may_swap)], -1), edges], -1)
