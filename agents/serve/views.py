"""Positions for display: pictures, legal moves and how to enter them, and the changes of a move."""

from __future__ import annotations

import dataclasses
import functools
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from envs.game import Game

SVG = "{http://www.w3.org/2000/svg}"


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

    @property
    def status(self) -> str:
        """The title of the picture, without the name of the game."""
        title = re.search(r"<title>(.*?)</title>", self.svg)
        return title[1].partition(", ")[2] if title else ""

    @functools.cached_property
    def ways(self) -> tuple[Way, ...]:
        return tuple(way(self.game, action) for action in self.legal)

    @property
    def picture(self) -> dict[str, str]:
        """Contents of each innermost cell, as text to compare; without marks of legal cells."""
        return _picture(self)

    def after(self, action: int) -> Position:
        return look_at(self.game, _compiled(self.game)[1](self.state, np.int32(action)))


# A picture takes up to 100 kB and a long game has hundreds, so only the most recently used are kept.
@functools.lru_cache(maxsize=512)
def _svg(position: Position) -> str:
    return position.game.svg(position.state)


@functools.lru_cache(maxsize=512)
def _picture(position: Position) -> dict[str, str]:
    return dict(_cells(ElementTree.fromstring(position.svg)))


def way(game: Game, action: int) -> Way:
    cells, label = game.cells or (lambda action: ()), game.label or game.action_name
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
    """Names of the cells that look different."""
    return [name for name, there in after.picture.items() if before.picture.get(name) != there]


def _cells(root: ElementTree.Element) -> Iterator[tuple[str, str]]:
    for group in root.iter(f"{SVG}g"):
        name = group.get("data-cell")
        if name is None or any(below.get("data-cell") for below in group.iter(f"{SVG}g") if below is not group):
            continue
        for mark in [x for x in group if "legal" in (x.get("class") or "")]:
            group.remove(mark)
        title = group.find(f"{SVG}title")  # a title tells the contents, whatever ring is drawn around them
        said = None if title is None else title.text
        yield name, said or ElementTree.tostring(group, encoding="unicode")
