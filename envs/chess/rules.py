"""The rules of chess and Gardner's chess, as pure functions on positions.

Action codes are `kinds * square + kind`: the square where a move starts, row by row from the upper left corner as White
sees it, and one of the kinds of `moves.legal`, 73 or 49. These are the moves of AlphaZero (Silver et al. 2018,
supplement) in another order. Moves have the names of the protocol UCI: e2e4, e7e8r. A pawn's promotion to a queen has
the code of any other piece's move between these squares, so both are called e7e8; e7e8q is understood as well.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs import records
from envs.chess import fen, moves
from envs.chess.fen import CASTLING_SQUARES, FIFTY_MOVES, LETTERS, MAX_PLIES, Placement
from envs.chess.moves import (
    BISHOP,
    DIRECTIONS,
    EAST,
    KING,
    KNIGHT_MOVES,
    PAWN,
    QUEEN,
    ROOK,
    UNDERPROMOTIONS,
    WEST,
    Bits,
    Board,
    Side,
    bits,
    joined,
    only,
    where,
)
from envs.game import Array, forfeit_rewards

PIECE_VALUES = np.array([1, 3, 3, 5, 9, 0], np.float32)  # of the pieces, for `evaluate`


class State(NamedTuple):
    pieces: Array  # uint32[W, 6], squares of the pawns, knights, bishops, rooks, queens and kings of both players
    white: Array  # uint32[W], squares of White's pieces
    castling: Array  # bool[4], whether White may still castle to the right and to the left, then Black
    target: Array  # uint32[W], the square that a pawn has just passed, if it can be captured there
    capturers: Array  # uint32[W], the pawns that can do so
    halfmove_clock: Array  # int16[], plies since the last capture or pawn move
    ply: Array  # int16[]
    repetitions: Array  # int8[], how often the position occurred before
    hashes: Array  # uint32[100, 2], hashes of this position and of those before it that may come again, newest first
    to_move: Array  # int8[], player to move: 0 White, 1 Black
    forfeit: Array  # int8[], player who made an illegal move, -1 for none


def _hash(s: State) -> Array:
    """uint32[2] of what makes positions the same: pieces, player to move, castling and captures en passant (FIDE Laws,
    9.2). Each half mixes all words as MurmurHash3 does."""
    flags = (s.castling * np.array([1, 2, 4, 8], np.uint32)).sum(dtype=jnp.uint32) + (s.to_move << 4).astype(jnp.uint32)
    words = jnp.concatenate([s.pieces.ravel(), s.white, s.capturers, flags[None]])
    mixed = jnp.array([0x9747B28C, 0x3C6EF372], jnp.uint32)
    turn = lambda x, by: x << by | x >> (32 - by)
    for i in range(len(words)):
        mixed = turn(mixed ^ turn(words[i] * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593), 13)
        mixed = mixed * np.array([5, 9], np.uint32) + np.uint32(0xE6546B64)
    for by, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        mixed = (mixed ^ mixed >> by) * np.uint32(factor)
    return mixed ^ mixed >> 16


@dataclasses.dataclass(frozen=True)
class Rules:
    """The rules on a board of one size, as pure functions on one position."""

    size: int = 8

    @functools.cached_property
    def board(self) -> Board:
        return Board(self.size)

    @property
    def kinds(self) -> int:
        """Kinds of moves from a square."""
        return 8 * (self.size - 1) + len(KNIGHT_MOVES) + 3 * len(UNDERPROMOTIONS)

    @functools.cached_property
    def steps(self) -> np.ndarray:
        """int32[2, K, 2], rows and columns of every kind of move, for White and for Black."""
        slides = [(down * k, right * k) for down, right in DIRECTIONS for k in range(1, self.size)]
        lesser = [[(ahead, side) for _ in UNDERPROMOTIONS for side in (-1, 0, 1)] for ahead in (-1, 1)]
        return np.array([[*slides, *KNIGHT_MOVES, *steps] for steps in lesser], np.int32)

    @functools.cached_property
    def castling_squares(self) -> Bits:
        """[4]: the squares of king and rook from which each castling starts."""
        return joined([self.board.of(squares) for squares in CASTLING_SQUARES], np.stack)

    # Positions

    def init(self, key: Array | None = None) -> State:
        del key  # there is one start position
        return self._with_hash(self._placed(fen.start(self.size)))

    def sides(self, s: State) -> tuple[Side, Side]:
        """The pieces of the player to move and of the other player."""
        pieces, white = bits(s.pieces), bits(s.white)
        mine = where(s.to_move == 0, white, ~white).each
        return Side(pieces & mine), Side(pieces & ~mine)

    def _threats(self, s: State) -> moves.Threats:
        return moves.threats(self.board, *self.sides(s), s.to_move == 0)

    def in_check(self, s: State) -> Array:
        """bool[]: whether the king of the player to move is attacked."""
        return self._threats(s).check

    def _legal(self, s: State) -> tuple[Bits, Array]:
        """Squares where moves start, [K], in a game in progress; and whether the mover is in check."""
        own, other = self.sides(s)
        threat, capturers, target = self._threats(s), bits(s.capturers), bits(s.target)
        found = moves.legal(self.board, own, other, s.to_move == 0, threat, capturers, target)
        if self.size == 8:
            found = found | self._castlings(s, own.all | other.all, threat)
        return found, threat.check

    def _castlings(self, s: State, pieces: Bits, threat: moves.Threats) -> Bits:
        """[K]: the king's square, under the kinds that move it two squares to the right and to the left."""
        white, found, place = s.to_move == 0, [], self.board.of
        king = where(white, place([60]), place([4]))
        for side, way, between, crossed in ((0, EAST, (5, 6), (5, 6)), (1, WEST, (1, 2, 3), (2, 3))):
            row = lambda cols: where(white, place([56 + col for col in cols]), place(cols))
            blocked = (row(between) & pieces | row(crossed) & threat.attacked).some
            allowed = jnp.where(white, s.castling[side], s.castling[2 + side]) & ~threat.check & ~blocked
            found.append(allowed & (np.arange(self.kinds) == (self.size - 1) * way + 1))
        return only(found[0] | found[1], king.each)

    def _is_draw(self, s: State) -> Array:
        """bool[]: whether the game ends in a draw, unless it has ended by checkmate."""
        return (
            self.insufficient_material(s)
            | (s.halfmove_clock >= FIFTY_MOVES)
            | (s.repetitions >= 2)
            | (s.ply >= MAX_PLIES[self.size])
        )

    def insufficient_material(self, s: State) -> Array:
        """bool[]: two kings, with one knight or bishop, or with bishops that all stand on squares of one colour."""
        pieces, at = bits(s.pieces), np.arange(self.board.squares)
        dark = self.board.of(at[(at // self.size + at % self.size) % 2 == 1])
        _, knights, bishops, *_ = number = pieces.count
        on_dark = (pieces[BISHOP] & dark).count
        alike = (knights == 0) & ((on_dark == 0) | (on_dark == bishops))
        return (number.sum() == knights + bishops + 2) & ((knights + bishops <= 1) | alike)

    def why_drawn(self, s: State) -> str:
        """Why a game has ended in a draw, on the host."""
        if self.insufficient_material(s):
            return "too few pieces for checkmate"
        if s.halfmove_clock >= FIFTY_MOVES:
            return "fifty moves without a capture or a pawn move"
        if s.repetitions >= 2:
            return "the third time in this position"
        long = s.ply >= MAX_PLIES[self.size]
        return f"the game ends after {MAX_PLIES[self.size]} moves" if long else "stalemate"

    # Rules

    def move(self, s: State, action: Array | int) -> State:
        """Position after a legal action."""
        board, size, pieces = self.board, self.size, bits(s.pieces)
        action = jnp.asarray(action, jnp.int32)
        start, kind = action // self.kinds, action % self.kinds
        white, is_kind = s.to_move == 0, jnp.arange(self.kinds) == kind
        down, right = jnp.where(is_kind[:, None], jnp.where(white, *self.steps), 0).sum(0, dtype=jnp.int32)
        end = start + down * size + right
        at, to = board.at(start), board.at(end)
        moving = (pieces & at.each).some
        pawn, castles = moving[PAWN], moving[KING] & (jnp.abs(right) == 2)
        # A pawn on the last row becomes another piece.
        lesser = (kind - self.kinds + 9) // 3
        named = jnp.where(np.arange(3) == lesser, np.array(UNDERPROMOTIONS), 0).sum()
        promoted = pawn & (to & (board.row(0) | board.row(size - 1))).some
        becomes = jnp.where(promoted, np.arange(6) == jnp.where(lesser < 0, QUEEN, named), moving)
        # A rook that castles. A pawn captured en passant stands beside the square where the capturing pawn arrives.
        rook = only(castles, board.at(jnp.where(right > 0, start + 3, start - 4)))
        beside = only(castles, board.at(start + right // 2))
        captured = where(pawn & (to & bits(s.target)).some, board.at(end - down * size), to)
        taken = (captured.each & pieces).some.any()
        gone = at | captured | rook
        put = only(becomes, to.each) | only(np.arange(6) == ROOK, beside.each)
        whites = bits(s.white) & ~gone | only(white, to | beside)
        passed = only(pawn & (jnp.abs(down) == 2), board.at(start + down // 2 * size))
        castling = s.castling & ~((at | to).each & self.castling_squares).some if size == 8 else s.castling
        after = s._replace(
            pieces=(pieces & ~gone.each | put).once.array,
            white=whites.once.array,
            castling=castling,
            halfmove_clock=jnp.where(pawn | taken, 0, s.halfmove_clock + 1).astype(jnp.int16),
            ply=s.ply + jnp.int16(1),
            to_move=1 - s.to_move,
        )
        return self._with_hash(self._with_target(after, passed.once))

    def _with_target(self, s: State, passed: Bits) -> State:
        """The position in which a pawn has just passed a square, or none."""
        if self.size != 8:
            return s
        capturers = moves.en_passant(self.board, *self.sides(s), s.to_move == 0, passed)
        return s._replace(capturers=capturers.array, target=only(capturers.some, passed).array)

    def _with_hash(self, s: State) -> State:
        """The position with its hash before those of the positions that led to it."""
        now, before = _hash(s), jnp.where(s.halfmove_clock == 0, jnp.uint32(0), s.hashes[:-1])
        repetitions = (before == now).all(-1).sum(dtype=jnp.int8)
        return s._replace(hashes=jnp.concatenate([now[None], before]), repetitions=repetitions)

    def step(self, s: State, action: Array | int) -> State:
        """Position after any action: an illegal action forfeits, and a finished game does not change."""
        action, playable = jnp.asarray(action, jnp.int32), self._playable(s)
        inside = (action >= 0) & (action < self.board.squares * self.kinds)
        start, kind = self.board.at(action // self.kinds), np.arange(self.kinds) == action % self.kinds
        legal = inside & (only(kind, playable) & start.each).some.any()
        forfeit = jnp.where(playable.some.any() & ~legal, s.to_move, s.forfeit)
        moved = self.move(s, jnp.where(legal, action, 0))
        kept = jax.tree.map(lambda new, old: jnp.where(legal, new, old), moved, s)
        return kept._replace(forfeit=forfeit)

    def mask(self, s: State) -> Array:
        """bool[A]"""
        return self.board.unpack(self._playable(s)).ravel()

    def _playable(self, s: State) -> Bits:
        """[K]: squares where legal moves start; none once the game is over."""
        return only(~self._is_draw(s) & (s.forfeit < 0), self._legal(s)[0])

    def over(self, s: State) -> Array:
        """bool[]"""
        return self._result(s)[0]

    def _result(self, s: State) -> tuple[Array, Array]:
        """Whether the game is over, bool[], and the rewards, float32[2]."""
        found, check = self._legal(s)
        stuck = ~found.some.any()
        lost = jnp.where(jnp.arange(2) == s.to_move, -1.0, 1.0)
        rewards = jnp.where(s.forfeit >= 0, forfeit_rewards(s.forfeit, 2), jnp.where(stuck & check, lost, 0.0))
        return stuck | self._is_draw(s) | (s.forfeit >= 0), rewards.astype(jnp.float32)

    def player(self, s: State) -> Array:
        return s.to_move.astype(jnp.int32)

    def rewards(self, s: State) -> Array:
        """float32[2]"""
        return self._result(s)[1]

    def observe(self, s: State) -> Array:
        """float32[n, n, 16], on 8 x 8 float32[8, 8, 21], with the mover at the bottom: the mover's pieces by kind, the
        other player's, the squares that each attacks; whether the position occurred before, the share of the quiet
        plies that end the game; on 8 x 8 the target en passant, and whether the mover may castle to the right and to
        the left, then the other player."""
        own, other = self.sides(s)
        white, empty = s.to_move == 0, ~(own.all | other.all)
        reached = self.board.attacks(own, white, empty), self.board.attacks(other, ~white, empty)
        boards = [own.pieces, other.pieces, *(board.each for board in reached)]
        boards += [bits(s.target).each] if self.size == 8 else []
        cells = self.board.unpack(joined(boards, jnp.concatenate)).reshape(self.size, self.size, -1)
        cells = jnp.where(white, cells, cells[::-1]).astype(jnp.float32)
        rights = [jnp.where(white, s.castling[i], s.castling[(i + 2) % 4]) for i in range(4)] if self.size == 8 else []
        quiet = s.halfmove_clock * np.float32(1 / FIFTY_MOVES)
        whole = jnp.stack([s.repetitions > 0, quiet, *rights]).astype(jnp.float32)
        spread = jnp.broadcast_to(whole, (self.size, self.size, len(whole)))
        return jnp.concatenate([cells[..., :14], spread[..., :2], cells[..., 14:], spread[..., 2:]], -1)

    def evaluate(self, s: State) -> Array:
        """float32[] in [-1, 1]: the difference of the pieces, worth 1, 3, 3, 5 and 9; exact once the game is over."""
        own, other = self.sides(s)
        guess = 0.99 * jnp.tanh(((own.pieces.count - other.pieces.count) * PIECE_VALUES).sum() / 10)
        over, rewards = self._result(s)
        return jnp.where(over, rewards[s.to_move], guess).astype(jnp.float32)

    # Actions

    @functools.cached_property
    def to_mover_frame(self) -> np.ndarray:
        """int32[2, A]: for Black the board is turned upside down, and so is every direction; the underpromotions
        already lead ahead."""
        turned = {step: kind for kind, step in enumerate(map(tuple, self.steps[0][:-9].tolist()))}
        kinds = [turned[-down, right] for down, right in self.steps[0][:-9].tolist()]
        kinds = np.array([*kinds, *range(self.kinds - 9, self.kinds)], np.int32)
        rows = np.arange(self.board.squares, dtype=np.int32).reshape(self.size, self.size)[::-1]
        codes = (rows.reshape(-1, 1) * self.kinds + kinds).ravel().astype(np.int32)
        return np.stack([np.arange(len(codes), dtype=np.int32), codes])

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Of the squares."""
        return fen.square_names(self.size)

    @functools.cached_property
    def moves_by_code(self) -> tuple[tuple[int, int, str] | None, ...]:
        """Of every action the squares and the letter of an underpromotion; None off the board."""
        found: list[tuple[int, int, str] | None] = []
        for start in range(self.board.squares):
            row, col = divmod(start, self.size)
            for kind in range(self.kinds):
                lesser = kind - (self.kinds - 9)
                black = lesser >= 0 and row == self.size - 2
                down, right = self.steps[int(black), kind].tolist()
                inside = 0 <= row + down < self.size and 0 <= col + right < self.size
                inside &= lesser < 0 or black or row == 1
                sign = LETTERS[UNDERPROMOTIONS[lesser // 3]] if lesser >= 0 else ""
                found.append((start, start + down * self.size + right, sign) if inside else None)
        return tuple(found)

    def action_name(self, action: int) -> str:
        way = self.moves_by_code[int(action)]
        return f"{self.names[way[0]]}{self.names[way[1]]}{way[2]}" if way else str(int(action))

    @functools.cached_property
    def _codes(self) -> dict[str, int]:
        """The code of every name; promotions to a queen have a second name."""
        found = {self.action_name(action): action for action in range(len(self.moves_by_code))}
        queens = {f"{name[:-1]}q": name[:-1] for name in found if name[-1] == "r"}
        return found | {name: found[plain] for name, plain in queens.items()}

    def parse_action(self, text: str) -> int:
        action = self._codes.get(text.strip().lower())
        if action is None:
            raise ValueError(f"no move '{text}': expected two squares such as {self.names[-1]}{self.names[0]}")
        return action

    # Records

    def letters(self, s: State) -> list[str]:
        """The letter of the piece on every square, capitals White's, a dot for none."""
        kinds, white = (np.asarray(self.board.unpack(bits(x))) for x in (s.pieces, s.white))
        letters = np.where(kinds.any(1), np.array([*LETTERS])[kinds.argmax(1)], ".")
        return [letter.upper() if mine else letter for letter, mine in zip(letters.tolist(), white, strict=True)]

    def to_fen(self, s: State) -> str:
        """The position in Forsyth-Edwards notation. The target en passant is named only if it can be captured."""
        target = np.flatnonzero(self.board.unpack(bits(s.target)))
        castling = tuple(np.asarray(s.castling).tolist())
        at, black = int(target[0]) if len(target) else -1, bool(s.to_move)
        return fen.write(Placement(self.letters(s), black, castling, at, int(s.halfmove_clock), int(s.ply)), self.size)

    def from_fen(self, text: str) -> State:
        """Position of a text in Forsyth-Edwards notation. The counters of plies may be missing.

        Raises:
            ValueError: the text has another form, or the position cannot occur.
        """
        here = fen.read(text, self.size)
        passed = self.board.of([here.target] if here.target >= 0 else [])
        s, wrong = self._completed(self._placed(here), passed.words)
        if wrong:
            raise ValueError("chess record: fen: the player who is not to move is in check")
        return s

    @functools.cached_property
    def _completed(self) -> Callable[..., tuple[State, Array]]:
        """The position with the target en passant and the hash, and whether the wrong player is in check."""
        wrong = lambda s: self.in_check(s._replace(to_move=1 - s.to_move))
        return jax.jit(lambda s, passed: (self._with_hash(self._with_target(s, Bits(passed))), wrong(s)))

    def _placed(self, here: Placement) -> State:
        """The position without the target en passant and the hash."""
        letters, none = np.array(here.letters), jnp.zeros(self.board.words, jnp.uint32)
        pieces = joined([self.board.of(np.flatnonzero(np.char.lower(letters) == kind)) for kind in LETTERS], np.stack)
        return State(
            pieces=pieces.array,
            white=self.board.of(np.flatnonzero(np.char.isupper(letters))).array,
            castling=jnp.array(here.castling),
            target=none,
            capturers=none,
            halfmove_clock=jnp.int16(here.halfmove_clock),
            ply=jnp.int16(here.ply),
            repetitions=jnp.int8(0),
            hashes=jnp.zeros((FIFTY_MOVES, 2), jnp.uint32),
            to_move=jnp.int8(here.black),
            forfeit=jnp.int8(-1),
        )

    def to_record(self, s: State) -> dict[str, Any]:
        """JSON-ready record: `fen`; `hashes` of the earlier positions that may come again, newest first, if there are
        any; and `forfeit` after one."""
        earlier = np.asarray(s.hashes)[1 : min(int(s.halfmove_clock), FIFTY_MOVES - 1) + 1]
        hashes = [f"{high:08x}{low:08x}" for high, low in earlier.tolist() if high or low]
        return records.with_forfeit({"fen": self.to_fen(s)} | ({"hashes": hashes} if hashes else {}), s.forfeit)

    def from_record(self, record: dict[str, Any]) -> State:
        """Position of a record.

        Raises:
            ValueError: a field is missing, unknown or out of range, or the position cannot occur; the message says
                which.
        """
        records.fields("chess", record, ("fen",), perhaps=("hashes", "forfeit"))
        if not isinstance(record["fen"], str):
            raise ValueError("chess record: fen: expected a text")
        s = self.from_fen(record["fen"])
        earlier, most = record.get("hashes", []), min(int(s.halfmove_clock), FIFTY_MOVES - 1)
        if not isinstance(earlier, list) or len(earlier) > most:
            raise ValueError(f"chess record: hashes: expected a list of at most {most} hashes")
        if not all(isinstance(one, str) and re.fullmatch("[0-9a-f]{16}", one) for one in earlier):
            raise ValueError("chess record: hashes: expected hashes of 16 hexadecimal digits")
        hashes = np.zeros((FIFTY_MOVES, 2), np.uint32)
        hashes[: len(earlier)] = [[int(one[:8], 16), int(one[8:], 16)] for one in earlier] or hashes[:0]
        # `_with_hash` puts the position's own hash before them, as after a move.
        s = self._with_hash(s._replace(hashes=jnp.asarray(hashes)))
        mover = int(s.to_move)
        return s._replace(forfeit=jnp.int8(records.forfeit("chess", record, mover, lambda: self.over(s))))
