"""What a network sees of a position of EvoPawness."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from envs.evopawness.rules import (
    BISHOP,
    CELLS,
    DEAD,
    KING,
    KNIGHT,
    MAX_PLIES,
    OFF,
    QUEEN,
    ROOK,
    RUNE_CELLS,
    SIDE,
    SLEEPER,
    SOLDIER,
    TURNS_PER_REFRESH,
    State,
    options,
    over,
)
from envs.game import Array


def _facts(s: State, viewer: Array, max_plies: int | None) -> tuple[Array, Array]:
    """Contents of the board, with the pieces of `viewer` as own and moving up: 12 pieces and the 3 rune cells.

    Returns:
        (cells int32[15], facts float32[28, 15]): the cell of each, `OFF` if dead, and its values in the planes there.
    """
    turned = (viewer == 1) & (s.cell != OFF)
    cell = jnp.where(turned, s.cell + (CELLS - SIDE) - 2 * SIDE * (s.cell // SIDE), s.cell)
    spend, shift = options(s)
    counts = jax.lax.population_count(spend) + jax.lax.population_count(shift)
    moves = jnp.where((jnp.arange(2)[:, None] == (s.turn & 1)) & ~over(s, max_plies), counts, 0)
    kinds = [s.kind == kind for kind in (KNIGHT, ROOK, BISHOP)]
    kinds += [(s.kind == SOLDIER) | (s.kind == SLEEPER), s.kind == QUEEN, s.kind == KING]
    mana = jnp.broadcast_to(s.mana[:, None], (2, 6))
    of_pieces = [s.hp, s.atk, s.step, s.kind != DEAD, *kinds, mana, moves]
    own = (jnp.arange(2) == viewer)[:, None]
    pairs = [jnp.where(side, x, 0).ravel() for x in of_pieces for side in (own, ~own)]
    nothing = jnp.zeros(12)
    turn = jnp.eye(3) * (s.turn % TURNS_PER_REFRESH)
    of_runes = [*jnp.zeros((22, 3)), *turn, s.runes, *jnp.zeros((2, 3))]
    facts = [
        jnp.concatenate([x.astype(jnp.float32), y.astype(jnp.float32)])
        for x, y in zip([*pairs[:22], *[nothing] * 4, *pairs[22:]], of_runes, strict=True)
    ]
    return jnp.concatenate([cell.ravel().astype(jnp.int32), RUNE_CELLS]), jnp.stack(facts)


def _planes(cells: Array, facts: Array) -> Array:
    """float32[9, 9, 28 n]: n frames, int[n, 15] and [n, 28, 15] as from `_facts`, put on the board."""
    frames, planes, _ = facts.shape

    def added(cells: Array, facts: Array) -> Array:
        board = jnp.zeros((CELLS + 1, frames, planes))
        return board.at[cells, jnp.arange(frames)[:, None]].add(facts.mT)[:CELLS].reshape(CELLS, -1)

    def multiplied(cells: Array, facts: Array) -> Array:
        """A matrix unit multiplies by zeros faster than it puts frames side by side. Exact in any precision, since all
        are small whole numbers."""
        facts = jax.lax.optimization_barrier(facts)  # else they are put side by side one by one
        repeated = jnp.einsum("fpc,pq->fcq", facts, np.tile(np.eye(planes), frames))
        blocks = (repeated * np.kron(np.eye(frames), np.ones(planes))[:, None]).reshape(-1, frames * planes)
        return (jnp.arange(CELLS)[:, None] == cells.ravel()).astype(jnp.float32) @ blocks

    return jax.lax.platform_dependent(cells, facts, tpu=multiplied, default=added).reshape(SIDE, SIDE, -1)


def observe(s: State, max_plies: int | None = MAX_PLIES) -> Array:
    """float32[9, 9, 28], for the mover, own pieces moving up; own plane before the opponent's, see the table.

    Values are counts or 0 and 1, on the cells of the pieces:

        0, 1  hp     8, 9    knight   16, 17      queen              25      cells with a rune
        2, 3  atk   10, 11   rook     18, 19      king               26, 27  legal actions of each piece
        4, 5  step  12, 13   bishop   20, 21      the owner's mana
        6, 7  any   14, 15   soldier  22, 23, 24  turn modulo 5, each on one rune cell
    """
    cells, facts = _facts(s, s.turn & 1, max_plies)
    return _planes(cells[None], facts[None])


def observe_history(s: State, past: State, played: Array, max_plies: int | None) -> Array:
    """float32[9, 9, 28 n]: planes 28 h to 28 h + 27 show the position h plies ago, all 0 before the start."""
    frames = jax.tree.map(lambda x, y: jnp.concatenate([x[None], y]), s, past)
    cells, facts = jax.vmap(lambda frame: _facts(frame, s.turn & 1, max_plies))(frames)
    return _planes(jnp.where((jnp.arange(len(facts)) <= played)[:, None], cells, OFF), facts)
