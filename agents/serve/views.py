"""Positions for display: pictures, legal moves and how to enter them, reasons, the changes of a move, and lessons."""

from __future__ import annotations

import dataclasses
import functools
import re
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

import envs
from envs import pictures
from envs.game import Game, titles


@dataclasses.dataclass(frozen=True)
class Way:
    """How to enter a legal move: the cells to point at in turn, and the label of its button."""

    action: str
    cells: tuple[str, ...]
    label: str

    @property
    def words(self) -> str:
        """The move in a list: its short label, after its cell if the label does not name the cell."""
        short = _short(self.label)
        complete = self.label == self.action or all(cell in short for cell in self.cells)
        return short if complete else f"{self.cells[0]} {short.lower()}"


def _short(label: str) -> str:
    """A label without its bracketed end."""
    return re.sub(r" \(.*\)$", "", label)


@dataclasses.dataclass(frozen=True, eq=False)
class Position:
    """A position on the host, with its status and legal actions under the rules."""

    game: Game
    state: Any
    over: bool
    player: int
    rewards: tuple[float, ...]
    legal: tuple[int, ...]  # action codes

    @property
    def svg(self) -> str:
        return _svg(self)

    @functools.cached_property
    def codes(self) -> tuple[np.ndarray, ...]:
        """Those of its picture."""
        return self.game.drawing.compiled(self.state)

    @property
    def status(self) -> str:
        """Who is to move, or the result."""
        return pictures.status(self.game.drawing, self.codes)

    @property
    def why(self) -> str:
        """Why the game is over, in a person's words; "" if it is not, or there is nothing to say."""
        return self.game.view.why_over(self.state) if self.over else ""

    def reason(self, action: int) -> str:
        """Why an action is illegal in a game in progress, in a person's words; "" if it is legal."""
        return "" if self.over or action in self.legal else self.game.view.why_illegal(self.state, action)

    def why_not(self, cells: Sequence[str]) -> str:
        """Why no legal move begins with these cells, pointed at in turn."""
        *before, last = cells
        for name in (last, _around(self.game).get(last)):
            if (action := _beginnings(self.game).get((*before, name))) is not None:
                return self.reason(action)
        return f"no move leads from {before[-1]} to {last}" if tuple(before) in _beginnings(self.game) else ""

    @property
    def ways(self) -> tuple[Way, ...]:
        """How to enter the legal moves. What distinguishes moves with the same cells is said only where there are any:
        e7e8 (queen) of a pawn, e7e8 of a rook."""
        return _ways(self)

    def after(self, action: int) -> Position:
        with _lock(self.game):
            state = _compiled(self.game)[1](self.state, np.int32(action))
        return look_at(self.game, state)


# A picture takes up to 100 kB, the moves of a large board as much, and a long game has hundreds of positions, so only
# the most recently used are kept.
@functools.lru_cache(maxsize=512)
def _svg(position: Position) -> str:
    return position.game.svg(position.state)


@functools.lru_cache(maxsize=512)
def _ways(position: Position) -> tuple[Way, ...]:
    ways = [way(position.game, action) for action in position.legal]
    same = Counter(one.cells for one in ways)
    alone = lambda one: len(one.cells) > 1 and same[one.cells] == 1
    return tuple(dataclasses.replace(one, label=_short(one.label)) if alone(one) else one for one in ways)


def way(game: Game, action: int) -> Way:
    cells, label = game.view.cells or (lambda action: ()), game.view.label or game.action_name
    return Way(game.action_name(action), cells(action), label(action))


@functools.lru_cache(maxsize=16)
def _beginnings(game: Game) -> dict[tuple[str | None, ...], int]:
    """The first action that begins with some cells."""
    found: dict[tuple[str | None, ...], int] = {}
    for action in range(game.num_actions if game.view.cells else 0):
        cells = way(game, action).cells
        for length in range(1, len(cells) + 1):
            found.setdefault(cells[:length], action)
    return found


@functools.lru_cache(maxsize=16)
def _around(game: Game) -> dict[str, str]:
    """The cell around a cell, where there is one."""
    return {place.name: place.inside for part in game.drawing.parts for place in part.places if place.inside}


def can_be_taught(game: Game) -> bool:
    """Whether `lesson` has something to show."""
    return bool(game.view.lesson or titles(game)[1])


@functools.lru_cache(maxsize=64)
def lesson(game: Game) -> tuple[dict[str, str], ...]:
    """How to play: the `text` of each step and its picture, `svg`. A game without a lesson has the text of its rules
    and no picture, or nothing.

    Raises:
        ValueError: an illegal move in the lesson.
    """
    rules = titles(game)[1]
    if not game.view.lesson:
        return ({"text": rules, "svg": ""},) if rules else ()
    steps = []
    for step in game.view.lesson:
        board = envs.make(step.board) if step.board else game
        there = look_at(board, board.init())  # with the programs of the first move, which are compiled by now
        for number, name in enumerate(step.moves, 1):
            there = there.after(_legal_action(there, name, number))
        steps.append({"text": step.text, "svg": there.svg})
    return tuple(steps)


def _legal_action(here: Position, name: str, number: int) -> int:
    action = here.game.parse_action(name)
    if action not in here.legal:
        raise ValueError(f"move {number}: '{name}' is not legal here")
    return action


@functools.lru_cache(maxsize=64)
def _compiled(game: Game) -> tuple[Any, Any]:
    facts = jax.jit(lambda s: (game.over(s), game.player(s), game.rewards(s), game.mask(s)))
    return facts, jax.jit(game.step)


_LOCKS: dict[str, threading.Lock] = {}


def _lock(game: Game) -> threading.Lock:
    """Held while the rules of a game are called, so that guests who come at once wait for one compilation."""
    return _LOCKS.setdefault(game.name, threading.Lock())


def look_at(game: Game, state: Any) -> Position:
    with _lock(game):
        over, player, rewards, mask = jax.device_get(_compiled(game)[0](state))
    legal = tuple(np.flatnonzero(mask).tolist())
    return Position(game, state, bool(over), int(player), tuple(map(float, rewards)), legal)


def changed(before: Position, after: Position) -> list[str]:
    """Names of the cells whose contents differ, in a picture of ours."""
    if after.game.view.own_svg:
        return []
    earlier, later = (pictures.contents(position.game.drawing, position.codes) for position in (before, after))
    return [name for name, words in later.items() if words != earlier[name]]
