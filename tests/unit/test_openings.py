"""Where the games of matches begin."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from agents.arena import openings
from agents.search.tree import Edges


def different(opening: openings.Openings) -> int:
    return len(np.unique(openings.wide(opening.code)))


def joined(*parts: openings.Openings) -> openings.Openings:
    return jax.tree.map(lambda *x: np.concatenate(x), *parts)


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
        code = jax.jit(functools.partial(openings.canonical_hash, game))(stacked)
        assert (len(states), len(np.unique(openings.wide(code)))) == (ways, kinds)


def test_who_moved_first_where_does_not_matter_and_history_neither():
    game = envs.make("go:size=5,komi=24.5")
    move = jax.jit(game.move)
    ways = ("A1 C3 B1 D4", "B1 D4 A1 C3", "E5 C3 E4 B2", "A1 C3 B1 D3")  # a transposition, a turn, another position
    states = []
    for names in ways:
        state = game.init()
        for name in names.split():
            state = move(state, game.parse_action(name))
        states.append(state)
    code = jax.jit(functools.partial(openings.canonical_hash, game))(jax.tree.map(lambda *x: jnp.stack(x), *states))
    code = openings.wide(code)
    assert code[0] == code[1] == code[2] != code[3]


def test_openings_are_different_as_far_as_there_are_so_many():
    """Over all draws of a match, and in turn once the game has no other."""
    game = envs.make("tictactoe")
    draw = openings.make_openings(game, 10, 3, False)(jax.random.key(0))
    first, second, third, fourth, fifth = (next(draw) for _ in range(5))
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


def edges_of(visits, q, value) -> Edges:
    """The root of one search."""
    row = lambda x, kind: jnp.array([x], kind)
    visits, q = row(visits, jnp.int32), row(q, jnp.float32)
    total, value = 1 + visits.sum(-1), row(value, jnp.float32)
    return Edges(jnp.zeros_like(q), visits, q, value, value, total, None, None)


@pytest.mark.parametrize(
    ("players", "visits", "q", "value", "unfair"),
    [
        (2, [1, 1, 1, 1], [1, 1, -1, -1], 0.0, 1 / 6),  # one win in one playout: (1 + 5 * 0) / (1 + 5)
        (2, [1, 1, 1, 1], [1, -1, -1, -1], -0.5, 1 / 4),  # (1 - 5 / 2) / 6
        (2, [90, 10], [1, -1], 0.8, 94 / 95),  # (90 + 5 * 0.8) / 95
        (2, [20, 0, 5], [-1, 0, -1], -1.0, 1.0),  # an edge without a visit counts for nothing
        (2, [40, 10], [-0.9, 0.5], -0.6, 2 / 15),  # (10 / 2 - 5 * 0.6) / 15
        (3, [10, 10], [0, -0.5], 0.0, 1 / 3),  # a third of the points: even
        (3, [90, 10], [1, 0], 1.0, 1.0),
        (3, [50, 50], [-0.5, -0.5], -0.5, 1.0),  # no points at all
    ],
)
def test_unfairness_by_hand(players, visits, q, value, unfair):
    assert openings.unfairness(edges_of(visits, q, value), players).tolist() == pytest.approx([unfair], abs=1e-6)


def test_the_least_unfair_openings_follow_the_fair_ones(monkeypatch):
    """One opening in 40 is fair, so 8 are among the 320 that are looked at for 40 openings, and 8 of each degree."""
    game, degrees = envs.make("connect_four"), jnp.linspace(0.899, 1.0, 40)
    monkeypatch.setattr(openings, "make_uct", lambda *_: lambda *_: None)
    monkeypatch.setattr(openings, "unfairness", lambda *_: degrees)
    monkeypatch.setattr(openings, "make_decided", lambda _: lambda _: False)
    draw = openings.make_openings(game, 40, 6, True)(jax.random.key(0))
    batches = [next(draw) for _ in range(3)]
    assert different(joined(*batches)) == 120
    assert (degrees > openings.MOST_UNFAIR).tolist() == [False] + [True] * 39
    for batch in batches:
        assert batch.unfair.tolist() == np.repeat(degrees[:5], 8).tolist()


def test_openings_come_again_only_when_there_is_no_other(monkeypatch):
    """Tic-tac-toe has 38 positions after three moves, of which none is fair here; and all games are over after nine."""
    game = envs.make("tictactoe")
    monkeypatch.setattr(openings, "unfairness", lambda edges, players: jnp.ones(len(edges.visits)))
    draw = openings.make_openings(game, 20, 3, True)(jax.random.key(0))
    first, second = next(draw), next(draw)
    assert different(joined(first, second)) == 38
    assert second.moves[18:].tolist() == first.moves[:2].tolist()
    ended = next(openings.make_openings(game, 20, 9, True)(jax.random.key(0)))
    assert (ended.unfair == openings.OVER).all()
