"""Forsyth-Edwards notation of chess positions, on 8 x 8 and 5 x 5 squares, read and written on the host."""

from __future__ import annotations

import re
from typing import NamedTuple

LETTERS = "pnbrqk"
FIRST_ROW = {8: "rnbqkbnr", 5: "rnbqk"}
MAX_PLIES = {8: 512, 5: 256}  # plies of a game, as in pgx
FIFTY_MOVES = 100  # plies without a capture or a pawn move that end the game
CASTLING = "KQkq"
CASTLING_SQUARES = ((60, 63), (60, 56), (4, 7), (4, 0))  # squares of king and rook, in the order of CASTLING


class Placement(NamedTuple):
    letters: list[str]  # by square, row by row from the top: letters, capitals White's, a dot for an empty square
    black: bool  # to move
    castling: tuple[bool, ...]  # by CASTLING
    target: int  # the square that a pawn has just passed, -1 for none
    halfmove_clock: int  # plies since the last capture or pawn move
    ply: int


def start(size: int) -> Placement:
    officers, gap = FIRST_ROW[size], "." * size
    letters = [*officers, *"p" * size, *gap * (size - 4), *"P" * size, *officers.upper()]
    return Placement(letters, False, (size == 8,) * 4, -1, 0, 0)


def square_names(size: int) -> tuple[str, ...]:
    return tuple(f"{'abcdefgh'[at % size]}{size - at // size}" for at in range(size * size))


def write(here: Placement, size: int) -> str:
    rows = ("".join(here.letters[r * size : (r + 1) * size]) for r in range(size))
    rows = [re.sub(r"\.+", lambda gap: str(len(gap[0])), row) for row in rows]
    castling = "".join(letter for letter, right in zip(CASTLING, here.castling, strict=True) if right) or "-"
    target = "-" if here.target < 0 else square_names(size)[here.target]
    return f"{'/'.join(rows)} {'wb'[here.black]} {castling} {target} {here.halfmove_clock} {here.ply // 2 + 1}"


def read(fen: str, size: int) -> Placement:
    """The position of a text; the counters of plies may be missing. Checks are not looked for.

    Raises:
        ValueError: the text has another form, or the position cannot occur.
    """
    fields = fen.split()
    if len(fields) not in (4, 6):
        raise _wrong(f"expected 4 or 6 fields, got {len(fields)}")
    placed, turn, castling, target = fields[:4]
    if turn not in ("w", "b"):
        raise _wrong(f"expected w or b to move, got '{turn}'")
    black = turn == "b"
    quiet, ply = _plies(fields[4:] or ["0", "1"], black, size)
    letters = _placed(placed, size)
    return Placement(
        letters, black, _rights(castling, letters, size), _passed(target, letters, black, size), quiet, ply
    )


def _wrong(reason: str) -> ValueError:
    return ValueError(f"chess record: fen: {reason}")


def _plies(counts: list[str], black: bool, size: int) -> tuple[int, int]:
    if not all(re.fullmatch("[0-9]{1,4}", count) for count in counts):
        raise _wrong(f"expected two counts of moves, got '{' '.join(counts)}'")
    quiet, ply = int(counts[0]), 2 * (int(counts[1]) - 1) + black
    if not 0 <= ply <= MAX_PLIES[size] or quiet > min(ply, FIFTY_MOVES):
        raise _wrong(f"no game has {quiet} quiet moves and reaches move {counts[1]}")
    return quiet, ply


def _placed(text: str, size: int) -> list[str]:
    rows = [re.sub("[1-8]", lambda n: "." * int(n[0]), row) for row in text.split("/")]
    if len(rows) != size or any(len(row) != size for row in rows):
        raise _wrong(f"expected {size} rows of {size} squares, got '{text}'")
    letters = [*"".join(rows)]
    if not {*letters} <= {*LETTERS, *LETTERS.upper(), "."}:
        raise _wrong(f"expected the letters {LETTERS}, small or capital, got '{text}'")
    if {"p", "P"} & {*letters[:size], *letters[-size:]}:
        raise _wrong("a pawn stands on the first or last row")
    for seat, own in (("White", LETTERS.upper()), ("Black", LETTERS)):
        count = {kind: letters.count(letter) for kind, letter in zip(LETTERS, own, strict=True)}
        if count["k"] != 1:
            raise _wrong(f"expected one king of {seat}, got {count['k']}")
        promoted = sum(max(count[kind] - FIRST_ROW[size].count(kind), 0) for kind in "nbrq")
        if count["p"] + promoted > size:
            raise _wrong(f"{seat} has more pieces than pawns can become")
    return letters


def _rights(text: str, letters: list[str], size: int) -> tuple[bool, ...]:
    if text == "-":
        return (False,) * 4
    if size != 8:
        raise _wrong(f"expected - for castling on this board, got '{text}'")
    if not re.fullmatch("K?Q?k?q?", text):
        raise _wrong(f"expected some of {CASTLING} for castling or -, got '{text}'")
    for letter, (king, rook), pieces in zip(CASTLING, CASTLING_SQUARES, ("KR", "KR", "kr", "kr"), strict=True):
        if letter in text and letters[king] + letters[rook] != pieces:
            raise _wrong(f"castling {letter} needs a king and a rook where they began")
    return tuple(letter in text for letter in CASTLING)


def _passed(text: str, letters: list[str], black: bool, size: int) -> int:
    """The square that a pawn has passed; the player to move, Black or White, may capture it there."""
    if text == "-":
        return -1
    names = square_names(size)
    if size != 8 or text not in names or text[1] != ("3" if black else "6"):
        raise _wrong(f"expected a square that a pawn has passed or -, got '{text}'")
    at, down = names.index(text), size if black else -size
    if (letters[at], letters[at + down], letters[at - down]) != (".", ".", "P" if black else "p"):
        raise _wrong(f"no pawn has just passed {text}")
    return at
