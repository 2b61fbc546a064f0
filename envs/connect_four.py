"""Connect Four: stones drop down their column; four in a row in any direction wins; a full board is a draw.

An action is a column, 0 on the left; names count columns from 1. The rules use bitboards: a column takes `rows + 1`
bits from the bottom up. The last bit stays empty, so no line runs from one column into the next. Each word of 32 bits
holds as many whole columns as fit. On 6x7, with the spare bits above the board:

     6 13 20 27     6 13 20
     5 12 19 26     5 12 19
     :  :  :  :     :  :  :
     0  7 14 21     0  7 14
       word 0        word 1
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from envs import pictures, records
from envs.game import Array, Game, Step, Symmetry, View, forfeit_rewards, forfeit_words, on_usual_board
from envs.lines import in_a_row, in_rows
from envs.pictures import PAPER, Layer, Part, Picture, Place

LARGEST = 26  # rows and columns
CELL = 56  # of the picture
SEATS = ("Red", "Yellow")
MARKED = ("Red (X)", "Yellow (O)")  # in text


class State(NamedTuple):
    mine: Array  # uint32[W], stones of the player to move
    others: Array  # uint32[W], stones of the other player
    to_move: Array  # int8[], player to move: 0 first, 1 second
    forfeit: Array  # int8[], player who made an illegal move, -1 for none


@dataclasses.dataclass(frozen=True)
class Rules:
    """The rules of one size, as pure functions on one position."""

    rows: int = 6
    cols: int = 7
    connect: int = 4

    @property
    def high(self) -> int:
        """Bits of a column, including the spare bit."""
        return self.rows + 1

    @property
    def per_word(self) -> int:
        """Columns in a word."""
        return 32 // self.high

    @property
    def words(self) -> int:
        return -(-self.cols // self.per_word)

    def init(self, key: Array | None = None) -> State:
        del key  # there is one start position
        empty = jnp.zeros(self.words, jnp.uint32)
        return State(empty, empty, jnp.int8(0), jnp.int8(-1))

    def cells(self, stones: Array) -> Array:
        """bool[R, C], top row first, from stones uint32[W]."""
        places = np.arange(self.per_word)[:, None] * self.high + np.arange(self.rows)
        bits = stones[:, None, None] >> jnp.asarray(places, jnp.uint32) & 1
        return bits.reshape(-1, self.rows)[: self.cols].T[::-1] == 1

    def stones(self, cells: Array) -> Array:
        """uint32[W] from bool[R, C]; inverse of `cells`."""
        bits = jnp.where(cells[::-1].T, jnp.uint32(1) << jnp.arange(self.rows, dtype=jnp.uint32), jnp.uint32(0))
        columns = jnp.pad(bits.sum(-1, dtype=jnp.uint32), (0, self.words * self.per_word - self.cols))
        places = jnp.arange(self.per_word, dtype=jnp.uint32) * self.high
        return (columns.reshape(self.words, -1) << places).sum(-1, dtype=jnp.uint32)

    def board(self, s: State) -> Array:
        """int8[R, C], top row first: 1 first player, -1 second, 0 empty."""
        mine = jnp.where(s.to_move == 0, 1, -1).astype(jnp.int8)
        return self.cells(s.mine) * mine - self.cells(s.others) * mine

    @property
    def _directions(self) -> tuple[int, ...]:
        """By how many bits the next cell of a row lies higher: upright, falling, across, rising."""
        return 1, self.high - 1, self.high, self.high + 1

    def _moved(self, stones: list[Array], distance: int) -> list[Array]:
        """The words as one long number, moved up by `distance` bits, or down if negative; bits above the columns are
        garbage. Words stay apart: together they would fill few of the places that a TPU computes with."""
        span = self.high * self.per_word  # bits of a word in use
        skip, rest = divmod(distance, span)
        word = lambda i: stones[i] if 0 <= i < self.words else jnp.uint32(0)
        return [word(i - skip) << rest | word(i - skip - 1) >> (span - rest) for i in range(self.words)]

    def won(self, s: State) -> Array:
        """bool[]: the player who moved last has `connect` stones in a row."""
        rows = []
        for direction in self._directions:
            run, length = list(s.others), 1  # starts of rows of `length` stones
            while length < self.connect:
                more = min(length, self.connect - length)
                run = [a & b for a, b in zip(run, self._moved(run, -more * direction), strict=True)]
                length += more
            rows += run
        return functools.reduce(jnp.bitwise_or, rows) != 0

    def _completing(self, stones: Array) -> Array:
        """uint32[W]: cells that are in a row of `connect` once they have a stone; spare bits are garbage."""
        return jnp.stack([self._completing_in(word, list(stones)) for word in range(self.words)])

    def _completing_in(self, word: int, stones: list[Array]) -> Array:
        """uint32[]: one word of `_completing`."""
        rows = [jnp.uint32(0)]
        for direction in self._directions:
            moved = lambda distance, d=direction: self._moved(stones, distance * d)[word]
            ahead, behind = ([moved(sign * i) for i in range(1, self.connect)] for sign in (-1, 1))
            ahead, behind = (list(itertools.accumulate(found, operator.and_)) for found in (ahead, behind))
            for i in range(self.connect):
                rest = self.connect - 1 - i  # stones behind the cell, if i are ahead
                rows.append(functools.reduce(operator.and_, ahead[i - 1 : i] + behind[rest - 1 : rest]))
        return functools.reduce(operator.or_, rows)

    def _landing(self, filled: Array) -> Array:
        """uint32[W]: where a stone comes to rest in each column; the spare bit of a full one."""
        bottoms = np.uint32(sum(1 << i * self.high for i in range(self.per_word)))
        return (filled << 1 | bottoms) & ~filled

    def _open(self, s: State) -> Array:
        """bool[C]: columns that are not full."""
        tops = jnp.arange(self.per_word, dtype=jnp.uint32) * self.high + (self.rows - 1)
        return (((s.mine | s.others)[:, None] >> tops & 1) == 0).ravel()[: self.cols]

    def over(self, s: State) -> Array:
        return (s.forfeit >= 0) | self.won(s) | ~self._open(s).any()

    def mask(self, s: State) -> Array:
        """bool[C], columns that are not full in an unfinished game."""
        return self._open(s) & (s.forfeit < 0) & ~self.won(s)

    def player(self, s: State) -> Array:
        return s.to_move.astype(jnp.int32)

    def move(self, s: State, action: Array | int) -> State:
        """Position after a legal action."""
        column = jnp.asarray(action, jnp.int32) - np.arange(self.words, dtype=np.int32) * self.per_word
        inside = (column >= 0) & (column < self.per_word)
        place = jnp.where(inside, column, 0).astype(jnp.uint32) * self.high
        cells = jnp.where(inside, jnp.uint32(2**self.rows - 1) << place, jnp.uint32(0))
        stone = self._landing(s.mine | s.others) & cells
        return State(s.others, s.mine | stone, 1 - s.to_move, s.forfeit)

    def step(self, s: State, action: Array | int) -> State:
        """Position after any action: an illegal action forfeits, and a finished game does not change."""
        allowed = self.mask(s)
        legal = (allowed & (jnp.arange(self.cols) == action)).any()
        forfeit = jnp.where(allowed.any() & ~legal, s.to_move, s.forfeit)
        moved = self.move(s, jnp.where(legal, action, 0))
        return State(*(jnp.where(legal, new, old) for new, old in zip(moved, s, strict=True)))._replace(forfeit=forfeit)

    def rewards(self, s: State) -> Array:
        """float32[2]"""
        loser = jnp.where(s.forfeit >= 0, s.forfeit, s.to_move)
        return jnp.where((s.forfeit >= 0) | self.won(s), forfeit_rewards(loser, 2), 0.0)

    def observe(self, s: State) -> Array:
        """float32[R, C, 5], for the mover: own stones, the opponent's stones, the empty cells where one more stone
        would win for the mover, likewise for the opponent, and the cells where a stone would land."""
        filled = s.mine | s.others
        wins = (self._completing(stones) & ~filled for stones in (s.mine, s.others))
        planes = [s.mine, s.others, *wins, self._landing(filled)]
        return jnp.stack([self.cells(bits) for bits in planes], axis=-1).astype(jnp.float32)

    def symmetries(self) -> tuple[Symmetry, ...]:
        """The board and its mirror image."""
        codes = np.arange(self.cols, dtype=np.int32)
        flip = lambda stones: self.stones(self.cells(stones)[:, ::-1])
        return (
            Symmetry("identity", codes, lambda x: x, lambda s: s),
            Symmetry(
                "columns",
                codes[::-1].copy(),
                lambda x: x[:, ::-1],
                lambda s: s._replace(mine=flip(s.mine), others=flip(s.others)),
            ),
        )

    # For people

    def parse_action(self, text: str) -> int:
        names = [str(c + 1) for c in range(self.cols)]
        if text.strip() not in names:
            raise ValueError(f"no column '{text}': expected a number from 1 to {self.cols}")
        return names.index(text.strip())

    def show(self, s: State) -> str:
        """Text picture: X first player, O second, . empty, with the player to move or the result below."""
        width = len(str(self.cols))
        line = lambda words: " ".join(f"{word:>{width}}" for word in words)
        cells = np.array(["O", ".", "X"])[np.asarray(self.board(s)) + 1]
        status = pictures.standing_words(MARKED, self.over(s), s.to_move, self.rewards(s))
        return "\n".join([*(line(row) for row in cells), line(range(1, self.cols + 1)), status])

    def lesson(self) -> tuple[Step, ...]:
        row = in_a_row(self.connect)
        board = f"connect_four:rows=6,cols={max(7, self.connect)},connect={self.connect}"
        lying = [str(c + 1) for c in range(self.connect)]
        return (
            Step(
                "Red begins. The players take turns. A stone falls to the lowest free place of its column.",
                ("4",),
                board,
            ),
            Step(
                f"{row.capitalize()} of your colour win: across, upright or diagonally.",
                (*(name for c in lying[:-1] for name in (c, c)), lying[-1]),
                board,
            ),
            Step(
                "A full column takes no more stones. If the whole board is full without such a row, it is a draw.",
                ("4",) * 6,
                board,
            ),
        )

    def why_illegal(self, s: State, action: int) -> str:
        return "" if self._open(s)[action] else f"column {action + 1} is full"

    def why_over(self, s: State) -> str:
        if s.forfeit >= 0 or not self.over(s):
            return forfeit_words(SEATS, s.forfeit)
        row = in_a_row(self.connect)
        return row if self.won(s) else f"nobody has {row}, and the board is full"

    def picture(self) -> Picture:
        """A column is a cell around its holes; winning rows are ringed."""
        width, height = self.cols * CELL, self.rows * CELL
        frame = f'<rect x="4" y="4" width="{width + 8}" height="{height + 8}" rx="{CELL / 5}" fill="#2f5d9b"/>'
        frame += pictures.labels(CELL * 0.27, range(1, self.cols + 1), 8 + CELL / 2, height + 33, CELL)
        names = [f"column {c + 1}" for c in range(self.cols)]
        columns = tuple(Place(name, 8 + (c + 0.5) * CELL, 8 + height / 2) for c, name in enumerate(names))
        rows = [(self.rows - r, (r + 0.5) * CELL - height / 2) for r in range(self.rows)]
        holes = tuple(Place(f"{name}, row {row}", 0, y, inside=name) for row, y in rows for name in names)
        box = Layer(pictures.rect(CELL, height, 'fill-opacity="0"'), f"{{}} of {self.rows} stones")
        hole = lambda fill, ring: pictures.disc(CELL * 0.4, f'fill="{fill}" stroke={ring}')
        rings = '"#264d82" stroke-width="2"', '"#20242a" stroke-width="4"'
        shapes = tuple(hole(fill, ring) for ring in rings for fill in (PAPER, "#d0473c", "#f0c343"))
        layers = Layer(shapes, ("empty", *SEATS) * 2), pictures.legal(CELL / 9)

        def look(s: State) -> tuple[tuple[Any, ...], ...]:
            board, standing = self.board(s), pictures.standing_code(self.over(s), s.to_move, self.rewards(s))
            filled = (board != 0).sum(0)
            lowest = (np.arange(self.rows)[::-1, None] == filled) & self.mask(s)
            return (standing,), (filled,), (board % 3 + 3 * in_rows(board, self.connect), lowest)

        size, parts = (width + 16, height + 16 + CELL / 2), (Part(columns, (box,)), Part(holes, layers))
        return Picture("Connect Four", *size, frame, (pictures.standing(SEATS),), parts, look)

    # Records

    def to_record(self, s: State) -> dict[str, Any]:
        """JSON-ready record: `board` cell by cell from the top left (1 first player, -1 second), `to_move` 1 or -1.
        `forfeit` is present only after a forfeit."""
        board = np.asarray(self.board(s)).ravel().tolist()
        record = {"board": board, "to_move": 1 - 2 * int(s.to_move)}
        return records.with_forfeit(record, s.forfeit)

    def from_record(self, record: dict[str, Any]) -> State:
        """Position of a record with `board` and `to_move`, or with `moves` instead: columns from 0, in order.

        Raises:
            ValueError: a field is missing, unknown or out of range, or the position cannot occur; the message says
                which.
        """
        records.fields("connect_four", record, ("board", "to_move"), ("moves",))
        if "moves" in record:
            board = self._played(record["moves"])
            turn = 1 - 2 * (len(record["moves"]) % 2)
        else:
            turn = records.turn("connect_four", record)
            board = self._placed(record["board"], turn)
        mover, over = (1 - turn) // 2, lambda: in_rows(board, self.connect).any() or board.all()
        forfeit = records.forfeit("connect_four", record, mover, over)
        mine, others = (self.stones(jnp.asarray(board == colour)) for colour in (turn, -turn))
        return State(mine, others, jnp.int8(mover), jnp.int8(forfeit))

    def _played(self, moves: Any) -> np.ndarray:
        """The board after these columns; ValueError if they cannot be played."""
        if not isinstance(moves, list) or not all(records.is_whole(c, 0, self.cols - 1) for c in moves):
            raise ValueError(f"connect_four record: moves: expected columns from 0 to {self.cols - 1}")
        board = np.zeros((self.rows, self.cols), int)
        for ply, c in enumerate(moves):
            if in_rows(board, self.connect).any():
                raise ValueError(f"connect_four record: the game is over after {ply} of {len(moves)} moves")
            room = int((board[:, c] == 0).sum())
            if not room:
                raise ValueError(f"connect_four record: move {ply + 1} is into column {c}, which is full")
            board[room - 1, c] = 1 - 2 * (ply % 2)
        return board

    def _placed(self, cells: Any, turn: int) -> np.ndarray:
        """The board of these cells; ValueError if no game leads to it."""
        cells = records.cells("connect_four", "board", cells, self.rows * self.cols)
        board = np.array(cells).reshape(self.rows, self.cols)
        if board.sum() != (0 if turn == 1 else 1):
            raise ValueError("connect_four record: the numbers of stones do not fit the player to move")
        if ((board[:-1] != 0) & (board[1:] == 0)).any():
            raise ValueError("connect_four record: a stone hangs over an empty cell")
        if in_rows(board == turn, self.connect).any():
            raise ValueError(f"connect_four record: the player to move has {self.connect} in a row already")
        if not any(_can_be_dropped(earlier) for earlier in self._before(board, turn)):
            raise ValueError("connect_four record: these stones cannot have been dropped in turn, one row at the end")
        return board

    def _before(self, board: np.ndarray, turn: int):
        """Boards without a row from which the last move can have led to this board."""
        if not board.any():
            yield board
        for c in range(self.cols):
            top = int((board[:, c] == 0).sum())
            if top < self.rows and board[top, c] == -turn:
                earlier = board.copy()
                earlier[top, c] = 0
                if not in_rows(earlier, self.connect).any():
                    yield earlier


def _can_be_dropped(board: np.ndarray, limit: int = 50_000) -> bool:
    """Whether stones dropped in turn can make this board; also True if the search exceeds `limit` steps."""
    columns = [[int(x) for x in column[::-1] if x] for column in board.T]
    heights: tuple[int, ...] = (0,) * len(columns)
    todo: list[tuple[int, ...]] = [heights]
    seen: set[tuple[int, ...]] = {heights}
    while todo and len(seen) < limit:
        heights = todo.pop()
        if sum(heights) == np.count_nonzero(board):
            return True
        turn = 1 - 2 * (sum(heights) % 2)
        for c, h in enumerate(heights):
            higher = (*heights[:c], h + 1, *heights[c + 1 :])
            if h < len(columns[c]) and columns[c][h] == turn and higher not in seen:
                seen.add(higher)
                todo.append(higher)
    return bool(todo)


def make(rows: int = 6, cols: int = 7, connect: int = 4) -> Game:
    """Connect Four on `rows` x `cols` cells; `connect` stones in a row win.

    Raises:
        ValueError: a board or a `connect` that is too small or too large.
    """
    if not (1 <= rows <= LARGEST and 1 <= cols <= LARGEST):
        raise ValueError(f"connect_four: expected 1 to {LARGEST} rows and columns, got {rows} x {cols}")
    if not 2 <= connect <= max(rows, cols):
        raise ValueError(
            f"connect_four: connect={connect} does not fit {rows} x {cols}; expected 2 to {max(rows, cols)}"
        )
    rules = Rules(rows, cols, connect)
    return Game(
        name=f"connect_four:rows={rows},cols={cols},connect={connect}",
        num_players=2,
        num_actions=cols,
        max_plies=rows * cols,
        max_legal=cols,
        init=rules.init,
        step=rules.step,
        move=rules.move,
        mask=rules.mask,
        over=rules.over,
        player=rules.player,
        rewards=rules.rewards,
        observe=rules.observe,
        symmetries=rules.symmetries(),
        show=rules.show,
        action_name=lambda action: str(int(action) + 1),
        parse_action=rules.parse_action,
        to_record=rules.to_record,
        from_record=rules.from_record,
        view=View(
            about=(__doc__ or "").partition("\n")[0],
            seats=SEATS,
            picture=rules.picture(),
            cells=lambda action: (f"column {int(action) + 1}",),
            legend="X Red, O Yellow, . empty",
            lesson=rules.lesson(),
            why_illegal=rules.why_illegal,
            why_over=rules.why_over,
        ),
    )


__getattr__ = on_usual_board(make)
