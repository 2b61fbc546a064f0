"""Ladders: who meets whom among the networks of a run and baselines, and the matches that are known already.

A match is remembered in the folder of the run under its players and options. So a ladder that was stopped goes on where
it was, and one with further networks or baselines plays only what is new. Only a change of the engine itself goes
unnoticed.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from agents.players.players import Player, inner
from agents.storage import weights as models
from envs import saved

FILE = "matches.jsonl"


def spread(found: list[Path], most: int) -> list[Path]:
    """That many of the list, or all where there are fewer; evenly, with the last one."""
    places = np.linspace(len(found) - 1, 0, min(most, len(found))).round().astype(int)
    return [found[i] for i in sorted(places)]


def schedule(baselines: int, networks: int) -> list[tuple[int, int]]:
    """Who meets whom; baselines are numbered first, then networks by age."""
    first, last = baselines, baselines + networks - 1
    by_age = [(i, i - back) for i in range(first, last + 1) for back in (1, 2) if i - back >= first]
    between = [(i + 1, i) for i in range(baselines - 1)]
    return between + [(i, b) for b in range(baselines) for i in sorted({first, (first + last) // 2, last})] + by_age


def identity(spec: str, player: Player) -> str:
    """The player's name, with what is in a network's file in place of where it lies."""
    folder = inner(spec).partition("@")[0]
    if not Path(folder).exists():
        return player.name
    before, _, after = player.name.rpartition(folder)
    return before + models.digest(models.find(Path(folder))) + after


def seed_of(seed: int, a: str, b: str) -> int:
    """Another one for each two identities: `ratings.bootstrap` takes the openings of matches as independent."""
    return int.from_bytes(hashlib.blake2s(f"{seed} {a} {b}".encode(), digest_size=4).digest()) >> 1


class Matches:
    """The matches of a run that ended, in a file of one JSON line each: what was played, and `pairs`, the evidence."""

    def __init__(self, path: Path):
        """Raises ValueError if there is a file that is something else."""
        self.path = path
        self.known: dict[str, list[float]] = {}
        try:
            lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
            for line in lines:
                record = json.loads(line)
                self.known[_key(record["match"])] = [float(score) for score in record["pairs"]]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a file of matches; move it away to play them anew") from error

    def find(self, match: dict[str, Any]) -> np.ndarray | None:
        """What this match brought, float[openings], if it was played."""
        pairs = self.known.get(_key(match))
        return None if pairs is None else np.array(pairs)

    def add(self, match: dict[str, Any], pairs: np.ndarray) -> None:
        self.known[_key(match)] = pairs.tolist()
        lines = [json.dumps({"match": json.loads(key), "pairs": pairs}) for key, pairs in self.known.items()]
        saved.write(self.path, "".join(f"{line}\n" for line in lines))


def _key(match: dict[str, Any]) -> str:
    return json.dumps(match, sort_keys=True)
