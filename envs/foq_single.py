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
from envs.game import Array, Game, Hints, forfeit_rewards

__all__ = [
    "State", "from_record", "init", "make", "mask", "move", "observe", "over", "player", "reach", "rewards", "rip",
    "show", "step", "svg", "to_record",
]  # fmt: skip


SEATS = ("First", "Second")  # one queen has no colour that could name its players


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
    )
