"""Gomoku against recorded games and a plain count of stones in a row."""

from __future__ import annotations

import functools

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from plain_stones import planes_of_fives, rows_through

import envs
from envs.gomoku import Rules


@functools.cache
def replayer(spec: str):
    """Compiled (moves) -> the last state and the game's answers before every move."""
    game = envs.make(spec)
    size = int(game.num_actions**0.5)
    rules = Rules(size, "true" in game.name)

    @jax.jit
    @jax.vmap
    def replay(moves):
        def ply(s, action):
            return game.step(s, action), (rules.board(s), game.mask(s), game.over(s), game.player(s), game.rewards(s))

        return jax.lax.scan(ply, game.init(), moves)

    return replay


@pytest.mark.parametrize("size", [9, 15])
def test_recorded_games(golden, size):
    games = [game for game in golden("gomoku.jsonl.gz") if game["size"] == size]
    assert len(games) == 20
    moves = np.full((len(games), size**2 + 1), -1, np.int32)  # what comes after the end may not matter
    for i, game in enumerate(games):
        moves[i, : len(game["moves"])] = game["moves"]
    last, facts = jax.device_get(replayer(f"gomoku:size={size}")(moves))
    assert not (last.forfeit >= 0).any()
    for i, game in enumerate(games):
        boards, legal, over, player, rewards = (x[i] for x in facts)
        end = len(game["moves"])
        assert not over[:end].any() and over[end:].all()
        assert player[: end + 1].tolist() == [ply % 2 for ply in range(end + 1)]
        for entry, want in enumerate(game["legal"]):
            assert np.flatnonzero(legal[entry * game["every"]]).tolist() == want
        assert boards[end].ravel().tolist() == game["final_board"]
        assert not rewards[:end].any()
        assert rewards[end].tolist() == [game["winner"], -game["winner"]]


def test_exact_five_goes_on_where_a_longer_row_was_made(golden):
    games = [game for game in golden("gomoku.jsonl.gz") if game["kind"] == "overline"]
    assert len(games) == 8
    for size in (9, 15):
        chosen = [game for game in games if game["size"] == size]
        moves = np.full((len(chosen), size**2 + 1), size**2, np.int32)
        for i, game in enumerate(chosen):
            moves[i, : len(game["moves"])] = game["moves"]
        _, (_, _, over, _, _) = jax.device_get(replayer(f"gomoku:size={size},exact=true")(moves))
        for game, ended in zip(chosen, over, strict=True):
            board = np.array(game["final_board"]).reshape(size, size)
            five = 5 in rows_through(board, *divmod(game["moves"][-1], size))
            assert bool(ended[len(game["moves"])]) == (five or len(game["moves"]) == size**2)


# Single moves on any board

OPTIONS = [(5, False), (9, False), (9, True), (16, True), (26, False)]
MOVES = {option: jax.jit(Rules(*option).move) for option in OPTIONS}


@hypothesis.settings(max_examples=200, deadline=None, derandomize=True, database=None)
@hypothesis.given(st.sampled_from(OPTIONS), st.sampled_from([0.2, 0.5, 0.8]), st.integers(0, 2**32 - 1))
def test_a_stone_wins_by_the_rows_through_it(option, density, seed):
    size, exact = option
    rng = np.random.default_rng(seed)
    board = (rng.random((size, size)) < density).astype(int)
    r, c = (int(x) for x in rng.integers(0, size, 2))
    for down, right in ((0, 1), (1, 1)):  # rows of every length, at the edges too, come up often
        for i in range(-int(rng.integers(0, 6)), int(rng.integers(0, 6)) + 1):
            if 0 <= r + down * i < size and 0 <= c + right * i < size:
                board[r + down * i, c + right * i] = 1
    board[r, c] = 0
    words = ((board << np.arange(size)).sum(-1)).astype(Rules(size).dtype)
    s = Rules(size, exact).init()._replace(mine=jnp.asarray(words))
    after = MOVES[option](s, r * size + c)
    board[r, c] = 1
    lengths = rows_through(board, r, c)
    assert bool(after.won) == (5 in lengths if exact else max(lengths) >= 5)
    np.testing.assert_array_equal(np.asarray(after.others)[:, None] >> np.arange(size) & 1, board)


# Planes

OBSERVE = {option: jax.jit(Rules(*option).observe) for option in OPTIONS}


def places(plane: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(map(int, place)) for place in np.argwhere(plane)]


@pytest.mark.parametrize("exact", [False, True])
def test_planes_show_where_a_stone_would_win(exact):
    """Black (1) has four on the top row and, with a gap of one, two more, so that a stone in the gap makes seven; White
    (-1) has four on a diagonal that ends at the edge, and two stones elsewhere."""
    board = np.zeros((9, 9), int)
    board[0, [1, 2, 3, 4, 6, 7]] = 1
    board[[8, 7, 6, 5, 2, 7], [0, 1, 2, 3, 8, 8]] = -1
    rules = Rules(9, exact)
    state = rules.from_record({"board": board.ravel().tolist(), "to_move": 1})
    black, white, black_wins, white_wins = np.moveaxis(np.asarray(rules.observe(state)), -1, 0)[:4]
    assert places(black) == [(0, 1), (0, 2), (0, 3), (0, 4), (0, 6), (0, 7)]
    assert places(white) == [(2, 8), (5, 3), (6, 2), (7, 1), (7, 8), (8, 0)]
    assert places(black_wins) == ([(0, 0)] if exact else [(0, 0), (0, 5)])
    assert places(white_wins) == [(4, 4)]


@pytest.mark.parametrize("exact", [False, True])
def test_planes_show_where_a_stone_would_make_fours(exact):
    """Black (1) has three in the corner of row 0, and three in column 3, which meet in d9, (0, 3). A stone there makes
    two fours, one in (4, 3) a four that wins on both ends. White (-1) has d3, e3 and f3 and, three cells further, i3,
    (7, 8): the five from d3 to h3 and that from e3 to i3 would be part of six."""
    board = np.zeros((9, 9), int)
    board[[0, 0, 0, 1, 2, 3], [0, 1, 2, 3, 3, 3]] = 1
    board[[7, 7, 7, 7, 5, 2], [3, 4, 5, 8, 0, 8]] = -1
    rules = Rules(9, exact)
    state = rules.from_record({"board": board.ravel().tolist(), "to_move": 1})
    black, white, black_twice, white_twice = np.moveaxis(np.asarray(rules.observe(state)), -1, 0)[4:]
    assert places(black) == [(0, 3), (0, 4), (4, 3), (5, 3)]
    assert places(black_twice) == [(0, 3), (4, 3)]
    assert places(white) == [(7, 1), (7, 2), (7, 6), *([] if exact else [(7, 7)])]
    assert places(white_twice) == [(7, 2), *([] if exact else [(7, 6)])]


@hypothesis.settings(max_examples=100, deadline=None, derandomize=True, database=None)
@hypothesis.given(st.sampled_from(OPTIONS), st.sampled_from([0.2, 0.5, 0.8]), st.integers(0, 2**32 - 1))
def test_planes_are_those_of_a_plain_count(option, density, seed):
    size, exact = option
    rng = np.random.default_rng(seed)
    board = np.where(rng.random((size, size)) < density, rng.choice([1, 1, 1, -1], (size, size)), 0)
    words = lambda side: jnp.asarray(((board == side) << np.arange(size)).sum(-1).astype(Rules(size).dtype))
    state = Rules(size, exact).init()._replace(mine=words(1), others=words(-1))
    np.testing.assert_array_equal(OBSERVE[option](state), planes_of_fives(board, 1, exact))


# Records


def record(first: list[int], second: list[int], to_move: int) -> dict:
    cells = [1 if i in first else -1 if i in second else 0 for i in range(81)]
    return {"board": cells, "to_move": to_move}


START = record([], [], 1)
WON = record([0, 1, 2, 3, 4], [9, 10, 11, 12], -1)
REFUSED = {
    "no board": ({"to_move": 1}, "fields"),
    "unknown field": (START | {"plies": 0}, "fields"),
    "too few cells": (START | {"board": [0] * 80}, "81 cells"),
    "strange stone": (START | {"board": [0] * 80 + [2]}, "81 cells"),
    "nobody to move": (START | {"to_move": 0}, "to_move"),
    "wrong turn": (START | {"to_move": -1}, "numbers of stones"),
    "mover has won": (record([0, 1, 2, 3, 4], [9, 10, 11, 12, 80], 1), "to move has a winning row"),
    "won before": (record([*range(5), *range(18, 23)], [9, 11, 13, 15, 40, 42, 44, 60, 62], -1), "before the last"),
    "forfeit of the other": (START | {"forfeit": 1}, "forfeited"),
    "forfeit of nobody": (START | {"forfeit": 7}, "forfeited"),
    "forfeit after a win": (WON | {"forfeit": 1}, "over"),
}


@pytest.mark.parametrize(("position", "reason"), REFUSED.values(), ids=REFUSED)
def test_impossible_positions_are_refused_with_the_reason(position, reason):
    with pytest.raises(ValueError, match=reason):
        envs.make("gomoku:size=9").from_record(position)


def test_rows_of_nine_and_overlines_load():
    nine = record([*range(9)], [10, 12, 14, 16, 40, 42, 44, 60], -1)  # the middle stone came last
    free, exact = (envs.make(f"gomoku:size=9,exact={x}") for x in ("false", "true"))
    assert free.to_record(free.from_record(nine)) == exact.to_record(exact.from_record(nine)) == nine
    assert bool(free.over(free.from_record(nine))) and not bool(exact.over(exact.from_record(nine)))
    assert bool(exact.over(exact.from_record(WON)))


@pytest.mark.parametrize("options", ["size=4", "size=27", "size=-9"])
def test_sizes_out_of_range_are_refused(options):
    with pytest.raises(ValueError, match="from 5 to 26"):
        envs.make(f"gomoku:{options}")


# For people


def test_names_give_column_and_row_from_below():
    game = envs.make("gomoku")
    assert [game.action_name(a) for a in (0, 14, 112, 224)] == ["a15", "o15", "h8", "o1"]
    assert game.parse_action(" H8 ") == 112


def test_picture_of_a_position():
    game = envs.make("gomoku:size=9")
    s = game.from_record(WON)
    assert game.show(s).splitlines()[:3] == [
        " 9  X X X X X . . . .",
        " 8  O O O O . . . . .",
        " 7  . . . . . . . . .",
    ]
    assert game.show(s).endswith("Black (X) wins")
    assert game.svg(s).count("#d0473c") == 5  # the row is ringed
    planes = np.asarray(game.observe(s))
    assert np.flatnonzero(planes[..., 0]).tolist() == [9, 10, 11, 12]
    assert np.flatnonzero(planes[..., 1]).tolist() == [0, 1, 2, 3, 4]
