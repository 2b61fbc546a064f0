"""One game on the server: the moves made and taken back, other lines that were left, and what searches found."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from agents.serve.views import Position, changed, look_at, way
from agents.serve.web.requests import Refused, is_whole
from envs import saved
from envs.game import Game, seats

MOST_VARIATIONS = 20  # lines that were left for another move; the oldest makes room


class Line(NamedTuple):
    """Moves from the start of a game."""

    actions: tuple[int, ...]
    resigned: int | None


class PlayedGame:
    """A game without its players. Not safe for several threads: a `Session` has a lock.

    Args:
        start: the record of another position than the game's own.
        first: held while a position is computed, so that a board appears before engines are compiled.

    Raises:
        ValueError: `start` is no position.
    """

    def __init__(self, game: Game, start: dict[str, Any] | None, first: Callable[[], AbstractContextManager[object]]):
        self.game, self.start, self.first = game, start, first
        with first():
            self.positions = [look_at(game, game.init() if start is None else saved.position(game, start))]
        self.actions: list[int] = []
        self.undone: list[int] = []
        self.resigned: int | None = None
        self.lines: list[Line] = []  # left for another move, the newest first
        self.reports: dict[int, dict[str, Any]] = {}  # by ply, the longest search of each position

    # Positions

    @property
    def now(self) -> Position:
        return self.positions[-1]

    @property
    def over(self) -> bool:
        return self.now.over or self.resigned is not None

    @property
    def ply(self) -> int:
        return len(self.actions)

    def at(self, ply: Any) -> Position:
        """The position after `ply` moves, a number of a request."""
        if not is_whole(ply) or not 0 <= ply <= self.ply:
            raise Refused(400, f"ply: expected a whole number from 0 to {self.ply}")
        return self.positions[ply]

    def code(self, action: Any, position: Position) -> int:
        """The code of a legal move; ValueError with the reason if it is none."""
        if not isinstance(action, str) or len(action) > 40:
            raise ValueError("expected the name of a move")
        code = self.game.parse_action(action)
        if code not in position.legal:
            raise ValueError(f"{self.game.action_name(code)} is not legal there")
        return code

    def legal(self, action: Any, position: Position) -> int:
        """The code of a move of a request."""
        try:
            return self.code(action, position)
        except ValueError as error:
            raise Refused(400, f"action: {error}") from None

    def last(self, ply: int) -> dict[str, Any] | None:
        """The move that led to the position after `ply` moves, and the cells that it changed."""
        if ply == 0:
            return None
        made = way(self.game, self.actions[ply - 1])
        cells = changed(self.positions[ply - 1], self.positions[ply])
        return {"action": made.action, "cells": made.cells, "changed": cells}

    @property
    def result(self) -> list[float]:
        """Rewards by player, of a game that is over."""
        return list(self.now.rewards) if self.resigned is None else saved.after_resigning(self.game, self.resigned)

    # Moves

    def append(self, action: int) -> None:
        with self.first():
            self.positions.append(self.now.after(action))
        self.actions.append(action)

    def play(self, action: int) -> None:
        """The next move. One that was taken back keeps the moves after it."""
        if self.undone and self.undone[-1] == action:
            self.redo()
        else:
            self.follow(Line((*self.actions, action), None))

    def undo(self) -> None:
        self.undone.append(self.actions.pop())
        self.positions.pop()
        self.reports = {ply: report for ply, report in self.reports.items() if ply <= self.ply}

    def redo(self) -> None:
        self.append(self.undone.pop())

    def follow(self, line: Line) -> None:
        """Replaces the moves of the game by those of another line, and keeps the old ones, with all undone moves unless
        somebody resigned before them."""
        old = (*self.actions, *(self.undone[::-1] if self.resigned is None else ()))
        if line.actions[: len(old)] != old:
            self.lines = [Line(old, self.resigned), *self.lines][:MOST_VARIATIONS]
        for _ in range(self.ply - self._shared(line)):
            self.undo()
        for action in line.actions[self.ply :]:
            self.append(action)
        self.undone, self.resigned = [], line.resigned
        self._drop_contained()

    def _drop_contained(self) -> None:
        """Lines that the present one contains, or that are kept already, take no place."""
        again = [line for line in self.lines if line.resigned is not None or self._shared(line) < len(line.actions)]
        self.lines = list(dict.fromkeys(again))

    def _shared(self, line: Line) -> int:
        """Number of moves before the first one in which a line differs from the present one."""
        pairs = zip(self.actions, line.actions, strict=False)
        return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))

    # Searches

    def keep(self, ply: int, report: dict[str, Any] | None) -> None:
        """Keeps the report of the longest search of a position, and the owners that any search reported."""
        if report is not None:
            known = self.reports.get(ply, {"simulations": 0})
            shorter, longer = sorted((known, report), key=lambda one: one["simulations"])
            self.reports[ply] = shorter | longer

    def values(self, ply: int) -> list[float] | None:
        """Value of a position for every player, from the end of the game or from its longest search. A resignation
        changes the result but not the values: a review would count it as a mistake of the last move."""
        if ply == self.ply and self.now.over:
            return list(self.now.rewards)
        report = self.reports.get(ply)
        return None if report is None else report["values"]

    # JSON

    def save(self) -> dict[str, Any]:
        """The whole game, as `Sessions.create` takes it."""
        names = [self.game.action_name(a) for a in self.actions]
        file: dict[str, Any] = {"format": saved.FORMAT, "game": self.game.name, "actions": names}
        if self.start is not None:
            file["start"] = self.start
        if self.resigned is not None:
            file["resigned"] = self.resigned
        return file | {"position": self.game.to_record(self.now.state)}

    def look(self, ply: int) -> dict[str, Any]:
        """A position: its picture, its legal moves, and the move that led to it."""
        there = self.positions[ply]
        return {
            "ply": ply,
            "svg": there.svg,
            "status": there.status,
            "to_move": there.player,
            "legal": [dataclasses.asdict(one) for one in there.ways],
            "last": self.last(ply),
        }

    def history(self) -> list[dict[str, Any]]:
        """The moves made, each with its player."""
        movers = [position.player for position in self.positions]
        return [
            {"action": self.game.action_name(a), "words": way(self.game, a).words, "player": player}
            for a, player in zip(self.actions, movers, strict=False)
        ]

    def variations(self) -> list[dict[str, Any]]:
        """The lines that were left, each from its first move that is not in the present one."""
        found = []
        for line in self.lines:
            start = self._shared(line)
            words = [way(self.game, action).words for action in line.actions[start:]]
            if line.resigned is not None:
                words.append(f"{seats(self.game)[line.resigned]} resigned")
            found.append({"from": start, "words": words})
        return found
