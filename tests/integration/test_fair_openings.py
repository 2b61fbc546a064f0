"""Openings that are decided are left out or come last."""

import gzip
import json
import pathlib

import jax
import numpy as np
import pytest

import envs
from agents.arena import openings

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize("name", ["tictactoe", "foq_multi:rows=5,cols=6"])
def test_fair_openings_are_those_that_are_not_decided(name):
    """Where who is to move can win at once it is decided."""
    game = envs.make(name)
    draws = [next(openings.make_openings(game, 60, 5, fair)(jax.random.key(1))) for fair in (False, True)]
    assert all(not game.over(jax.tree.map(lambda x, i=i: x[i], d.states)) for d in draws for i in range(60))
    wins = [sum(immediate_wins(game, jax.tree.map(lambda x, i=i: x[i], d.states)) for i in range(60)) for d in draws]
    assert wins[0] > 0
    assert wins[1] == 0


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
    """Of tic-tac-toe everything can be proved: the drawn positions come first, in whatever draw, then the others, save
    those that even a few random games show to be decided; so openings do not come again while there are some."""
    with gzip.open(GOLDEN / "tictactoe_solved.jsonl.gz", "rt") as file:
        values = {seen(record["board"]): record["value"] for record in map(json.loads, file)}
    drawn = sum(value == 0 for board, value in values.items() if np.abs(board).sum() == plies)
    draw = openings.make_openings(envs.make("tictactoe"), 10, plies, True)(jax.random.key(plies))
    boards = []
    for moves in np.concatenate([next(draw).moves for _ in range(5)]).tolist():
        board = [0] * 9
        for i, cell in enumerate(moves):
            board[cell] = 1 - 2 * (i % 2)
        boards.append(seen(board))
    fine = [values[board] == 0 for board in boards]
    ends = fine.index(False) if False in fine else len(fine)
    assert 0.7 * drawn <= ends <= drawn
    assert len(set(boards[:ends])) == ends
    whole = -(-(ends + 1) // 10) * 10
    assert len(set(boards[:whole])) == whole
