"""Words of a GTP command as values, and the refusal of a command."""

from __future__ import annotations

import re
from pathlib import Path

from envs import go

COLOUR_WORDS = {"b": 0, "black": 0, "w": 1, "white": 1}
WHOLE = re.compile(r"[0-9]{1,9}")


class Refusal(Exception):
    """A command that cannot be carried out; the message is the answer, in the words of the protocol."""


SYNTAX = Refusal("syntax error")


def read_colour(word: str) -> int:
    if word.lower() not in COLOUR_WORDS:
        raise SYNTAX
    return COLOUR_WORDS[word.lower()]


def read_whole(word: str) -> int:
    if not WHOLE.fullmatch(word):
        raise SYNTAX
    return int(word)


def read_seconds(word: str) -> float:
    """Whole seconds in the protocol; some programs send fractions."""
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", word):
        raise SYNTAX
    return float(word)


def read_vertex(word: str, size: int) -> int:
    try:
        return go.parse_point(word, size)
    except ValueError:
        raise Refusal("invalid coordinate") from None


def read_path(words: list[str]) -> Path:
    """A path of one or more words, quoted or not: the protocol defines neither, and programs send both."""
    text = " ".join(words)
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    if not text:
        raise SYNTAX
    return Path(text)


def expect(arguments: list[str], least: int, most: int | None = None) -> None:
    if not least <= len(arguments) <= (least if most is None else most):
        raise SYNTAX
