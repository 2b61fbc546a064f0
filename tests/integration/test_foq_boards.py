"""Small boards of Flight of Queen, solved move by move."""

from __future__ import annotations

import numpy as np
import pytest
from plain_foq import squares

from envs import foq

FIRST_MOVES = {  # board: (winning, losing) first moves under perfect play
    (3, 3): ([1, 3], []),
    (3, 5): ([3, 5, 6], [1]),
    (4, 4): ([], [1, 2, 4, 8]),
}


@pytest.mark.parametrize("size", FIRST_MOVES)
def test_small_boards_are_won_by_the_known_first_moves(expand, size):
    layers = expand(foq.mask, foq.step, foq.init(*size), size[0] * size[1])
    assert not layers[-1].legal.any()
    wins = np.zeros(len(layers[-1].ways), bool)  # for the player to move, who is stuck in the last layer
    for above, below in zip(layers[-2:0:-1], layers[:1:-1], strict=True):
        lost, wins = ~wins, np.zeros(len(above.ways), bool)
        np.logical_or.at(wins, below.parent, lost[below.child])
    after_first = ~wins[layers[1].child]
    winning, losing = FIRST_MOVES[size]
    assert squares(layers[0].legal[0]) == sorted(winning + losing)
    assert [a for a, won in zip(squares(layers[0].legal[0]), after_first, strict=True) if won] == winning
