"""Othello: a disc must outflank enemy discs, which are flipped; the player with more discs at the end wins.

Squares are numbered row by row from the top left and named as usual: 0 is a1, 63 is h8. Black begins on e4 and d5,
White on d4 and e5. Action 64, the pass, is legal only for a player who cannot place a disc while the opponent can. The
game ends as soon as neither player can; empty squares count for nobody.

Boards are 64 bits in two words: bit i of word 0 is square i, bit i of word 1 is square 32 + i.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from envs import pictures, records
from envs.game import Array, Game, Hints, Step, Symmetry, board_view, forfeit_rewards, forfeit_words, rectangle_turns
from envs.pictures import Layer, Picture

PASS = 64
CELL = 52  # of the picture
SEATS = ("Black", "White")
MARKED = ("Black (X)", "White (O)")  # in text
NAMES = (*("abcdefgh"[i % 8] + str(i // 8 + 1) for i in range(64)), "pass")
START = np.array([1 if i in (28, 35) else -1 if i in (27, 36) else 0 for i in range(64)], np.int8).reshape(8, 8)
CORNERS = np.array([1 << 0 | 1 << 7, 1 << 24 | 1 << 31], np.uint32)
LESSON = (
    Step(
        "Black begins. Each new disc must enclose a straight line of enemy discs between itself and another disc of "
        "your colour. The dots show where Black may play."
    ),
    Step("Black has played d3: the disc on d4 was enclosed and has turned black. Now White must enclose.", ("d3",)),
    Step(
        "All lines that the new disc encloses turn over, in every direction. Corners can never be turned, so they are "
        "worth a lot.",
        ("d3", "c3", "c4", "e3", "f2", "c5"),
    ),
    Step(
        "A player who cannot enclose anything must pass. If neither player can, the game is over and more discs win. "
        "Here White has none left.",
        ("e6", "f4", "e3", "f6", "g5", "d6", "e7", "f5", "c5"),
    ),
)
INNER = 0x7E7E7E7E  # all columns except the first and the last, the same in both words
DIRECTIONS = (-9, -8, -7, -1, 1, 7, 8, 9)

# Both words, uint32[] each, kept separate so that lanes rather than words fill the vectors of a processor.
Words: TypeAlias = tuple[Array, Array]


class State(NamedTuple):
    mine: Array  # uint32[2], discs of the player to move
    others: Array  # uint32[2], discs of the other player
    to_move: Array  # int8[], player to move: 0 black, 1 white
    forfeit: Array  # int8[], player who made an illegal move, -1 for none


# Bits


def _pack(cells: Array) -> Array:
    """uint32[2] from bool[8, 8]."""
    bits = jnp.where(cells.reshape(2, 32), jnp.uint32(1) << jnp.arange(32, dtype=jnp.uint32), jnp.uint32(0))
    return bits.sum(-1, dtype=jnp.uint32)


def _unpack(words: Array) -> Array:
    """bool[8, 8] from uint32[2]."""
    return ((words[:, None] >> jnp.arange(32, dtype=jnp.uint32) & 1) == 1).reshape(8, 8)


def _shift(x: Words, by: int) -> Words:
    """Every disc moved by `by` squares, -31 to 31; discs that leave the board at its ends are lost."""
    low, high = x
    if by > 0:
        return low << by, high << by | low >> (32 - by)
    return low >> -by | high << (32 + by), high >> -by


def _and(x: Words, y: Words) -> Words:
    return x[0] & y[0], x[1] & y[1]


def _or(x: Words, y: Words) -> Words:
    return x[0] | y[0], x[1] | y[1]


def _run(start: Words, enclosed: Words, by: int) -> Words:
    """The unbroken runs of `enclosed` discs in direction `by`, beginning next to a square of `start`."""
    if by % 8:  # else a row would continue in the next row
        enclosed = enclosed[0] & INNER, enclosed[1] & INNER
    run = _and(enclosed, _shift(start, by))
    run = _or(run, _and(enclosed, _shift(run, by)))
    pairs = _and(enclosed, _shift(enclosed, by))
    for _ in range(2):  # two discs at a time: the longest run is six
        run = _or(run, _and(pairs, _shift(run, 2 * by)))
    return run


def _places(s: State) -> Words:
    """Squares where each player may place a disc: words uint32[2], the mover first in each."""
    low, high = jnp.stack([s.mine, s.others], axis=1)
    own, enclosed = (low, high), (low[::-1], high[::-1])
    ends = functools.reduce(_or, (_shift(_run(own, enclosed, by), by) for by in DIRECTIONS))
    return ends[0] & ~(own[0] | enclosed[0]), ends[1] & ~(own[1] | enclosed[1])


def _turned(square: Words, mine: Array, others: Array) -> Words:
    """Discs that flip when `mine` gets a disc on a square."""
    own, enclosed = (mine[0], mine[1]), (others[0], others[1])

    def one(by: int) -> Words:
        run = _run(square, enclosed, by)
        end = _and(_shift(run, by), own)
        closed = (end[0] | end[1]) != 0
        return jnp.where(closed, run[0], jnp.uint32(0)), jnp.where(closed, run[1], jnp.uint32(0))

    return functools.reduce(_or, (one(by) for by in DIRECTIONS))


# Rules


def init(key: Array | None = None) -> State:
    del key  # there is one start position
    black, white = (jnp.asarray(np.packbits(START.ravel() == c, bitorder="little").view("<u4")) for c in (1, -1))
    return State(black, white, jnp.int8(0), jnp.int8(-1))


def over(s: State) -> Array:
    low, high = _places(s)
    return (s.forfeit >= 0) | ((low | high) == 0).all()


def mask(s: State) -> Array:
    """bool[65], squares where a disc flips others; the pass if only the opponent has such squares."""
    low, high = _places(s)
    mover, other = low | high
    passes = (mover == 0) & (other != 0)
    return jnp.concatenate([_unpack(jnp.stack([low[0], high[0]])).ravel(), passes[None]]) & (s.forfeit < 0)


def player(s: State) -> Array:
    return s.to_move.astype(jnp.int32)


def move(s: State, action: Array | int) -> State:
    """Position after a legal action."""
    action = jnp.asarray(action, jnp.int32)
    bit = jnp.uint32(1) << (action & 31).astype(jnp.uint32)
    low, high = (jnp.where(action >> 5 == word, bit, jnp.uint32(0)) for word in range(2))  # neither for a pass
    turned = jnp.stack(_turned((low, high), s.mine, s.others))
    return State(s.others & ~turned, s.mine | turned | jnp.stack([low, high]), 1 - s.to_move, s.forfeit)


def step(s: State, action: Array | int) -> State:
    """Position after any action: an illegal action forfeits, and a finished game does not change."""
    allowed = mask(s)
    legal = (allowed & (jnp.arange(65) == action)).any()
    forfeit = jnp.where(allowed.any() & ~legal, s.to_move, s.forfeit)
    moved = move(s, jnp.where(legal, action, PASS))
    return State(*(jnp.where(legal, new, old) for new, old in zip(moved, s, strict=True)))._replace(forfeit=forfeit)


def _count(words: Array) -> Array:
    """int32[], number of set bits."""
    return jax.lax.population_count(words).sum(-1, dtype=jnp.int32)


def rewards(s: State) -> Array:
    """float32[2]"""
    lead = jnp.sign(_count(s.mine) - _count(s.others)) * jnp.where(s.to_move == 0, 1, -1)
    by_discs = lead * jnp.array([1.0, -1.0])
    return jnp.where(s.forfeit >= 0, forfeit_rewards(s.forfeit, 2), jnp.where(over(s), by_discs, 0.0))


def owners(s: State) -> Array:
    """int8[65]: owner of the disc on each square once the game is over; 2 for an empty square and the pass."""
    discs = jnp.where(_unpack(s.mine), s.to_move, jnp.where(_unpack(s.others), 1 - s.to_move, 2)).ravel()
    return jnp.pad(jnp.where(over(s), discs, 2), (0, 1), constant_values=2).astype(jnp.int8)


def board(s: State) -> Array:
    """int8[8, 8]: 1 black, -1 white, 0 empty."""
    mine = jnp.where(s.to_move == 0, 1, -1).astype(jnp.int8)
    return _unpack(s.mine) * mine - _unpack(s.others) * mine


def observe(s: State) -> Array:
    """float32[8, 8, 5], for the mover: own discs, the opponent's discs, the squares where a disc of the mover flips
    others, likewise for the opponent, ones."""
    low, high = _places(s)
    boards = [s.mine, s.others, *(jnp.stack([low[i], high[i]]) for i in range(2))]
    planes = [*map(_unpack, boards), jnp.ones((8, 8), bool)]
    # A TPU stacks floats in fewer passes than bools.
    return jnp.stack([plane.astype(jnp.float32) for plane in planes], axis=-1)


def evaluate(s: State) -> Array:
    """float32[] in [-1, 1]: the mover's places and corners against the opponent's; exact once the game is over."""
    places = jax.lax.population_count(jnp.stack(_places(s))).sum(0, dtype=jnp.int32)
    corners = _count(s.mine & jnp.asarray(CORNERS)) - _count(s.others & jnp.asarray(CORNERS))
    share = (places[0] - places[1]) / jnp.maximum(places[0] + places[1], 1)
    return jnp.where(over(s), rewards(s)[s.to_move], 0.99 * (share / 2 + corners / 8)).astype(jnp.float32)


def symmetries() -> tuple[Symmetry, ...]:
    """The eight symmetries of the square."""

    def symmetry(turn):
        turned = lambda words: _pack(turn.grid(_unpack(words)))
        state = lambda s: s._replace(mine=turned(s.mine), others=turned(s.others))
        return Symmetry(turn.name, np.append(turn.squares, np.int32(PASS)), turn.grid, state)

    return tuple(symmetry(turn) for turn in rectangle_turns(8, 8))


# For people


def parse_action(text: str) -> int:
    if text.strip().lower() not in NAMES:
        raise ValueError(f"no move '{text}': expected a column and a row, a1 to h8, or pass")
    return NAMES.index(text.strip().lower())


def show(s: State) -> str:
    """Text picture: X black, O white, * legal squares, . empty, with the counts and the player to move or the result
    below."""
    cells = np.array(["O", ".", "X"])[np.asarray(board(s)) + 1]
    cells[np.asarray(mask(s))[:64].reshape(8, 8)] = "*"
    status = pictures.words(_status(MARKED), _status_codes(s))
    return "\n".join(["   a b c d e f g h", *(f"{r + 1}  {' '.join(row)}" for r, row in enumerate(cells)), status])


def why_illegal(s: State, action: int) -> str:
    if jax.jit(mask)(s)[action]:
        return ""
    if action == PASS:
        return "a pass is only allowed if no disc can be placed"
    return f"{NAMES[action]} {'is taken' if board(s).ravel()[action] else 'would enclose no disc'}"


def why_over(s: State) -> str:
    if s.forfeit >= 0 or not over(s):
        return forfeit_words(SEATS, s.forfeit)
    black, white = int((board(s) > 0).sum()), int((board(s) < 0).sum())
    return f"no legal move on either side, {max(black, white)} discs to {min(black, white)}"


def _status(seats: Sequence[str]) -> tuple[Layer, ...]:
    counts = Layer(words="X {}"), Layer(words=", O {}; ")
    return *counts, pictures.standing(seats), Layer(words=("", " and must pass"))


def _status_codes(s: State) -> tuple[Array, ...]:
    standing = pictures.standing_code(over(s), s.to_move, rewards(s))
    return (board(s) > 0).sum(), (board(s) < 0).sum(), standing, mask(s)[PASS]


def _picture() -> Picture:
    """Legal squares are dotted."""
    disc = lambda fill: pictures.disc(CELL * 0.41, f'fill="{fill}" stroke="#20242a" stroke-opacity="0.4"')
    square = Layer(pictures.square(CELL, 'fill="#3d8a5a" stroke="#2b6a43"'))
    layers = square, pictures.stones(SEATS, disc("#20242a"), disc("#f5f5f5")), pictures.legal(CELL * 0.1, "#f0c343")
    look = lambda s: (_status_codes(s), (0, board(s) % 3, mask(s)[:PASS]))
    names, status = NAMES[:PASS], _status(SEATS)
    return pictures.board("Othello", names, "abcdefgh", "12345678", CELL, status, layers, look, above=True)


# Records


def to_record(s: State) -> dict[str, Any]:
    """JSON-ready record: `board` square by square (1 black, -1 white), `to_move` 1 or -1. `forfeit` is present only
    after a forfeit."""
    record = {"board": np.asarray(board(s)).ravel().tolist(), "to_move": 1 - 2 * int(s.to_move)}
    return records.with_forfeit(record, s.forfeit)


def from_record(record: dict[str, Any]) -> State:
    """Position of a record.

    Raises:
        ValueError: a field is missing, unknown or out of range, or the position cannot occur; the message says which.
    """
    records.fields("othello", record, ("board", "to_move"))
    turn, squares = records.turn("othello", record), records.cells("othello", "board", record["board"], 64, "squares")
    discs = np.array(squares, np.int8).reshape(8, 8)
    if not discs[3:5, 3:5].all():
        raise ValueError("othello record: the four squares in the middle are never empty")
    if np.count_nonzero(discs) == 4 and ((discs != START).any() or turn != 1):
        raise ValueError("othello record: four discs are only those of the start, with black to move")
    if np.count_nonzero(discs) == 5 and turn != -1:
        raise ValueError("othello record: after one move white is to move")
    if not _connected(discs != 0):
        raise ValueError("othello record: a disc stands apart, but each was put next to another one")
    mover = (1 - turn) // 2
    mine, others = (_pack(jnp.asarray(discs == colour)) for colour in (turn, -turn))
    s = State(mine, others, jnp.int8(mover), jnp.int8(-1))
    return s._replace(forfeit=jnp.int8(records.forfeit("othello", record, mover, lambda: over(s))))


def _connected(filled: np.ndarray) -> bool:
    """Whether all discs are connected to the middle, by edges or corners."""
    reached = np.zeros((10, 10), bool)
    reached[4:6, 4:6] = True
    for _ in range(64):
        wide = [reached[r : r + 8, c : c + 8] for r in range(3) for c in range(3)]
        reached[1:9, 1:9] = np.any(wide, axis=0) & filled
    return bool((reached[1:9, 1:9] == filled).all())


def action_name(action: int) -> str:
    return NAMES[int(action)]


def make() -> Game:
    return Game(
        name="othello",
        num_players=2,
        num_actions=65,
        max_plies=119,  # 60 discs; no pass before the first, after the last or after another pass
        # A place and one of its directions belong to one own disc at the end of the run, and to one flipped disc next
        # to the place. So m and n discs allow at most min(8 m, 8 n, 64 - m - n) places, which is at most 50.
        max_legal=50,
        init=init,
        step=step,
        move=move,
        mask=mask,
        over=over,
        player=player,
        rewards=rewards,
        observe=observe,
        symmetries=symmetries(),
        show=show,
        action_name=action_name,
        parse_action=parse_action,
        to_record=to_record,
        from_record=from_record,
        hints=Hints(evaluate=evaluate, owners=owners),
        view=board_view(
            __doc__,
            SEATS,
            _picture(),
            action_name,
            {PASS: "Pass"},
            legend="X Black, O White, . empty, * legal move",
            lesson=LESSON,
            why_illegal=why_illegal,
            why_over=why_over,
        ),
    )
