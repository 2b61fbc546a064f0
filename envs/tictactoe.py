"""Tic-tac-toe: three in a row wins; a full board is a draw.

Cells are numbered row by row; names give the column as a letter and the row counted from the bottom:

     0 1 2        a3 b3 c3
     3 4 5        a2 b2 c2
     6 7 8        a1 b1 c1
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from envs import pictures, records
from envs.game import Array, Game, Step, Symmetry, board_view, forfeit_rewards, forfeit_words, rectangle_turns
from envs.lines import in_rows
from envs.pictures import PAPER, Layer, Picture

# Cells of the eight lines.
LINES = np.array([[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]])
POWERS = 3 ** np.arange(9)


def _outcomes() -> np.ndarray:
    """int8[3^9], indexed by the sum of (cell + 1) times its power of three: 1 or -1 for the player with three in a
    row, 2 for a draw, 0 while the game goes on."""
    cells = np.arange(3**9)[:, None] // POWERS % 3 - 1
    lines = cells[:, LINES].sum(-1)
    winner = (lines == 3).any(-1).astype(int) - (lines == -3).any(-1)
    return np.where(winner == 0, 2 * (cells != 0).all(-1), winner).astype(np.int8)


OUTCOMES = _outcomes()
SEATS = ("X", "O")
CELL = 96  # of the picture
NAMES = tuple("abc"[i % 3] + "321"[i // 3] for i in range(9))
LESSON = (
    Step("X begins. The players take turns, and each puts their sign on an empty cell.", ("b2",)),
    Step("Three of your signs in a row win: across, upright or diagonally.", ("b2", "a2", "a3", "b3", "c1")),
    Step(
        "If the board is full and nobody has three in a row, the game is a draw. Two careful players always draw.",
        ("b2", "a3", "c3", "a1", "a2", "c2", "b1", "b3", "c1"),
    ),
)


class State(NamedTuple):
    board: Array  # int8[3, 3]: 1 first player, -1 second, 0 empty
    to_move: Array  # int8[], player to move: 0 first, 1 second
    forfeit: Array  # int8[], player who made an illegal move, -1 for none


def init(key: Array | None = None) -> State:
    del key  # there is one start position
    return State(jnp.zeros((3, 3), jnp.int8), jnp.int8(0), jnp.int8(-1))


def outcome(s: State) -> Array:
    """int8[], see `_outcomes`: one sum and one look-up, instead of many small sums over eight lines."""
    return jnp.asarray(OUTCOMES)[((s.board.ravel().astype(jnp.int32) + 1) * jnp.asarray(POWERS, jnp.int32)).sum()]


def over(s: State) -> Array:
    return (s.forfeit >= 0) | (outcome(s) != 0)


def mask(s: State) -> Array:
    """bool[9], empty cells of an unfinished game."""
    return (s.board.ravel() == 0) & ~over(s)


def player(s: State) -> Array:
    return s.to_move.astype(jnp.int32)


def move(s: State, action: Array | int) -> State:
    """Position after a legal action."""
    here = (jnp.arange(9) == action).reshape(3, 3)
    return s._replace(board=jnp.where(here, 1 - 2 * s.to_move, s.board).astype(jnp.int8), to_move=1 - s.to_move)


def step(s: State, action: Array | int) -> State:
    """Position after any action: an illegal action forfeits, and a finished game does not change."""
    action, going = jnp.asarray(action), ~over(s)
    legal = going & (action >= 0) & (action < 9) & (s.board.ravel()[jnp.clip(action, 0, 8)] == 0)
    moved = move(s, action)
    board = jnp.where(legal, moved.board, s.board)
    forfeit = jnp.where(going & ~legal, s.to_move, s.forfeit)
    return State(board, jnp.where(legal, moved.to_move, s.to_move), forfeit)


def rewards(s: State) -> Array:
    """float32[2]"""
    by_line = jnp.where(outcome(s) == 2, 0, outcome(s)) * jnp.array([1.0, -1.0])
    return jnp.where(s.forfeit >= 0, forfeit_rewards(s.forfeit, 2), by_line)


def observe(s: State) -> Array:
    """float32[3, 3, 2], for the mover: own stones, the opponent's stones."""
    mine = 1 - 2 * s.to_move
    return jnp.stack([s.board == mine, s.board == -mine], axis=-1).astype(jnp.float32)


def symmetries() -> tuple[Symmetry, ...]:
    """The eight symmetries of the square."""

    def symmetry(turn):
        return Symmetry(turn.name, turn.squares, turn.grid, lambda s: s._replace(board=turn.grid(s.board)))

    return tuple(symmetry(turn) for turn in rectangle_turns(3, 3))


def parse_action(text: str) -> int:
    if text.strip().lower() not in NAMES:
        raise ValueError(f"no cell '{text}': expected a column and a row, a1 to c3")
    return NAMES.index(text.strip().lower())


def show(s: State) -> str:
    """Text picture: X first player, O second, . empty, with the player to move or the result below."""
    rows = np.array(["O", ".", "X"])[np.asarray(s.board) + 1]
    status = pictures.standing_words(SEATS, over(s), s.to_move, rewards(s))
    lines = [f"{3 - r}  {' '.join(row)}" for r, row in enumerate(rows)]
    return "\n".join([*lines, "   a b c", status])


def why_illegal(s: State, action: int) -> str:
    return f"{NAMES[action]} is taken" if s.board.ravel()[action] else ""


def why_over(s: State) -> str:
    if s.forfeit >= 0 or not over(s):
        return forfeit_words(SEATS, s.forfeit)
    return "nobody has three in a row, and the board is full" if outcome(s) == 2 else "three in a row"


def _picture() -> Picture:
    """A winning row is golden."""
    d, paint = CELL * 0.23, f'fill="none" stroke-linecap="round" stroke-width="{CELL * 0.1:g}"'
    square = lambda fill: pictures.square(CELL, f'fill="{fill}" stroke="{PAPER}" stroke-width="3"')
    cross = f'<path d="M{-d:g} {-d:g}L{d:g} {d:g}M{d:g} {-d:g}L{-d:g} {d:g}" {paint} stroke="#20242a"/>'
    ring = pictures.disc(CELL * 0.25, f'{paint} stroke="#b8322a"')
    layers = Layer((square("#e9dcc0"), square("#f3dfae"))), pictures.stones(SEATS, cross, ring)
    look = lambda s: ((pictures.standing_code(over(s), s.to_move, rewards(s)),), (in_rows(s.board, 3), s.board % 3))
    status = pictures.standing(SEATS)
    return pictures.board("Tic-tac-toe", NAMES, "abc", "321", CELL, status, layers, look, edge=1 / 3, size=0.17)


def to_record(s: State) -> dict[str, Any]:
    """JSON-ready record: `board` cell by cell, `to_move` 1 or -1. `forfeit` is present only after a forfeit."""
    record = {"board": np.asarray(s.board).ravel().tolist(), "to_move": 1 - 2 * int(s.to_move)}
    return records.with_forfeit(record, s.forfeit)


def from_record(record: dict[str, Any]) -> State:
    """Position of a record.

    Raises:
        ValueError: a field is missing, unknown or out of range, or the position cannot occur; the message says which.
    """
    records.fields("tictactoe", record, ("board", "to_move"))
    cells = records.cells("tictactoe", "board", record["board"], 9)
    turn = records.turn("tictactoe", record)
    if sum(cells) != (0 if turn == 1 else 1):
        raise ValueError("tictactoe record: the numbers of stones do not fit the player to move")
    lines = np.array(cells)[LINES].sum(-1)
    if turn * 3 in lines:
        raise ValueError("tictactoe record: the player to move has three in a row already")
    ended = turn * -3 in lines or 0 not in cells
    forfeit = records.forfeit("tictactoe", record, (1 - turn) // 2, lambda: ended)
    board = jnp.asarray(cells, jnp.int8).reshape(3, 3)
    return State(board, jnp.int8((1 - turn) // 2), jnp.int8(forfeit))


def action_name(action: int) -> str:
    return NAMES[int(action)]


def make() -> Game:
    return Game(
        name="tictactoe",
        num_players=2,
        num_actions=9,
        max_plies=9,
        max_legal=9,
        init=init,
        step=step,
        move=move,
        mask=mask,
        over=over,
        player=player,
        rewards=rewards,
        observe=observe,
        symmetries=symmetries(),
        show=show,
        action_name=action_name,
        parse_action=parse_action,
        to_record=to_record,
        from_record=from_record,
        view=board_view(
            __doc__,
            SEATS,
            _picture(),
            action_name,
            legend=". empty",
            lesson=LESSON,
            why_illegal=why_illegal,
            why_over=why_over,
        ),
    )
