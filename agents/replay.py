"""Replay buffer: a ring of whole iterations in device arrays.

Time leads, [L, B]: an iteration of T plies is one contiguous write, and the rows of a game lie in one lane behind one
another, so the outcomes of all games are completed by one pass over a few scalars of each row.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from agents.config import Config
from agents.selfplay import Row, outcomes
from envs.game import Array, Game


class Replay(NamedTuple):
    rows: Row  # [L, B, ...]
    result: Array  # float32[L, B], outcome for the player who moved
    target: Array  # float32[L, B], what the value head learns: the outcome blended with searched values
    known: Array  # bool[L, B], the row's game has ended: it may be drawn
    cursor: Array  # int32[], next row of time to be written, oldest one once the ring is full


def ring_length(game: Game, config: Config) -> int:
    """Rows of time (L): the capacity, but room for the longest game beside one iteration, in whole iterations."""
    t = config.plies_per_iteration
    wanted = max(config.replay_capacity / config.num_envs, game.max_plies + t)
    return math.ceil(wanted / t) * t


def empty_replay(rows: Row, length: int) -> Replay:
    """An empty ring for rows shaped like `rows` [T, B, ...]."""
    ring = jax.tree.map(lambda x: jnp.zeros((length, *x.shape[1:]), x.dtype), rows)
    shape = (length, rows.done.shape[1])
    unknown = jnp.zeros(shape, jnp.float32)
    return Replay(ring, unknown, jnp.copy(unknown), jnp.zeros(shape, bool), jnp.int32(0))


def insert(replay: Replay, rows: Row, value_lambda: float) -> Replay:
    """Writes one iteration [T, B] over the oldest one and completes the outcomes of the games that ended in it."""
    length, added = replay.known.shape[0], rows.done.shape[0]
    write = lambda ring, new: jax.lax.dynamic_update_slice_in_dim(ring, new, replay.cursor, axis=0)
    ring = jax.tree.map(write, replay.rows, rows)
    cursor = (replay.cursor + added) % length
    # Oldest first. Rows never written have no `done`, so they stay unknown but where a finished game follows them.
    order = (cursor + jnp.arange(length)) % length
    scalars = jax.tree.map(lambda x: x[order], ring._replace(memory=None, actions=None, policy=None))
    result, known = outcomes(scalars, 1.0)
    target, _ = outcomes(scalars, value_lambda)
    back = jnp.argsort(order)
    written = (ring.actions >= 0).any(-1) & (ring.policy > 0).any(-1)
    return Replay(ring, result[back], target[back], known[back] & written, cursor)


class Batch(NamedTuple):
    planes: Array  # float32[M, R, C, P]
    actions: Array  # int32[M, K], -1 in empty slots
    policy: Array  # float32[M, K]
    value: Array  # float32[M], target of the value head


def sample(game: Game, replay: Replay, index: Array) -> Batch:
    """The rows `index` int32[M], positions in the flattened ring, each seen through a symmetry of the game.

    The batch is cut into one part for each symmetry: rows are drawn at random, so which one a row meets is random too,
    and no symmetry costs a gather or a branch.
    """
    take = lambda x: x.reshape(-1, *x.shape[2:])[index]
    rows, value = jax.tree.map(take, replay.rows), take(replay.target)
    planes = jax.vmap(game.observe)(rows.memory)
    actions = rows.actions.astype(jnp.int32)
    bounds = [len(index) * i // len(game.symmetries) for i in range(len(game.symmetries) + 1)]
    turned_planes, turned_actions = [], []
    for symmetry, low, high in zip(game.symmetries, bounds, bounds[1:], strict=False):
        turned_planes.append(jax.vmap(symmetry.planes)(planes[low:high]))
        part = actions[low:high]
        turned_actions.append(jnp.where(part < 0, -1, jnp.asarray(symmetry.actions)[jnp.maximum(part, 0)]))
    return Batch(
        jnp.concatenate(turned_planes), jnp.concatenate(turned_actions), rows.policy.astype(jnp.float32), value
    )


def draw(replay: Replay, key: Array, shape: tuple[int, ...]) -> Array:
    """Positions in the flattened ring, uniform over the rows whose outcome is known; int32 of `shape`."""
    count = jnp.cumsum(replay.known.ravel(), dtype=jnp.int32)
    ranks = jax.random.randint(key, shape, 0, jnp.maximum(count[-1], 1))
    return jnp.searchsorted(count, ranks, side="right").astype(jnp.int32)


def age(replay: Replay, index: Array) -> Array:
    """Plies of self-play since the rows `index` were written."""
    length, lanes = replay.known.shape
    return (replay.cursor - 1 - index // lanes) % length


def row_bytes(rows: Any) -> int:
    """Bytes that one row of `rows` [T, B, ...] takes."""
    t, b = rows.done.shape
    return sum(x.dtype.itemsize * x.size // (t * b) for x in jax.tree.leaves(rows))
