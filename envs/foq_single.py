"""Flight of Queen, the single game: both players move one queen in turn, and a player who cannot move wins.

Every square that the queen reaches is a legal target, because no other queen attacks. Everything else is as in the
double game (`foq`). Its functions are reused: with one queen on the board, they move this queen for both players.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from envs import foq, foq_theory, pictures
from envs.foq import State, mask, move, observe, over, player, reach, rip, step
from envs.game import Array, Game, Hints, Step, forfeit_rewards, forfeit_words

__all__ = [
    "State", "from_record", "init", "make", "mask", "move", "observe", "over", "player", "reach", "rewards", "rip",
    "show", "step", "svg", "to_record",
]  # fmt: skip


SEATS = ("First", "Second")  # one queen has no colour that could name its players
LESSON_BOARD = "foq_single:rows=5,cols=5"
LESSON = (
    Step(
        "Both players move the same queen in turn. She slides any distance in a straight line, like in chess. The dots "
        "show where she may go.",
        board=LESSON_BOARD,
    ),
    Step(
        "All squares that she crosses are ripped for good, and so are those where she stops. She never enters or "
        "crosses a ripped square.",
        ("b4", "d4", "d1"),
        LESSON_BOARD,
    ),
    Step(
        "A player who cannot move wins, so avoid locking the queen in. Here it is Second's turn, no square is left, "
        "and Second has won.",
        ("b4", "c5", "d5", "d1", "e2", "e4", "e5"),
        LESSON_BOARD,
    ),
)


def init(rows: int = 8, cols: int = 8, starts: Sequence[tuple[int, int]] | None = None) -> State:
    """Start position; `starts` holds the queen's (row, col), by default top left.

    Raises:
        ValueError: sides not from 1 to 26, or not exactly one starting square on the board.
    """
    starts = foq.corners(rows, cols, 1) if starts is None else starts
    if len(starts) != 1:
        raise ValueError(f"foq_single: expected one starting square, got {len(starts)}")
    return foq.init(rows, cols, starts)


def rewards(s: State) -> Array:
    """float32[2]: the stuck player wins; a player who forfeited loses."""
    return jnp.where(over(s), forfeit_rewards(jnp.where(s.forfeit < 0, 1 - s.to_move, s.forfeit), 2), 0.0)


def why_over(s: State) -> str:
    """Why a single game is over."""
    stuck = f"{SEATS[int(s.to_move)]} cannot move, and that wins"
    return forfeit_words(SEATS, s.forfeit) or (stuck if over(s) else "")


def show(s: State) -> str:
    """Text picture: Q queen, # ripped, . empty, * legal targets, with the player to move below."""
    return foq.draw_text(s, mask(s), rewards(s), "Q", SEATS)


def svg(s: State) -> str:
    """Picture as an SVG document."""
    return pictures.svg(foq.picture(*s.ripped.shape, 1, SEATS, mask, rewards), s)


def to_record(s: State) -> dict[str, Any]:
    """JSON-ready record; `forfeit` is present only after a forfeit."""
    return foq.to_record(s, "foq_single")


def from_record(record: dict[str, Any]) -> State:
    """Position of a record.

    Raises:
        ValueError: a field is missing, unknown or out of range, or the position cannot occur; the message says which.
    """
    s = foq.read_record(record, "foq_single", "one queen", lambda n: n == 1)
    return foq.refuse_idle_forfeit(s, "foq_single")


def make(rows: int = 8, cols: int = 8, planes: str = "plain") -> Game:
    """The single game with the queen in the top left corner of a board of `rows` x `cols`.

    `planes` is `plain` (see `foq.observe`) or `article`: the article's six planes, with four boards of history.

    Raises:
        ValueError: unknown planes, or a board of one row or column, where there is nothing to decide.
    """
    if min(rows, cols) < 2:
        raise ValueError(
            f"foq_single: a board of {rows} x {cols} is too small to play on; expected 2 x 2 squares or more"
        )
    return foq.build(
        f"foq_single:rows={rows},cols={cols}",
        planes,
        init(rows, cols),
        num_players=2,
        init=lambda key=None: init(rows, cols),
        step=step,
        move=move,
        mask=mask,
        over=over,
        player=player,
        rewards=rewards,
        observe=observe,
        show=show,
        to_record=to_record,
        from_record=from_record,
        hints=Hints(canonical=foq_theory.canonical),
        about=__doc__,
        seats=SEATS,
        legend=f"Q the queen, {foq.SIGNS}",
        lesson=LESSON,
        why_over=why_over,
    )
