"""Small boards of Flight of Queen, solved backwards."""

import jax
import numpy as np
import pytest

import envs
from agents.solvers import retrograde


@pytest.mark.parametrize(
    "spec, winning",
    [
        ("foq:rows=3,cols=3", {1, 3}),
        ("foq:rows=3,cols=5", {3, 5, 6}),
        ("foq:rows=4,cols=4", set()),
        ("foq_single:rows=3,cols=5", {4}),
        ("foq_single:rows=4,cols=4", {15}),
    ],
)
def test_small_boards_of_flight_of_queen(spec, winning):
    """The winning first moves, all of them, from another solver; without one every move is as good as any."""
    game = envs.make(spec)
    table = retrograde.solve(game)
    start = jax.tree.map(lambda x: x[None], game.init())
    place = int(retrograde.index_in_table(table, start)[0])
    assert int(table.values[place]) == (1 if winning else -1)
    best = set(np.flatnonzero(table.best[place]).tolist())
    assert best == (winning or set(np.flatnonzero(game.mask(game.init())).tolist()))
