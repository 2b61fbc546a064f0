"""Action codes of animal shogi and shogi in pgx: squares, moves and their names.

pgx turns the board after every move, so its codes are in the mover's frame. Ours are ordered by the cell where a move
starts, or where a piece is dropped, so that a policy head has the same weights in every cell (`Game.actions_per_cell`).
An absolute code is the move as the first player sees the board. Moves have the names of the protocol USI: 7g7f, 8h2b+,
P*5e.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.game import Array

ANIMAL_KINDS = 11  # ways to leave a square and drops on it
DROPS = {"animal_shogi": "CEG", "shogi": "PLNSBRG"}  # pieces that can be dropped, in pgx's order


class Move(NamedTuple):
    """Squares have pgx's numbers, file by file, as the first player sees them."""

    start: int  # -1 for a drop
    end: int
    sign: str = ""  # "+" for a promotion, or the dropped piece


@dataclasses.dataclass(frozen=True, eq=False)
class Squares:
    names: tuple[str, ...]
    turned: np.ndarray  # int[n], the number that a square has for the second player, and the other way round
    grid: np.ndarray  # int[R, C], the numbers as in the picture and in pgx's observation, from the upper left corner

    @property
    def margins(self) -> tuple[str, str]:
        """Names of the columns and rows of the picture."""
        return "".join(self.names[i][0] for i in self.grid[0]), "".join(self.names[i][1] for i in self.grid[:, 0])

    def turn(self, move: Move) -> Move:
        """The same move as the other player sees it."""
        start = -1 if move.start < 0 else int(self.turned[move.start])
        return Move(start, int(self.turned[move.end]), move.sign)

    def name(self, move: Move) -> str:
        end = self.names[move.end]
        return f"{move.sign}*{end}" if move.start < 0 else f"{self.names[move.start]}{end}{move.sign}"


def squares(game: str) -> Squares:
    """Those of a game, whose files and ranks count from the far right corner."""
    files, ranks = {"animal_shogi": (3, 4), "shogi": (9, 9)}[game]
    numbers = np.arange(files * ranks).reshape(files, ranks)
    names = tuple(f"{file + 1}{'abcdefghi'[rank]}" for file in range(files) for rank in range(ranks))
    return Squares(names, numbers.ravel()[::-1], numbers.T[:, ::-1])


@dataclasses.dataclass(frozen=True, eq=False)
class Codes:
    """The action codes of a game."""

    squares: Squares
    moves: tuple[Move | None, ...]  # of every absolute code; None where no move has it
    to_mover_frame: np.ndarray  # int32[2, A], see `Game`
    labels: np.ndarray  # int32[A], pgx's code of every code in the mover's frame, -1 for none
    legal: Callable[[Any], Array]  # bool[A] in the mover's frame, of a state of pgx
    per_cell: int = 1  # see `Game.actions_per_cell`

    @functools.cached_property
    def offsets(self) -> np.ndarray | None:
        """`Game.offsets`. A drop stays on its cell. None in games for training only."""
        if not self.squares.names:
            return None
        place = np.argsort(self.squares.grid.ravel())  # of every square on the grid
        offsets = np.zeros((self.per_cell, 2), np.int32)
        for action, move in enumerate(self.moves):
            if move is not None and move.start >= 0:
                start, end = (np.divmod(place[x], self.squares.grid.shape[1]) for x in (move.start, move.end))
                offsets[action % self.per_cell] = np.subtract(end, start)
        return offsets

    def name(self, action: int) -> str:
        move = self.moves[action]
        return str(action) if move is None else self.squares.name(move)

    def cells(self, action: int) -> tuple[str, ...]:
        """Cells to point at: the piece, on the board or in hand, and where it goes."""
        move = self.moves[action]
        if move is None:
            return ()
        return (move.sign if move.start < 0 else self.squares.names[move.start], self.squares.names[move.end])

    def parse(self, text: str) -> int:
        action = self._codes.get(text.strip().lower())
        if action is None:
            example = next((self.squares.name(move) for move in self.moves if move and not move.sign), "0")
            raise ValueError(f"no move '{text}': expected a name such as {example}")
        return action

    @functools.cached_property
    def _codes(self) -> dict[str, int]:
        """The code of every name, in small letters."""
        return {self.name(action).lower(): action for action in range(len(self.moves))}


def numbers(size: int) -> Codes:
    """The codes of a game for training only: pgx's own, called by their numbers."""
    own = np.arange(size, dtype=np.int32)
    none = Squares((), own[:0], own[:0])
    return Codes(none, (None,) * size, np.stack([own, own]), own, lambda state: state.legal_action_mask)


@functools.cache
def codes(game: str) -> Codes:
    """The codes of a game of pgx that people can play."""
    own = squares(game)
    if game == "shogi":
        return _shogi_codes(own)
    module = importlib.import_module("pgx.animal_shogi")
    numbers = np.arange(len(own.names) * ANIMAL_KINDS, dtype=np.int32)
    labels = numbers.reshape(-1, len(own.names)).T[own.grid.ravel()].ravel()
    actions = jax.device_get(jax.jit(jax.vmap(module.Action._from_label))(labels))
    legal = lambda state: state.legal_action_mask[labels]
    moves = tuple(_drops_and_steps(actions))
    return Codes(own, moves, _to_mover_frame(moves, own), labels, legal, ANIMAL_KINDS)


def _drops_and_steps(actions: Any) -> Iterator[Move | None]:
    fields = actions.is_drop, actions.from_, actions.to, actions.drop_piece
    for is_drop, start, end, piece in zip(*fields, strict=True):
        drop = DROPS["animal_shogi"][piece] if is_drop else ""
        yield None if end < 0 else Move(-1 if is_drop else int(start), int(end), drop)


def _to_mover_frame(moves: tuple[Move | None, ...], own: Squares) -> np.ndarray:
    """`Game.to_mover_frame`. With the board turned by half every move is another one of the moves."""
    code_of = {move: code for code, move in enumerate(moves) if move is not None}
    turned = [code if move is None else code_of[own.turn(move)] for code, move in enumerate(moves)]
    return np.array([range(len(moves)), turned], np.int32)


def _shogi_codes(own: Squares) -> Codes:
    """pgx's codes of shogi are the direction and the end of a step; only the position tells where it starts. These
    have both squares, and are closed under turning the board."""
    library: Any = importlib.import_module("pgx._src.games.shogi")
    moves = tuple(_shogi_moves(own))
    directions = {
        (int(start), to): direction
        for direction, table in enumerate(np.asarray(library.LEGAL_FROM_IDX))
        for to, starts in enumerate(table)
        for start in starts[starts >= 0]
    }

    def label(move: Move | None) -> int:
        if move is None:
            return -1
        if move.start < 0:
            return (20 + DROPS["shogi"].index(move.sign)) * 81 + move.end
        direction = directions.get((move.start, move.end))  # none for a knight's leap backwards
        return -1 if direction is None else (direction + 10 * (move.sign == "+")) * 81 + move.end

    labels = np.array([label(move) for move in moves], np.int32)
    starts = np.array([move.start if move else -1 for move in moves])

    def legal(state: Any) -> Array:
        read = functools.partial(library.Action._from_dlshogi_action, state._x)
        there = jax.vmap(read)(jnp.arange(27 * 81)).from_
        return (labels >= 0) & state.legal_action_mask[labels] & ((starts < 0) | (there[labels] == starts))

    return Codes(own, moves, _to_mover_frame(moves, own), labels, legal, len(moves) // 81)


def _shogi_moves(own: Squares) -> Iterator[Move | None]:
    """For every cell the straight and diagonal steps and knight's leaps of both players, each with and without
    promotion, and the drops; None off the board and where no promotion is possible."""
    steps = [
        (across, along)
        for across, along in itertools.product(range(-8, 9), repeat=2)
        if (across * along == 0) != (abs(across) == abs(along)) or (abs(across), abs(along)) == (1, 2)
    ]
    for start in own.grid.ravel().tolist():
        file, rank = divmod(start, 9)
        for across, along in steps:
            inside = 0 <= file + across < 9 and 0 <= rank + along < 9
            end = start + 9 * across + along
            promoted = inside and any(r < 3 or r >= 6 for r in (rank, rank + along))
            yield Move(start, end) if inside else None
            yield Move(start, end, "+") if promoted else None
        for piece in DROPS["shogi"]:
            yield Move(-1, start, piece)
