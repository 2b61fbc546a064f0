"""What a player is, and the name of a player as people write it, parsed once into a `PlayerSpec`.

The names of kinds form a registry, so that new kinds of players can be added.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from envs.game import Array, Game

NETWORK, UCT, PERSON = "network", "uct", "person"
GTP, UCI = PROGRAMS = "gtp", "uci"  # other programs, by their protocol
PROOF = "prove:"

MOST = 10_000_000  # simulations, playouts, plies or positions; more would be a slip of the keyboard
MOST_SECONDS = 86_400.0

NAMES = (
    "random, greedy, uct:N, minimax:D, exact (for small games), the folder of a run or model (FOLDER@N: N "
    "simulations, 0 the network alone), or prove:N,PLAYER (a move proved among N positions, else PLAYER's)"
)


Act = Callable[[Any, Array, Any, Array], Array]


@dataclasses.dataclass(frozen=True)
class Player:
    """Chooses moves for a batch of positions.

    `act(weights, key, states, plies)` returns int32[B], legal actions for unfinished games; `plies` int32[B] counts the
    moves made. `weights` are an argument so that compiled programs do not embed them."""

    name: str
    act: Act
    weights: Any = None
    by_chance: bool = False  # plays differently in the same position, so that games that happen to be equal count


class PlayerKind(NamedTuple):
    """An entry of the registry."""

    make: Callable[[Game, int | None], Player]
    example: int | None  # the kind is written NAME:NUMBER, as with this number; None for kinds without one


REGISTRY: dict[str, PlayerKind] = {}


def register_player(
    name: str, make: Callable[[Game, int | None], Player], example: int | None = None
) -> Callable[[Game, int | None], Player]:
    """Adds a kind of player under a name, for every program of this process.

    Args:
        name: a Python identifier.
        make: (game, number) -> the player; the number is None for a kind that takes none.
        example: a usual number, if the player is written NAME:NUMBER.

    Raises:
        ValueError: the name is taken, or not an identifier.
    """
    if not name.isidentifier() or name in (*REGISTRY, NETWORK, PERSON, *PROGRAMS, PROOF.rstrip(":")):
        raise ValueError(f"expected a new name for a player, got '{name}'")
    REGISTRY[name] = PlayerKind(make, example)
    return make


@dataclasses.dataclass(frozen=True)
class PlayerSpec:
    """A player by name; `str` gives the text."""

    kind: str  # a name of the registry, NETWORK, PERSON, GTP or UCI
    path: str = ""  # folder of a network, or the command line of a program
    number: int | None = None  # simulations of a network, or the number after a registered name; None: as usual
    seconds: float | None = None  # search by time, in place of `number`
    proof_positions: int | None = None  # positions of a proof search before each move

    @property
    def base(self) -> PlayerSpec:
        """The player without its proofs."""
        return dataclasses.replace(self, proof_positions=None)

    @property
    def searches(self) -> bool:
        """Whether the player grows trees that can be shown: MCTS, and networks with simulations."""
        return self.kind == UCT or (self.kind == NETWORK and self.number != 0)

    @property
    def short_name(self) -> str:
        """The text without the leading folders of a path, to show to people."""
        return "/".join(Path(str(self)).parts[-2:])

    def __str__(self) -> str:
        budget = "" if self.number is None else f"{self.number}"
        budget = budget if self.seconds is None else f"{self.seconds:g}s"
        if self.kind == NETWORK:
            text = f"{self.path}@{budget}" if budget else self.path
        elif self.kind in PROGRAMS:
            text = f"{self.kind}:{self.path}"
        else:
            text = f"{self.kind}:{budget}" if budget else self.kind
        return text if self.proof_positions is None else f"{PROOF}{self.proof_positions},{text}"


def parse_player(text: str | PlayerSpec) -> PlayerSpec:
    """The player that `text` names. A text that names no kind is the folder of a network, which need not exist.

    Raises:
        ValueError: a number or a part is missing or out of range.
    """
    if isinstance(text, PlayerSpec):
        return text
    if text.startswith(PROOF):
        return _with_proofs(text)
    name, colon, rest = text.partition(":")
    if name in PROGRAMS and colon:
        return PlayerSpec(name, path=rest)
    if name == PERSON and not colon:
        return PlayerSpec(PERSON)
    if name in REGISTRY:
        return _registered(text, name, rest if colon else None)
    folder, at, budget = text.rpartition("@")
    if not at or "/" in budget or (not budget[:1].isdigit() and Path(text).is_dir()):
        return PlayerSpec(NETWORK, path=text)
    seconds = _seconds(text, budget, f"{folder}@")
    if seconds is not None:
        return PlayerSpec(NETWORK, path=folder, seconds=seconds)
    return PlayerSpec(NETWORK, path=folder, number=_whole(text, budget, 0, f"{folder}@64"))


def _with_proofs(text: str) -> PlayerSpec:
    positions, comma, rest = text.removeprefix(PROOF).partition(",")
    if not comma:
        raise ValueError(f"player '{text}': expected positions and a player, as in prove:100000,uct:100")
    spec = parse_player(rest)
    if spec.proof_positions is not None or spec.kind in (PERSON, *PROGRAMS):
        raise ValueError(f"player '{text}': expected a player of ripzero after the positions, got '{rest}'")
    return dataclasses.replace(spec, proof_positions=_whole(text, positions, 1, "prove:100000,uct:100"))


def _registered(text: str, name: str, number: str | None) -> PlayerSpec:
    example = REGISTRY[name].example
    if example is None:
        if number is not None:
            raise ValueError(f"player '{text}': expected {name} without a number")
        return PlayerSpec(name)
    seconds = _seconds(text, number or "", "uct:") if name == UCT else None
    if seconds is not None:
        return PlayerSpec(name, seconds=seconds)
    return PlayerSpec(name, number=_whole(text, number or "", 1, f"{name}:{example}"))


def _whole(text: str, number: str, least: int, example: str) -> int:
    if re.fullmatch(r"[0-9]{1,9}", number) and least <= int(number) <= MOST:
        return int(number)
    raise ValueError(f"player '{text}': expected a whole number from {least} to {MOST}, as in {example}")


def _seconds(text: str, budget: str, before: str) -> float | None:
    """Seconds of a budget such as 2s or 0.5s; None for all other budgets."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?s", budget):
        return None
    seconds = float(budget[:-1])
    if not 0 < seconds <= MOST_SECONDS:
        raise ValueError(f"player '{text}': expected more than 0 seconds and at most a day, as in {before}2s")
    return seconds
