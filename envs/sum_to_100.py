"""SumTo100: the players take turns adding 1 to 10 to a sum; the player who reaches exactly 100 wins.

Action a adds a + 1. Let r be the remainder of 100 - sum modulo 11: adding r is the only winning move, and r = 0 loses.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from envs import pictures, records
from envs.game import Array, Game, Step, View, forfeit_rewards, forfeit_words, no_symmetries, on_usual_board
from envs.pictures import PAPER, Layer, Part, Picture

LARGEST = 10_000  # largest target
SEATS = ("First", "Second")
CELL = 44  # of the picture
MOST_SQUARES = 400  # in the picture; each then stands for several numbers


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
            raise ValueError(f"no addition '{text}': expected a number from 1 to {self.largest}")
        return int(number) - 1

    def show(self, s: State) -> str:
        """Text picture: the sum with a bar; below, the player to move or the winner."""
        status = pictures.standing_words(SEATS, self.over(s), s.to_move, self.rewards(s))
        done = int(s.total) * 50 // self.target
        return f"{int(s.total)} of {self.target}  [{'#' * done}{'.' * (50 - done)}]\n{status}"

    def _adding_up_to(self, total: int) -> tuple[str, ...]:
        """The fewest moves to a sum."""
        full, rest = divmod(total, self.largest)
        return (f"+{self.largest}",) * full + ((f"+{rest}",) if rest else ())

    def lesson(self) -> tuple[Step, ...]:
        adds, missing = f"1 to {self.largest}" if self.largest > 1 else "1", self.largest + 1
        advice = Step(
            f"If {missing} are missing at your opponent's turn, you win: whatever they add, you can add the rest. So "
            "count backwards from the end.",
            self._adding_up_to(max(self.target - missing, 0)),
        )
        return (
            Step(f"The sum begins at 0. The players take turns, and each adds {adds}. Green numbers are within reach."),
            Step(
                f"Whoever makes the sum exactly {self.target} wins. Nobody may go beyond it.",
                self._adding_up_to(self.target),
            ),
            *([advice] if self.target >= missing else []),
        )

    def why_illegal(self, s: State, action: int) -> str:
        return f"+{action + 1} would go beyond {self.target}" if int(s.total) + action + 1 > self.target else ""

    def why_over(self, s: State) -> str:
        return forfeit_words(SEATS, s.forfeit) or (f"the sum is {self.target}" if self.over(s) else "")

    def picture(self) -> Picture:
        """The numbers up to the target, filled up to the sum, with the reach of the next move."""
        per = -(-self.target // MOST_SQUARES)  # numbers in a square, which shows the last of them, or the sum
        last = np.minimum(np.arange(per, self.target + per, per), self.target)
        cols = 10 if self.target <= 200 else int(np.ceil(len(last) ** 0.5))
        square = lambda fill: pictures.square(CELL, f'fill="{fill}" stroke="{PAPER}" stroke-width="2"')
        number = lambda paint: Layer(pictures.text(CELL * 0.3, "{}", paint, y=CELL * 0.1))
        fills = tuple(map(square, ("#e9dcc0", "#c3ddca", "#3f74b5", "#3f74b5")))
        inks = ('fill="#20242a"', 'fill="#ffffff"', 'fill="#ffffff" font-weight="bold"')
        layers = Layer(fills, ("free", "free", "filled", "the sum")), *map(number, inks)

        def look(s: State) -> tuple[tuple[Any, ...], ...]:
            here = (last - per < s.total) & (s.total <= last)
            near = last - per < s.total + self.mask(s).sum()
            filled = jnp.where(here, 3, jnp.where(last < s.total, 2, near))
            shown = jnp.where(here, s.total, last)
            numbers = (jnp.where(kind, shown, -1) for kind in (filled < 2, filled == 2, here))
            return (pictures.standing_code(self.over(s), s.to_move, self.rewards(s)),), (filled, *numbers)

        size = (cols * CELL + 8, -(-len(last) // cols) * CELL + 8)
        part = Part(pictures.grid(last.astype(str).tolist(), cols, CELL, 4, 4), layers)
        return Picture(f"Sum to {self.target}", *size, "", (pictures.standing(SEATS),), (part,), look)

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
        symmetries=no_symmetries(largest),
        show=rules.show,
        action_name=lambda action: f"+{int(action) + 1}",
        parse_action=rules.parse_action,
        to_record=rules.to_record,
        from_record=rules.from_record,
        view=View(
            about=f"Sum to {target}: by turns the players add 1 to {largest}; who makes it exactly {target} wins.",
            seats=SEATS,
            picture=rules.picture(),
            legend="# the sum so far, . still to add",
            lesson=rules.lesson(),
            why_illegal=rules.why_illegal,
            why_over=rules.why_over,
        ),
    )


__getattr__ = on_usual_board(make)
