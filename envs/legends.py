"""Signs of the text pictures of positions (`Game.show`), for people."""

from __future__ import annotations

import re
import string

from envs.game import Game, seats

STONES = (("X", "{0}"), ("O", "{1}"), (".", "empty"))
SQUARES = (("#", "ripped"), ("*", "legal target"), (".", "free"))

LEGENDS: dict[str, tuple[tuple[str, str], ...]] = {  # (signs, meaning), {0} stands for the first player's name
    "tictactoe": ((".", "empty"),),
    "connect_four": STONES,
    "gomoku": STONES,
    "hex": (("X", "{0}"), ("O", "{1}"), (".", "empty")),
    "othello": (*STONES, ("*", "legal move")),
    "go": (*STONES, ("+", "empty, a marked point")),
    "sum_to_100": (("#", "the sum so far"), (".", "still to add")),
    "foq": (("A", "{0}'s queen"), ("B", "{1}'s queen"), *SQUARES),
    "foq_single": (("Q", "the queen"), *SQUARES),
    "foq_multi": SQUARES,
    "evopawness": (
        ("K Q R B N S", "{0}: king, queen, rook, bishop, knight, soldier"),
        ("k q r b n s", "{1}"),
        ("S5/1/1", "5 health, 1 attack, 1 step"),
        ("z", "asleep"),
        ("+", "a rune"),
        (".", "free"),
    ),
}


def legend(game: Game) -> str:
    """Meaning of the signs, separated by commas; empty for a game that has no legend."""
    name, names = re.split(r"[:,]", game.name)[0], seats(game)
    signs = LEGENDS.get(name, ())
    if name == "foq_multi":
        queens = zip(string.ascii_uppercase, names, strict=False)
        signs = (*((letter, f"{seat}'s queen") for letter, seat in queens), ("a b c", "dropped out"), *signs)
    return ", ".join(f"{sign} {meaning.format(*names)}" for sign, meaning in signs)
