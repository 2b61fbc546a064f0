"""The eight symmetries of positions of Go and of what is observed of them."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from envs.game import Symmetry, rectangle_turns
from envs.go.observation import Observed, Tactics
from envs.go.points import to_board, to_rows
from envs.go.rules import Memory, State, hashes_of


def symmetries(size: int) -> tuple[Symmetry, ...]:
    """The eight symmetries of the square; the pass maps to itself."""
    none = size * size

    def symmetry(turn):
        images = np.append(turn.squares, none).astype(np.int32)

        def turned(rows):
            planes = turn.grid(jnp.moveaxis(to_board(rows), (-2, -1), (0, 1)))
            return to_rows(jnp.moveaxis(planes, (0, 1), (-2, -1)))

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
                memory = Memory(moves, hashes_of(moves, s.plies, size))
            stones, atari = turned(s.stones), turned(s.atari)
            return s._replace(stones=stones, chain=lowest(s.chain), atari=atari, ko=retaken(s.ko), memory=memory)

        return Symmetry(turn.name, images, turn.grid, state)

    return tuple(symmetry(turn) for turn in rectangle_turns(size, size))
