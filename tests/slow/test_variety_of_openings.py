"""Fairness does not cost variety: every game, twenty seeds."""

import pytest
from opening_variety import enough_different


def test_a_lucky_play_out_does_not_decide_an_opening():
    """Of 120 openings all but one counted as decided here, and that one was the only opening of a match."""
    enough_different("go:size=9", seeds=[77], pairs=20)


@pytest.mark.parametrize(
    "name",
    [
        "tictactoe", "connect_four", "sum_to_100", "foq", "foq_single", "foq_multi", "evopawness", "othello",
        "hex:size=5", "hex:size=11", "gomoku:size=9", "go:size=5", "go:size=5,komi=24.5", "go:size=7", "go:size=9",
    ],
)  # fmt: skip
def test_fairness_does_not_cost_variety_in_any_game(name):
    enough_different(name, seeds=range(20))
