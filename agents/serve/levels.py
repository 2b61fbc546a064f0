"""What a page offers: opponents from beginner to best, and boards of a game other than the usual one."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import envs
from agents.players.spec import NETWORK, parse_player
from agents.storage import weights as models
from envs.game import Game, first_player, seats, titles

LEVELS = (("Beginner", "random"), ("Easy", "uct:20"), ("Medium", "uct:100"), ("Hard", "uct:1000"))
BEST = "uct:2000"  # of a game without a network

# Values of options that may be chosen in the page. All others are the defaults.
CHOICES: dict[str, dict[str, tuple[str, ...]]] = {
    "foq": {"rows": ("5", "6", "7", "8"), "cols": ("5", "6", "7", "8", "9")},
    "foq_multi": {"players": ("2", "3", "4")},
    "go": {"size": ("5", "7", "9", "13", "19"), "komi": ("0.5", "5.5", "6.5", "7.5", "24.5")},
    "gomoku": {"size": ("9", "13", "15")},
    "hex": {"size": ("5", "6", "7", "9", "11"), "swap": ("true", "false")},
}


@dataclasses.dataclass(frozen=True)
class Level:
    name: str
    player: str  # spec
    measured: str  # strength, from the card of the network


def levels(network: str | None) -> list[Level]:
    """Opponents in the order of their strength; the best is the shipped network if there is one."""
    best = Level("Best", network or BEST, models.strength(Path(network)) if network else "")
    return [*(Level(name, player, "") for name, player in LEVELS), best]


def options(spec: str) -> dict[str, str]:
    """The options of a full spec, `Game.name`, as text."""
    pairs = (item.partition("=") for item in spec.partition(":")[2].split(",") if item)
    return {name: value for name, _, value in pairs}


def offered(spec: str) -> bool:
    """Whether the page may play the game of a spec: a registered one with usual or offered options."""
    name = spec.partition(":")[0]
    if name not in envs.list():
        return False
    usual, choices = options(envs.make(name).name), CHOICES.get(name, {})
    return all(value == usual.get(key) or value in choices.get(key, ()) for key, value in options(spec).items())


def dialog_entry(game: Game, opponents: list[str]) -> dict[str, Any]:
    """A game as the dialog of a new game shows it, JSON-ready; `opponents` are all its players."""
    network = next((name for name in opponents if parse_player(name).kind == NETWORK), None)
    kind = game.name.partition(":")[0]
    given = options(game.name) if kind in envs.list() else {}
    return {
        "game": game.name,
        "title": titles(game)[0],
        "seats": seats(game),
        "begins": first_player(game),
        "opponents": opponents,
        "levels": [dataclasses.asdict(level) for level in levels(network)],
        "options": [
            {"name": name, "value": given[name], "choices": list(dict.fromkeys([*values, given[name]]))}
            for name, values in CHOICES.get(kind, {}).items()
            if name in given
        ],
    }
