"""What a network sees of a position of Go: liberties, or earlier boards as AlphaGo Zero does."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from envs.game import Array
from envs.go.points import either, one_point, to_board, to_rows
from envs.go.rules import State

LAST_MOVES = 2  # shown beside liberties


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


def observed(s: State) -> Observed:
    return Observed(s.stones, s.to_move)


def tactics(s: State) -> Tactics:
    two = to_rows((_liberties(s.chain) == 2) & (s.chain != s.chain.size))
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
    boards = to_board(stones)
    sides = jnp.concatenate([jnp.where(to_move == 0, boards, boards[:, ::-1])[:, i] for i in range(2)])
    black = jnp.broadcast_to(to_move == 0, (1, size, size))
    return jnp.moveaxis(jnp.concatenate([sides, black]), 0, -1).astype(jnp.float32)


def observe_history(s: State | Observed, past: Observed, played: Array) -> Array:
    """float32[n, n, 2 k + 1], the planes of AlphaGo Zero: own stones now, one move ago, ..., the opponent's
    stones likewise, ones if Black is to move. Boards before the start are empty."""
    missing = jnp.arange(past.stones.shape[0]) >= played
    earlier = jnp.where(missing[:, None, None], 0, past.stones)
    return _boards_as_planes(jnp.concatenate([s.stones[None], earlier]), s.to_move)


def observe_liberties(s: State | Tactics, past: Observed, played: Array) -> Array:
    """float32[n, n, 11], for the mover: own stones and the opponent's; of these, those with one liberty, likewise, and
    with two; the point that may not be retaken; the points of the last two moves; ones; ones if Black is to move."""
    seen = s if isinstance(s, Tactics) else tactics(s)
    size = seen.stones.shape[-1]
    before = jnp.concatenate([seen.stones[None], past.stones])
    known = (jnp.arange(LAST_MOVES) < played)[:, None]
    moves = jnp.where(known, either(before[:-1] & ~before[1:]), 0)
    sides = jnp.where(seen.to_move == 0, seen.stones, seen.stones[::-1])
    sets = jnp.concatenate([sides, sides & seen.one, sides & seen.two, one_point(seen.ko, size)[None], moves])
    ones = jnp.ones((1, size, size), bool)
    planes = jnp.concatenate([to_board(sets), ones, ones & (seen.to_move == 0)])
    return jnp.moveaxis(planes, 0, -1).astype(jnp.float32)
