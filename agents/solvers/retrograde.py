"""Perfect play for small games: a table of every reachable position with its value and best moves."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from agents.actions import legal_slots
from envs.game import Array, Game

MOST_POSITIONS = 300_000
CHUNK = 4096  # positions expanded in one call


class Table(NamedTuple):
    """Every position reachable from the start, sorted by code."""

    codes: Array  # uint32[M, 2], see `code_of`
    values: Array  # int8[M], result of best play for the mover
    best: Array  # bool[M, A], moves that keep this value; none if the game is over


class Facts(NamedTuple):
    """Rules applied to positions [M] with up to K moves each; numpy arrays on the host once complete."""

    over: Any  # bool[M]
    result: Any  # float32[M], for the mover
    slots: Any  # int32[M, K], legal moves, -1 in empty slots
    same: Any  # bool[M, K], the same player moves again
    child: Any  # int64[M, K], index of the position after the move


def code_of(states: Any) -> Array:
    """Two independent 32-bit hashes of each of the positions [B], uint32[B, 2]. `solve` checks that no two positions
    have the same code; proof searches trust it."""

    def bits(x: Array) -> Array:
        if jnp.issubdtype(x.dtype, jnp.floating):
            x = jax.lax.bitcast_convert_type(jnp.where(x == 0, 0, x).astype(jnp.float32), jnp.int32)  # -0 is 0
        return x.reshape(len(x), -1).astype(jnp.int32).astype(jnp.uint32)

    flat = jnp.concatenate([bits(x) for x in jax.tree.leaves(states)], axis=1)
    place = jnp.arange(1, flat.shape[1] + 1, dtype=jnp.uint32)
    codes = []
    for factor in (0x9E3779B1, 0x85EBCA77):
        x = (flat ^ (place * jnp.uint32(factor))) * jnp.uint32(factor | 1)
        x = (x ^ (x >> 15)) * jnp.uint32(0x2C1B3C6D)
        codes.append((x ^ (x >> 13)).sum(1, dtype=jnp.uint32))
    return jnp.stack(codes, axis=1)


def solve(game: Game) -> Table:
    """Collects all positions from the start, then works back from finished games.

    Raises:
        ValueError: the game is not for two players, has more than `MOST_POSITIONS`, or two positions share a code.
    """
    if game.num_players != 2:
        raise ValueError(f"exact: perfect play is for two players; {game.name} has {game.num_players}")
    facts, codes = explore(game)
    wide = codes[:, 0].astype(np.uint64) << np.uint64(32) | codes[:, 1]
    if len(np.unique(wide)) < len(wide):
        raise ValueError(f"exact: two positions of {game.name} have the same code")
    values, worth = evaluate_table(facts)
    best = np.zeros((len(values), game.num_actions), bool)
    where, slot = np.nonzero((facts.slots >= 0) & (worth == values[:, None]) & ~facts.over[:, None])
    best[where, facts.slots[where, slot]] = True
    order = np.argsort(wide)
    return Table(jnp.asarray(codes[order]), jnp.asarray(values[order], jnp.int8), jnp.asarray(best[order]))


def explore(game: Game) -> tuple[Facts, np.ndarray]:
    """All positions from the start, numbered in the order of discovery, and their codes uint32[M, 2]."""
    look = jax.jit(functools.partial(_look, game))
    new = jax.tree.map(lambda x: np.asarray(x)[None], game.init())
    numbers = {_keys(new)[0]: 0}
    parts, codes = [], []
    while len(jax.tree.leaves(new)[0]):
        facts, code, children = _in_chunks(look, new)
        fresh, child = [], np.full(facts.slots.size, -1)
        for i, key in enumerate(_keys(children)):
            if facts.slots.flat[i] < 0:
                continue
            if key not in numbers:
                numbers[key] = len(numbers)
                fresh.append(i)
            child[i] = numbers[key]
        if len(numbers) > MOST_POSITIONS:
            raise ValueError(f"exact: {game.name} has more than {MOST_POSITIONS} positions")
        parts.append(facts._replace(child=child.reshape(facts.slots.shape)))
        codes.append(code)
        new = jax.tree.map(lambda x, fresh=fresh: x[np.array(fresh, int)], children)
    return jax.tree.map(lambda *x: np.concatenate(x), *parts), np.concatenate(codes)


def _look(game: Game, states: Any) -> tuple[Facts, Array, Any]:
    """Facts about positions [B], their codes, and their successors [B * K]."""
    slots = legal_slots(jax.vmap(game.mask)(states), game.max_legal)
    mover = jax.vmap(game.player)(states)
    children = jax.vmap(lambda s, actions: jax.vmap(lambda a: game.move(s, jnp.maximum(a, 0)))(actions))(states, slots)
    result = jnp.take_along_axis(jax.vmap(game.rewards)(states), mover[:, None], axis=1)[:, 0]
    same = jax.vmap(jax.vmap(game.player))(children) == mover[:, None]
    facts = Facts(jax.vmap(game.over)(states), result, slots, same, slots)
    return facts, code_of(states), jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), children)


def _in_chunks(look: Any, states: Any) -> Any:
    """`look` at any number of positions, in chunks of equal size so that it is compiled once."""
    count = len(jax.tree.leaves(states)[0])
    parts = []
    for low in range(0, count, CHUNK):
        index = np.minimum(np.arange(low, low + CHUNK), count - 1)
        found = jax.device_get(look(jax.tree.map(lambda x, index=index: x[index], states)))
        share = min(CHUNK, count - low) / CHUNK
        parts.append(jax.tree.map(lambda x, share=share: x[: round(len(x) * share)], found))
    return jax.tree.map(lambda *x: np.concatenate(x), *parts)


def _keys(states: Any) -> list[bytes]:
    leaves = [np.ascontiguousarray(x).reshape(len(x), -1).view(np.uint8) for x in jax.tree.leaves(states)]
    return [row.tobytes() for row in np.concatenate(leaves, axis=1)]


def evaluate_table(facts: Facts) -> tuple[np.ndarray, np.ndarray]:
    """Values for the mover of every position, float32[M], and of every move, [M, K]. Sweeps until every position is
    known. This terminates because games do."""
    values = np.where(facts.over, facts.result, np.nan).astype(np.float32)
    worth = np.full(facts.slots.shape, -np.inf, np.float32)
    legal = (facts.slots >= 0) & ~facts.over[:, None]
    while np.isnan(values).any():
        there = values[facts.child]
        worth = np.where(legal, np.where(facts.same, there, -there), -np.inf)
        values = np.where(facts.over, values, worth.max(1))  # nan while a successor is unknown
    return values, worth


def index_in_table(table: Table, states: Any) -> Array:
    """Indices of positions [B] in the table by binary search, int32[B]; -1 for an unreachable position."""
    wanted = code_of(states)
    low = jnp.zeros(len(wanted), jnp.int32)
    high = jnp.full(len(wanted), len(table.codes), jnp.int32)

    def halve(_, bounds):
        low, high = bounds
        middle = (low + high) // 2
        here = table.codes[middle]
        before = (here[:, 0] < wanted[:, 0]) | ((here[:, 0] == wanted[:, 0]) & (here[:, 1] < wanted[:, 1]))
        return jnp.where(before, middle + 1, low), jnp.where(before, high, middle)

    low, _ = jax.lax.fori_loop(0, len(table.codes).bit_length(), halve, (low, high))
    place = jnp.minimum(low, len(table.codes) - 1)
    return jnp.where((table.codes[place] == wanted).all(-1), place, -1)
