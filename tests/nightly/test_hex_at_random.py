"""Random games of Hex on several sizes against a plain flood."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from plain_stones import joins, planes_of_edges

import envs
from agents.solvers.solve import make_solver


def test_solved_positions_agree_with_proofs(golden):
    """The other solver's winning moves and those proved under the rules here, late in games on 5 x 5."""
    game = envs.make("hex:size=5")
    prove = make_solver(game, 1 << 17)
    late, decided = [r for r in golden("hex_5x5_solved.jsonl.gz") if r["board"].count(0) <= 16], 0
    for record in late[:3]:
        winning = set(record.pop("winning"))
        proved = {a: value for a, value in prove(game.from_record(record), all_moves=True).moves.items() if value}
        assert {action for action, value in proved.items() if value == 1} == winning & proved.keys()
        decided += len(proved)
    assert decided >= 40  # of 48


@functools.cache
def playout(spec: str):
    game = envs.make(spec)

    @jax.jit
    @jax.vmap
    def play(key):
        def ply(s, key):
            legal = game.mask(s)
            action = jax.random.categorical(key, jnp.where(legal, 0.0, -jnp.inf)).astype(jnp.int32)
            facts = s.groups, legal, game.over(s), game.rewards(s), game.observe(s), action
            return game.step(s, action), facts

        return jax.lax.scan(ply, game.init(), jax.random.split(key, game.max_plies + 1))[1]

    return play


@pytest.mark.parametrize(("size", "swap", "lanes"), [(2, True, 40), (3, False, 20), (5, True, 30), (12, True, 4)])
def test_random_games_follow_the_plain_rules(size, swap, lanes):
    facts = jax.device_get(playout(f"hex:size={size},swap={swap}")(jax.random.split(jax.random.key(5), lanes)))
    winners, swaps = set(), 0
    for groups, legal, over, rewards, planes, actions in zip(*facts, strict=True):
        board = np.zeros((size, size), int)
        for ply in range(len(over)):
            turn = 1 - 2 * (ply % 2)
            np.testing.assert_array_equal(np.sign(groups[ply]), board.ravel())
            won = joins(board, -turn)
            assert not joins(board, turn)
            assert over[ply] == won
            assert rewards[ply].tolist() == ([-turn, turn] if won else [0, 0])
            can_swap = swap and ply == 1
            want = [*(board == 0).ravel(), *([can_swap] if swap else [])]
            assert legal[ply].tolist() == [not won and bool(x) for x in want]
            seen = board if turn == 1 else -board.T
            np.testing.assert_array_equal(planes[ply], planes_of_edges(seen, can_swap, won))
            if won:
                winners.add(-turn)
                break
            if actions[ply] == size**2:
                (r, c), swaps = np.argwhere(board)[0], swaps + 1
                board[r, c] = 0
                board[c, r] = -1
            else:
                board[divmod(int(actions[ply]), size)] = turn
        else:
            raise AssertionError("the game has no end")
    assert winners == {1, -1} or size == 12
    assert (swaps > 0) == swap or size > 3
