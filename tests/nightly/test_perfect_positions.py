"""Perfect play from all positions of tic-tac-toe, and where the theory of Flight of Queen knows the result."""

import dataclasses

import jax
import numpy as np
import pytest
from solved_tictactoe import proofs_play_perfectly, solved_tictactoe, table_network
from toys import DEEP, KINDS, blank_network, choose, stack

import envs
from agents.config import Config


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


def corridors(game, mine, other, to_move):
    """A position in which each queen stands at the end of a corridor of so many free squares, the mover's first."""
    lengths = (mine, other) if to_move == 0 else (other, mine)
    free = {9 * row + 1 + i for row, length in zip((0, 7), lengths, strict=True) for i in range(length)}
    ripped = sorted(set(range(72)) - free)
    record = {"variant": "foq", "rows": 8, "cols": 9, "ripped": ripped, "queens": [0, 63], "to_move": to_move}
    return game.from_record(record)


@pytest.mark.parametrize("kind", KINDS)
def test_proofs_know_what_the_theory_of_the_game_does(kind):
    """Who has more squares to walk to wins, and only if he takes one at a time: seven plies and more before the end,
    after sixteen simulations with a network that knows nothing."""
    game = envs.make("foq")
    states = stack([corridors(game, *lengths, mover) for lengths in ((6, 5), (5, 5)) for mover in (0, 1)])
    config = Config(num_simulations=16, search=kind, max_num_considered_actions=16, proofs=True)
    found = choose(game, blank_network(72), config, states)
    assert found.action[:2].tolist() == [1, 64]
    assert found.value.tolist() == [1, 1, -1, -1]
    without = choose(game, blank_network(72), dataclasses.replace(config, proofs=False), states)
    assert (np.abs(without.value) < 1).all()
