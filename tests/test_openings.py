"""Where the games of matches begin."""

import functools
import gzip
import json
import pathlib
from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from agents import openings
from agents.tree_search import Edges

GOLDEN = pathlib.Path(__file__).parent / "golden"


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
        (2, [1, 1, 1, 1], [1, 1, -1, -1], 0.0, 1 / 6),  # one win in one play-out: (1 + 5 * 0) / (1 + 5)
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


@pytest.mark.parametrize(("name", "count"), [("tictactoe", 8), ("foq_multi:rows=5,cols=6", 60)])
def test_fair_openings_are_those_that_are_not_decided(name, count):
    """Where who is to move can win at once it is decided."""
    game = envs.make(name)
    draws = [next(openings.make_openings(game, count, 5, fair)(jax.random.key(1))) for fair in (False, True)]
    at = lambda d: [jax.tree.map(lambda x, i=i: x[i], d.states) for i in range(count)]
    assert all(not game.over(state) for d in draws for state in at(d))
    wins = [sum(wins_at_once(game, state) for state in at(d)) for d in draws]
    assert wins[0] > 0
    assert wins[1] == 0


def enough_different(name: str, seeds: Iterable[int], pairs: int = 8) -> None:
    """As many different openings as pairs, or as the game has: all of these are among a thousand."""
    game = envs.make(name)
    plies = openings.enough_plies(game, pairs)
    plain, _ = jax.jit(lambda key: openings.sample_openings(game, key, 1000, plies))(jax.random.key(0))
    going = ~np.asarray(jax.vmap(game.over)(plain))
    most = min(pairs, len(np.unique(openings.wide(openings.kind(game, plain))[going])))
    draw = openings.make_openings(game, pairs, plies, True)
    found = [different(next(draw(jax.random.key(seed)))) for seed in seeds]
    assert min(found) >= most, found


def test_fairness_does_not_cost_variety():
    """White wins nearly all random games with 24.5 points of komi."""
    enough_different("go:size=5,komi=24.5", seeds=range(2), pairs=4)


@pytest.mark.slow
def test_a_lucky_play_out_does_not_decide_an_opening():
    """Of 120 openings all but one counted as decided here, and that one was the only opening of a match."""
    enough_different("go:size=9", seeds=[77], pairs=20)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "tictactoe", "connect_four", "sum_to_100", "foq", "foq_single", "foq_multi", "evopawness", "othello",
        "hex:size=5", "hex:size=11", "gomoku:size=9", "go:size=5", "go:size=5,komi=24.5", "go:size=7", "go:size=9",
    ],
)  # fmt: skip
def test_fairness_does_not_cost_variety_in_any_game(name):
    enough_different(name, seeds=range(20))


def wins_at_once(game: envs.Game, state) -> bool:
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
