"""Self-play games of a run in games.jsonl: one readable, replayable line per game."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from agents.storage import jsonl
from agents.storage.jsonl import Lines
from agents.training.selfplay import Ended
from envs.game import Game

GAMES_FILE = "games.jsonl"
OPENING_MOVES = 6  # first moves from the start position that define an opening


class GameLog:
    """Appends the games that end in a run.

    A line has `iteration`, `opening` (moves made before play began), `moves` by name from the start position on,
    `resigned` (by the player to move) and `rewards` by player.
    """

    def __init__(self, folder: Path, game: Game, iteration: int):
        """Continues after `iteration`."""
        self.names = [game.action_name(action) for action in range(game.num_actions)]
        self.lines = Lines(folder / GAMES_FILE, iteration)

    def add(self, iteration: int, ended: Ended) -> None:
        """Writes the games of an iteration, which may still be on the device.

        Raises:
            OSError: they have to wait until there is room.
        """
        ended = jax.device_get(ended)
        lines = []
        for i in np.flatnonzero(ended.there):
            game = {
                "iteration": iteration,
                "opening": int(ended.opening[i]),
                "moves": [self.names[action] for action in ended.moves[i] if action >= 0],
                "resigned": bool(ended.resigned[i]),
                "rewards": [float(r) for r in ended.rewards[i]],
            }
            lines.append(json.dumps(game, separators=(",", ":")))
        self.lines.add(*lines)

    def close(self) -> None:
        self.lines.close()


def distinct_openings(ended: Ended) -> float | None:
    """Share of distinct openings among the games that ended in an iteration (numpy arrays); None without games."""
    openings = ended.moves[ended.there, :OPENING_MOVES]
    return len(np.unique(openings, axis=0)) / len(openings) if len(openings) else None


def read_games(folder: Path) -> Iterator[dict[str, Any]]:
    """The games of a run, oldest first, without a line that a crash cut off."""
    path = folder / GAMES_FILE
    if not path.exists():
        return
    for number, line in enumerate(jsonl.read(path), 1):
        try:
            check(line)
        except ValueError as error:
            raise jsonl.damaged(path, number, error) from None
        yield line


def check(line: dict[str, Any]) -> None:
    """Raises ValueError unless a line has the fields of `GameLog`, each of its type."""
    forms = {"iteration": int, "opening": int, "moves": list, "resigned": bool, "rewards": list}
    for name, kind in forms.items():
        if type(line.get(name)) is not kind:
            raise ValueError(f"{name}: expected {kind.__name__}, got {str(line.get(name))[:40]!r}")
    if not all(isinstance(move, str) for move in line["moves"]):
        raise ValueError("moves: expected names")
    if not all(type(reward) in (int, float) for reward in line["rewards"]):
        raise ValueError("rewards: expected numbers")
    if not 0 <= line["opening"] <= len(line["moves"]):
        raise ValueError(f"opening: expected at most {len(line['moves'])}, got {line['opening']}")


def replay(game: Game, line: dict[str, Any]) -> list[Any]:
    """The positions of a logged game, beginning with the start position.

    Raises:
        ValueError: a move is unknown or was not legal.
    """
    step, mask = jax.jit(game.step), jax.jit(game.mask)
    states = [game.init()]
    for name in line["moves"]:
        action = game.parse_action(name)
        if not mask(states[-1])[action]:
            raise ValueError(f"archived game: move {len(states)}, {name}, is not legal")
        states.append(step(states[-1], action))
    return states
