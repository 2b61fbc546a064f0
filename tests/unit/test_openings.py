"""Where the games of matches begin."""

import functools
import gzip
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from agents.arena import openings

GOLDEN = pathlib.Path(__file__).parent / "golden"


def different(opening: openings.Openings) -> int:
    return len(np.unique(openings.wide(opening.code)))


def test_positions_are_told_apart_as_they_are_in_play():
    """Tic-tac-toe has 72 ways to play two moves and 504 to play three, but 12 and 38 positions up to symmetry. Connect
    Four has 343 ways to play three and 238 positions, of which 4 are their own mirror: all three in the middle column,
    or O there and X on both sides, one, two or three columns away; (238 + 4) / 2 = 121."""
    for name, moves, ways, kinds in (
        ("tictactoe", 2, 72, 12), ("tictactoe", 3, 504, 38), ("connect_four", 3, 343, 121),
    ):  # fmt: skip
        game = envs.make(name)
        mask, move, states = jax.jit(game.mask), jax.jit(game.move), [game.init()]
        for _ in range(moves):
            states = [move(s, action) for s in states for action in np.flatnonzero(mask(s))]
        stacked = jax.tree.map(lambda *x: jnp.stack(x), *states)
        code = jax.jit(functools.partial(openings.kind, game))(stacked)
        assert (len(states), len(np.unique(openings.wide(code)))) == (ways, kinds)


def test_who_moved_first_where_does_not_matter_and_history_neither():
    game = envs.make("go:size=5,komi=24.5")
    ways = ("A1 C3 B1 D4", "B1 D4 A1 C3", "E5 C3 E4 B2", "A1 C3 B1 D3")  # a transposition, a turn, another position
    states = []
    for names in ways:
        state = game.init()
        for name in names.split():
            state = game.move(state, game.parse_action(name))
        states.append(state)
    code = openings.wide(openings.kind(game, jax.tree.map(lambda *x: jnp.stack(x), *states)))
    assert code[0] == code[1] == code[2] != code[3]


def test_openings_are_different_as_far_as_there_are_so_many():
    """Over all draws of a match, and in turn once the game has no other."""
    game = envs.make("tictactoe")
    draw = openings.make_openings(game, 10, 3, False)(jax.random.key(0))
    first, second, third, fourth, fifth = (next(draw) for _ in range(5))
    joined = lambda *parts: jax.tree.map(lambda *x: np.concatenate(x), *parts)
    assert different(joined(first, second, third)) == 30
    assert different(joined(first, second, third, fourth, fifth)) == 38
    again = joined(fourth, fifth).moves[8:].tolist()
    assert again == joined(first, second).moves[:12].tolist()
    for state, moves in zip(range(10), first.moves.tolist(), strict=True):
        at = game.init()
        for action in moves:
            assert game.mask(at)[action]
            at = game.move(at, action)
        assert game.to_record(at) == game.to_record(jax.tree.map(lambda x, i=state: x[i], first.states))


def test_as_many_moves_as_it_takes():
    """12 and 38 positions of tic-tac-toe after two and three moves, of which no more than a third of the game are made;
    Connect Four has 49 ways to play two moves, so fewer than 30 up to the mirror."""
    assert [openings.enough_plies(envs.make("tictactoe"), pairs) for pairs in (8, 200, 1000)] == [2, 3, 3]
    assert [openings.enough_plies(envs.make("connect_four"), pairs) for pairs in (10, 30)] == [2, 3]


def test_openings_that_are_decided_are_left_out():
    """A third of the points each is even among three, where nothing won is a mean result of -1/2."""
    assert openings.one_sided(jnp.array([1.0, 0.91, 0.89, 0.0, -0.89, -0.91, -1.0]), 2).tolist() == [
        True, True, False, False, False, True, True,
    ]  # fmt: skip
    assert openings.one_sided(jnp.array([1.0, 0.9, 0.0, -0.4, -0.45, -0.5]), 3).tolist() == [
        True, False, False, False, True, True,
    ]  # fmt: skip


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
