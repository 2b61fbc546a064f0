"""Gomoku: five stones in a row in any direction win; a full board is a draw.

By default longer rows also win; with `exact` only rows of exactly five do. Cells are numbered row by row from the top
left. Names give the column as a letter and the row counted from the bottom, so h8 is the centre of 15x15.

A board is one word of bits per row: bit c of word r is column c.
"""

from __future__ import annotations

import dataclasses
import functools
import string
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from envs import pictures, records
from envs.game import (
    Array,
    Game,
    Step,
    Symmetry,
    board_view,
    forfeit_rewards,
    forfeit_words,
    on_usual_board,
    rectangle_turns,
)
from envs.lines import DIRECTIONS, in_rows
from envs.pictures import Layer, Picture

SEATS = ("Black", "White")
CELL = 32  # of the picture
MARKED = ("Black (X)", "White (O)")  # in text

SMALLEST, LARGEST = 5, len(string.ascii_lowercase)  # columns are named by letters
REACH = 5  # cells on each side of a new stone that decide whether it makes five, and exactly five
LAST, BEFORE, AFTER = 8, 16, 32  # what a stone at the end of a row of five, before it and behind it adds to their sum


@functools.lru_cache(maxsize=8)
def _fives(size: int) -> tuple[np.ndarray, np.ndarray]:
    """float32[S * S, F] twice, for all rows of five on the board: which cells belong to them, and what a stone there
    counts. That is 1 inside, and in addition `LAST`, `BEFORE` or `AFTER`. All are exact in bfloat16, in which a TPU
    multiplies."""
    rows = [
        [(r + down * i, c + right * i) for i in range(-1, 6)]
        for r, c in np.ndindex(size, size)
        for down, right in DIRECTIONS
        if r + 4 * down < size and 0 <= c + 4 * right < size
    ]
    inside, weights = np.zeros((2, size * size, len(rows)), np.float32)
    for i, row in enumerate(rows):
        for (r, c), weight in zip(row, (BEFORE, 1, 1, 1, 1, 1 + LAST, AFTER), strict=True):
            if 0 <= r < size and 0 <= c < size:
                weights[r * size + c, i] = weight
                inside[r * size + c, i] = weight % 2
    return inside, weights


class State(NamedTuple):
    mine: Array  # uint16[S], uint32 from S = 17: stones of the player to move
    others: Array  # the same for the other player
    won: Array  # bool[], whether the last stone made a winning row
    to_move: Array  # int8[], player to move: 0 first, 1 second
    forfeit: Array  # int8[], player who made an illegal move, -1 for none


@dataclasses.dataclass(frozen=True)
class Rules:
    """The rules of one size, as pure functions on one position."""

    size: int = 15
    exact: bool = False

    @property
    def dtype(self) -> Any:
        return np.uint16 if self.size <= 16 else np.uint32

    def init(self, key: Array | None = None) -> State:
        del key  # there is one start position
        empty = jnp.zeros(self.size, self.dtype)
        return State(empty, empty, jnp.bool_(False), jnp.int8(0), jnp.int8(-1))

    def cells(self, stones: Array) -> Array:
        """bool[S, S] from stones in words."""
        return (stones[:, None] >> jnp.arange(self.size, dtype=self.dtype) & 1) == 1

    def stones(self, cells: Array) -> Array:
        """Words from bool[S, S]; inverse of `cells`."""
        bits = jnp.asarray(1 << np.arange(self.size), self.dtype)
        return jnp.where(cells, bits, jnp.asarray(0, self.dtype)).sum(-1, dtype=self.dtype)

    def board(self, s: State) -> Array:
        """int8[S, S]: 1 first player, -1 second, 0 empty."""
        mine = jnp.where(s.to_move == 0, 1, -1).astype(jnp.int8)
        return self.cells(s.mine) * mine - self.cells(s.others) * mine

    def over(self, s: State) -> Array:
        return (s.forfeit >= 0) | s.won | ((s.mine | s.others) == 2**self.size - 1).all()

    def mask(self, s: State) -> Array:
        """bool[A], empty cells of an unfinished game."""
        return ~self.cells(s.mine | s.others).ravel() & (s.forfeit < 0) & ~s.won

    def player(self, s: State) -> Array:
        return s.to_move.astype(jnp.int32)

    def _makes_five(self, stones: Array, row: Array, col: Array) -> Array:
        """bool[]: the stone on (row, col) is part of a winning row of `stones`."""
        # The four lines through it, as windows of 11 bits with the stone in the middle.
        span, middle = 2 * REACH + 1, REACH
        steps = [1 << i for i in reversed(range((self.size - 1).bit_length()))]
        near = jnp.pad(stones.astype(jnp.uint32) << REACH, (REACH, REACH + sum(steps) + 1 - self.size))
        for step in steps:  # rows from `row` on; a TPU would slice one board after the other
            near = jnp.where(row & step, near[step:], near[:-step])
        near = near >> col.astype(jnp.uint32)
        places = np.arange(span, dtype=np.uint32)
        gather = lambda bits: jnp.sum((near >> bits & 1) << places, dtype=jnp.uint32)
        across = near[middle] & (2**span - 1)
        x = jnp.stack([across, gather(np.uint32(middle)), gather(places), gather(places[::-1])])
        five = x & x >> 1 & x >> 2 & x >> 3 & x >> 4  # starts of five; a five beside the stone would run on through it
        if self.exact:
            five &= ~(x << 1) & ~(x >> 5)
        return (five != 0).any()

    def move(self, s: State, action: Array | int) -> State:
        """Position after a legal action."""
        action = jnp.asarray(action, jnp.int32)
        row, col = action // self.size, action % self.size
        bit = jnp.asarray(1, self.dtype) << col.astype(self.dtype)
        stones = s.mine | jnp.where(jnp.arange(self.size) == row, bit, jnp.asarray(0, self.dtype))
        return State(s.others, stones, self._makes_five(stones, row, col), 1 - s.to_move, s.forfeit)

    def step(self, s: State, action: Array | int) -> State:
        """Position after any action: an illegal action forfeits, and a finished game does not change."""
        allowed = self.mask(s)
        legal = (allowed & (jnp.arange(allowed.size) == action)).any()
        forfeit = jnp.where(~self.over(s) & ~legal, s.to_move, s.forfeit)
        moved = self.move(s, jnp.where(legal, action, 0))
        return State(*(jnp.where(legal, new, old) for new, old in zip(moved, s, strict=True)))._replace(forfeit=forfeit)

    def rewards(self, s: State) -> Array:
        """float32[2]"""
        loser = jnp.where(s.forfeit >= 0, s.forfeit, s.to_move)
        return jnp.where((s.forfeit >= 0) | s.won, forfeit_rewards(loser, 2), 0.0)

    def observe(self, s: State) -> Array:
        """float32[S, S, 8], for the mover: own stones and the opponent's; the empty cells where one more own stone
        would win, or an opponent's; likewise where it would make a four, and fours that win on two cells."""
        stones = jnp.stack([self.cells(words).ravel() for words in (s.mine, s.others)])
        lacking = self._lacking(stones.astype(jnp.float32)).astype(jnp.float32)
        ways = lacking @ _fives(self.size)[0].T  # rows through each cell
        wins, fours, twice = ways[0] > 0, ways[1] > 0, ways[1] > 1
        planes = jnp.concatenate([stones, *(found & ~stones.any(0) for found in (wins, fours, twice))])
        return planes.T.reshape(self.size, self.size, -1).astype(jnp.float32)

    def _lacking(self, stones: Array) -> Array:
        """bool[2, 2, F] from stones float32[2, S * S]: the rows of five that lack one stone of each player, then those
        that lack two. Where several rows lack the same two, only the first counts."""
        seen = (stones @ _fives(self.size)[1]).astype(jnp.int32)
        count, last, before, after = seen & 7, seen & LAST > 0, seen & BEFORE > 0, seen & AFTER > 0
        free = count[::-1] == 0  # of the other player's stones
        if self.exact:
            free &= ~before & ~after
        # A stone before the row for the one at its end: the row that begins there lacks the same two.
        return jnp.stack([free & (count == 4), free & (count == 3) & ~(before & last)])

    def symmetries(self) -> tuple[Symmetry, ...]:
        """The eight symmetries of the square."""

        def symmetry(turn):
            turned = lambda stones: self.stones(turn.grid(self.cells(stones)))
            state = lambda s: s._replace(mine=turned(s.mine), others=turned(s.others))
            return Symmetry(turn.name, turn.squares, turn.grid, state)

        return tuple(symmetry(turn) for turn in rectangle_turns(self.size, self.size))

    # For people

    def action_name(self, action: int) -> str:
        return f"{string.ascii_lowercase[int(action) % self.size]}{self.size - int(action) // self.size}"

    def parse_action(self, text: str) -> int:
        names = {self.action_name(a): a for a in range(self.size**2)}
        if text.strip().lower() not in names:
            raise ValueError(f"no cell '{text}': expected a column and a row, a1 to {self.action_name(self.size - 1)}")
        return names[text.strip().lower()]

    def show(self, s: State) -> str:
        """Text picture: X first player, O second, . empty, with the player to move or the result below."""
        cells = np.array(["O", ".", "X"])[np.asarray(self.board(s)) + 1]
        status = pictures.standing_words(MARKED, self.over(s), s.to_move, self.rewards(s))
        lines = [f"{self.size - r:2d}  {' '.join(row)}" for r, row in enumerate(cells)]
        return "\n".join([*lines, "    " + " ".join(string.ascii_lowercase[: self.size]), status])

    def lesson(self) -> tuple[Step, ...]:
        board = f"gomoku:size=9,exact={str(self.exact).lower()}"
        longer = "Six or more do not count" if self.exact else "More than five win too"
        return (
            Step(
                "Black begins. The players take turns, and each puts a stone on an empty crossing. Stones never move.",
                ("e5", "d6"),
                board,
            ),
            Step(
                f"Five of your stones in a row win: across, upright or diagonally. {longer}. A full board without such "
                "a row is a draw.",
                ("c3", "c5", "d4", "e4", "e5", "f4", "f6", "d6", "g7"),
                board,
            ),
            Step(
                "Beware of three in a row with free ends, like Black's here. It threatens to become four with free "
                "ends, and one stone cannot block both.",
                ("d5", "d7", "e5", "f7", "f5"),
                board,
            ),
        )

    def why_illegal(self, s: State, action: int) -> str:
        return f"{self.action_name(action)} is taken" if self.board(s).ravel()[action] else ""

    def why_over(self, s: State) -> str:
        if s.forfeit >= 0 or not self.over(s):
            return forfeit_words(SEATS, s.forfeit)
        return "five in a row" if s.won else "nobody has five in a row, and the board is full"

    def picture(self) -> Picture:
        """The winning row is ringed."""
        side, letters = self.size * CELL, string.ascii_lowercase[: self.size]
        first, last = CELL / 2, side - CELL / 2
        ways = (f"M{at:g} {first:g}V{last:g}M{first:g} {at:g}H{last:g}" for at in CELL * (np.arange(self.size) + 0.5))
        frame = (
            f'<rect width="{side}" height="{side}" rx="{CELL * 0.2:g}" fill="#e3c48d"/>'
            f'<path d="{"".join(ways)}" stroke="#8a6d3b" stroke-width="1"/>'
        )
        stone = lambda fill, ring: pictures.disc(CELL * 0.42, f'fill="{fill}" stroke={ring}')
        rings = '"#20242a" stroke-opacity="0.5"', '"#d0473c" stroke-width="3"'
        shapes = tuple(shape for ring in rings for shape in ("", stone("#20242a", ring), stone("#f5f5f5", ring)))
        layers = Layer(pictures.square(CELL)), Layer(shapes, ("empty", *SEATS) * 2)

        def look(s: State) -> tuple[tuple[Any, ...], ...]:
            standing = pictures.standing_code(self.over(s), s.to_move, self.rewards(s))
            return (standing,), (0, self.board(s) % 3 + 3 * self._fives(self.board(s)))

        names, rows, status = (
            map(self.action_name, range(self.size**2)),
            range(self.size, 0, -1),
            pictures.standing(SEATS),
        )
        return pictures.board(
            "Gomoku", list(names), letters, rows, CELL, status, layers, look, frame, edge=1, size=0.36
        )

    # Records

    def to_record(self, s: State) -> dict[str, Any]:
        """JSON-ready record: `board` cell by cell (1 first player, -1 second), `to_move` 1 or -1. `forfeit` is
        present only after a forfeit."""
        board = np.asarray(self.board(s)).ravel().tolist()
        record = {"board": board, "to_move": 1 - 2 * int(s.to_move)}
        return records.with_forfeit(record, s.forfeit)

    def from_record(self, record: dict[str, Any]) -> State:
        """Position of a record.

        Raises:
            ValueError: a field is missing, unknown or out of range, or the position cannot occur; the message says
                which.
        """
        records.fields("gomoku", record, ("board", "to_move"))
        cells, turn = records.cells("gomoku", "board", record["board"], self.size**2), records.turn("gomoku", record)
        board = np.array(cells).reshape(self.size, self.size)
        if board.sum() != (0 if turn == 1 else 1):
            raise ValueError("gomoku record: the numbers of stones do not fit the player to move")
        if self._fives(board == turn).any():
            raise ValueError("gomoku record: the player to move has a winning row already")
        won = self._fives(board == -turn)
        if won.any() and not self._won_last(board == -turn, won):
            raise ValueError("gomoku record: there was a winning row before the last move, whichever it was")
        mover = (1 - turn) // 2
        forfeit = records.forfeit("gomoku", record, mover, lambda: won.any() or board.all())
        mine, others = (self.stones(jnp.asarray(board == colour)) for colour in (turn, -turn))
        return State(mine, others, jnp.bool_(won.any()), jnp.int8(mover), jnp.int8(forfeit))

    def _fives(self, board: Any) -> Any:
        """bool[S, S]: cells of the winning rows of any colour."""
        return in_rows(board, 5, self.exact)

    def _won_last(self, stones: np.ndarray, row: np.ndarray) -> bool:
        """Whether removing some single stone leaves no winning row."""
        for r, c in np.argwhere(row):
            earlier = stones.copy()
            earlier[r, c] = False
            if not self._fives(earlier).any():
                return True
        return False


def make(size: int = 15, exact: bool = False) -> Game:
    """Gomoku on `size` x `size` cells; with `exact`, rows of six or more do not win.

    Raises:
        ValueError: a size not from 5 to 26.
    """
    if not SMALLEST <= size <= LARGEST:
        raise ValueError(f"gomoku: size={size} is not from {SMALLEST} to {LARGEST}")
    rules = Rules(size, exact)
    return Game(
        name=f"gomoku:size={size},exact={str(exact).lower()}",
        num_players=2,
        num_actions=size**2,
        max_plies=size**2,
        max_legal=size**2,
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
        action_name=rules.action_name,
        parse_action=rules.parse_action,
        to_record=rules.to_record,
        from_record=rules.from_record,
        view=board_view(
            __doc__,
            SEATS,
            rules.picture(),
            rules.action_name,
            legend="X Black, O White, . empty",
            lesson=rules.lesson(),
            why_illegal=rules.why_illegal,
            why_over=rules.why_over,
        ),
    )


__getattr__ = on_usual_board(make)
