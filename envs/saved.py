"""A game as a file: the position it began with and the names of its moves.

    {"format": "ripzero game 1", "game": "tictactoe", "actions": ["b2", "a1"], "position": {...}}

`start`, a position, stands there where the game did not begin as usual; `resigned` is the player who gave up. The last
`position` is for other programs. A bare record of a position is a game without moves.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from envs.game import Array, Game, State

FORMAT = "ripzero game 1"
FIELDS = {"format", "game", "actions", "start", "resigned", "position"}
NAMED_AT_MOST = 12  # legal moves in a message; more say less


@functools.lru_cache(maxsize=16)
def compiled(game: Game) -> tuple[Callable[[State], Array], Callable[[State, int], State]]:
    """`mask` and `move` of a game for the host, compiled once."""
    return jax.jit(game.mask), jax.jit(game.move)


def action_of(game: Game, state: State, text: str) -> int:
    """The code of a legal move by its name.

    Raises:
        ValueError: it names no move, or one that is not legal here; the message says what is.
    """
    legal = np.flatnonzero(compiled(game)[0](state))
    if not len(legal):
        raise ValueError(f"'{text}': the game is over")
    try:
        action = int(game.parse_action(text))
    except ValueError as error:
        raise ValueError(f"{error}; {legal_names(game, legal)}") from None
    if action not in legal:
        raise ValueError(f"'{text}' is not legal here; {legal_names(game, legal)}")
    return action


def legal_names(game: Game, legal: Sequence[int] | np.ndarray) -> str:
    """`legal: a1, b2, ... (31 in all)`."""
    names = [game.action_name(int(a)) for a in legal[:NAMED_AT_MOST]]
    return "legal: " + ", ".join(names) + (f", ... ({len(legal)} in all)" if len(legal) > len(names) else "")


def replay(game: Game, start: State, moves: Iterable[str]) -> tuple[list[State], list[int]]:
    """All positions of a game, the first one included, and the codes of its moves.

    Raises:
        ValueError: a move that is not legal, with its number.
    """
    states, actions = [start], []
    move = compiled(game)[1]
    for number, name in enumerate(moves, 1):
        try:
            actions.append(action_of(game, states[-1], name))
        except ValueError as error:
            raise ValueError(f"move {number}: {error}") from None
        states.append(move(states[-1], actions[-1]))
    return states, actions


def to_file(game: Game, states: Sequence[State], actions: Sequence[int]) -> str:
    """The text of a file, one line; `states` as `replay` gives them."""
    record: dict[str, Any] = {"format": FORMAT, "game": game.name, "actions": [game.action_name(a) for a in actions]}
    start = game.to_record(states[0])
    if start != game.to_record(game.init()):
        record["start"] = start
    return json.dumps(record | {"position": game.to_record(states[-1])}) + "\n"


def write(path: Path, text: str) -> None:
    """Writes a file, complete or not at all."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def from_file(game: Game, text: str) -> tuple[State, list[str]]:
    """The first position of a file and its moves, not yet replayed.

    Raises:
        ValueError: broken JSON, another game, or a position that cannot occur.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError("want a JSON object: a game or the record of a position")
    if not value.keys() & {"format", "game", "actions", "start"}:
        return game.from_record(value), []
    if value.keys() - FIELDS:
        raise ValueError(f"the fields of a game are {', '.join(sorted(FIELDS))}, not {', '.join(value)}")
    if value.get("format", FORMAT) != FORMAT:
        raise ValueError(f"format: want '{FORMAT}', not {value['format']!r}")
    if value.get("game", game.name) != game.name:
        raise ValueError(f"this is a game of {value['game']}, not of {game.name}")
    actions: Any = value.get("actions", [])
    if not isinstance(actions, list) or not all(isinstance(name, str) for name in actions):
        raise ValueError("actions: want a list of names")
    if len(actions) > game.max_plies:
        raise ValueError(f"actions: {len(actions)} are more than a game of {game.name} can have, {game.max_plies}")
    return game.from_record(value["start"]) if "start" in value else game.init(), actions
