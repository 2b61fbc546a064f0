"""Sequential halving: its schedule by hand, and contenders visited side by side against the same contenders in turn."""

import jax
import jax.numpy as jnp
import numpy as np
from phases_in_turn import compare
from toys import bandit_game, blank_network, choose

import envs
from agents.config import Config
from agents.search import halving


def test_phases_by_hand():
    """8 simulations on 4 edges: each once, then the better two twice. On 3 of 10: each once, then two share seven."""
    assert halving.halving_phases(4, 8) == (((4, 1),), ((2, 2),))
    assert halving.halving_phases(3, 10) == (((3, 1),), ((2, 3), (1, 1)))
    assert halving.halving_phases(16, 32) == (((16, 1),), ((8, 1),), ((4, 2),))
    assert halving.halving_phases(16, 10) == (((10, 1),),)
    assert halving.halving_phases(1, 5) == (((1, 5),),)


def test_a_bandit_side_by_side():
    """32 pulls of sixteen arms: each once, the better eight once more, and the best four of these twice more."""
    worth = jnp.array([0.1, -0.9, 0.8, 0.2, -0.3, 0.7, 0.0, -0.6, 0.6, -0.1, 0.3, -0.5, 0.9, -0.2, 0.4, -0.8])
    states = jnp.full(2, -1)
    config = Config(num_simulations=32, max_num_considered_actions=16)
    found = choose(bandit_game(worth), blank_network(16), config, states, order="side_by_side")
    assert found.visits[0].tolist() == [2, 1, 4, 2, 1, 4, 1, 1, 4, 1, 2, 1, 4, 1, 2, 1]
    assert found.action.tolist() == [12, 12]
    np.testing.assert_allclose(found.qvalues[0], worth, atol=1e-6)
    assert found.depth[0] == 1


def test_where_fewer_moves_are_legal_each_gets_the_visits_of_a_contender():
    """16 simulations on four edges: each twice, then two of them four times more. Two moves left get 6 each."""
    game = envs.make("tictactoe")
    state = game.from_record({"board": [-1, 1, -1, 1, 1, -1, 1, 0, 0], "to_move": -1})
    config = Config(num_simulations=16, max_num_considered_actions=4)
    states = jax.tree.map(lambda x: jnp.asarray(x)[None], state)
    found = choose(game, blank_network(9), config, states, order="side_by_side")
    assert found.visits[0].tolist() == [0] * 7 + [6, 6]
    assert found.action[0] == 8  # completes the column and wins


def test_side_by_side_are_the_trees_of_the_same_contenders_in_turn(monkeypatch):
    compare(monkeypatch, "tictactoe", simulations=8)
