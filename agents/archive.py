"""The games of self-play beside a run: games.jsonl, one line a game, readable and to be replayed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from agents.selfplay import Ended
from envs.game import Game

FILE = "games.jsonl"


class Archive:
    """Appends the games that end in a run.

    A line has `iteration`, `opening` (how many of the moves were made before play began), `moves` by name from the
    start position on, `resigned` (the player to move then gave up) and `rewards` by player.
    """

    def __init__(self, folder: Path, game: Game, iteration: int):
        """Goes on after `iteration`: games of later iterations, which a crash left behind, are dropped."""
        path = folder / FILE
        if path.exists():
            cut(path, iteration)
        self.names = [game.action_name(action) for action in range(game.num_actions)]
        self.file = path.open("a")

    def add(self, iteration: int, ended: Ended) -> None:
        """Writes the games of an iteration; `ended` may still lie on the device."""
        ended = jax.device_get(ended)
        for i in np.flatnonzero(ended.there):
            moves = [self.names[action] for action in ended.moves[i] if action >= 0]
            line = {
                "iteration": iteration,
                "opening": int(ended.opening[i]),
                "moves": moves,
                "resigned": bool(ended.resigned[i]),
                "rewards": [float(r) for r in ended.rewards[i]],
            }
            self.file.write(json.dumps(line, separators=(",", ":")) + "\n")
        self.file.flush()

    def close(self) -> None:
        self.file.close()


def read(folder: Path) -> Iterator[dict[str, Any]]:
    """The games of a run, oldest first; a line that a crash broke off is left out."""
    path = folder / FILE
    if not path.exists():
        return
    with path.open() as lines:
        for line in lines:
            if line.endswith("\n"):
                yield json.loads(line)


def cut(path: Path, iteration: int) -> None:
    """Drops the games after `iteration`; the file changes as a whole or not at all."""
    fresh = path.with_suffix(".new")
    with fresh.open("w") as file:
        for line in read(path.parent):
            if line["iteration"] <= iteration:
                file.write(json.dumps(line, separators=(",", ":")) + "\n")
    fresh.replace(path)


def replay(game: Game, line: dict[str, Any]) -> list[Any]:
    """The positions of an archived game, the start position first.

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
