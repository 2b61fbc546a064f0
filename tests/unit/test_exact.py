"""Perfect play, against tables made by other programs and values known by hand."""

import pathlib

import jax
import numpy as np
import pytest

import envs
from agents.arena import solved_positions
from agents.players.players import make_player
from agents.solvers import retrograde

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize("name", ["tictactoe", "sum_to_100"])
def test_the_best_moves_are_those_of_the_golden_table(name):
    game = envs.make(name)
    (path,) = GOLDEN.glob(f"{name}_solved.jsonl*")
    positions = solved_positions.read_positions(path, game)
    table = retrograde.solve(game)
    found = jax.jit(retrograde.index_in_table)(table, positions.states)
    np.testing.assert_array_equal(table.best[found], positions.right)
    assert (solved_positions.choose(make_player("exact", game, 0), positions, 0) >= 0).all()


def test_numbers_with_fractions_tell_positions_apart():
    quarters = retrograde.code_of({"x": np.array([[0.25], [0.75], [-0.0], [0.0]], np.float32)})
    assert len(np.unique(np.asarray(quarters), axis=0)) == 3  # zero has one code


def test_every_position_has_a_best_move_until_the_end():
    game = envs.make("tictactoe")
    table = retrograde.solve(game)
    assert len(table.codes) == 5478  # positions of tic-tac-toe, a known number
    assert int((~np.asarray(table.best).any(1)).sum()) == 958  # of them finished, likewise


def test_positions_that_cannot_come_up_are_not_in_the_table():
    """X has made one move and O three: legal moves only, the five free cells, by lot."""
    game = envs.make("tictactoe")
    usual = game.from_record({"board": [1, -1, 0, 0, 0, 0, 0, 0, 0], "to_move": 1})
    odd = usual._replace(board=np.array([[1, -1, -1], [-1, 0, 0], [0, 0, 0]], np.int8))
    states = jax.tree.map(lambda *x: np.stack([x[0]] * 200 + [x[1]]), odd, usual)
    player = make_player("exact", game, 0)
    places = np.asarray(retrograde.index_in_table(player.weights, states))
    assert (places[:200] == -1).all() and places[200] >= 0
    moves = np.asarray(player.act(player.weights, jax.random.key(0), states, np.zeros(201, np.int32)))
    assert set(moves[:200].tolist()) == {4, 5, 6, 7, 8}


def test_more_players_are_refused():
    with pytest.raises(ValueError, match="exact: perfect play is for two players"):
        retrograde.solve(envs.make("foq_multi"))


def test_games_that_are_too_large_are_refused(monkeypatch):
    monkeypatch.setattr(retrograde, "MOST_POSITIONS", 1000)
    with pytest.raises(ValueError, match="exact: tictactoe has more than 1000 positions"):
        make_player("exact", envs.make("tictactoe"), 0)
