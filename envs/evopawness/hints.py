"""The score and the bias of the game's author: hints for search and training."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np

from envs.evopawness.rules import (
    CELLS,
    CODES,
    DEAD,
    KING,
    MAX_ATK,
    MAX_HP,
    MAX_PLIES,
    MAX_STEP,
    OFF,
    SHIFTS,
    SIDE,
    SKIP,
    SLEEPER,
    State,
    over,
    player,
    rewards,
)
from envs.game import Array


@functools.cache
def _targets() -> np.ndarray:
    """int32[A], the cell that a move or attack leads to; `OFF` for other actions and off the board."""
    targets = np.full((CELLS, CODES), OFF, np.int32)
    for cell in range(CELLS):
        for k, (dy, dx) in enumerate(SHIFTS, 5):
            y, x = cell // SIDE + dy, cell % SIDE + dx
            if 0 <= y < SIDE and 0 <= x < SIDE:
                targets[cell, k] = y * SIDE + x
    return np.append(targets.ravel(), OFF).astype(np.int32)


def urge(s: State) -> Array:
    """float32[A]: 0.6 for an attack and 0.5 for a promotion. With this bias the game's author kept early training games
    from ending at the length cap."""
    foes = s.cell[1 - (s.turn & 1)]
    attacked = (jnp.arange(CELLS)[:, None] == foes).any(-1)
    k = np.arange(SKIP + 1) % CODES
    promotes = (k >= 1) & (k <= 4) & (np.arange(SKIP + 1) != SKIP)
    hits = jnp.append(attacked, False)[_targets()]
    return jnp.where(promotes, 0.5, jnp.where(hits, 0.6, 0.0)).astype(jnp.float32)


MOST_POINTS = 5 * (0.3 * MAX_HP + 0.1 * (MAX_ATK + MAX_STEP)) + MAX_HP + 5 * 10


def points(s: State) -> Array:
    """float32[2], the game author's score of each side, at most `MOST_POINTS`: 0.3 of the hp and 0.1 of atk and step of
    its active pawns, the king's hp, and 10 for every dead enemy pawn."""
    active = (s.kind > SLEEPER) & (s.kind < KING)
    pawns = jnp.where(active, 0.3 * s.hp + 0.1 * (s.atk + s.step), 0.0).sum(-1)
    kings = jnp.where(s.kind == KING, s.hp, 0).sum(-1)
    return pawns + kings + 10.0 * (s.kind[::-1, :5] == DEAD).sum(-1)


def strength(s: State, max_plies: int | None = MAX_PLIES) -> Array:
    """float32[] in [-1, 1]: the mover's scaled lead in `points`; the exact result once the game is over."""
    of_both, mine = points(s), player(s)
    ahead = (of_both[mine] - of_both[1 - mine]) / MOST_POINTS
    return jnp.where(over(s, max_plies), rewards(s)[mine], 0.99 * ahead).astype(jnp.float32)
