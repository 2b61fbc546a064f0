"""Random games of Connect Four on several sizes against a plain search."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from plain_stones import has_row, planes_of_columns

from envs.connect_four import Rules

SIZES = [(6, 7, 4), (4, 5, 3), (9, 3, 5), (5, 12, 4), (1, 8, 4), (26, 2, 6), (2, 2, 2)]


@functools.cache
def playout(rows: int, cols: int, connect: int):
    """Compiled (key) -> stones uint32 pairs, results and boards of one random game with moves that may be illegal."""
    rules = Rules(rows, cols, connect)

    def play(key):
        def ply(s, key):
            action = jax.random.randint(key, (), 0, cols)
            action = jnp.where(rules.mask(s).any() & ~rules.mask(s)[action], rules.mask(s).argmax(), action)
            facts = rules.board(s), rules.over(s), rules.rewards(s), rules.mask(s), rules.observe(s), action
            return rules.step(s, action), facts

        return jax.lax.scan(ply, rules.init(), jax.random.split(key, rows * cols + 1))[1]

    return jax.jit(jax.vmap(play))


@pytest.mark.parametrize("size", SIZES)
def test_random_games_follow_the_plain_rules(size):
    rows, cols, connect = size
    facts = jax.device_get(playout(*size)(jax.random.split(jax.random.key(3), 6)))
    results = set()
    for boards, over, rewards, legal, planes, actions in zip(*facts, strict=True):
        board, turn = np.zeros((rows, cols), int), 1
        for ply in range(rows * cols + 1):
            won = has_row(board, -turn, connect)
            np.testing.assert_array_equal(boards[ply], board)
            assert over[ply] == (won or board.all())
            assert rewards[ply].tolist() == ([-turn, turn] if won else [0, 0])
            assert legal[ply].tolist() == [not over[ply] and cell == 0 for cell in board[0]]
            np.testing.assert_array_equal(planes[ply], planes_of_columns(board, turn, connect))
            if over[ply]:
                results.add(int(won) * -turn)
                np.testing.assert_array_equal(boards[ply:], np.broadcast_to(board, boards[ply:].shape))
                break
            c = actions[ply]
            board[np.flatnonzero(board[:, c] == 0)[-1], c] = turn
            turn = -turn
        else:
            raise AssertionError("the game has no end")
    assert results
