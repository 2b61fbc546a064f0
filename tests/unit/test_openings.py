"""Where the games of matches begin."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import envs
from agents.arena import openings


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
