"""How people see animal shogi and shogi of pgx: pictures, text boards, reasons and lessons.

Boards are drawn as the first player sees them, whoever is to move. Men are numbered from 1 in the order of
`Kind.letters`; the first player's are k, the second player's -k.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs import pictures
from envs.game import Array, Step, View, forfeit_words
from envs.pgx_bridge.moves import DROPS, Codes, Move
from envs.pictures import Layer, Part, Picture, Place

CELL = 52  # of the pictures
INK = "#20242a"
WOOD = f'fill="#ecd3a0" stroke="{pictures.LABEL}"'
EMPTY = -1  # pgx's number for an empty square


@dataclasses.dataclass(frozen=True)
class Kind:
    """One of the games: its words, and where pgx's state keeps what people see. The fields that take a state are pure
    jnp functions, and see the game as the player to move."""

    about: str
    seats: tuple[str, str]
    letters: tuple[str, ...]  # in the text board; small for the second player
    words: tuple[str, ...]
    board: Callable[[Any], Array]  # int[n], pgx's numbers of the men on the squares
    with_board: Callable[[Any, Array], Any]
    attacked: Callable[[Any], Array]  # bool[], whether the other player attacks the king
    hands: Callable[[Any], Array]  # int[2, k], pieces to drop, the mover's first
    draw: str = ""  # why a game is drawn that has not become too long
    royal: str = "king"
    won: Callable[[Any], str] = lambda state: "checkmate"  # why a finished game is won, on the host
    lesson: tuple[Step, ...] = ()


SHOGI_MEN = ("pawn", "lance", "knight", "silver general", "bishop", "rook", "gold general", "king")
SHOGI_PROMOTED = ("promoted pawn", "promoted lance", "promoted knight", "promoted silver", "horse", "dragon")
ANIMAL_LESSON = (
    Step(
        "Black begins, at the bottom. The lion (L) moves one square in any direction, the giraffe (G) straight, the "
        "elephant (E) diagonally, the chick (C) ahead. Pieces you capture go into your hand."
    ),
    Step(
        "Black's chick captured White's, and White's elephant took it back: each has a chick in hand. To drop one, "
        "choose it beside the board, then an empty square. A chick that moves to the last rank becomes a hen (H), "
        "which moves straight and diagonally ahead.",
        ("2c2b", "1a2b"),
    ),
    Step(
        "You win when the other lion cannot escape, or when your lion reaches the last rank. A lion may "
        "not step to where it would be captured."
    ),
)
SHOGI_LESSON = (
    Step(
        "Black begins, at the bottom. Choose a piece, then a square. Rooks, bishops and kings move as in chess, gold "
        "and silver one square; pawns capture straight ahead. Files are counted from the right, ranks from the top."
    ),
    Step(
        "Black's bishop has captured White's and was promoted: pieces that move in the last three ranks may become "
        "stronger, marked +. Captured pieces go into the hand of their captor.",
        ("7g7f", "3c3d", "8h2b+"),
    ),
    Step(
        "White has taken the bishop back. Instead of moving, a player may drop a piece from the hand on an empty "
        "square: choose it beside the board. No second pawn may be dropped on a file with a pawn of your own.",
        ("7g7f", "3c3d", "8h2b+", "3a2b", "B*5e"),
    ),
    Step("A king that is attacked and cannot be saved has lost. A pawn may not be dropped for mate."),
)


def _animal_shogi() -> Kind:
    library: Any = importlib.import_module("pgx.animal_shogi")
    return Kind(
        about="Animal shogi: catch the lion, or bring yours to the last rank; captured pieces may be dropped.",
        seats=("Black", "White"),
        letters=tuple("CEGLH"),
        words=("chick", "elephant", "giraffe", "lion", "hen"),
        board=lambda state: state._board,
        with_board=lambda state, board: state.replace(_board=board),
        attacked=lambda state: library._is_checked(state),
        draw="the third time in this position",
        hands=lambda state: state._hand,
        royal="lion",
        won=lambda state: (
            "the lion is on the last rank" if (state._board.reshape(3, 4)[:, 3] == 8).any() else "the lion is caught"
        ),
        lesson=ANIMAL_LESSON,
    )


def _shogi() -> Kind:
    library: Any = importlib.import_module("pgx._src.games.shogi")
    return Kind(
        about="Shogi: attack the king so that nothing can save it; captured pieces may be dropped.",
        seats=("Black", "White"),
        letters=(*"PLNSBRGK", "+P", "+L", "+N", "+S", "+B", "+R"),
        words=(*SHOGI_MEN, *SHOGI_PROMOTED),
        board=lambda state: state._x.board,
        with_board=lambda state, board: state.replace(_x=state._x._replace(board=board)),
        attacked=lambda state: library._is_checked(library._set_cache(state._x)),
        hands=lambda state: state._x.hand,
        lesson=SHOGI_LESSON,
    )


def _signed(board: Array, kinds: int) -> Array:
    """k for the mover's men and -k for the others, from EMPTY, 0 to kinds - 1 for the mover's, then the others'."""
    return jnp.where(board < 0, 0, jnp.where(board < kinds, board + 1, kinds - 1 - board))


KINDS = {"animal_shogi": _animal_shogi, "shogi": _shogi}


@dataclasses.dataclass(frozen=True, eq=False)
class Seen:
    """A game as people see it. The functions are those of `Game`; `unpack` gives pgx's state."""

    name: str  # of the game in pgx
    max_plies: int
    codes: Codes
    unpack: Callable[[Any], Any]
    mask: Callable[[Any], Array]
    over: Callable[[Any], Array]
    player: Callable[[Any], Array]
    rewards: Callable[[Any], Array]

    @functools.cached_property
    def kind(self) -> Kind:
        return KINDS[self.name]()

    @property
    def hand(self) -> str:
        """Letters of the pieces that can be dropped."""
        return DROPS[self.name]

    def man(self, number: int) -> str:
        """A man in words, "White pawn"."""
        return f"{self.kind.seats[number < 0]} {self.kind.words[abs(number) - 1]}"

    def men(self, s: Any) -> Array:
        """int32[n], the men by square as the first player sees them, 0 for an empty square."""
        mine = _signed(self.kind.board(self.unpack(s)), len(self.kind.letters))
        return jnp.where(self.player(s) == 0, mine, -mine[self.codes.squares.turned]).astype(jnp.int32)

    def hands(self, s: Any) -> Array:
        """int[2, k], the pieces in hand, of the first player first."""
        hands = self.kind.hands(self.unpack(s))
        return jnp.where(self.player(s) == 0, hands, hands[::-1])

    def view(self) -> View:
        signs = ", ".join(map(" ".join, zip(self.kind.letters, self.kind.words, strict=True)))
        first, second = self.kind.seats
        return View(
            about=self.kind.about,
            seats=self.kind.seats,
            picture=self.picture,
            cells=self.codes.cells,
            label=self.label,
            legend=f"{signs}; capitals {first}, small letters {second}, . empty",
            cased=True,
            lesson=self.kind.lesson,
            why_illegal=self.why_illegal,
            why_over=self.why_over,
        )

    def label(self, action: int) -> str:
        """The name, and in brackets what becomes of a piece that may be promoted in several ways."""
        name, move = self.codes.name(action), self.codes.moves[action]
        if move is None or move.start < 0:
            return name
        if move.sign:
            return f"{name} (promoted)"
        return f"{name} (not promoted)" if move._replace(sign="+") in self._moves else name

    @functools.cached_property
    def _moves(self) -> set[Move | None]:
        return set(self.codes.moves)

    # Pictures

    @functools.cached_property
    def picture(self) -> Picture:
        squares, kinds = self.codes.squares, len(self.kind.letters)
        numbers = (*range(1, kinds + 1), *range(-1, -kinds - 1, -1))
        tile = functools.partial(_tile, self.kind.letters)
        men = Layer(("", *map(tile, numbers)), ("empty", *map(self.man, numbers)))

        def look(s: Any) -> tuple[Any, ...]:
            men, ended = self.men(s)[squares.grid.ravel()], self.over(s)
            standing = pictures.standing_code(ended, self.player(s), self.rewards(s))
            status = standing, self.kind.attacked(self.unpack(s)) & ~ended
            on_board = 0, jnp.where(men < 0, kinds - men, men)
            first, second = self.hands(s)
            return status, on_board, (0, np.arange(len(self.hand)), second, first)

        names = [squares.names[i] for i in squares.grid.ravel()]
        status = pictures.standing(self.kind.seats), Layer(words=("", ", in check"))
        title = self.kind.about.partition(":")[0]
        layers = Layer(pictures.square(CELL, WOOD)), men
        return self._with_hands(pictures.board(title, names, *squares.margins, CELL, status, layers, look))

    def _with_hands(self, board: Picture) -> Picture:
        """The picture with a column of the pieces in hand on its right. Above each letter is how many the second player
        has, below it how many the first has."""
        count, middle = len(self.hand), board.width + CELL * 0.85
        top = pictures.MARGIN + (len(self.codes.squares.grid) - count) * CELL / 2
        letter = lambda x: pictures.text(CELL * 0.36, x, f'font-weight="bold" fill="{INK}"', y=CELL * 0.13)
        number = lambda y: ("", *(pictures.text(CELL * 0.24, n, f'fill="{INK}"', y=CELL * y) for n in range(1, 19)))
        first, second = self.kind.seats
        layers = (
            Layer(pictures.square(CELL, f'fill="#f3e7cb" stroke="{pictures.LABEL}"')),
            Layer(tuple(map(letter, self.hand)), tuple(f"{word} in hand" for word in self.kind.words[:count])),
            Layer(number(-0.26), f", {second} {{}}"),
            Layer(number(0.42), f", {first} {{}}"),
        )
        places = (Place(name, middle, top + (i + 0.5) * CELL) for i, name in enumerate(self.hand))
        paint = f'class="label" fill="{pictures.LABEL}"'
        sign = lambda words, y: pictures.text(CELL * 0.25, words, paint, middle, y)
        frame = sign(second, top - CELL * 0.12) + sign(first, top + CELL * (count + 0.3))
        width = middle + CELL / 2 + 2 * pictures.MARGIN
        return dataclasses.replace(
            board, width=width, frame=board.frame + frame, parts=(*board.parts, Part(tuple(places), layers))
        )

    # Text

    def show(self, s: Any) -> str:
        """Text picture: the first player's men in capitals, . empty, with the pieces in hand and the status below."""
        codes, squares, letters = self.picture.compiled(s), self.codes.squares, self.kind.letters
        signs = (".", *letters, *(letter.lower() for letter in letters))
        wide = max(map(len, signs))
        line = lambda words: " ".join(f"{word:>{wide}}" for word in words)
        rows = codes[1][1].reshape(squares.grid.shape)
        columns, ranks = squares.margins
        board = [f"{rank}  {line(signs[code] for code in row)}" for rank, row in zip(ranks, rows, strict=True)]
        held = self._in_hand(codes[2][:1:-1])
        return "\n".join([*board, f"   {line(columns)}", held, pictures.status(self.picture, codes)])

    def _in_hand(self, counts: np.ndarray) -> str:
        words = []
        for seat, row in zip(self.kind.seats, counts, strict=True):
            held = " ".join(f"{letter}{n}" for letter, n in zip(self.hand, row, strict=True) if n)
            words.append(f"{seat} {held or 'nothing'}")
        return f"in hand: {', '.join(words)}"

    # Reasons

    def why_illegal(self, s: Any, action: int) -> str:
        move, player = self.codes.moves[action], int(self.player(s))
        if move is None:
            return ""
        men = np.asarray(self.men(s)).tolist()
        drop, mine, end = move.start < 0, (1, -1)[player], self.codes.squares.names[move.end]
        stays = self._why_no_drop(s, move) if drop else self._why_still(s, move, men, mine)
        if stays:
            return stays
        if men[move.end] and (drop or men[move.end] * mine > 0):
            return f"{end} holds a {self.man(men[move.end])}"
        if self._exposed(s, move if player == 0 else self.codes.squares.turn(move)):
            return f"the {self.kind.royal} could be captured"
        if drop:
            return f"a {self.kind.words[self.hand.index(move.sign)]} cannot be dropped on {end}"
        way = f"go from {self.codes.squares.names[move.start]} to {end}{' and be promoted' if move.sign else ''}"
        return f"the {self.kind.words[abs(men[move.start]) - 1]} cannot {way}"

    def _why_no_drop(self, s: Any, move: Move) -> str:
        """Why no piece of this kind can be dropped, wherever it is; "" if one can."""
        number, player = self.hand.index(move.sign), int(self.player(s))
        missing = not self.hands(s)[player, number]
        return f"{self.kind.seats[player]} has no {self.kind.words[number]} in hand" if missing else ""

    def _why_still(self, s: Any, move: Move, men: list[int], mine: int) -> str:
        """Why no piece moves from where a move starts, wherever it is to go; "" if one does."""
        start, man = self.codes.squares.names[move.start], men[move.start]
        if not man:
            return f"{start} is empty"
        if man * mine < 0:
            return f"the {self.man(man)} is not yours"
        legal = (self.codes.moves[action] for action in np.flatnonzero(self.mask(s)))
        if any(one.start == move.start for one in legal if one):
            return ""
        piece = f"the {self.kind.words[abs(man) - 1]} on {start}"
        check = self._attacked(self.unpack(s))
        return f"the {self.kind.royal} is in check, and {piece} cannot help" if check else f"{piece} cannot move"

    def _exposed(self, s: Any, move: Move) -> bool:
        """Whether the king is attacked after a move in the mover's frame, be it possible for the piece or not."""
        state = self.unpack(s)
        board = self.kind.board(state)
        piece = self.hand.index(move.sign) if move.start < 0 else board[move.start]
        if move.start >= 0:
            board = board.at[move.start].set(EMPTY)
        return bool(self._attacked(self.kind.with_board(state, board.at[move.end].set(piece))))

    @functools.cached_property
    def _attacked(self) -> Callable[[Any], Array]:
        return jax.jit(self.kind.attacked)

    def why_over(self, s: Any) -> str:
        if s.forfeit >= 0 or not self.over(s):
            return forfeit_words(self.kind.seats, s.forfeit)
        if self.rewards(s).any():
            return self.kind.won(self.unpack(s))
        long = self.unpack(s)._step_count >= self.max_plies
        return f"the game ends after {self.max_plies} moves" if long else self.kind.draw


def _tile(letters: Sequence[str], number: int) -> str:
    """A piece of shogi, which points at the opponent; dark for the first player, promoted in red."""
    letter, up = letters[abs(number) - 1], 1 if number > 0 else -1
    fill, ink, red = ("#3a4048", "#f7f3ea", "#ffb3a7") if number > 0 else ("#fbfaf5", INK, "#a3211a")
    corners = ((0, -0.42), (0.28, -0.3), (0.36, 0.4), (-0.36, 0.4), (-0.28, -0.3))
    points = " ".join(f"{x * CELL:g},{y * up * CELL:g}" for x, y in corners)
    paint = f'font-weight="bold" fill="{red if letter[0] in "+H" else ink}"'
    tile = f'<polygon points="{points}" fill="{fill}" stroke="{INK}"/>'
    return tile + pictures.text(CELL * 0.36, letter, paint, y=CELL * (0.13 + 0.03 * up))
