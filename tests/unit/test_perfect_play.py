"""Perfect play: with a network that knows the values, and by proofs with one that does not."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import KINDS, blank_network, choose

import envs
from agents.actions import ILLEGAL
from agents.config import Config
from agents.search import selection
from agents.search import tree as tree_search


def after(game, *actions):
    """A batch of the one position that these moves lead to."""
    state = game.init()
    for action in actions:
        state = game.step(state, action)
    return jax.tree.map(lambda x: jnp.asarray(x)[None], state)


@pytest.mark.parametrize("kind", KINDS)
def test_proofs_see_a_win_in_one_that_is_not_even_looked_at(kind):
    """Four in a row at the far end of the board, which five simulations of a network that knows nothing never reach."""
    game = envs.make("gomoku:size=9")
    config = Config(num_simulations=5, search=kind, max_num_considered_actions=5, proofs=True)
    states = after(game, 73, 0, 74, 2, 75, 4, 76, 6)  # X on the last line from its second point on
    found = choose(game, blank_network(81), config, states)
    assert found.visits[0, [72, 77]].sum() == 0
    assert found.action[0] in (72, 77)
    assert found.value[0] == 1
    np.testing.assert_allclose(found.policy[0, [72, 77]], 0.5)  # nothing tells the two wins apart
    blind = choose(game, blank_network(81), dataclasses.replace(config, proofs=False), states)
    assert blind.action[0] not in (72, 77)


@pytest.mark.parametrize("kind", KINDS)
def test_proofs_see_that_a_move_lets_the_other_side_win_at_once(kind):
    """Three in a row at the bottom of Connect Four: all moves but the one beside them lose, as a look at each shows."""
    game = envs.make("connect_four")
    config = Config(num_simulations=7, search=kind, max_num_considered_actions=7, proofs=True)
    found = choose(game, blank_network(7), config, after(game, 0, 0, 1, 1, 2))
    assert found.action[0] == 3
    seen = [move for move in np.flatnonzero(found.visits[0]) if move != 3]
    assert seen and found.policy[0, seen].max() == 0  # what was looked at once is known to lose
    assert found.policy[0, 3] >= 0.25


@pytest.mark.parametrize("kind", KINDS)
def test_a_policy_is_taught_over_moves_that_may_still_be_best(kind):
    """After three simulations three moves are known to lose and nothing of the others."""
    config = Config(num_simulations=3, search=kind, max_num_considered_actions=7, proofs=True)
    game = envs.make("connect_four")
    found = choose(game, blank_network(7), config, after(game, 0, 0, 1, 1, 2))
    assert found.visits[0].tolist() == [1, 1, 1, 0, 0, 0, 0]
    np.testing.assert_allclose(found.policy[0], [0, 0, 0, 0.25, 0.25, 0.25, 0.25], atol=1e-6)
    assert found.action[0] == 3


def test_contenders():
    """Rows: a draw beside an open move; a win beside an open move; all lost; a loss and two open moves; a draw as the
    best there is; a draw at least, beside the place of a move that is not there."""
    low = [[0, -1, -1], [1, -1, -1], [-1, -1, -1], [-1, -1, -1], [0, 0, -1], [-1, 0, -1]]
    high = [[0, 1, -1], [1, 1, -1], [-1, -1, -1], [-1, 1, 1], [0, 0, -1], [-1, 1, 1]]
    left = [[1, 1, 0], [1, 0, 0], [1, 1, 1], [0, 1, 1], [1, 1, 0], [0, 1, 1]]
    logits = jnp.zeros((6, 3)).at[5, 0].set(ILLEGAL)
    zeros = jnp.zeros(6)
    edges = tree_search.Edges(
        logits, jnp.ones((6, 3), jnp.int32), jnp.full((6, 3), 0.5), zeros, zeros, jnp.full(6, 4),
        jnp.array(low, jnp.int8), jnp.array(high, jnp.int8),
    )  # fmt: skip
    found = selection.final_candidates(edges)
    np.testing.assert_array_equal(selection.legal(found), np.array(left, bool))
    np.testing.assert_array_equal(found.edge_values[0], [0, 0.5, -1])
