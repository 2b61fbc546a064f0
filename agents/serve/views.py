"""Positions for display: pictures, legal moves and how to enter them, and the changes of a move."""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import Any

import jax
import numpy as np

from envs import pictures
from envs.game import Game


@dataclasses.dataclass(frozen=True)
class Way:
    """How to enter a legal move: the cells to point at in turn, and the label of its button."""

    action: str
    cells: tuple[str, ...]
    label: str

    @property
    def words(self) -> str:
        """The move in a list: its short label, after its cell if the label does not name the cell."""
        short = re.sub(r" \(.*\)$", "", self.label)
        told = self.label == self.action or all(cell in short for cell in self.cells)
        return short if told else f"{self.cells[0]} {short.lower()}"


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

    @functools.cached_property
    def ways(self) -> tuple[Way, ...]:
        return tuple(way(self.game, action) for action in self.legal)

    def after(self, action: int) -> Position:
        return look_at(self.game, _compiled(self.game)[1](self.state, np.int32(action)))


# A picture takes up to 100 kB and a long game has hundreds, so only the most recently used are kept.
@functools.lru_cache(maxsize=512)
def _svg(position: Position) -> str:
    return position.game.svg(position.state)


def way(game: Game, action: int) -> Way:
    cells, label = game.view.cells or (lambda action: ()), game.view.label or game.action_name
    return Way(game.action_name(action), cells(action), label(action))


@functools.lru_cache(maxsize=64)
def _compiled(game: Game) -> tuple[Any, Any]:
    facts = jax.jit(lambda s: (game.over(s), game.player(s), game.rewards(s), game.mask(s)))
    return facts, jax.jit(game.step)


def look_at(game: Game, state: Any) -> Position:
    over, player, rewards, mask = jax.device_get(_compiled(game)[0](state))
    legal = tuple(np.flatnonzero(mask).tolist())
    return Position(game, state, bool(over), int(player), tuple(map(float, rewards)), legal)


def changed(before: Position, after: Position) -> list[str]:
    """Names of the cells whose contents differ, in a picture of ours."""
    if after.game.view.own_svg:
        return []
    earlier, later = (pictures.contents(position.game.drawing, position.codes) for position in (before, after))
    return [name for name, words in later.items() if words != earlier[name]]
