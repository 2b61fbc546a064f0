"""Counted move sequences and solved boards of the variants of Flight of Queen."""

from __future__ import annotations

import numpy as np
import pytest
from plain_foq import squares

import envs
from envs import foq_multi, foq_single

RULES = {"foq_single": foq_single, "foq_multi": foq_multi}


@pytest.fixture(scope="module")
def solved(golden):
    """Solved positions of the single game, as records with answers and as states."""
    lines = golden("foq_variants_solved.jsonl.gz")
    game = envs.make("foq_single")
    return lines, [game.from_record({k: v for k, v in p.items() if k not in ("legal", "winning")}) for p in lines]


COUNTS = {
    ("foq_single", 8, 8): [1, 21, 381, 6657, 102117, 1397767],
    ("foq_single", 3, 3): [1, 6, 29, 108, 286, 556, 750, 560, 138, 0],
    ("foq_multi", 8, 9): [1, 11, 106, 1228, 11584, 106708],
    ("foq_multi", 5, 6): [1, 6, 18, 70, 187, 553, 1471, 4211, 11950, 33293],
}


@pytest.mark.parametrize("start", COUNTS, ids=lambda start: "-".join(map(str, start)))
def test_move_sequence_counts(expand, start):
    variant, *size = start
    want, rules = COUNTS[start], RULES[variant]
    layers = expand(rules.mask, rules.step, rules.init(*size), len(want) - 2)
    counts = [int(layer.ways.sum()) for layer in layers]
    below = int((layers[-1].ways * layers[-1].legal.sum(-1)).sum())  # one deeper, without making the positions
    assert [*counts, below] == want


def winning_moves(layers) -> list[int]:
    """First moves after which every defence loses; a player who is stuck wins."""
    won = ~layers[-1].legal.any(-1)  # by the player to move
    assert won.all()
    for above, below in zip(layers[-2:0:-1], layers[:1:-1], strict=True):
        lost, won = ~won, ~above.legal.any(-1)
        np.logical_or.at(won, below.parent, lost[below.child])
    first = squares(layers[0].legal[0])
    return [a for a, other in zip(first, won[layers[1].child], strict=True) if not other]


FIRST_MOVES = {  # board: (winning, losing) first moves under perfect play
    (3, 3): ([2, 6, 8], [1, 3, 4]),
    (3, 5): ([4], [1, 2, 3, 5, 6, 10, 12]),
    (4, 4): ([15], [1, 2, 3, 4, 5, 8, 10, 12]),
}


@pytest.mark.parametrize("size", FIRST_MOVES)
def test_small_boards_are_won_by_the_known_first_moves(expand, size):
    layers = expand(foq_single.mask, foq_single.step, foq_single.init(*size), size[0] * size[1])
    winning, losing = FIRST_MOVES[size]
    assert squares(layers[0].legal[0]) == sorted(winning + losing)
    assert winning_moves(layers) == winning


@pytest.mark.parametrize("number", [16, 31, 79, 87, 96, 128])  # those with at most 2000 positions below them
def test_solved_positions_are_won_by_the_recorded_moves(solved, expand, number):
    lines, states = solved
    layers = expand(foq_single.mask, foq_single.step, states[number], 64)
    assert winning_moves(layers) == lines[number]["winning"]
