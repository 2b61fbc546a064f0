"""Solved positions: how often a player's move keeps the value of the game, in total and by phase."""

from __future__ import annotations

import dataclasses
import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from agents.players.spec import Player
from envs.game import Game

ANSWERS = ("winning", "optimal")  # fields with the moves that keep the value
BESIDE = {*ANSWERS, "legal", "terminal", "value", "scores", "ply", "best_score_moves"}  # not part of the position
CHUNK = 256  # positions of one call


@dataclasses.dataclass(frozen=True)
class SolvedPositions:
    """M unfinished positions."""

    states: Any  # [M, ...]
    legal: np.ndarray  # bool[M, A]
    right: np.ndarray  # bool[M, A], the moves that keep the value of the game
    phases: np.ndarray  # str[M], see `phase`


@dataclasses.dataclass(frozen=True)
class Score:
    """How often a player kept the value of the game."""

    positions: int
    kept: int
    share: float
    interval: tuple[float, float]  # of the share, 95%


def read_positions(path: Path, game: Game) -> SolvedPositions:
    """Positions of `game` in a file of JSON lines, gzip-compressed or not.

    A line is a record of the game with the moves that keep its value in `winning` or `optimal`. Fields of other
    answers, finished positions, and lines whose `variant` names another game are ignored.

    Raises:
        ValueError: a line is not such a record or lists an illegal move, or no position is of this game.
        OSError: the file cannot be read.
    """
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path}: damaged gzip file: {error}") from error
    states, right, phases, lines = [], [], [], []
    for number, line in enumerate(raw.decode(errors="replace").splitlines(), 1):
        try:
            record = json.loads(line)
            if record.get("variant", game.name.partition(":")[0]) != game.name.partition(":")[0]:
                continue
            answer = next((record[name] for name in ANSWERS if name in record), None)
            if answer is None:
                raise ValueError(f"expected a list of moves in one of {', '.join(ANSWERS)}")
            if not isinstance(answer, list):
                raise ValueError(f"expected a list of numbers, got {str(answer)[:40]}")
            if not answer:
                continue
            if not all(type(action) is int and 0 <= action < game.num_actions for action in answer):
                raise ValueError(f"expected numbers from 0 to {game.num_actions - 1}, got {answer}")
            states.append(game.from_record({k: v for k, v in record.items() if k not in BESIDE}))
            right.append(np.isin(np.arange(game.num_actions), answer))
            phases.append(phase(record))
            lines.append(number)
        except (ValueError, LookupError, AttributeError, TypeError, OverflowError, RecursionError) as error:
            raise ValueError(f"{path}, line {number}: {error}") from error
    if not states:
        raise ValueError(f"{path} holds no solved position of {game.name}")
    stacked = jax.tree.map(lambda *x: jnp.asarray(np.stack(x)), *jax.device_get(states))
    legal, listed = np.asarray(jax.vmap(game.mask)(stacked)), np.stack(right)
    for row, action in np.argwhere(listed & ~legal):
        raise ValueError(f"{path}, line {lines[row]}: move {action} is not legal in this position")
    return SolvedPositions(stacked, legal, listed, np.array(phases))


def phase(record: dict[str, Any]) -> str:
    """Phase of the game, as far as the record shows it: free squares of a board that is ripped, moves made, or empty
    cells."""
    if "ripped" in record:
        low = (record["rows"] * record["cols"] - len(record["ripped"])) // 10 * 10
        return f"{low:02d} to {low + 9} free"
    if "moves" in record:
        low = len(record["moves"]) // 8 * 8
        return f"{low:02d} to {low + 7} moves"
    return f"{record['board'].count(0):02d} empty" if isinstance(record.get("board"), list) else "all"


def choose(
    player: Player, solved: SolvedPositions, seed: int = 0, tell: Callable[[int], object] = lambda done: None
) -> np.ndarray:
    """The player's moves, int[M]. `tell` hears how many are known."""
    act, count = jax.jit(player.act), len(solved.right)
    chosen, width = [], min(CHUNK, count)
    for low in range(0, count, width):
        index = np.minimum(np.arange(low, low + width), count - 1)  # one shape, so one compilation
        part = jax.tree.map(lambda x: x[index], solved.states)
        key = jax.random.fold_in(jax.random.key(seed), low)
        chosen.append(np.asarray(act(player.weights, key, part, jnp.zeros(width, jnp.int32))))
        tell(min(low + width, count))
    return np.concatenate(chosen)[:count]


def scores(kept: np.ndarray, phases: np.ndarray) -> tuple[Score, dict[str, Score]]:
    """In total and by phase; `kept` is bool[M]."""
    one = lambda part: Score(len(part), int(part.sum()), float(part.mean()), wilson(int(part.sum()), len(part)))
    return one(kept), {str(name): one(kept[phases == name]) for name in np.unique(phases)}


def wilson(hits: int, count: int) -> tuple[float, float]:
    """95% interval of a share (Wilson 1927)."""
    z, share = 1.959964, hits / count
    centre = share + z**2 / (2 * count)
    spread = z * np.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    scale = 1 + z**2 / count
    return float((centre - spread) / scale), float((centre + spread) / scale)
