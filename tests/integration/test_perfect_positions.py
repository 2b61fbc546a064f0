"""Perfect play from all positions of tic-tac-toe, by perfect values and by proofs."""

import dataclasses

import jax
import numpy as np
import pytest
from solved_tictactoe import proofs_play_perfectly, solved_tictactoe, table_network
from toys import DEEP, KINDS, choose

import envs


@pytest.fixture(scope="module")
def solved(golden):
    """Every unfinished position of tic-tac-toe, the moves that keep its value, and that value for the mover."""
    return solved_tictactoe(golden)


def test_perfect_values_give_perfect_play_from_every_position(solved):
    """Gumbel search that sees each move once, and PUCT with simulations enough for its means."""
    states, right, values = solved
    game, net = envs.make("tictactoe"), table_network(states, values)
    empty = (np.asarray(states.board).reshape(len(right), 9) == 0).sum(1)
    for moves in range(1, 10):
        here = empty == moves
        some = jax.tree.map(lambda x, here=here: x[here], states)
        found = choose(game, net, dataclasses.replace(DEEP, num_simulations=moves), some)
        assert right[here][np.arange(here.sum()), found.action].all()
    found = choose(game, net, dataclasses.replace(DEEP, search="puct", c_puct=1.25, num_simulations=200), states)
    assert right[np.arange(len(right)), found.action].all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("empty", "positions"), [(4, 65)])
def test_proofs_play_perfectly_with_a_network_that_is_wrong(kind, empty, positions, solved):
    """Where the rest of the game fits into the search: so many empty cells, and with them at most so many positions."""
    proofs_play_perfectly(kind, empty, positions, solved)
