"""Replay buffer: a ring of whole iterations in device arrays.

Time leads, [L, B], so an iteration of T plies is one contiguous write. The rows of a game follow one another in one
lane. One pass over a few scalars of each row therefore completes the results of all games.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from agents.config import Config, LearnerOptions
from agents.training.selfplay import Row, value_targets
from envs.game import Array, Game, Symmetry


class Replay(NamedTuple):
    rows: Row  # [L, B, ...]
    result: Array  # float32[L, B, n], result by seat, starting from the mover
    target: Array  # float32[L, B, n], target of the value head: the result blended with searched values
    known: Array  # bool[L, B], the row may be drawn: its game has ended
    cursor: Array  # int32[], next row of time to write, the oldest once the ring is full


def ring_length(game: Game, config: Config) -> int:
    """Rows of time (L): the capacity in whole iterations, but at least the longest game plus one iteration."""
    t = config.plies_per_iteration
    wanted = max(config.replay_capacity / config.num_envs, game.max_plies + t)
    return math.ceil(wanted / t) * t


def empty_replay(rows: Row, length: int) -> Replay:
    """An empty ring for rows shaped like `rows` [T, B, ...]."""
    ring = jax.tree.map(lambda x: jnp.zeros((length, *x.shape[1:]), x.dtype), rows)
    known = jnp.zeros((length, rows.done.shape[1]), bool)
    unknown = jnp.zeros((*known.shape, rows.rewards.shape[-1]), jnp.float32)
    return Replay(ring, unknown, jnp.copy(unknown), known, jnp.int32(0))


def insert(replay: Replay, rows: Row, value_lambda: float, max_plies: int) -> Replay:
    """Writes one iteration [T, B] over the oldest one, and completes the results of games that ended in it. No game has
    more than `max_plies` rows."""
    length, added = replay.known.shape[0], rows.done.shape[0]
    write = lambda ring, new: jax.lax.dynamic_update_slice_in_dim(ring, new, replay.cursor, axis=0)
    ring = jax.tree.map(write, replay.rows, rows)
    cursor = (replay.cursor + added) % length
    # Oldest first. Games with older rows ended before this iteration.
    recent = min(max_plies + added, length)
    order = (cursor - recent + jnp.arange(recent)) % length
    last = jax.tree.map(lambda x: x[order], ring._replace(observation_state=None, owners=None))
    # Rows never written have no `done`: they stay unknown unless a finished game follows them.
    result, known = value_targets(last, 1.0)
    target = result if value_lambda == 1 else value_targets(last, value_lambda)[0]
    written = (last.actions >= 0).any(-1) & (last.policy > 0).any(-1)
    update = lambda ring, new: ring.at[order].set(new)
    return Replay(
        ring,
        result=update(replay.result, result),
        target=update(replay.target, target),
        known=update(replay.known, known & written),
        cursor=cursor,
    )


class Batch(NamedTuple):
    planes: Array  # float32[M, R, C, P]
    actions: Array  # int32[M, K], -1 in empty slots
    policy: Array  # float32[M, K]
    value: Array  # float32[M] for the mover, [M, n] by seat for more than two players: target of the value head
    future: Array | None = None  # int8[M, A], see `future_moves` and `owners_in_the_end`


def future_moves(game: Game, replay: Replay, index: Array) -> Array:
    """The player who makes each move in the rest of the game: int8[M, A], action codes in the mover's frame.

    Each entry is the seat of the first player to make the move from the row `index` on, counted from the row's mover.
    It is the number of players where nobody makes the move, and -1 where a resignation leaves that unknown.
    """
    length, lanes = replay.known.shape
    rows, lane, start = replay.rows, index % lanes, index // lanes
    mover = rows.player[start, lane].astype(jnp.int32)
    codes, n = jnp.arange(game.num_actions), game.num_players

    def ply(carry):
        h, first, plays, known = carry
        t = (start + h) % length
        action = rows.action[t, lane].astype(jnp.int32)
        if game.to_mover_frame is not None:
            action = jnp.asarray(game.to_mover_frame)[mover, action]
        made = plays & ~rows.resigned[t, lane]
        seat = ((rows.player[t, lane] - mover) % n).astype(jnp.int8)
        new = (codes == action[:, None]) & made[:, None] & (first == n)
        return h + 1, jnp.where(new, seat[:, None], first), plays & ~rows.done[t, lane], known & (made | ~plays)

    everyone = jnp.ones(index.shape, bool)
    nobody = jnp.full((*index.shape, game.num_actions), n, jnp.int8)
    goes_on = lambda carry: carry[2].any() & (carry[0] < length)
    _, first, _, known = jax.lax.while_loop(goes_on, ply, (jnp.int32(0), nobody, everyone, everyone))
    return jnp.where(known[:, None] | (first < n), first, -1).astype(jnp.int8)


def owners_in_the_end(game: Game, replay: Replay, index: Array) -> Array:
    """Owner of each action's cell at the end of the game of the row `index`: int8[M, A]. Seats, codes and unknowns are
    as in `future_moves`."""
    length, lanes = replay.known.shape
    rows, lane, start = replay.rows, index % lanes, index // lanes
    assert rows.owners is not None

    def ply(carry):
        h, t, goes_on = carry
        t = jnp.where(goes_on, (t + 1) % length, t)
        return h + 1, t, goes_on & ~rows.done[t, lane]

    unfinished = lambda carry: carry[2].any() & (carry[0] < length)
    _, end, _ = jax.lax.while_loop(unfinished, ply, (jnp.int32(0), start, ~rows.done[start, lane]))
    n, mover = game.num_players, rows.player[start, lane].astype(jnp.int32)[:, None]
    owner = rows.owners[end, lane].astype(jnp.int32)
    if game.to_mover_frame is not None:
        owner = jnp.take_along_axis(owner, jnp.asarray(np.argsort(game.to_mover_frame, axis=1))[mover[:, 0]], axis=1)
    seats = jnp.where(owner < n, (owner - mover) % n, n)
    return jnp.where(rows.resigned[end, lane][:, None] | (owner < 0), -1, seats).astype(jnp.int8)


class Turns:
    """Symmetries of a game for a batch of M rows.

    The batch is cut into one part per symmetry. Rows are drawn at random, so each row meets a random symmetry, without
    a gather or a branch. With fewer rows than symmetries, a row's number selects its symmetry.
    """

    def __init__(self, symmetries: Sequence[Symmetry], numbers: Array):
        """`numbers` int32[M] of the rows; a row drawn at another time needs another number."""
        rows, self.symmetries = len(numbers), symmetries
        parts = [rows * i // len(self.symmetries) for i in range(len(self.symmetries) + 1)]
        self.parts = list(map(slice, parts[:-1], parts[1:]))
        mixed = numbers.astype(jnp.uint32) * jnp.uint32(0x9E3779B1) >> 16
        self.which = mixed % len(self.symmetries) if rows < len(self.symmetries) else None

    def planes(self, planes: Array) -> Array:
        """Observations [M, R, C, P]."""
        return self._each(lambda symmetry, planes: jax.vmap(symmetry.planes)(planes), planes)

    def codes(self, codes: Array) -> Array:
        """Actions int32[M, K], -1 in empty slots."""
        image = lambda symmetry, codes: jnp.asarray(symmetry.actions)[jnp.maximum(codes, 0)]
        return self._each(lambda symmetry, codes: jnp.where(codes < 0, -1, image(symmetry, codes)), codes)

    def of_actions(self, x: Array) -> Array:
        """One value per action, [M, A]."""
        return self._each(lambda symmetry, x: x[:, np.argsort(symmetry.actions)], x)

    def _each(self, turn: Callable[[Symmetry, Array], Array], x: Array) -> Array:
        if self.which is None:
            return jnp.concatenate([turn(s, x[part]) for s, part in zip(self.symmetries, self.parts, strict=True)])
        return jnp.stack([turn(symmetry, x) for symmetry in self.symmetries])[self.which, jnp.arange(len(x))]


def learned_symmetries(game: Game, config: LearnerOptions) -> tuple[Symmetry, ...]:
    """The symmetries through which rows are learned; at least the identity."""
    return game.symmetries if config.augment else game.symmetries[:1]


class Drawn(NamedTuple):
    """Rows of the ring as they are stored; arrays lead with [M]. `batch_of` makes a batch of them."""

    observation_state: Any
    actions: Array  # int16[K], -1 in empty slots
    policy: Array  # float16[K]
    value: Array  # float32[n] by seat from the mover: target of the value head
    number: Array  # int32[], which differs from row to row and from draw to draw
    future: Array | None = None  # int8[A], see `future_moves` and `owners_in_the_end`


def take(game: Game, replay: Replay, index: Array, config: Config) -> Drawn:
    """The rows `index` int32[M], positions in the flattened ring, with the auxiliary targets that `config` needs."""
    at = lambda x: x.reshape(-1, *x.shape[2:])[index]
    rows = replay.rows
    known = future_moves if rows.owners is None else owners_in_the_end
    return Drawn(
        observation_state=jax.tree.map(at, rows.observation_state),
        actions=at(rows.actions),
        policy=at(rows.policy),
        value=at(replay.target),
        number=index + replay.cursor + jnp.arange(len(index)),
        future=known(game, replay, index) if config.future_weight else None,
    )


def batch_of(game: Game, drawn: Drawn, config: LearnerOptions) -> Batch:
    """A batch of the rows, each seen through a symmetry of the game."""
    turns = Turns(learned_symmetries(game, config), drawn.number)
    return Batch(
        planes=turns.planes(jax.vmap(game.observe)(drawn.observation_state)),
        actions=turns.codes(drawn.actions.astype(jnp.int32)),
        policy=drawn.policy.astype(jnp.float32),
        value=drawn.value[:, 0] if game.num_players == 2 else drawn.value,
        future=None if drawn.future is None else turns.of_actions(drawn.future),
    )


def sample(game: Game, replay: Replay, index: Array, config: Config) -> Batch:
    """A batch of the rows `index` int32[M], positions in the flattened ring."""
    return batch_of(game, take(game, replay, index, config), config)


def window(game: Game, config: Config, iteration: Array) -> Array:
    """Rows of time to draw from after `iteration` iterations, int32[]: `replay_share` of those written so far, but at
    least the longest game plus one iteration, so that a lane always has rows whose game has ended."""
    written = iteration * config.plies_per_iteration
    least = game.max_plies + config.plies_per_iteration
    return jnp.maximum((config.replay_share * written).astype(jnp.int32), least)


def recent(replay: Replay, plies: Array) -> Replay:
    """The replay without the rows that were written more than `plies` plies of self-play ago."""
    length = len(replay.known)
    return replay._replace(known=replay.known & (_ages(replay, jnp.arange(length)) < plies)[:, None])


def draw(replay: Replay, key: Array, shape: tuple[int, ...]) -> Array:
    """Draws rows with known results, all equally often: positions in the flattened ring, int32 of `shape`."""
    upto = jnp.cumsum(replay.known.ravel().astype(jnp.int32))
    return jnp.searchsorted(upto, jax.random.randint(key, shape, 0, upto[-1]), side="right").astype(jnp.int32)


def first_in_game(replay: Replay, marked: Array) -> Array:
    """The first `marked` row of each game, bool[L, B], as far back as the ring goes."""
    oldest_first = lambda x: jnp.roll(x, -replay.cursor, axis=0)
    marked, done = oldest_first(marked), oldest_first(replay.rows.done)
    before = jnp.cumsum(marked, axis=0, dtype=jnp.int32) - marked
    begins = jnp.concatenate([jnp.ones_like(done[:1]), done[:-1]])
    of_earlier_games = jax.lax.cummax(jnp.where(begins, before, 0), axis=0)
    return jnp.roll(marked & (before == of_earlier_games), replay.cursor, axis=0)


def age(replay: Replay, index: Array) -> Array:
    """Plies of self-play since the rows `index` were written."""
    return _ages(replay, index // replay.known.shape[1])


def _ages(replay: Replay, t: Array) -> Array:
    return (replay.cursor - 1 - t) % len(replay.known)


def row_bytes(rows: Any) -> int:
    """Bytes of one row of `rows` [T, B, ...]."""
    t, b = rows.done.shape
    return sum(x.dtype.itemsize * x.size // (t * b) for x in jax.tree.leaves(rows))
