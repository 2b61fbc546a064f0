"""SumTo100: the players take turns adding 1 to 10 to a sum; the player who reaches exactly 100 wins.

Action a adds a + 1. Let r be the remainder of 100 - sum modulo 11: adding r is the only winning move, and r = 0 loses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from envs import pictures, records
from envs.game import Array, Game, Symmetry, forfeit_rewards

LARGEST = 10_000  # largest target
SEATS = ("First", "Second")
MOST_ROWS = 20  # rows of numbers in the picture


class State(NamedTuple):
    total: Array  # int16[], the sum
    to_move: Array  # int8[], player to move: 0 first, 1 second
    forfeit: Array  # int8[], player who made an illegal move, -1 for none


@dataclasses.dataclass(frozen=True)
class Rules:
    """The rules for one target and largest step, as pure functions on one position."""

    target: int = 100
    largest: int = 10

    def init(self, key: Array | None = None) -> State:
        del key  # there is one start position
        return State(jnp.int16(0), jnp.int8(0), jnp.int8(-1))

    def over(self, s: State) -> Array:
        return (s.forfeit >= 0) | (s.total == self.target)

    def mask(self, s: State) -> Array:
        """bool[largest], additions that do not exceed the target."""
        return (jnp.arange(self.largest) < self.target - s.total) & (s.forfeit < 0)

    def player(self, s: State) -> Array:
        return s.to_move.astype(jnp.int32)

    def move(self, s: State, action: Array | int) -> State:
        """Position after a legal action."""
        return State(s.total + jnp.asarray(action, jnp.int16) + jnp.int16(1), 1 - s.to_move, s.forfeit)

    def step(self, s: State, action: Array | int) -> State:
        """Position after any action: an illegal action forfeits, and a finished game does not change."""
        legal = (self.mask(s) & (jnp.arange(self.largest) == action)).any()
        forfeit = jnp.where(~self.over(s) & ~legal, s.to_move, s.forfeit)
        moved = self.move(s, jnp.where(legal, action, 0))
        return State(*(jnp.where(legal, new, old) for new, old in zip(moved, s, strict=True)))._replace(forfeit=forfeit)

    def rewards(self, s: State) -> Array:
        """float32[2]: the player to move at the target, or the player who forfeited, loses."""
        loser = jnp.where(s.forfeit < 0, s.to_move, s.forfeit)
        return jnp.where(self.over(s), forfeit_rewards(loser, 2), 0.0)

    def observe(self, s: State) -> Array:
        """float32[1, target + 1, 1]: 1 at the sum, 0 elsewhere."""
        return (jnp.arange(self.target + 1) == s.total).astype(jnp.float32)[None, :, None]

    # For people

    def parse_action(self, text: str) -> int:
        number = text.strip().removeprefix("+")
        if number not in [str(i + 1) for i in range(self.largest)]:
            raise ValueError(f"no addition '{text}': want a number from 1 to {self.largest}")
        return int(number) - 1

    def _status(self, s: State, names: Sequence[str] = SEATS) -> str:
        if not bool(self.over(s)):
            return f"{names[int(s.to_move)]} to move"
        return f"{names[int(np.argmax(np.asarray(self.rewards(s))))]} wins"

    def show(self, s: State) -> str:
        """Text picture: the sum with a bar; below, the player to move or the winner."""
        done = int(s.total) * 50 // self.target
        return f"{int(s.total)} of {self.target}  [{'#' * done}{'.' * (50 - done)}]\n{self._status(s)}"

    def svg(self, s: State, cell: int = 44) -> str:
        """Picture as an SVG document: the numbers up to the target, filled up to the sum, and the reach of the next
        move; `cell` is the side of a square in pixels."""
        total, reach = int(s.total), int(np.asarray(self.mask(s)).sum())
        cols = 10 if self.target <= 200 else int(np.ceil(self.target**0.5))
        rows = min(-(-self.target // cols), MOST_ROWS)
        first = int(np.clip(total // cols - rows // 2, 0, -(-self.target // cols) - rows))  # row
        out = [pictures.head(cols * cell + 8, rows * cell + 8, f"Sum to {self.target}, {self._status(s, SEATS)}")]
        for i in range(first * cols, min((first + rows) * cols, self.target)):
            x, y, near = 4 + i % cols * cell, 4 + (i // cols - first) * cell, total <= i < total + reach
            fill = "#3f74b5" if i < total else "#c3ddca" if near else "#e9dcc0"
            ink = "#ffffff" if i < total else "#20242a"
            box = pictures.square(x, y, cell, f'fill="{fill}" stroke="{pictures.PAPER}" stroke-width="2"')
            bold = ' font-weight="bold"' if i + 1 == total else ""
            number = pictures.text(x + cell / 2, y + cell * 0.6, cell * 0.3, i + 1, f'fill="{ink}"{bold}')
            says = "the sum" if i + 1 == total else "filled" if i < total else "free"
            out.append(pictures.cell(str(i + 1), says, box, number))
        return "".join(out) + "</svg>"

    # Records

    def to_record(self, s: State) -> dict[str, Any]:
        """JSON-ready record: `total`, and `to_move` 1 or -1. `forfeit` is present only after a forfeit."""
        record = {"total": int(s.total), "to_move": 1 - 2 * int(s.to_move)}
        return records.with_forfeit(record, s.forfeit)

    def from_record(self, record: dict[str, Any]) -> State:
        """Position of a record.

        Raises:
            ValueError: a field is missing, unknown or out of range, or the position cannot occur; the message says
                which.
        """
        records.fields("sum_to_100", record, ("total", "to_move"))
        total = records.whole("sum_to_100", "total", record["total"], 0, self.target)
        mover = (1 - records.turn("sum_to_100", record)) // 2
        plies = range(-(-total // self.largest), total + 1)  # possible numbers of moves for this sum
        if not any(n % 2 == mover for n in plies):
            raise ValueError(f"sum_to_100 record: player {mover} cannot be to move at a sum of {total}")
        forfeit = records.forfeit("sum_to_100", record, mover, lambda: total == self.target)
        return State(jnp.int16(total), jnp.int8(mover), jnp.int8(forfeit))


def make(target: int = 100, largest: int = 10) -> Game:
    """The race to `target`, in which a move adds 1 to `largest`.

    Raises:
        ValueError: a target not from 2 to 10000, or a largest step not from 1 to the target.
    """
    if not 2 <= target <= LARGEST:
        raise ValueError(f"sum_to_100: target={target} is not from 2 to {LARGEST}")
    if not 1 <= largest <= target:
        raise ValueError(f"sum_to_100: largest={largest} is not from 1 to the target, {target}")
    rules = Rules(target, largest)
    return Game(
        name=f"sum_to_100:target={target},largest={largest}",
        num_players=2,
        num_actions=largest,
        max_plies=target,
        max_legal=largest,
        init=rules.init,
        step=rules.step,
        move=rules.move,
        mask=rules.mask,
        over=rules.over,
        player=rules.player,
        rewards=rules.rewards,
        observe=rules.observe,
        symmetries=(Symmetry("identity", np.arange(largest, dtype=np.int32), lambda x: x, lambda s: s),),
        show=rules.show,
        svg=rules.svg,
        action_name=lambda action: f"+{int(action) + 1}",
        parse_action=rules.parse_action,
        to_record=rules.to_record,
        from_record=rules.from_record,
        about=f"Sum to {target}: by turns the players add 1 to {largest}; who makes it exactly {target} wins.",
        seats=SEATS,
    )
