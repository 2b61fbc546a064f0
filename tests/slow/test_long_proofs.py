"""Proofs of larger boards of Flight of Queen."""

import pytest
from solved_boards import solves

# Section 8 of the rules, solved by another program: all winning first moves
LONG = [
    ("foq_single:rows=3,cols=5", {4}),
    ("foq:rows=3,cols=5", {3, 5, 6}),
    ("foq:rows=4,cols=6", {14}),
    ("foq:rows=5,cols=7", {3, 14}),
    ("foq:rows=6,cols=6", set()),
    ("foq_single:rows=4,cols=4", {15}),
    ("foq_single:rows=5,cols=6", {5}),
    ("foq_single:rows=5,cols=7", {6}),
    ("foq_single:rows=6,cols=6", {5, 14, 30}),
]


@pytest.mark.parametrize(("spec", "winning"), LONG)
def test_boards_of_flight_of_queen(spec, winning):
    solves(spec, winning)
