"""Moves, positional superko and the score of Go, as pure functions on positions.

Each stone stores its chain, and the stones of chains with one liberty (in atari) are marked. Legality needs no more. A
move updates both without following any chain: it joins at most four chains, and only the liberties of the chains next
to the new stone are counted. All other affected chains gain a captured point and so leave atari.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.game import Array, forfeit_rewards
from envs.go.points import (
    above_and_below,
    beside,
    count,
    empty_points,
    near_table,
    one_point,
    to_board,
    to_rows,
    union,
)

SMALLEST, LARGEST = 5, 19  # sides of a board
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


# Moves


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
        chain=jnp.full((size, size), none, chain_dtype(size)),
        atari=jnp.zeros(size, jnp.uint32),
        ko=jnp.int16(-1),
        to_move=jnp.int8(0),
        passes=jnp.int8(0),
        plies=jnp.int16(0),
        forfeit=jnp.int8(-1),
        memory=memory if ko == "psk" else None,
    )


def chain_dtype(size: int) -> Any:
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
    empty = empty_points(s.stones)
    good = empty | (mine & ~s.atari) | (other & s.atari)
    return empty & beside(good) & ~one_point(s.ko, s.chain.shape[0])


def mask(s: State) -> Array:
    """bool[n * n + 1], plays and the pass."""
    plays = to_board(_playable(s))
    if s.memory is not None:
        plays = plays & ~repeating(s)
    return jnp.append(plays.ravel(), True) & ~over(s)


def move(s: State, action: Array | int) -> State:
    """Position after a legal action."""
    size, none = s.chain.shape[0], s.chain.size
    action = jnp.asarray(action).astype(jnp.int32)
    mine, other = _sides(s)
    new = one_point(action, size)

    # The chains next to the new stone, one per side.
    label = s.chain.ravel()[jnp.asarray(near_table(size))[action]]
    label = jnp.where((label == none) | (action == none), none + 1, label).astype(s.chain.dtype)
    touching = to_rows(s.chain == label[:, None, None])
    friends, foes = touching & mine, touching & other
    taken = union(foes & s.atari)
    joined = new | union(friends)
    other, mine = other & ~taken, mine | new

    touched = jnp.concatenate([joined[None], foes & ~taken])
    empty = empty_points(jnp.stack([mine, other]))
    liberties = count(beside(touched) & empty)
    relieved = _whole_chains(s.chain, beside(taken) & mine & s.atari)
    atari = s.atari & ~(taken | joined | relieved) | union(jnp.where((liberties == 1)[:, None], touched, 0))

    root = jnp.minimum(action, jnp.where((friends != 0).any(-1), label, none).min()).astype(s.chain.dtype)
    chain = jnp.where(to_board(joined), root, jnp.where(to_board(taken), none, s.chain)).astype(s.chain.dtype)
    # A recapture restores the last board exactly if one stone took one stone and can itself be taken at once.
    retake = (count(taken) == 1) & (count(joined) == 1) & (liberties[0] == 1)
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


def _whole_chains(chain: Array, seeds: Array) -> Array:
    """uint32[n]: all stones of the chains that have a stone in `seeds`.

    The chains found become a set of bits, numbered by chain, in which each stone then looks up its own chain.
    """
    word, shift = chain >> 5, (chain & 31).astype(jnp.uint32)
    bits = jnp.where(to_board(seeds), jnp.uint32(1) << shift, 0)
    found = jnp.zeros_like(bits)
    for w in range(chain.size // 32 + 1):
        hit = jax.lax.reduce(jnp.where(word == w, bits, 0), np.uint32(0), jax.lax.bitwise_or, (0, 1))
        found = jnp.where(word == w, hit, found)
    return to_rows((found >> shift & 1) == 1)


def step(s: State, action: Array | int) -> State:
    """Position after any action: an illegal action forfeits, and a finished game does not change."""
    none = s.chain.size
    action = jnp.asarray(action).astype(jnp.int32)
    legal = (action == none) | ((one_point(action, s.chain.shape[0]) & _playable(s)) != 0).any()
    moved = move(s, jnp.where(legal, action, none))
    if s.memory is not None:
        again = (s.memory.hashes == _hash(moved.stones)[:, None]).all(0).any()
        legal = legal & ((action == none) | ~again)
    open_ = ~over(s)
    following = jax.tree.map(lambda new, old: jnp.where(legal & open_, new, old), moved, s)
    return following._replace(forfeit=jnp.where(open_ & ~legal, s.to_move, s.forfeit))


# Positional superko


@functools.lru_cache(maxsize=16)
def stone_keys(size: int) -> np.ndarray:
    """uint32[2, 2, n, n]: both words of a stone's random key, by colour and point."""
    rng = np.random.default_rng(size)
    return rng.integers(0, 2**32, (2, 2, size, size), np.uint32)


def _hash(stones: Array) -> Array:
    """uint32[2]: sum of the keys of all stones, 0 for the empty board."""
    keys = jnp.asarray(stone_keys(stones.shape[-1]))
    return jnp.sum(jnp.where(to_board(stones), keys, 0), axis=(1, 2, 3), dtype=jnp.uint32)


def _remembering(s: State, memory: Memory, action: Array) -> Memory:
    """Memory after an action."""
    here = jnp.arange(memory.moves.size) == s.plies
    moves = jnp.where(here, action, memory.moves).astype(jnp.int16)
    return Memory(moves, jnp.where(here, _hash(s.stones)[:, None], memory.hashes))


def repeating(s: State) -> Array:
    """bool[n, n]: points where an otherwise legal play would repeat an earlier board."""
    assert s.memory is not None
    size, none = s.chain.shape[0], s.chain.size
    chain, near = s.chain.ravel(), near_table(size)[:-1]
    keys, (lows, highs) = stone_keys(size).reshape(2, 2, none), s.memory.hashes
    mine, other = (jnp.where(s.to_move == seat, keys[:, 0], keys[:, 1]) for seat in (0, 1))
    # A play subtracts from the hash every adjacent chain in atari, counted once.
    weights = jax.lax.platform_dependent(
        chain,
        cpu=lambda chain: _weights_by_loop(chain, other),
        default=lambda chain: _weights_by_product(chain, keys, s.to_move == 0),
    )
    takes = to_board(_sides(s)[1] & s.atari).ravel()[near]
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


def hashes_of(moves: Array, plies: Array, size: int) -> Array:
    """uint32[2, T]: hashes of a game, recomputed from its moves."""
    replay = lambda s, action: (move(s, action), _hash(s.stones))
    hashes = jax.lax.scan(replay, init(size), moves)[1].T
    return jnp.where(jnp.arange(moves.size) < plies, hashes, 0)


# Score


def area(s: State) -> Array:
    """int32[2]: points of Black and of White: stones, and empty regions that only one colour touches."""
    return count(_territory(s.stones))


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
    empty, size = empty_points(stones), stones.shape[-1]
    spread = lambda reached: _along_rows(reached | above_and_below(reached) & empty, empty)

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
    black, white = to_board(_territory(_counted(s))).reshape(2, -1)
    return jnp.pad(jnp.where(black, 0, jnp.where(white, 1, 2)), (0, 1), constant_values=2).astype(jnp.int8)


def _black_result(stones: Array, komi: float) -> Array:
    """float32[]: Black's result if the game ended on this board."""
    black, white = count(_territory(stones))
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
