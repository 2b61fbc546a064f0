"""A game as a file: its first position and the names of its moves.

    {"format": "ripzero game 1", "game": "tictactoe", "actions": ["b2", "a1"], "position": {...}}

`start`, a position, is present if the game did not begin as usual; `resigned` is the player who resigned. The last
`position` is for other programs. A bare record of a position is a game without moves.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from envs.game import Array, Game, State

FORMAT = "ripzero game 1"
FIELDS = {"format", "game", "actions", "start", "resigned", "position"}
NAMED_AT_MOST = 12  # legal moves in a message; longer lists help less


@functools.lru_cache(maxsize=16)
def compiled(game: Game) -> tuple[Callable[[State], Array], Callable[[State, int], State]]:
    """`mask` and `move` of a game for the host, compiled once."""
    return jax.jit(game.mask), jax.jit(game.move)


def action_of(game: Game, state: State, text: str) -> int:
    """The code of the legal move with this name.

    Raises:
        ValueError: no move has this name, or it is not legal here; the message says why and lists legal moves.
    """
    legal = np.flatnonzero(compiled(game)[0](state))
    if not len(legal):
        raise ValueError(f"'{text}': the game is over")
    try:
        action = int(game.parse_action(text))
    except ValueError as error:
        raise ValueError(f"{error}; {legal_names(game, legal)}") from None
    if action not in legal:
        reason = game.view.why_illegal(state, action)
        raise ValueError(f"'{text}' is not legal here{reason and f': {reason}'}; {legal_names(game, legal)}")
    return action


def legal_names(game: Game, legal: Sequence[int] | np.ndarray) -> str:
    """`legal: a1, b2, ... (31 in all)`."""
    names = [game.action_name(int(a)) for a in legal[:NAMED_AT_MOST]]
    return "legal: " + ", ".join(names) + (f", ... ({len(legal)} in all)" if len(legal) > len(names) else "")


def replay(game: Game, start: State, moves: Iterable[str]) -> tuple[list[State], list[int]]:
    """All positions of a game, including the first, and the codes of its moves.

    Raises:
        ValueError: an illegal move; the message gives its number.
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


def after_resigning(game: Game, player: int) -> list[float]:
    """Rewards after `player` resigned; the others share the point that `player` loses."""
    return [-1.0 if i == player else 1 / (game.num_players - 1) for i in range(game.num_players)]


def player_of(game: Game, value: Any) -> int:
    """The player number in a file's `resigned` field.

    Raises:
        ValueError: there is no such player. 1.0 and true are rejected, although Python equates them with 1.
    """
    if type(value) is not int or value not in range(game.num_players):
        raise ValueError(f"resigned: expected the number of a player, 0 to {game.num_players - 1}")
    return value


def refuse_half_characters(value: Any) -> None:
    """Raises ValueError if a string holds a lone surrogate, which JSON allows but no answer can quote."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])[1:-1]
        raise ValueError(f"half a character, {half}, stands alone in a string") from None


def to_file(game: Game, states: Sequence[State], actions: Sequence[int], resigned: int | None = None) -> str:
    """The text of a file, one line; `states` come from `replay`, and `resigned` is the player who resigned."""
    record: dict[str, Any] = {"format": FORMAT, "game": game.name, "actions": [game.action_name(a) for a in actions]}
    start = game.to_record(states[0])
    if start != game.to_record(game.init()):
        record["start"] = start
    if resigned is not None:
        record["resigned"] = resigned
    return json.dumps(record | {"position": game.to_record(states[-1])}) + "\n"


def write(path: Path, content: str | bytes) -> None:
    """Writes a file atomically.

    Raises:
        OSError: the file cannot be written; the error names `path`, which the caller knows.
    """
    new = path.with_name(f"{path.name}.new")
    try:
        new.write_bytes(content.encode() if isinstance(content, str) else content)
        new.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            new.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from None


class Saved(NamedTuple):
    """Contents of a game file."""

    start: State
    actions: list[str]  # names of moves, not yet replayed
    resigned: int | None  # the player who resigned after them


def position(game: Game, record: Any) -> State:
    """The position of a record.

    Raises:
        ValueError: it is none. A game of your own may check loosely and raise another error.
    """
    try:
        return game.from_record(record)
    except (TypeError, LookupError, AttributeError, OverflowError) as error:
        raise ValueError(f"this is no record of {game.name}: {type(error).__name__}: {error}") from None


def from_file(game: Game, text: str) -> tuple[State, list[str]]:
    """The first position of a file and its moves, for callers that need no resignation; see `read`."""
    return read(game, text)[:2]


def read(game: Game, text: str) -> Saved:
    """The contents of a game file, or of a bare position record.

    Raises:
        ValueError: broken JSON, another game, or a position that cannot occur.
    """
    try:
        value = json.loads(text)
        refuse_half_characters(value)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError("expected a JSON object: a game or the record of a position")
    if not value.keys() & {"format", "game", "actions", "start"}:
        return Saved(position(game, value), [], None)
    if value.keys() - FIELDS:
        raise ValueError(f"expected a game with the fields {', '.join(sorted(FIELDS))}, got {', '.join(value)}")
    if value.get("format", FORMAT) != FORMAT:
        raise ValueError(f"format: expected '{FORMAT}', got {value['format']!r}")
    if value.get("game", game.name) != game.name:
        raise ValueError(f"this is a game of {value['game']}, not of {game.name}")
    actions: Any = value.get("actions", [])
    if not isinstance(actions, list) or not all(isinstance(name, str) for name in actions):
        raise ValueError("actions: expected a list of names")
    if len(actions) > game.max_plies:
        raise ValueError(f"actions: {len(actions)} are more than a game of {game.name} can have, {game.max_plies}")
    resigned = player_of(game, value["resigned"]) if value.get("resigned") is not None else None
    return Saved(position(game, value["start"]) if "start" in value else game.init(), actions, resigned)
