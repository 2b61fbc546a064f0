"""Go from 5x5 to 19x19: area scoring, no suicide, simple ko or positional superko, ended by two passes or by a cap.

Points are numbered row by row from the top left and named as usual, without the letter I. The last action is the pass.
On 9x9:

      0  1  2 ...  8        A9 B9 C9 ... J9
      9 10 11 ... 17        A8 B8 C8 ... J8
      :            :         :            :
     72 73 74 ... 80        A1 B1 C1 ... J1       81  pass

A set of points is one word per row with column c in bit c, so its neighbours take two bit shifts and two row shifts.
Each stone stores its chain, and the stones of chains with one liberty (in atari) are marked. Legality needs no more. A
move updates both without following any chain: it joins at most four chains, and only the liberties of the chains next
to the new stone are counted. All other affected chains gain a captured point and so leave atari.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs import pictures, records
from envs.game import (
    Array,
    Game,
    Hints,
    Step,
    Symmetry,
    board_view,
    forfeit_rewards,
    forfeit_words,
    rectangle_turns,
    with_history,
)
from envs.pictures import Layer, Part, Picture

SMALLEST, LARGEST = 5, 19  # sides of a board
LETTERS = "ABCDEFGHJKLMNOPQRST"
SEATS = ("Black", "White")
CELL = 36  # of the picture
LONGEST_HISTORY = 100  # boards that an observation may show
LAST_MOVES = 2  # shown beside liberties
SPREADS = 8  # rows that colours spread in one round of a loop on a GPU


class Memory(NamedTuple):
    """The past, as positional superko needs it. T is the cap on moves."""

    moves: Array  # int16[T], moves made; passes from index `plies` on
    hashes: Array  # uint32[2, T], 64-bit hash of the board before each move; 0 from index `plies` on


class State(NamedTuple):
    """A position on an n x n board. Players are 0 for Black and 1 for White."""

    stones: Array  # uint32[2, n], rows of black and of white stones
    chain: Array  # uint8 or int16[n, n], lowest point of the stone's chain; n * n on empty points
    atari: Array  # uint32[n], rows of the stones whose chain has one liberty
    ko: Array  # int16[], point that may not be retaken, -1 for none
    to_move: Array  # int8[], player to move
    passes: Array  # int8[], consecutive passes just made
    plies: Array  # int16[], moves made
    forfeit: Array  # int8[], player who made an illegal move, -1 for none
    memory: Memory | None = None  # only with positional superko


class Observed(NamedTuple):
    """The part of a position that an observation of boards needs."""

    stones: Array  # uint32[2, n]
    to_move: Array  # int8[]


class Tactics(NamedTuple):
    """The part of a position that an observation of liberties needs."""

    stones: Array  # uint32[2, n]
    to_move: Array  # int8[]
    ko: Array  # int16[]
    one: Array  # uint32[n], stones whose chain has one liberty
    two: Array  # uint32[n], stones whose chain has two liberties


# Tables


@functools.lru_cache(maxsize=16)
def _near(size: int) -> np.ndarray:
    """int16[size * size + 1, 4]: neighbours of each point; off the board, and for the pass, the point itself."""
    points = np.arange(size * size, dtype=np.int16).reshape(size, size)
    around = np.pad(points, 1, constant_values=-1)
    sides = np.stack([around[:-2, 1:-1], around[2:, 1:-1], around[1:-1, :-2], around[1:-1, 2:]], axis=-1)
    near = np.where(sides >= 0, sides, points[..., None]).reshape(-1, 4)
    return np.concatenate([near, np.full((1, 4), size * size, np.int16)])


@functools.lru_cache(maxsize=16)
def _neighbours(size: int) -> list[list[int]]:
    """Neighbours of each point, on the host."""
    return [sorted({int(q) for q in row} - {p}) for p, row in enumerate(_near(size)[:-1])]


@functools.lru_cache(maxsize=16)
def _keys(size: int) -> np.ndarray:
    """uint32[2, 2, n, n]: both words of a stone's random key, by colour and point."""
    rng = np.random.default_rng(size)
    return rng.integers(0, 2**32, (2, 2, size, size), np.uint32)


# Sets of points


def _rows(board: Array) -> Array:
    """uint32[..., n] from bool[..., n, n]."""
    bits = jnp.uint32(1) << jnp.arange(board.shape[-1], dtype=jnp.uint32)
    return jnp.sum(jnp.where(board, bits, 0), axis=-1, dtype=jnp.uint32)


def _board(rows: Array) -> Array:
    """bool[..., n, n] from uint32[..., n]."""
    return (rows[..., None] >> jnp.arange(rows.shape[-1], dtype=jnp.uint32) & 1) == 1


def _point(point: Array, size: int) -> Array:
    """uint32[n]: the set of one point; empty for the pass and for numbers out of range."""
    bit = jnp.uint32(1) << (point % size).astype(jnp.uint32)
    return jnp.where(jnp.arange(size) == point // size, bit, jnp.uint32(0))


def _beside(rows: Array) -> Array:
    """uint32[..., n]: the neighbours of all points of a set; may include points of the set itself."""
    return rows << 1 & 2 ** rows.shape[-1] - 1 | rows >> 1 | _above_and_below(rows)


def _above_and_below(rows: Array) -> Array:
    """uint32[..., n]: the neighbours in the rows above and below."""
    none = jnp.zeros_like(rows[..., :1])
    return jnp.concatenate([rows[..., 1:], none], axis=-1) | jnp.concatenate([none, rows[..., :-1]], axis=-1)


def _count(rows: Array) -> Array:
    """int32[...]: number of points."""
    return jax.lax.population_count(rows).astype(jnp.int32).sum(-1)


def _union(sets: Array) -> Array:
    """uint32[n]: union of uint32[k, n]."""
    return functools.reduce(jnp.bitwise_or, sets)


def _either(stones: Array) -> Array:
    """uint32[..., n]: union of both colours of uint32[..., 2, n]."""
    return stones[..., 0, :] | stones[..., 1, :]


def _empty(stones: Array) -> Array:
    """uint32[n]: empty points."""
    return ~_either(stones) & (2 ** stones.shape[-1] - 1)


def _whole_chains(chain: Array, seeds: Array) -> Array:
    """uint32[n]: all stones of the chains that have a stone in `seeds`.

    The chains found become a set of bits, numbered by chain, in which each stone then looks up its own chain.
    """
    word, shift = chain >> 5, (chain & 31).astype(jnp.uint32)
    bits = jnp.where(_board(seeds), jnp.uint32(1) << shift, 0)
    found = jnp.zeros_like(bits)
    for w in range(chain.size // 32 + 1):
        hit = jax.lax.reduce(jnp.where(word == w, bits, 0), np.uint32(0), jax.lax.bitwise_or, (0, 1))
        found = jnp.where(word == w, hit, found)
    return _rows((found >> shift & 1) == 1)


# Rules


def init(size: int = 9, ko: str = "simple") -> State:
    """The empty board; `ko` is `simple` or `psk`.

    Raises:
        ValueError: a size not from 5 to 19, or an unknown ko rule.
    """
    if not SMALLEST <= size <= LARGEST:
        raise ValueError(f"go: expected {SMALLEST} to {LARGEST} lines, got {size}")
    if ko not in ("simple", "psk"):
        raise ValueError(f"go: unknown ko rule '{ko}'; known: simple, psk")
    cap, none = 2 * size * size, size * size
    memory = Memory(jnp.full(cap, none, jnp.int16), jnp.zeros((2, cap), jnp.uint32))
    return State(
        stones=jnp.zeros((2, size), jnp.uint32),
        chain=jnp.full((size, size), none, _chain_dtype(size)),
        atari=jnp.zeros(size, jnp.uint32),
        ko=jnp.int16(-1),
        to_move=jnp.int8(0),
        passes=jnp.int8(0),
        plies=jnp.int16(0),
        forfeit=jnp.int8(-1),
        memory=memory if ko == "psk" else None,
    )


def _chain_dtype(size: int) -> Any:
    """A small dtype with room for two numbers beyond the points: one for empty points, and one that no point has."""
    return np.uint8 if size * size + 1 < 256 else np.int16


def over(s: State) -> Array:
    """bool[]: two passes in a row, the cap is reached, or someone forfeited."""
    return (s.passes >= 2) | (s.plies >= 2 * s.chain.size) | (s.forfeit >= 0)


def player(s: State) -> Array:
    return s.to_move.astype(jnp.int32)


def _sides(s: State) -> tuple[Array, Array]:
    """uint32[n] twice: the mover's stones and the opponent's."""
    black, white = s.stones
    return jnp.where(s.to_move == 0, black, white), jnp.where(s.to_move == 0, white, black)


def _playable(s: State) -> Array:
    """uint32[n]: empty points where a play is neither suicide nor a ko recapture.

    A play is not suicide if it has a liberty, joins a chain with a liberty to spare, or captures a chain in atari.
    """
    mine, other = _sides(s)
    empty = _empty(s.stones)
    good = empty | (mine & ~s.atari) | (other & s.atari)
    return empty & _beside(good) & ~_point(s.ko, s.chain.shape[0])


def mask(s: State) -> Array:
    """bool[n * n + 1], plays and the pass."""
    plays = _board(_playable(s))
    if s.memory is not None:
        plays = plays & ~_repeating(s)
    return jnp.append(plays.ravel(), True) & ~over(s)


def move(s: State, action: Array | int) -> State:
    """Position after a legal action."""
    size, none = s.chain.shape[0], s.chain.size
    action = jnp.asarray(action).astype(jnp.int32)
    mine, other = _sides(s)
    new = _point(action, size)

    # The chains next to the new stone, one per side.
    label = s.chain.ravel()[jnp.asarray(_near(size))[action]]
    label = jnp.where((label == none) | (action == none), none + 1, label).astype(s.chain.dtype)
    touching = _rows(s.chain == label[:, None, None])
    friends, foes = touching & mine, touching & other
    taken = _union(foes & s.atari)
    joined = new | _union(friends)
    other, mine = other & ~taken, mine | new

    touched = jnp.concatenate([joined[None], foes & ~taken])
    empty = _empty(jnp.stack([mine, other]))
    liberties = _count(_beside(touched) & empty)
    relieved = _whole_chains(s.chain, _beside(taken) & mine & s.atari)
    atari = s.atari & ~(taken | joined | relieved) | _union(jnp.where((liberties == 1)[:, None], touched, 0))

    root = jnp.minimum(action, jnp.where((friends != 0).any(-1), label, none).min()).astype(s.chain.dtype)
    chain = jnp.where(_board(joined), root, jnp.where(_board(taken), none, s.chain)).astype(s.chain.dtype)
    # A recapture restores the last board exactly if one stone took one stone and can itself be taken at once.
    retake = (_count(taken) == 1) & (_count(joined) == 1) & (liberties[0] == 1)
    place = jnp.arange(size) * size + jax.lax.population_count(taken - 1).astype(jnp.int32)
    black = s.to_move == 0
    return State(
        stones=jnp.stack([jnp.where(black, mine, other), jnp.where(black, other, mine)]),
        chain=chain,
        atari=atari,
        ko=jnp.where(retake, jnp.where(taken != 0, place, 0).sum(), -1).astype(jnp.int16),
        to_move=1 - s.to_move,
        passes=jnp.where(action == none, s.passes + 1, 0).astype(jnp.int8),
        plies=s.plies + 1,
        forfeit=s.forfeit,
        memory=None if s.memory is None else _remembering(s, s.memory, action),
    )


def step(s: State, action: Array | int) -> State:
    """Position after any action: an illegal action forfeits, and a finished game does not change."""
    none = s.chain.size
    action = jnp.asarray(action).astype(jnp.int32)
    legal = (action == none) | ((_point(action, s.chain.shape[0]) & _playable(s)) != 0).any()
    moved = move(s, jnp.where(legal, action, none))
    if s.memory is not None:
        again = (s.memory.hashes == _hash(moved.stones)[:, None]).all(0).any()
        legal = legal & ((action == none) | ~again)
    open_ = ~over(s)
    following = jax.tree.map(lambda new, old: jnp.where(legal & open_, new, old), moved, s)
    return following._replace(forfeit=jnp.where(open_ & ~legal, s.to_move, s.forfeit))


# Positional superko


def _hash(stones: Array) -> Array:
    """uint32[2]: sum of the keys of all stones, 0 for the empty board."""
    keys = jnp.asarray(_keys(stones.shape[-1]))
    return jnp.sum(jnp.where(_board(stones), keys, 0), axis=(1, 2, 3), dtype=jnp.uint32)


def _remembering(s: State, memory: Memory, action: Array) -> Memory:
    """Memory after an action."""
    here = jnp.arange(memory.moves.size) == s.plies
    moves = jnp.where(here, action, memory.moves).astype(jnp.int16)
    return Memory(moves, jnp.where(here, _hash(s.stones)[:, None], memory.hashes))


def _repeating(s: State) -> Array:
    """bool[n, n]: points where an otherwise legal play would repeat an earlier board."""
    assert s.memory is not None
    size, none = s.chain.shape[0], s.chain.size
    chain, near = s.chain.ravel(), _near(size)[:-1]
    keys, (lows, highs) = _keys(size).reshape(2, 2, none), s.memory.hashes
    mine, other = (jnp.where(s.to_move == seat, keys[:, 0], keys[:, 1]) for seat in (0, 1))
    # A play subtracts from the hash every adjacent chain in atari, counted once.
    weights = jax.lax.platform_dependent(
        chain,
        cpu=lambda chain: _weights_by_loop(chain, other),
        default=lambda chain: _weights_by_product(chain, keys, s.to_move == 0),
    )
    takes = _board(_sides(s)[1] & s.atari).ravel()[near]
    label = chain[near]
    once = [takes[:, k] & ~(takes[:, :k] & (label[:, :k] == label[:, k : k + 1])).any(-1) for k in range(4)]
    lost = jnp.sum(jnp.where(jnp.stack(once, -1), weights[:, near], 0), axis=-1, dtype=jnp.uint32)
    low, high = _hash(s.stones)[:, None] + mine - lost
    differs = lambda i: (low ^ lows[i]) | (high ^ highs[i])  # 0 for the same board
    # A CPU is many times faster with a loop than with all pairs at once.
    compare = lambda i, least: jnp.minimum(least, differs(i))
    least = jax.lax.platform_dependent(
        cpu=lambda: jax.lax.fori_loop(0, lows.size, compare, jnp.full(none, 2**32 - 1, jnp.uint32), unroll=6),
        default=lambda: differs((slice(None), None)).min(0),
    )
    return (least == 0).reshape(size, size)


def _weights_by_loop(chain: Array, keys: Array) -> Array:
    """uint32[2, N]: at every point the sum of the keys uint32[2, N] on its whole chain, both words."""
    weigh = lambda i, sums: sums + jnp.where(chain == chain[i], keys[:, i, None], 0)
    return jax.lax.fori_loop(0, chain.size, weigh, jnp.zeros_like(keys), unroll=4)


def _weights_by_product(chain: Array, keys: np.ndarray, black: Array) -> Array:
    """uint32[2, N]: the same for the keys uint32[2, 2, N] of the colour that is not to move. Sums of bytes are exact in
    a product of bfloat16 numbers that is accumulated in float32."""
    shifts = np.arange(0, 32, 8, dtype=np.uint32)
    factors = np.moveaxis(keys[..., None] >> shifts & 255, 2, 0).reshape(chain.size, -1)  # [N, word x colour x byte]
    same = (chain[:, None] == chain).astype(jnp.bfloat16)
    sums = jnp.matmul(same, factors.astype(jnp.bfloat16), preferred_element_type=jnp.float32)
    sums = sums.astype(jnp.uint32).reshape(-1, 2, 2, 4)
    return jnp.sum(jnp.where(black, sums[:, :, 1], sums[:, :, 0]) << shifts, axis=-1, dtype=jnp.uint32).T


def _hashes(moves: Array, plies: Array, size: int) -> Array:
    """uint32[2, T]: hashes of a game, recomputed from its moves."""
    replay = lambda s, action: (move(s, action), _hash(s.stones))
    hashes = jax.lax.scan(replay, init(size), moves)[1].T
    return jnp.where(jnp.arange(moves.size) < plies, hashes, 0)


# Score


def area(s: State) -> Array:
    """int32[2]: points of Black and of White: stones, and empty regions that only one colour touches."""
    return _count(_territory(s.stones))


def _along_rows(points: Array, within: Array) -> Array:
    """uint32[..., n]: `points`, and those of `within` that they reach along a row through points of `within`."""
    for shift in (jnp.left_shift, jnp.right_shift):
        free, distance = within, 1
        while distance < points.shape[-1]:
            points = points | free & shift(points, jnp.uint32(distance))
            free = free & shift(free, jnp.uint32(distance))
            distance *= 2
    return points


def _territory(stones: Array) -> Array:
    """uint32[2, n]: the points of Black and of White. Both colours spread over the empty points; a point that only one
    colour reaches belongs to this colour. Outside GPUs a board without stones costs little time."""
    empty, size = _empty(stones), stones.shape[-1]
    spread = lambda reached: _along_rows(reached | _above_and_below(reached) & empty, empty)

    def until_stable(stones):
        start = jnp.zeros_like(stones), _along_rows(stones, empty)
        return jax.lax.while_loop(lambda x: (x[0] != x[1]).any(), lambda x: (x[1], spread(x[1])), start)[1]

    def often_enough(stones):
        # A host waits for a GPU after every round of a loop of unknown length. A shortest path crosses from one row to
        # the next at (size + 1) // 2 points at most, since two crossings side by side would be a detour.
        rounds = math.ceil((size - 1) * ((size + 1) // 2) / SPREADS)
        some = lambda _, reached: functools.reduce(lambda x, _: spread(x), range(SPREADS), reached)
        return jax.lax.fori_loop(0, rounds, some, _along_rows(stones, empty))

    reached = jax.lax.platform_dependent(stones, cuda=often_enough, default=until_stable)
    return reached & ~reached[::-1]


def _counted(s: State) -> Array:
    """uint32[2, n]: the stones of a finished game, else none, so that in a batch only finished games cost work."""
    return jnp.where(over(s), s.stones, 0)


def owners(s: State) -> Array:
    """int8[A]: owner of each point once the game is over; 2 for neutral points and the pass."""
    black, white = _board(_territory(_counted(s))).reshape(2, -1)
    return jnp.pad(jnp.where(black, 0, jnp.where(white, 1, 2)), (0, 1), constant_values=2).astype(jnp.int8)


def _black_result(stones: Array, komi: float) -> Array:
    """float32[]: Black's result if the game ended on this board."""
    black, white = _count(_territory(stones))
    most = stones.shape[-1] ** 2 + 1
    low, high = (int(np.clip(x, -most, most)) for x in (np.floor(komi), np.ceil(komi)))
    return (black - white > low).astype(jnp.float32) - (black - white < high)


def rewards(s: State, komi: float = 7.5) -> Array:
    """float32[2]: the larger area wins, with `komi` points added to White's; equal areas draw."""
    result = _black_result(_counted(s), komi)
    counted = jnp.where(over(s), jnp.stack([result, -result]), 0.0)
    return jnp.where(s.forfeit >= 0, forfeit_rewards(s.forfeit, 2), counted)


def known_result(s: State, komi: float = 7.5) -> Array:
    """float32[]: 1 if the opponent has just passed and the mover is ahead, who then wins with a second pass, else NaN.
    In a batch only positions after a pass cost work."""
    after_pass = (s.passes == 1) & ~over(s)
    result = _black_result(jnp.where(after_pass, s.stones, 0), komi)
    ahead = jnp.where(s.to_move == 0, result, -result) > 0
    return jnp.where(after_pass & ahead, 1.0, jnp.nan)


# Observations


def observed(s: State) -> Observed:
    return Observed(s.stones, s.to_move)


def tactics(s: State) -> Tactics:
    two = _rows((_liberties(s.chain) == 2) & (s.chain != s.chain.size))
    return Tactics(s.stones, s.to_move, s.ko, s.atari, two)


def _liberties(chain: Array) -> Array:
    """int16[n, n]: liberties of the chain of each stone; without meaning on empty points.

    An empty point may touch a chain on several sides. Each of these sides counts for a share of it, in twelfths.
    """
    none, own = chain.size, chain.ravel()
    wide = jnp.pad(chain, 1, constant_values=none)
    beside = jnp.stack([wide[:-2, 1:-1], wide[2:, 1:-1], wide[1:-1, :-2], wide[1:-1, 2:]])  # above, below, left, right
    sides = (beside[:, None] == beside).sum(0, dtype=jnp.int16)
    share = jnp.pad(jnp.where(chain == none, 12 // sides, 0), ((0, 0), (1, 1), (1, 1)))
    of_stone = share[1, :-2, 1:-1] + share[0, 2:, 1:-1] + share[3, 1:-1, :-2] + share[2, 1:-1, 2:]
    of_chain = jnp.sum(jnp.where(own[:, None] == own, of_stone.ravel()[:, None], 0), axis=0, dtype=jnp.int16)
    return of_chain.reshape(chain.shape) // 12


def observe(s: State | Observed) -> Array:
    """float32[n, n, 3], for the mover: own stones, the opponent's stones, ones if Black is to move."""
    return _boards_as_planes(s.stones[None], s.to_move)


def _boards_as_planes(stones: Array, to_move: Array) -> Array:
    """float32[n, n, 2 k + 1] from the boards uint32[k, 2, n], newest first."""
    size = stones.shape[-1]
    boards = _board(stones)
    sides = jnp.concatenate([jnp.where(to_move == 0, boards, boards[:, ::-1])[:, i] for i in range(2)])
    black = jnp.broadcast_to(to_move == 0, (1, size, size))
    return jnp.moveaxis(jnp.concatenate([sides, black]), 0, -1).astype(jnp.float32)


def _observe_history(s: State | Observed, past: Observed, played: Array) -> Array:
    """float32[n, n, 2 k + 1], the planes of AlphaGo Zero: own stones now, one move ago, ..., the opponent's
    stones likewise, ones if Black is to move. Boards before the start are empty."""
    missing = jnp.arange(past.stones.shape[0]) >= played
    earlier = jnp.where(missing[:, None, None], 0, past.stones)
    return _boards_as_planes(jnp.concatenate([s.stones[None], earlier]), s.to_move)


def _observe_liberties(s: State | Tactics, past: Observed, played: Array) -> Array:
    """float32[n, n, 11], for the mover: own stones and the opponent's; of these, those with one liberty, likewise, and
    with two; the point that may not be retaken; the points of the last two moves; ones; ones if Black is to move."""
    seen = s if isinstance(s, Tactics) else tactics(s)
    size = seen.stones.shape[-1]
    before = jnp.concatenate([seen.stones[None], past.stones])
    known = (jnp.arange(LAST_MOVES) < played)[:, None]
    moves = jnp.where(known, _either(before[:-1] & ~before[1:]), 0)
    sides = jnp.where(seen.to_move == 0, seen.stones, seen.stones[::-1])
    sets = jnp.concatenate([sides, sides & seen.one, sides & seen.two, _point(seen.ko, size)[None], moves])
    ones = jnp.ones((1, size, size), bool)
    planes = jnp.concatenate([_board(sets), ones, ones & (seen.to_move == 0)])
    return jnp.moveaxis(planes, 0, -1).astype(jnp.float32)


# Symmetries


def symmetries(size: int) -> tuple[Symmetry, ...]:
    """The eight symmetries of the square; the pass maps to itself."""
    none = size * size

    def symmetry(turn):
        images = np.append(turn.squares, none).astype(np.int32)

        def turned(rows):
            planes = turn.grid(jnp.moveaxis(_board(rows), (-2, -1), (0, 1)))
            return _rows(jnp.moveaxis(planes, (0, 1), (-2, -1)))

        def lowest(chain):
            """Chains are named by their lowest point, which the symmetry may change."""
            flat = chain.ravel()
            first = jnp.where(flat[:, None] == flat, images[:-1], none).min(-1)
            return turn.grid(jnp.where(flat == none, none, first).astype(chain.dtype).reshape(size, size))

        def retaken(ko):
            return jnp.where(ko < 0, -1, jnp.asarray(images)[ko]).astype(jnp.int16)

        def state(s: State | Observed | Tactics) -> State | Observed | Tactics:
            if isinstance(s, Observed):
                return s._replace(stones=turned(s.stones))
            if isinstance(s, Tactics):
                return s._replace(stones=turned(s.stones), ko=retaken(s.ko), one=turned(s.one), two=turned(s.two))
            memory = s.memory
            if memory is not None:
                moves = jnp.asarray(images, jnp.int16)[memory.moves]
                memory = Memory(moves, _hashes(moves, s.plies, size))
            stones, atari = turned(s.stones), turned(s.atari)
            return s._replace(stones=stones, chain=lowest(s.chain), atari=atari, ko=retaken(s.ko), memory=memory)

        return Symmetry(turn.name, images, turn.grid, state)

    return tuple(symmetry(turn) for turn in rectangle_turns(size, size))


# For people


def point_name(action: int, size: int) -> str:
    """`A9` is the top left of 9 x 9, `J1` the bottom right; the letter I is left out."""
    return "pass" if action == size * size else f"{LETTERS[action % size]}{size - action // size}"


def parse_point(text: str, size: int) -> int:
    """Inverse of `point_name`, in upper or lower case; ValueError if no action has this name."""
    word = text.strip().upper()
    names = [point_name(action, size).upper() for action in range(size * size + 1)]
    if word not in names:
        last = point_name(size - 1, size)
        raise ValueError(f"no point '{text}': expected A1 to {last} (letters without I) or pass")
    return names.index(word)


def _cells(stones: Array) -> np.ndarray:
    """int8[n * n]: 1 black, -1 white, 0 empty."""
    black, white = np.asarray(stones)[..., None] >> np.arange(stones.shape[-1], dtype=np.uint32) & 1
    return (black.astype(np.int8) - white.astype(np.int8)).ravel()


def _stars(size: int) -> set[int]:
    """The star points of a board."""
    edge = 2 if size < 12 else 3
    lines = {edge, size - 1 - edge} | ({size // 2} if size % 2 and size > 12 else set())
    points = {r * size + c for r in lines for c in lines} if size > 6 else set()
    return points | ({size * size // 2} if size % 2 else set())


def show(s: State, komi: float = 7.5) -> str:
    """Text picture: X Black, O White, . empty, + marked points, with the player to move or the result below."""
    size = s.chain.shape[0]
    cells = np.where(np.isin(np.arange(size * size), list(_stars(size))), "+", ".")
    cells = np.select([_cells(s.stones) > 0, _cells(s.stones) < 0], ["X", "O"], cells).reshape(size, size)
    status = pictures.words(_status(("Black (X)", "White (O)"), size, komi), _status_codes(s))
    lines = [f"{size - r:2d}  {' '.join(row)}" for r, row in enumerate(cells)]
    return "\n".join([*lines, "    " + " ".join(LETTERS[:size]), status])


def lesson(komi: float, ko: str) -> tuple[Step, ...]:
    board = f"go:size=5,komi={komi},ko={ko},history=1"
    siege = ("C4", "C3", "B3", "E1", "D3", "E2")
    again = {"simple": "at once", "psk": "while that would repeat an earlier position"}[ko]
    return (
        Step(
            "Black begins. The players take turns, and each puts a stone on an empty crossing, or passes. Stones never "
            "move.",
            ("C3", "D4"),
            board,
        ),
        Step(
            "The empty crossings next to a stone, along the lines, are its liberties. Neighbouring stones of one "
            "colour share theirs. The white stone on C3 has one left: C2.",
            siege,
            board,
        ),
        Step(
            "Black has played C2: stones without a liberty are taken off the board. White may not play C3 now, as that "
            "stone would have no liberty and takes nothing.",
            (*siege, "C2"),
            board,
        ),
        Step(
            f"Black has just taken a stone on the marked point. White may not take back {again}: otherwise this could "
            "go on forever.",
            ("B4", "C4", "A3", "D3", "B2", "C2", "E5", "B3", "C3"),
            board,
        ),
        Step(
            "Two passes in a row end the game. Each player counts their stones and the empty points that only they "
            f"enclose. White gets {komi:g} points more for moving second. The larger sum wins.",
            ("C3", "D3", "C2", "D2", "C4", "D4", "C1", "D1", "C5", "D5", "pass", "pass"),
            board,
        ),
    )


def why_illegal(s: State, action: int) -> str:
    size = s.chain.shape[0]
    cells, name = _cells(s.stones).tolist(), point_name(action, size)
    if action == size * size:
        return ""
    if cells[action]:
        return f"there is a stone on {name} already"
    if action == s.ko:
        return f"{name} cannot be taken back at once (ko)"
    if _played(cells, action, 1 - 2 * int(s.to_move), size) is None:
        return f"{name} is suicide: the stone would have no liberty"
    if s.memory is not None and jax.jit(_repeating)(s).ravel()[action]:
        return f"{name} repeats an earlier position (superko)"
    return ""


def why_over(s: State, komi: float) -> str:
    if s.forfeit >= 0 or not over(s):
        return forfeit_words(SEATS, s.forfeit)
    black, white = area(s)
    low, high = sorted((float(black), float(white) + komi))
    ended = "both passed" if s.passes >= 2 else f"the game ends after {int(s.plies)} moves"
    return f"{ended}: {high:g} to {low:g} with komi {komi:g}"


def _status(seats: Sequence[str], size: int, komi: float) -> tuple[Layer, ...]:
    """Who is to move or has won; then the ko and a pass that may end the game, or the areas."""
    margins = [black_lead - komi for black_lead in range(-size * size, size * size + 1)]
    results = [f"{seats[int(margin < 0)]} wins by {abs(margin):g}" if margin else "draw" for margin in margins]
    forfeits = [f"{seat} wins, as the other made an illegal move" for seat in seats[::-1]]
    kos = (f", but not at {point_name(point, size)} (ko)" for point in range(size * size))
    return (
        Layer(words=(*(f"{seat} to move" for seat in seats), *forfeits, *results)),
        Layer(words=tuple(kos)),
        Layer(words=("", ", who may pass too and end the game")),
        Layer(words=": area {}"),
        Layer(words=f" to {{}}, komi {komi:g}"),
    )


def _status_codes(s: State) -> tuple[Array, ...]:
    (black, white), going, forfeit = area(s), ~over(s), s.forfeit >= 0
    standing = jnp.where(forfeit, 2 + s.forfeit, jnp.where(going, s.to_move, 4 + s.chain.size + black - white))
    counted = lambda points: jnp.where(going | forfeit, -1, points)
    return standing, jnp.where(going, s.ko, -1), going & (s.passes > 0), counted(black), counted(white)


@functools.cache
def picture(size: int, komi: float) -> Picture:
    edge, last, middle = CELL * 1.2, CELL * (size + 0.2), CELL * (size + 1.4) / 2
    full = 2 * middle
    ways = "".join(f"M{x:g} {edge:g}V{last:g}M{edge:g} {x:g}H{last:g}" for x in edge + CELL * np.arange(size))
    names = [point_name(point, size) for point in range(size * size)]
    points = pictures.grid(names, size, CELL, edge - CELL / 2, edge - CELL / 2)
    stars = (pictures.disc(CELL * 0.1, 'fill="#5b4526"', points[i].x, points[i].y) for i in sorted(_stars(size)))
    labels = functools.partial(pictures.texts, CELL * 0.33, paint='fill="#4f3b1f"')
    frame = [
        '<defs><radialGradient id="black" cx="0.35" cy="0.3" r="0.8"><stop offset="0" stop-color="#6a6f78"/>'
        '<stop offset="0.6" stop-color="#20242a"/></radialGradient><radialGradient id="white" cx="0.35" cy="0.3" '
        'r="0.9"><stop offset="0" stop-color="#ffffff"/><stop offset="1" stop-color="#cfc9bd"/></radialGradient></defs>'
        f'<rect width="100%" height="100%" rx="{CELL * 0.2:g}" fill="#e3bd7a"/><path d="{ways}" stroke="#5b4526"/>'
        + pictures.square(last - edge, 'fill="none" stroke="#5b4526" stroke-width="2"', middle, middle),
        *stars,
        *(labels(LETTERS[:size], x=edge, y=y + CELL * 0.12, right=CELL) for y in (edge / 3, full - edge / 3)),
        *(labels(range(size, 0, -1), x=x, y=edge + CELL * 0.12, down=CELL) for x in (edge / 3, full - edge / 3)),
    ]
    shadow = pictures.disc(CELL * 0.46, 'fill="#000" opacity="0.25"', y=CELL * 0.04)
    stones = (shadow + pictures.disc(CELL * 0.46, f'fill="url(#{colour})"') for colour in ("black", "white"))
    ko = pictures.square(CELL * 0.4, 'fill="none" stroke="#b3352b" stroke-width="2"')
    contents = Layer(("", *stones, ko), ("empty", *SEATS, "empty, not to be taken back at once (ko)"))
    part = Part(points, (Layer(pictures.square(CELL)), contents))

    def look(s: State) -> tuple[tuple[Any, ...], ...]:
        black, white = _board(s.stones).reshape(2, -1)
        return _status_codes(s), (0, black + 2 * white + 3 * (np.arange(size * size) == s.ko))

    return Picture("Go", full, full, "".join(frame), _status(SEATS, size, komi), (part,), look)


# Records, on the host: a board is a list of n * n cells, 1 black, -1 white, 0 empty


def _chain_at(board: list[int], point: int, neighbours: list[list[int]]) -> tuple[set[int], set[int]]:
    """Stones and liberties of the chain on a point."""
    stones, liberties, open_ = {point}, set(), [point]
    while open_:
        for q in neighbours[open_.pop()]:
            if board[q] == 0:
                liberties.add(q)
            elif board[q] == board[point] and q not in stones:
                stones.add(q)
                open_.append(q)
    return stones, liberties


def _played(board: list[int], point: int, colour: int, size: int) -> list[int] | None:
    """Board after a play on an empty point, None for suicide."""
    board, neighbours = list(board), _neighbours(size)
    board[point] = colour
    for q in neighbours[point]:
        if board[q] == -colour:
            stones, liberties = _chain_at(board, q, neighbours)
            if not liberties:
                board = [0 if p in stones else cell for p, cell in enumerate(board)]
    return board if _chain_at(board, point, neighbours)[1] else None


def _settled(board: list[int], size: int) -> tuple[np.ndarray, np.ndarray]:
    """`chain` and `atari` (as bool[n * n]) of a board; ValueError if a chain has no liberty."""
    chain, atari = np.full(size * size, size * size, _chain_dtype(size)), np.zeros(size * size, bool)
    for point, cell in enumerate(board):
        if cell and chain[point] == size * size:
            stones, liberties = _chain_at(board, point, _neighbours(size))
            if not liberties:
                raise ValueError(f"go record: the chain at {point_name(point, size)} has no liberty")
            chain[list(stones)], atari[list(stones)] = point, len(liberties) == 1
    return chain, atari


def _boards(moves: list[int], size: int) -> list[list[int]]:
    """The boards before each move of a game, and after the last move."""
    boards = [[0] * (size * size)]
    for ply, point in enumerate(moves):
        following = boards[-1] if point == size * size else _played(boards[-1], point, 1 - 2 * (ply % 2), size)
        assert following is not None, "moves of a state are legal"
        boards.append(following)
    return boards


def _moves_between(boards: list[list[int]], size: int) -> list[int]:
    """The moves of a game, from its boards; ValueError if no legal move leads on."""
    if any(boards[0]):
        raise ValueError("go record: the first of the earlier boards must be empty")
    moves: list[int] = []
    for ply, (before, after) in enumerate(itertools.pairwise(boards)):
        colour = 1 - 2 * (ply % 2)
        added = [p for p, (old, new) in enumerate(zip(before, after, strict=True)) if old == 0 and new == colour]
        if before == after:
            moves.append(size * size)
        elif len(added) == 1 and _played(before, added[0], colour, size) == after:
            moves.append(added[0])
        else:
            raise ValueError(f"go record: no move leads from earlier board {ply} to the one after it")
        if moves[-1] != size * size and after in boards[:ply]:
            raise ValueError(f"go record: move {ply + 1} brings back an earlier board against positional superko")
        if moves[-3:-1] == [size * size] * 2:
            raise ValueError("go record: the game goes on after two passes in a row")
    return moves


def _placing(board: list[int], turn: int) -> list[int]:
    """The fewest moves that make a board without captures: stones in order of points, passes for a missing stone."""
    black, white = ([p for p, cell in enumerate(board) if cell == colour] for colour in (1, -1))
    rounds = max(len(black), len(white)) if turn == 1 else max(len(black) - 1, len(white))
    black, white = ((side + [len(board)] * (rounds + 1))[: rounds + 1] for side in (black, white))
    moves = [point for pair in zip(black, white, strict=True) for point in pair]
    return moves[: 2 * rounds + (turn == -1)]


def to_record(s: State | Observed, komi: float = 7.5, ko: str = "simple") -> dict[str, Any]:
    """JSON-ready record: `board` point by point (1 black, -1 white, 0 empty), `to_move` 1 or -1.

    With positional superko, `earlier` lists the boards before each move, the empty board first. `Observed` has none of
    the fields after `to_move`. `forfeit` is present only after a forfeit.
    """
    size, turn = s.stones.shape[-1], 1 - 2 * int(s.to_move)
    record = {"size": size, "komi": komi, "ko": ko, "board": _cells(s.stones).tolist(), "to_move": turn}
    if isinstance(s, Observed):
        return record
    record |= {"passes": int(s.passes), "plies": int(s.plies), "ko_point": int(s.ko)}
    if s.memory is not None:
        record["earlier"] = _boards(np.asarray(s.memory.moves)[: int(s.plies)].tolist(), size)[:-1]
    return records.with_forfeit(record, s.forfeit)


def from_record(record: dict[str, Any]) -> State:
    """Position of a record, of any size and ko rule; the komi is not part of a position.

    `passes`, `plies`, `ko_point` and `earlier` may be omitted together. The stones then count as placed one by one in
    order of points, with passes by the colour that has run out of stones.

    Raises:
        ValueError: a field is missing, unknown or out of range, or the position cannot occur; the message says which.
    """
    ko = record.get("ko") if isinstance(record, dict) else None
    brief = ("size", "komi", "ko", "board", "to_move")
    full = (*brief, "passes", "plies", "ko_point", *(("earlier",) if ko == "psk" else ()))
    records.fields("go", record, brief, full)
    if ko not in ("simple", "psk"):
        raise ValueError(f"go record: ko: expected 'simple' or 'psk', got {ko!r}")
    size = records.whole("go", "size", record["size"], SMALLEST, LARGEST)
    board = records.cells("go", "board", record["board"], size * size)
    to_move = records.turn("go", record)
    chain, atari = _settled(board, size)
    rest = record if "plies" in record else record | _filled(board, record, size)
    plies, passes, point = _check_past(rest, board, size)
    turn = (1 - to_move) // 2
    forfeit = records.forfeit("go", record, turn, lambda: passes == 2 or plies == 2 * size * size)
    cells = np.array(board).reshape(size, size)
    return State(
        stones=_rows(jnp.asarray(np.stack([cells > 0, cells < 0]))),
        chain=jnp.asarray(chain.reshape(size, size)),
        atari=_rows(jnp.asarray(atari.reshape(size, size))),
        ko=jnp.int16(point),
        to_move=jnp.int8(turn),
        passes=jnp.int8(passes),
        plies=jnp.int16(plies),
        forfeit=jnp.int8(forfeit),
        memory=_read_memory(rest, board, size) if ko == "psk" else None,
    )


def _filled(board: list[int], record: dict[str, Any], size: int) -> dict[str, Any]:
    """The fields that a brief record omits."""
    moves = _placing(board, record["to_move"])
    passes = int(moves[-1:] == [size * size])
    return {"passes": passes, "plies": len(moves), "ko_point": -1, "earlier": _boards(moves, size)[:-1]}


def _check_past(record: dict[str, Any], board: list[int], size: int) -> tuple[int, int, int]:
    """`plies`, `passes` and `ko_point` of a record, which must fit the stones."""
    plies = records.whole("go", "plies", record["plies"], 0, 2 * size * size)
    passes = records.whole("go", "passes", record["passes"], 0, min(2, plies))
    point = records.whole("go", "ko_point", record["ko_point"], -1, size * size - 1)
    turn = record["to_move"]
    if plies % 2 != (turn == -1):
        raise ValueError(f"go record: after {plies} moves it is not the turn of {turn}")
    plays = {turn: plies // 2 - (passes == 2), -turn: (plies + 1) // 2 - (passes > 0)}
    if any(board.count(colour) > count for colour, count in plays.items()):
        raise ValueError(f"go record: {plies} moves, the last {passes} of them passes, are too few for the stones")
    if plies > passes and (turn if passes % 2 else -turn) not in board:
        raise ValueError("go record: the colour that made the last play has no stone")
    if point >= 0 and not (passes == 0 and _is_ko(board, point, turn, size)):
        raise ValueError(f"go record: the last move cannot have taken a ko at {point_name(point, size)}")
    return plies, passes, point


def _is_ko(board: list[int], point: int, turn: int, size: int) -> bool:
    """Whether one stone may just have taken one at `point`, so that `turn` could recapture exactly by playing there."""
    around = _neighbours(size)[point]
    if board[point] or any(board[q] != -turn for q in around):
        return False
    chains = [_chain_at(board, q, _neighbours(size)) for q in around]
    takers = [stones for stones, liberties in chains if liberties == {point}]
    return len(takers) == 1 and len(takers[0]) == 1


def _read_memory(record: dict[str, Any], board: list[int], size: int) -> Memory:
    """Memory of a record; the other fields must agree with the game given by `earlier`."""
    earlier, plies, turn = record["earlier"], record["plies"], record["to_move"]
    if not isinstance(earlier, list) or len(earlier) != plies:
        raise ValueError(f"go record: earlier must list the {plies} boards before this one")
    boards = [*(records.cells("go", "earlier board", cells, size * size) for cells in earlier), board]
    moves = _moves_between(boards, size)
    last = next((i for i, point in enumerate(reversed(moves)) if point != size * size), plies)
    if last != record["passes"]:
        raise ValueError(f"go record: after the earlier boards passes must be {last}")
    gone = [p for p, cell in enumerate(boards[-2]) if cell and not board[p]] if plies else []
    ko = gone[0] if len(gone) == 1 and _is_ko(board, gone[0], turn, size) else -1
    if ko != record["ko_point"]:
        raise ValueError(f"go record: after the earlier boards ko_point must be {ko}")
    stones = np.array(earlier, np.int8).reshape(plies, 1, 1, size, size) == np.array([1, -1]).reshape(2, 1, 1)
    later = 2 * size * size - plies
    hashes = np.where(stones, _keys(size), np.uint32(0)).sum((2, 3, 4), np.uint32).T
    played = np.array(moves + [size * size] * later, np.int16)
    return Memory(jnp.asarray(played), jnp.asarray(np.pad(hashes, ((0, 0), (0, later)))))


# The `Game` record


def make(size: int = 9, komi: float = 7.5, ko: str = "simple", history: int = 0) -> Game:
    """Go on `size` x `size` points with `komi` points for White; `ko` is `simple` or `psk` (positional superko).

    Observations show liberties, the ko and the last two moves, see `_observe_liberties`. With `history` they show the
    last `history` boards instead, see `_observe_history`; 8 gives the 17 planes of AlphaGo Zero.

    Raises:
        ValueError: `size` not from 5 to 19, an unknown ko rule, `komi` not finite, or `history` not from 0 to 100.
    """
    init(size, ko)  # rejects other sizes and ko rules
    if not np.isfinite(komi):
        raise ValueError(f"go: komi: expected a finite number, got {komi}")
    if not 0 <= history <= LONGEST_HISTORY:
        raise ValueError(f"go: history: expected 0 to {LONGEST_HISTORY} boards, got {history}")
    komi = float(komi) + 0.0  # without the sign of -0.0

    def from_own_record(record: dict[str, Any]) -> State:
        s = from_record(record)
        for field, own in (("size", size), ("komi", komi), ("ko", ko)):
            if isinstance(record[field], bool) or record[field] != own:
                raise ValueError(f"go record: {field} is {record[field]!r}, but {own!r} in this game")
        return s

    name = lambda action: point_name(int(action), size)
    game = Game(
        name=f"go:size={size},komi={komi},ko={ko},history={history}",
        num_players=2,
        num_actions=size * size + 1,
        max_plies=2 * size * size,
        max_legal=size * size + 1,  # at the start
        init=lambda key=None: init(size, ko),
        step=step,
        move=move,
        mask=mask,
        over=over,
        player=player,
        rewards=lambda s: rewards(s, komi),
        observe=observe,
        symmetries=symmetries(size),
        show=lambda s: show(s, komi),
        action_name=name,
        parse_action=lambda text: parse_point(text, size),
        to_record=lambda s: to_record(s, komi, ko),
        from_record=from_own_record,
        observation_state=observed if history else tactics,
        hints=Hints(owners=owners, known_result=lambda s: known_result(s, komi), moves_are_cheap=False),
        view=board_view(
            f"Go {size}x{size}: the larger area wins; stones that lose their last free neighbour are taken.",
            SEATS,
            picture(size, komi),
            name,
            {size * size: "Pass"},
            legend="X Black, O White, . empty, + empty, a marked point",
            lesson=lesson(komi, ko),
            why_illegal=why_illegal,
            why_over=lambda s: why_over(s, komi),
        ),
    )
    if history == 0:
        return with_history(game, LAST_MOVES + 1, _observe_liberties, keep=observed)
    return game if history == 1 else with_history(game, history, _observe_history)
