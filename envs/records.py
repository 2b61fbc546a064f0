"""Shared checks of the fields of position records.

Every error message begins with the name of the game and ends with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def with_forfeit(record: dict[str, Any], forfeit: Any) -> dict[str, Any]:
    """The record, with `forfeit` only after a forfeit."""
    return record | ({"forfeit": int(forfeit)} if forfeit >= 0 else {})


def fields(
    game: str, value: Any, *forms: Sequence[str], perhaps: Sequence[str] = ("forfeit",), what: str = "record"
) -> None:
    """Requires a `value` to be an object with all fields of one of the `forms`, and no others except `perhaps`.

    Raises:
        ValueError: it is not; the message calls it `what` and lists the fields.
    """
    if not isinstance(value, dict):
        raise ValueError(f"{game} record: a {what} is an object with named fields")
    if not any({*form} <= value.keys() <= {*form, *perhaps} for form in forms):
        listed = lambda names: " and ".join(", ".join(names).rsplit(", ", 1))
        more = f", and perhaps {listed(perhaps)}" if perhaps else ""
        wanted = " or ".join(listed(form) for form in forms)
        raise ValueError(f"{game} record: expected a {what} with the fields {wanted}{more}, got {list(value)}")


def is_whole(value: Any, low: int, high: int) -> bool:
    """Whether a value is an integer from `low` to `high`; booleans and floats such as 1.0 are not."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def whole(game: str, field: str, value: Any, low: int, high: int) -> int:
    """The value, an integer from `low` to `high`; ValueError for any other."""
    if not is_whole(value, low, high):
        raise ValueError(f"{game} record: {field}: expected a whole number from {low} to {high}, got {value!r}")
    return value


def cells(game: str, field: str, value: Any, count: int, what: str = "cells") -> list[int]:
    """The value, a list of `count` cells, each 1, -1 or 0, else ValueError. Messages call them `what`."""
    if not isinstance(value, list) or len(value) != count or not all(is_whole(cell, -1, 1) for cell in value):
        raise ValueError(f"{game} record: {field}: expected {count} {what}, each 1, -1 or 0")
    return value


def turn(game: str, record: dict[str, Any]) -> int:
    """`to_move`: 1 for the first player, -1 for the second; ValueError for any other value."""
    value = record["to_move"]
    if not is_whole(value, -1, 1) or value == 0:
        raise ValueError(f"{game} record: to_move: expected 1 or -1, got {value!r}")
    return value


def forfeit(game: str, record: dict[str, Any], mover: int, over: Callable[[], Any] = lambda: False) -> int:
    """The player who forfeited, or -1 for none; a missing field means none.

    Args:
        game: its name.
        record: with or without `forfeit`.
        mover: the player to move; nobody else can have forfeited.
        over: whether the game is over without the forfeit; called only if somebody forfeited.

    Raises:
        ValueError: this player cannot have forfeited, or nobody can.
    """
    value = record.get("forfeit", -1)
    if not is_whole(value, -1, mover) or value not in (-1, mover):
        raise ValueError(f"{game} record: player {value!r} cannot have forfeited at the turn of player {mover}")
    if value >= 0 and over():
        raise ValueError(f"{game} record: nobody can have forfeited, as the game is over without it")
    return value
