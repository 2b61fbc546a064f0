"""Decided openings are left out or come last, and fairness does not cost variety."""

import gzip
import json
import pathlib

import jax
import numpy as np
import pytest
from opening_variety import enough_different

import envs
from agents.arena import openings

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize(
    ("name", "count"), [("tictactoe", 8), pytest.param("foq_multi:rows=5,cols=6", 60, marks=pytest.mark.nightly)]
)
def test_fair_openings_are_those_that_are_not_decided(name, count):
    """Where who is to move can win at once it is decided."""
    game = envs.make(name)
    draws = [next(openings.make_openings(game, count, 5, fair)(jax.random.key(1))) for fair in (False, True)]
    at = lambda d: [jax.tree.map(lambda x, i=i: x[i], d.states) for i in range(count)]
    assert all(not game.over(state) for d in draws for state in at(d))
    wins = [sum(immediate_wins(game, state) for state in at(d)) for d in draws]
    assert wins[0] > 0
    assert wins[1] == 0


def test_fairness_does_not_cost_variety():
    """White wins nearly all random games with 24.5 points of komi."""
    enough_different("go:size=5,komi=24.5", seeds=range(2), pairs=4)


def immediate_wins(game: envs.Game, state) -> bool:
    mover = int(game.player(state))
    after = [game.move(state, action) for action in np.flatnonzero(game.mask(state))]
    return any(float(game.rewards(child)[mover]) == 1 for child in after)


def seen(board: list[int]) -> tuple[int, ...]:
    """The least of the eight ways to look at a board of tic-tac-toe."""
    square = np.array(board).reshape(3, 3)
    return min(tuple(np.rot90(way, turns).ravel().tolist()) for way in (square, square.T) for turns in range(4))


@pytest.mark.parametrize("plies", [3, 4, 5])
def test_openings_that_are_proved_to_be_decided_come_last(plies):
    """Of tic-tac-toe everything can be proved: fair openings, the drawn ones, come first, then those that a few random
    games show to be decided, then those that are proved; and each one once before any comes again."""
    with gzip.open(GOLDEN / "tictactoe_solved.jsonl.gz", "rt") as file:
        records = [record for record in map(json.loads, file) if not record["terminal"]]
    values = {seen(record["board"]): record["value"] for record in records}
    there = {board: value for board, value in values.items() if np.abs(board).sum() == plies}
    draw = openings.make_openings(envs.make("tictactoe"), 10, plies, True)(jax.random.key(plies))
    batches = [next(draw) for _ in range(len(there) // 10 + 1)]
    boards, unfair = [], np.concatenate([batch.unfair for batch in batches])[: len(there)]
    for moves in np.concatenate([batch.moves for batch in batches]).tolist():
        board = [0] * 9
        for i, cell in enumerate(moves):
            board[cell] = 1 - 2 * (i % 2)
        boards.append(seen(board))
    assert set(boards[: len(there)]) == set(there)
    fair = unfair <= openings.MOST_UNFAIR
    assert all(there[board] == 0 for board, fine in zip(boards, fair, strict=False) if fine)
    assert fair.sum() >= 0.7 * sum(value == 0 for value in there.values())
    assert all(there[board] != 0 for board, x in zip(boards, unfair, strict=False) if x == openings.PROVED)
