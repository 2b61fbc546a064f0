"""How people see chess and Gardner's chess: pictures, text boards, reasons and lessons."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs import pictures
from envs.chess.moves import bits, only
from envs.chess.rules import Rules
from envs.game import Array, Step, View, forfeit_words
from envs.pictures import Layer, Picture

CELL = 52  # of the picture
SEATS = ("White", "Black")
LETTERS = "PNBRQK"
KINDS = ("pawn", "knight", "bishop", "rook", "queen", "king")
PIECES = tuple(f"{seat} {word}" for seat in SEATS for word in KINDS)
PROMOTED = {"n": "knight", "b": "bishop", "r": "rook"}
ABOUT = {
    8: "Chess: attack the king so that nothing can save it.",
    5: "Gardner's chess: chess on five by five squares, without castling and double steps of pawns.",
}
LESSONS = {
    8: (
        Step(
            "White begins. Choose a piece, then a square. Rooks move straight, bishops diagonally, queens both ways, "
            "kings one square. Knights jump two squares and one aside. Pawns move one square ahead, two from where "
            "they start, and capture one square diagonally ahead."
        ),
        Step(
            "White has castled: the king went two squares towards the rook, which jumped over it. Neither may have "
            "moved before, nothing may stand between them, and no square on the king's way may be attacked.",
            ("e2e4", "e7e5", "g1f3", "b8c6", "f1c4", "g8f6", "e1g1"),
        ),
        Step(
            "A pawn that has just advanced two squares is captured as if it had advanced one: e5d6 took the pawn on "
            "d5. A pawn that reaches the last rank becomes a queen, a rook, a bishop or a knight.",
            ("e2e4", "a7a6", "e4e5", "d7d5", "e5d6"),
        ),
        Step(
            "Checkmate: the queen attacks White's king, and no move saves it. Black has won. The game is a draw if a "
            "player has no legal move but is not in check, if a position occurs three times, or after fifty moves "
            "without a capture or a pawn move.",
            ("f2f3", "e7e5", "g2g4", "d8h4"),
        ),
    ),
    5: (
        Step(
            "Chess on 25 squares. White begins. Choose a piece, then a square. The pieces move as in chess; pawns "
            "advance one square at a time, and there is no castling."
        ),
        Step(
            "White's pawn has captured diagonally. A pawn on the last rank becomes a queen, a rook, a bishop or a "
            "knight. A player whose king is attacked and cannot be saved loses. Without a legal move and not in "
            "check, the game is a draw.",
            ("b2b3", "a4b3", "a2b3"),
        ),
    ),
}


class ChessView:
    """The view of one size. Boards are drawn as White sees them, whoever is to move."""

    def __init__(self, rules: Rules):
        self.rules = rules

    def view(self) -> View:
        letters = ", ".join(map(" ".join, zip(LETTERS, KINDS, strict=True)))
        return View(
            about=ABOUT[self.rules.size],
            seats=SEATS,
            picture=self.picture,
            cells=self.cells,
            label=self.label,
            legend=f"{letters}; capitals White, small letters Black, . empty",
            cased=True,
            lesson=LESSONS[self.rules.size],
            why_illegal=self.why_illegal,
            why_over=self.why_over,
        )

    def cells(self, action: int) -> tuple[str, ...]:
        way = self.rules.moves_by_code[int(action)]
        return tuple(self.rules.names[square] for square in way[:2]) if way else ()

    def label(self, action: int) -> str:
        """The name, and in brackets what becomes of a pawn that may become several pieces."""
        name, way = self.rules.action_name(action), self.rules.moves_by_code[int(action)]
        if way is None:
            return name
        becomes = PROMOTED.get(way[2]) or ("queen" if (*way[:2], "r") in self._promotions else "")
        return f"{name} ({becomes})" if becomes else name

    @functools.cached_property
    def _promotions(self) -> set[tuple[int, int, str]]:
        return {way for way in self.rules.moves_by_code if way and way[2]}

    # Pictures

    def pieces(self, s: Any) -> Array:
        """int32[n * n]: 0 for an empty square, 1 to 6 for White's pieces, 7 to 12 for Black's."""
        kinds, white = (self.rules.board.unpack(bits(x)) for x in (s.pieces, s.white))
        number = (kinds * np.arange(1, 7)).sum(1)
        return jnp.where(white | (number == 0), number, number + 6).astype(jnp.int32)

    @functools.cached_property
    def picture(self) -> Picture:
        rules = self.rules
        ground = Layer(tuple(pictures.square(CELL, paint) for paint in ('fill="#e9dcc0"', 'fill="#b89b72"')))
        pieces = Layer(("", *map(_piece, range(12))), ("empty", *PIECES))
        parity = np.indices((rules.size, rules.size)).sum(0).ravel() % 2

        def look(s: Any) -> tuple[Any, ...]:
            ended = rules.over(s)
            standing = pictures.standing_code(ended, s.to_move, rules.rewards(s))
            return (standing, rules.in_check(s) & ~ended), (parity, self.pieces(s))

        status = pictures.standing(SEATS), Layer(words=("", ", in check"))
        columns, ranks = "abcdefgh"[: rules.size], "87654321"[-rules.size :]
        title = ABOUT[rules.size].partition(":")[0]
        return pictures.board(title, list(rules.names), columns, ranks, CELL, status, (ground, pieces), look)

    def show(self, s: Any) -> str:
        """Text picture: White's pieces in capitals, . empty, with the status below."""
        letters, size = self.rules.letters(s), self.rules.size
        rows = [f"{size - r}  {' '.join(letters[r * size : (r + 1) * size])}" for r in range(size)]
        return "\n".join(
            [*rows, f"   {' '.join('abcdefgh'[:size])}", pictures.status(self.picture, self.picture.compiled(s))]
        )

    # Reasons

    def why_illegal(self, s: Any, action: int) -> str:
        way = self.rules.moves_by_code[int(action)]
        if way is None:
            return ""
        start, end, sign = way
        names, pieces = self.rules.names, np.asarray(self.pieces(s)).tolist()
        mine = lambda square: pieces[square] > 0 and (pieces[square] > 6) == (s.to_move == 1)
        if not pieces[start]:
            return f"{names[start]} is empty"
        if not mine(start):
            return f"the {PIECES[pieces[start] - 1]} is not yours"
        word = KINDS[(pieces[start] - 1) % 6]
        if not any(other and other[0] == start for other in self._legal(s)):
            piece = f"the {word} on {names[start]}"
            check = bool(self._in_check(s))
            return f"the king is in check, and {piece} cannot help" if check else f"{piece} cannot move"
        if mine(end):
            return f"{names[end]} holds a {PIECES[pieces[end] - 1]}"
        if self._exposed(s, start, end):
            return "the king could be captured"
        return f"the {word} cannot go from {names[start]} to {names[end]}{' and be promoted' if sign else ''}"

    def _legal(self, s: Any) -> list[tuple[int, int, str] | None]:
        return [self.rules.moves_by_code[action] for action in np.flatnonzero(self._mask(s))]

    @functools.cached_property
    def _mask(self) -> Callable[[Any], Array]:
        return jax.jit(self.rules.mask)

    @functools.cached_property
    def _in_check(self) -> Callable[[Any], Array]:
        return jax.jit(self.rules.in_check)

    def _exposed(self, s: Any, start: int, end: int) -> bool:
        """Whether the king could be captured after a move, be it possible for the piece or not."""
        at, to = (self.rules.board.of([square]) for square in (start, end))
        pieces, kept = bits(s.pieces), ~(at | to)
        pieces, moving = pieces & kept.each, (pieces & at.each).some
        white = bits(s.white) & kept | only(s.to_move == 0, to)
        return bool(self._in_check(s._replace(pieces=(pieces | only(moving, to.each)).array, white=white.array)))

    def why_over(self, s: Any) -> str:
        over, rewards = self._result(s)
        if s.forfeit >= 0 or not over:
            return forfeit_words(SEATS, s.forfeit)
        return "checkmate" if rewards.any() else self.rules.why_drawn(s)

    @functools.cached_property
    def _result(self) -> Callable[[Any], tuple[Array, Array]]:
        return jax.jit(lambda s: (self.rules.over(s), self.rules.rewards(s)))


def _piece(number: int) -> str:
    white = number < 6
    fill, stroke = ("#fbfaf5", "#20242a") if white else ("#20242a", "#fbfaf5")
    paint = f'fill="{fill}" stroke="{stroke}" stroke-width="{1.6 if white else 0.8}" paint-order="stroke"'
    return pictures.text(CELL * 0.8, f"{'♟♞♝♜♛♚'[number % 6]}\ufe0e", paint, y=CELL * 0.29)
