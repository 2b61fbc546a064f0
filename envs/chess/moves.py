"""Moves of chess on bitboards: attacks, checks, pins and every legal move at once, on 8 x 8 or 5 x 5 squares.

Squares are numbered row by row from the upper left corner as White sees it: 0 is a8, 63 is h1. `DIRECTIONS` go
clockwise from north, which is ahead for White. A board of legal moves holds the squares where moves of one kind start.
So all kinds together have one bit for every action.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from envs.game import Array

PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = range(6)
Steps: TypeAlias = tuple[tuple[int, int], ...]
DIRECTIONS: Steps = (
    (-1, 0),
    (-1, 1),
    (0, 1),
    (1, 1),
    (1, 0),
    (1, -1),
    (0, -1),
    (-1, -1),
)  # rows and columns of one step
NORTH, NORTH_EAST, EAST, SOUTH_EAST, SOUTH, SOUTH_WEST, WEST, NORTH_WEST = range(8)
KNIGHT_MOVES: Steps = ((-2, 1), (-1, 2), (1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1))  # a knight's
BACK, KNIGHT_MOVES_BACK = (tuple((-down, -right) for down, right in steps) for steps in (DIRECTIONS, KNIGHT_MOVES))
UNDERPROMOTIONS = (KNIGHT, BISHOP, ROOK)  # what a pawn may become in place of a queen
STRAIGHT = np.arange(8) % 2 == 0
AHEAD = np.isin(np.arange(8), (NORTH, SOUTH))
UP, DOWN = (NORTH_WEST, NORTH, NORTH_EAST), (SOUTH_WEST, SOUTH, SOUTH_EAST)
HALVES = np.array([0x55555555, 0xAAAAAAAA], np.uint32)
UPWARD, DOWNWARD = np.isin(np.arange(8), UP), np.isin(np.arange(8), DOWN)


def _join(x: Sequence[Array], y: Sequence[Array]) -> tuple[Array, ...]:
    """The union of two boards. It has a name because plain calls compile a reduction again for every new function."""
    return tuple(map(jax.lax.bitwise_or, x, y))


@dataclasses.dataclass(frozen=True)
class Bits:
    """Bitboards: bit i of word w is square 32 w + i. Words stay apart, so that lanes rather than words fill the vectors
    of a processor."""

    words: tuple[Any, ...]  # uint32[...] each

    def __and__(self, other: Bits) -> Bits:
        return Bits(tuple(x & y for x, y in zip(self.words, other.words, strict=True)))

    def __or__(self, other: Bits) -> Bits:
        return Bits(tuple(x | y for x, y in zip(self.words, other.words, strict=True)))

    def __invert__(self) -> Bits:
        return Bits(tuple(~x for x in self.words))

    def __getitem__(self, index: Any) -> Bits:
        return Bits(tuple(x[index] for x in self.words))

    @property
    def each(self) -> Bits:
        """With a new last axis of length 1, to be joined with one board for every direction or kind."""
        return self[..., None]

    @property
    def union(self) -> Bits:
        """Of the boards along the last axis."""
        words = tuple(map(jnp.asarray, self.words))
        # One reduction of all words, because separate ones would each compute the inputs that the words share.
        return Bits(tuple(jax.lax.reduce(words, (np.uint32(0),) * len(words), _join, (words[0].ndim - 1,))))

    @property
    def once(self) -> Bits:
        """The same boards as the union of two halves. XLA computes such a reduction once, but elementwise operations
        again in each of their readers."""
        return Bits(tuple(x[..., None] & HALVES for x in map(jnp.asarray, self.words))).union

    @property
    def some(self) -> Array:
        """bool[...]: whether any square is set."""
        return functools.reduce(jnp.bitwise_or, self.words) != 0

    @property
    def count(self) -> Array:
        """int32[...]: the number of squares that are set."""
        return sum(jax.lax.population_count(x).astype(jnp.int32) for x in self.words)  # pyright: ignore[reportReturnType]

    @property
    def array(self) -> Array:
        """uint32[W, ...]"""
        return jnp.stack(self.words)


def bits(array: Any) -> Bits:
    """From uint32[W, ...]."""
    return Bits(tuple(array[i] for i in range(len(array))))


def where(condition: Any, x: Bits, y: Bits) -> Bits:
    return Bits(tuple(jnp.where(condition, a, b) for a, b in zip(x.words, y.words, strict=True)))


def only(condition: Any, x: Bits) -> Bits:
    """The boards where a condition holds, elsewhere empty ones."""
    return Bits(tuple(jnp.where(condition, a, jnp.uint32(0)) for a in x.words))


def joined(boards: Sequence[Bits], join: Callable[..., Any] = jnp.stack) -> Bits:
    """Boards along a new last axis, or with `jnp.concatenate` along the present one."""
    return Bits(tuple(join([board.words[i] for board in boards], -1) for i in range(len(boards[0].words))))


class Side(NamedTuple):
    """The pieces of a player by kind."""

    pieces: Bits  # [6]

    @property
    def all(self) -> Bits:
        return self.pieces.union

    @property
    def sliders(self) -> Bits:
        """[8]: the pieces that move any distance in each direction."""
        straight, diagonal = (self.pieces[kind] | self.pieces[QUEEN] for kind in (ROOK, BISHOP))
        return where(STRAIGHT, straight.each, diagonal.each)


@dataclasses.dataclass(frozen=True)
class Board:
    """A board of `size` x `size` squares."""

    size: int

    @property
    def squares(self) -> int:
        return self.size * self.size

    @property
    def words(self) -> int:
        return -(-self.squares // 32)

    def of(self, squares: Sequence[int] | np.ndarray) -> Bits:
        """A constant board, from numbers of squares."""
        words = np.zeros(self.words, np.uint32)
        for square in squares:
            words[square // 32] |= np.uint32(1 << square % 32)
        return bits(words)

    def at(self, square: Array) -> Bits:
        """One square; none for a number outside."""
        bit = jnp.uint32(1) << (square & 31).astype(jnp.uint32)
        return Bits(tuple(jnp.where(square >> 5 == word, bit, jnp.uint32(0)) for word in range(self.words)))

    def row(self, row: int) -> Bits:
        return self.of(np.arange(self.size) + row * self.size)

    def unpack(self, boards: Bits) -> Array:
        """bool[n * n, ...]"""
        places = lambda x: np.arange(32, dtype=np.uint32).reshape(32, *(1,) * x.ndim)
        return jnp.concatenate([(x >> places(x) & 1) == 1 for x in boards.once.words])[: self.squares]

    @functools.cached_property
    def everywhere(self) -> Bits:
        return self.of(range(self.squares))

    def step(self, boards: Bits, steps: Steps = DIRECTIONS) -> Bits:
        """[..., K]: the pieces of board k moved by step k; those that leave the board are lost."""
        return self._shift(boards, steps) & _landings(self, steps)

    def _shift(self, boards: Bits, steps: Steps, times: int = 1) -> Bits:
        """[..., K]: board k moved by step k several times, by less than 32 squares; pieces continue in the next row."""
        by = np.array([down * self.size + right for down, right in steps]) * times
        near, far = np.abs(by).astype(np.uint32), (32 - np.abs(by)).astype(np.uint32)
        words = boards.words
        moved = []
        for i, word in enumerate(words):
            later, earlier = word << near, word >> near
            later = later | words[i - 1] >> far if i > 0 else later
            earlier = earlier | words[i + 1] << far if i + 1 < len(words) else earlier
            moved.append(jnp.where(by > 0, later, earlier))
        return Bits(tuple(moved))

    def slide(self, pieces: Bits, empty: Bits) -> Bits:
        """[..., 8]: the squares that pieces reach in each direction, up to the first one that is not empty."""
        one = empty.each & _landings(self, DIRECTIONS)  # one empty square behind each, then two, then three
        two = one & self._shift(one, DIRECTIONS)
        pieces = pieces | one & self._shift(pieces, DIRECTIONS)
        pieces = pieces | two & self._shift(pieces, DIRECTIONS, 2)
        if self.size == 8:
            three = two & self._shift(two, DIRECTIONS)
            pieces = pieces | three & self._shift(pieces, DIRECTIONS, 3)
        return self.step(pieces)

    def knights(self, board: Bits) -> Bits:
        """The squares that knights attack."""
        return self.step(board.each, KNIGHT_MOVES).union

    def pawns(self, board: Bits, white: Array) -> Bits:
        """The squares that pawns of a colour attack."""
        return only(jnp.where(white, UPWARD, DOWNWARD) & ~AHEAD, self.step(board.each)).union

    def attacks(self, side: Side, white: Array, empty: Bits) -> Bits:
        """The squares that a player, of a colour, attacks; `empty` ones do not stop a slider."""
        pieces = side.pieces
        near = only(jnp.where(white, UPWARD, DOWNWARD) & ~AHEAD, self.step(pieces[PAWN].each))
        reached = near | self.step(pieces[KING].each) | self.slide(side.sliders, empty)
        return reached.union | self.knights(pieces[KNIGHT])


@functools.cache
def _landings(board: Board, steps: Steps) -> Bits:
    """[K]: the squares where each step can end."""
    at = np.arange(board.squares)
    row, col = at // board.size, at % board.size
    inside = lambda x: (x >= 0) & (x < board.size)
    return joined([board.of(at[inside(row - down) & inside(col - right)]) for down, right in steps], np.stack)


class Threats(NamedTuple):
    """Checks and pins against the king of the player to move."""

    attacked: Bits  # squares where the other player could capture it
    check: Array  # bool[]
    evasions: Bits  # squares where a move by another piece ends every check
    pinned: Bits  # all pieces that must stay on a line with the king
    free: Bits  # [8], pieces that this does not keep from moving in each direction


def threats(board: Board, own: Side, other: Side, white: Array) -> Threats:
    """`white` is whether White is to move."""
    mine, king = own.all, own.pieces[KING]
    empty = ~(mine | other.all)
    line = board.slide(king.each, empty)
    blockers = line & mine.each
    checks = (line & other.sliders).some
    pins = (board.slide(blockers, empty) & other.sliders).some
    near = board.knights(king) & other.pieces[KNIGHT] | board.pawns(king, white) & other.pieces[PAWN]
    number = checks.sum(dtype=jnp.int32) + near.count
    way = only(checks, line).union | near
    evasions = where(number == 0, board.everywhere, only(number == 1, way))
    pinned = only(pins, blockers)
    # A direction and its opposite lie four apart.
    on_line = Bits(tuple(x.reshape(2, 4).swapaxes(0, 1) for x in pinned.words)).union
    on_line = Bits(tuple(jnp.concatenate([x, x]) for x in on_line.words))
    attacked = board.attacks(other, ~white, empty | king)
    return Threats(attacked, number > 0, evasions, pinned.union, ~pinned.union.each | on_line)


def en_passant(board: Board, own: Side, other: Side, white: Array, target: Bits) -> Bits:
    """The pawns that may capture the pawn which has just passed the square `target`.

    Two pieces leave the row at once, which no pin describes, so the king is looked at after the capture.
    """
    around, king = board.step(target.each), own.pieces[KING]
    west, passed, east = (where(white, around[down], around[up]) for up, down in zip(UP, DOWN, strict=True))
    near = board.knights(king) & other.pieces[KNIGHT] | board.pawns(king, white) & other.pieces[PAWN] & ~passed
    starts = joined([west, east]) & own.pieces[PAWN].each
    empty = ~(own.all | other.all | target).each | passed.each | starts
    checks = (board.slide(king.each.each, empty) & other.sliders).some.any(-1)
    return only(~checks & ~near.some, starts).union


def legal(board: Board, own: Side, other: Side, white: Array, threat: Threats, capturers: Bits, target: Bits) -> Bits:
    """[K]: the squares where legal moves start, for each of K kinds, without castling.

    The kinds are the directions, each with its distances from 1 on, the knight's jumps, and the underpromotions, each
    to the left, ahead and to the right as White sees it. A pawn that reaches the last row by a step becomes a queen.

    Args:
        capturers: the pawns that may capture en passant.
        target: the square where they do.
    """
    mine, theirs, free = own.all, other.all, threat.free
    empty, goals = ~(mine | theirs), ~mine & threat.evasions
    pieces, pawns = own.sliders, own.pieces[PAWN].each
    forward = jnp.where(white, UPWARD, DOWNWARD)
    pull = lambda boards: board.step(boards, BACK)  # what is one step further on in each direction
    goal, vacant = pull(goals.each), pull(empty.each)
    steps = where(AHEAD, vacant & goal, pull((theirs & threat.evasions).each)) & free
    steps = only(forward, pawns & steps | capturers.each & pull(target.each)).once
    kings = own.pieces[KING].each & pull((~mine & ~threat.attacked).each)
    found, clear = [pieces & goal & free | steps | kings], vacant
    for distance in range(2, board.size):
        goal, vacant = pull(goal), pull(vacant)
        found.append(pieces & clear & goal & free)
        clear = clear & vacant
        if distance == 2 and board.size == 8:
            first = where(white, board.row(6), board.row(1)).each
            found[-1] |= only(forward & AHEAD, pawns & first & clear & goal & free)
    slides = Bits(tuple(x.reshape(-1) for x in joined([boards.once for boards in found]).words))
    jumps = (own.pieces[KNIGHT] & ~threat.pinned).each & board.step(goals.each, KNIGHT_MOVES_BACK)
    last = where(white, board.row(1), board.row(board.size - 2))
    ends = joined([where(white, steps[up], steps[down]) & last for up, down in zip(UP, DOWN, strict=True)])
    return joined([slides, jumps, *[ends] * len(UNDERPROMOTIONS)], jnp.concatenate)
