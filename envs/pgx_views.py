"""How people see chess, Gardner's chess, animal shogi and shogi of pgx: pictures, text boards, reasons and lessons.

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
from envs.pgx_moves import DROPS, Codes, Move
from envs.pictures import Layer, Part, Picture, Place

CELL = 52  # of the pictures
INK = "#20242a"
CHEQUERED = 'fill="#e9dcc0"', 'fill="#b89b72"'
WOOD = (f'fill="#ecd3a0" stroke="{pictures.LABEL}"',) * 2


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
    men: Callable[[Array], Array]  # those numbers as k for the mover's men and -k for the others
    attacked: Callable[[Any], Array]  # bool[], whether the other player attacks the king
    draw: Callable[[Any], str]  # why a game is drawn that has not become too long, on the host
    empty: int = 0  # pgx's number for an empty square
    hands: Callable[[Any], Array] | None = None  # int[2, k], pieces to drop, the mover's first
    royal: str = "king"
    won: Callable[[Any], str] = lambda state: "checkmate"  # why a finished game is won, on the host
    lesson: tuple[Step, ...] = ()


CHESS_MEN = ("pawn", "knight", "bishop", "rook", "queen", "king")
SHOGI_MEN = ("pawn", "lance", "knight", "silver general", "bishop", "rook", "gold general", "king")
SHOGI_PROMOTED = ("promoted pawn", "promoted lance", "promoted knight", "promoted silver", "horse", "dragon")
CHESS_LESSON = (
    Step(
        "White begins. Choose a piece, then a square. Rooks move straight, bishops diagonally, queens both ways, kings "
        "one square. Knights jump two squares and one aside. Pawns move one square ahead, two from where they start, "
        "and capture one square diagonally ahead."
    ),
    Step(
        "White has castled: the king went two squares towards the rook, which jumped over it. Neither may have moved "
        "before, nothing may stand between them, and no square on the king's way may be attacked.",
        ("e2e4", "e7e5", "g1f3", "b8c6", "f1c4", "g8f6", "e1g1"),
    ),
    Step(
        "A pawn that has just advanced two squares is captured as if it had advanced one: e5d6 took the pawn on d5. A "
        "pawn that reaches the last rank becomes a queen, a rook, a bishop or a knight.",
        ("e2e4", "a7a6", "e4e5", "d7d5", "e5d6"),
    ),
    Step(
        "Checkmate: the queen attacks White's king, and no move saves it. Black has won. The game is a draw if a "
        "player has no legal move but is not in check, if a position occurs three times, or after fifty moves without "
        "a capture or a pawn move.",
        ("f2f3", "e7e5", "g2g4", "d8h4"),
    ),
)
GARDNER_LESSON = (
    Step(
        "Chess on 25 squares. White begins. Choose a piece, then a square. The pieces move as in chess; pawns advance "
        "one square at a time, and there is no castling."
    ),
    Step(
        "White's pawn has captured diagonally. A pawn on the last rank becomes a queen, a rook, a bishop or a knight. "
        "A player whose king is attacked and cannot be saved loses. Without a legal move and not in check, the game is "
        "a draw.",
        ("b2b3", "a4b3", "a2b3"),
    ),
)
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


def _chess_draw(few: Array, quiet: Array, hashes: Array) -> str:
    """Why a game of chess is drawn: too few pieces, plies without progress, or positions met, the newest first."""
    if few:
        return "too few pieces for checkmate"
    if quiet >= 100:
        return "fifty moves without a capture or a pawn move"
    again = (hashes == hashes[0]).all(axis=1).sum() > 2
    return "the third time in this position" if again else "stalemate"


def _chess() -> Kind:
    library: Any = importlib.import_module("pgx._src.games.chess")
    return Kind(
        about="Chess: attack the king so that nothing can save it.",
        seats=("White", "Black"),
        letters=tuple("PNBRQK"),
        words=CHESS_MEN,
        board=lambda state: state._x.board,
        with_board=lambda state, board: state.replace(_x=state._x._replace(board=board)),
        men=lambda board: board,
        attacked=lambda state: library._is_checked(state._x),
        draw=lambda state: _chess_draw(
            library.has_insufficient_pieces(state._x), state._x.halfmove_count, state._x.hash_history
        ),
        lesson=CHESS_LESSON,
    )


def _gardner_chess() -> Kind:
    library: Any = importlib.import_module("pgx.gardner_chess")
    return Kind(
        about="Gardner's chess: chess on five by five squares, without castling and double steps of pawns.",
        seats=("White", "Black"),
        letters=tuple("PNBRQK"),
        words=CHESS_MEN,
        board=lambda state: state._board,
        with_board=lambda state, board: state.replace(_board=board),
        men=lambda board: board,
        attacked=lambda state: library._is_checking(library._flip(state)),
        draw=lambda state: _chess_draw(
            library.has_insufficient_pieces(state), state._halfmove_count, state._hash_history
        ),
        lesson=GARDNER_LESSON,
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
        men=lambda board: _signed(board, 5),
        attacked=lambda state: library._is_checked(state),
        draw=lambda state: "the third time in this position",
        empty=-1,
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
        men=lambda board: _signed(board, 14),
        attacked=lambda state: library._is_checked(library._set_cache(state._x)),
        draw=lambda state: "",
        empty=-1,
        hands=lambda state: state._x.hand,
        lesson=SHOGI_LESSON,
    )


def _signed(board: Array, kinds: int) -> Array:
    """Men as `Kind.men` from -1 for an empty square, 0 to kinds - 1 for the mover's, then the others'."""
    return jnp.where(board < 0, 0, jnp.where(board < kinds, board + 1, kinds - 1 - board))


KINDS = {"animal_shogi": _animal_shogi, "chess": _chess, "gardner_chess": _gardner_chess, "shogi": _shogi}


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
        return DROPS.get(self.name, "")

    def man(self, number: int) -> str:
        """A man in words, "White pawn"."""
        return f"{self.kind.seats[number < 0]} {self.kind.words[abs(number) - 1]}"

    def men(self, s: Any) -> Array:
        """int32[n], the men by square as the first player sees them, 0 for an empty square."""
        mine = self.kind.men(self.kind.board(self.unpack(s)))
        return jnp.where(self.player(s) == 0, mine, -mine[self.codes.squares.turned]).astype(jnp.int32)

    def hands(self, s: Any) -> Array:
        """int[2, k], the pieces in hand, of the first player first."""
        assert self.kind.hands is not None
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
        becomes = {"r": "rook", "b": "bishop", "n": "knight", "+": "promoted"}.get(move.sign)
        if not becomes and move._replace(sign="+") in self._moves:
            becomes = "not promoted"
        if not becomes and move._replace(sign="r") in self._moves:
            becomes = "queen"
        return f"{name} ({becomes})" if becomes else name

    @functools.cached_property
    def _moves(self) -> set[Move | None]:
        return set(self.codes.moves)

    # Pictures

    @functools.cached_property
    def picture(self) -> Picture:
        squares, shogi = self.codes.squares, bool(self.hand)
        kinds = len(self.kind.letters)
        numbers = (*range(1, kinds + 1), *range(-1, -kinds - 1, -1))
        shape = functools.partial(_tile, self.kind.letters) if shogi else _chessman
        ground = Layer(tuple(pictures.square(CELL, paint) for paint in (WOOD if shogi else CHEQUERED)))
        men = Layer(("", *map(shape, numbers)), ("empty", *map(self.man, numbers)))
        parity = np.indices(squares.grid.shape).sum(0) % 2

        def look(s: Any) -> tuple[Any, ...]:
            men, ended = self.men(s)[squares.grid.ravel()], self.over(s)
            standing = pictures.standing_code(ended, self.player(s), self.rewards(s))
            status = standing, self.kind.attacked(self.unpack(s)) & ~ended
            on_board = parity, jnp.where(men < 0, kinds - men, men)
            if not shogi:
                return status, on_board
            first, second = self.hands(s)
            return status, on_board, (0, np.arange(len(self.hand)), second, first)

        names = [squares.names[i] for i in squares.grid.ravel()]
        status = pictures.standing(self.kind.seats), Layer(words=("", ", in check"))
        title = self.kind.about.partition(":")[0]
        board = pictures.board(title, names, *squares.margins, CELL, status, (ground, men), look)
        return self._with_hands(board) if shogi else board

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
        held = [self._in_hand(codes[2][:1:-1])] if self.hand else []
        return "\n".join([*board, f"   {line(columns)}", *held, pictures.status(self.picture, codes)])

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
            board = board.at[move.start].set(self.kind.empty)
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
        return f"the game ends after {self.max_plies} moves" if long else self.kind.draw(self.unpack(s))


def _chessman(number: int) -> str:
    fill, stroke = ("#fbfaf5", "#20242a") if number > 0 else ("#20242a", "#fbfaf5")
    paint = f'fill="{fill}" stroke="{stroke}" stroke-width="{1.6 if number > 0 else 0.8}" paint-order="stroke"'
    return pictures.text(CELL * 0.8, f"{'♟♞♝♜♛♚'[abs(number) - 1]}\ufe0e", paint, y=CELL * 0.29)


def _tile(letters: Sequence[str], number: int) -> str:
    """A piece of shogi, which points at the opponent; dark for the first player, promoted in red."""
    letter, up = letters[abs(number) - 1], 1 if number > 0 else -1
    fill, ink, red = ("#3a4048", "#f7f3ea", "#ffb3a7") if number > 0 else ("#fbfaf5", INK, "#a3211a")
    corners = ((0, -0.42), (0.28, -0.3), (0.36, 0.4), (-0.36, 0.4), (-0.28, -0.3))
    points = " ".join(f"{x * CELL:g},{y * up * CELL:g}" for x, y in corners)
    paint = f'font-weight="bold" fill="{red if letter[0] in "+H" else ink}"'
    tile = f'<polygon points="{points}" fill="{fill}" stroke="{INK}"/>'
    return tile + pictures.text(CELL * 0.36, letter, paint, y=CELL * (0.13 + 0.03 * up))
