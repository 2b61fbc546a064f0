"""Connect Four against solved positions, counted move sequences and a plain search for rows of stones."""

from __future__ import annotations

import functools

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from plain_stones import has_row

import envs
from envs import connect_four
from envs.connect_four import Rules

# Counted move sequences


def halves(s):
    """The state with 16-bit words, as `expand` compares states by 16-bit numbers."""
    return jax.tree.map(lambda x: jax.lax.bitcast_convert_type(x, jnp.uint16) if x.dtype == jnp.uint32 else x, s)


def whole(s):
    return jax.tree.map(lambda x: jax.lax.bitcast_convert_type(x, jnp.uint32) if x.dtype == jnp.uint16 else x, s)


def test_move_sequence_counts(expand):
    game = envs.make("connect_four")
    mask, step = lambda s: game.mask(whole(s)), lambda s, a: halves(game.step(whole(s), a))
    layers = expand(mask, step, halves(game.init()), depth=7)
    counts = [int(layer.ways.sum()) for layer in layers]
    assert counts == [1, 7, 49, 343, 2401, 16807, 117649, 823536]
    assert int((layers[-1].ways * layers[-1].legal.sum(-1)).sum()) == 5673234
    # Numbers of different positions, known from the literature.
    assert [len(layer.ways) for layer in layers] == [1, 7, 49, 238, 1120, 4263, 16422, 54859]


# Solved positions


@pytest.fixture(scope="module", params=["connect_four_solved.jsonl.gz", "connect_four_unfiltered_solved.jsonl.gz"])
def solved(golden, request):
    """The solved positions: lines, states, and for every pair of next moves whether it is legal and wins."""
    lines = golden(request.param)
    moves = np.full((len(lines), 42), -1, np.int32)
    for i, line in enumerate(lines):
        moves[i, : line["ply"]] = line["moves"]
    game = envs.make("connect_four")

    def wins(s):
        """bool[7]: legal columns, and those of them that end the game with a win."""
        after = jax.vmap(functools.partial(game.step, s))(jnp.arange(7))
        lost = jax.vmap(game.rewards)(after)[:, 1 - s.to_move] == -1
        return game.mask(s), game.mask(s) & lost, after

    @jax.jit
    @jax.vmap
    def look(moves):
        def ply(s, column):
            following = game.step(s, column)
            return jax.tree.map(lambda new, old: jnp.where(column >= 0, new, old), following, s), game.over(s)

        s, over = jax.lax.scan(ply, game.init(), moves)
        legal, won, after = wins(s)
        replies_won = jax.vmap(wins)(after)[1]
        return game.player(s), over.any(), legal, won, replies_won

    return lines, jax.device_get(look(moves))


def test_solved_positions_are_reached_with_the_recorded_legal_columns(solved):
    lines, (player, over, legal, _, _) = solved
    assert len(lines) in (1000, 659)
    assert not over.any()
    assert player.tolist() == [line["ply"] % 2 for line in lines]
    assert legal.tolist() == [[score is not None for score in line["scores"]] for line in lines]


def test_wins_by_the_next_two_moves_agree_with_the_scores(solved):
    lines, (_, _, _, won, replies_won) = solved
    ends = 0
    for line, at_once, replies in zip(lines, won, replies_won, strict=True):
        first, second = 21 - line["ply"] // 2, -(22 - (line["ply"] + 1) // 2 - 1)  # scores of the quickest ends
        assert at_once.tolist() == [score == first for score in line["scores"]]
        assert replies.any(-1).tolist() == [score == second for score in line["scores"]]
        ends += at_once.sum() + replies.any(-1).sum()
    assert ends > len(lines)


def test_solved_moves_are_those_that_keep_the_value(solved):
    """By the sign of the exact scores."""
    for line in solved[0]:
        signs = {c: np.sign(score) for c, score in enumerate(line["scores"]) if score is not None}
        assert line["value"] == max(signs.values())
        assert line["optimal"] == [c for c, sign in signs.items() if sign == line["value"]]


def test_solved_positions_load_from_their_moves(solved):
    game = envs.make("connect_four")
    for line in solved[0][::50]:
        s = game.from_record({"moves": line["moves"]})
        board = np.zeros((6, 7), int)
        for ply, c in enumerate(line["moves"]):
            board[5 - np.count_nonzero(board[:, c]), c] = 1 - 2 * (ply % 2)
        record = {"board": board.ravel().tolist(), "to_move": 1 - 2 * (line["ply"] % 2)}
        assert game.to_record(s) == record
        assert game.to_record(game.from_record(record)) == record


# Other sizes, against the plain search


SIZES = [(6, 7, 4), (4, 5, 3), (9, 3, 5), (5, 12, 4)]
SHAPES = {size: (Rules(*size), jax.jit(Rules(*size).won), jax.jit(Rules(*size).stones)) for size in SIZES}


@hypothesis.settings(max_examples=150, deadline=None, derandomize=True, database=None)
@hypothesis.given(st.sampled_from(SIZES), st.sampled_from([0.3, 0.5, 0.7]), st.integers(0, 2**32 - 1))
def test_rows_are_found_wherever_they_lie(size, density, seed):
    rules, won, stones = SHAPES[size]
    board = np.random.default_rng(seed).random(size[:2]) < density
    bits = stones(board)
    np.testing.assert_array_equal(rules.cells(bits), board)
    empty = rules.init()
    assert bool(won(empty._replace(others=bits))) == has_row(board.astype(int), 1, size[2])
    assert not won(empty._replace(mine=bits))  # the player to move has not moved last


# Records

START = {"board": [0] * 42, "to_move": 1}
FULL = [1 if (c // 2 + r) % 2 else -1 for r in range(6) for c in range(7)]  # no four in a row


def after(*columns: str):
    """Cells of a board of 6 x 7, given by columns from below: X first player, O second."""
    board = np.zeros((6, 7), int)
    for c, stones in enumerate(columns):
        for h, stone in enumerate(stones):
            board[5 - h, c] = {"X": 1, "O": -1}[stone]
    return board.ravel().tolist()


REFUSED = {
    "no board": ({"to_move": 1}, "board and to_move"),
    "unknown field": (START | {"plies": 0}, "board and to_move"),
    "moves and board": (START | {"moves": []}, "board and to_move"),
    "too few cells": (START | {"board": [0] * 41}, "42 cells"),
    "board as text": (START | {"board": "." * 42}, "42 cells"),
    "strange stone": (START | {"board": [0] * 41 + [2]}, "42 cells"),
    "stone as truth": (START | {"board": [0] * 41 + [True], "to_move": -1}, "42 cells"),
    "nobody to move": (START | {"to_move": 0}, "to_move"),
    "wrong turn": (START | {"to_move": -1}, "numbers of stones"),
    "hanging stone": (START | {"board": [1] + [0] * 41, "to_move": -1}, "hangs"),
    "mover has won": (START | {"board": after("XXXX", "OOOO")}, "to move has 4 in a row"),
    "two wins apart": ({"board": after("XXXX", "OO", "XXXX", "OOO", "OO"), "to_move": -1}, "in turn"),
    "second stone below the first": ({"board": after("OX"), "to_move": 1}, "in turn"),
    "forfeit of the other": (START | {"forfeit": 1}, "forfeited"),
    "forfeit of nobody": (START | {"forfeit": 7}, "forfeited"),
    "forfeit after a win": ({"moves": [0, 1, 0, 1, 0, 1, 0], "forfeit": 1}, "over"),
    "moves in text": ({"moves": "0123"}, "columns from 0 to 6"),
    "column off the board": ({"moves": [7]}, "columns from 0 to 6"),
    "full column": ({"moves": [2] * 7}, "move 7 is into column 2"),
    "moves after the end": ({"moves": [0, 1, 0, 1, 0, 1, 0, 1]}, "over after 7 of 8"),
}


@pytest.mark.parametrize(("record", "reason"), REFUSED.values(), ids=REFUSED)
def test_impossible_positions_are_refused_with_the_reason(record, reason):
    with pytest.raises(ValueError, match=reason):
        envs.make("connect_four").from_record(record)


def test_a_row_that_the_last_stone_lengthened_is_possible():
    game = envs.make("connect_four")
    record = {"board": after("X", "X", "X", "X", "X", "OO", "OO"), "to_move": -1}  # the third one came last
    assert game.to_record(game.from_record(record)) == record


@pytest.mark.parametrize(
    "options", ["rows=0", "cols=27", "connect=1", "connect=8", "rows=1,cols=1", "rows=3,cols=3,connect=4"]
)
def test_sizes_that_cannot_be_played_are_refused(options):
    with pytest.raises(ValueError, match="connect_four"):
        envs.make(f"connect_four:{options}")


# For people


def test_planes_show_where_a_stone_would_win_and_land():
    """Red (1) has three on the floor, and Yellow (-1) three in the last column; Red is to move."""
    board = [[0] * 7, [0] * 7, [0] * 7, [0, 0, 0, 0, 0, 0, -1], [0, 0, 0, 0, 0, 0, -1], [0, 1, 1, 1, 0, 0, -1]]
    rules = Rules()
    state = rules.from_record({"board": [cell for row in board for cell in row], "to_move": 1})
    red, yellow, red_wins, yellow_wins, landing = np.moveaxis(np.asarray(rules.observe(state)), -1, 0)
    places = lambda plane: [tuple(map(int, place)) for place in np.argwhere(plane)]
    assert places(red) == [(5, 1), (5, 2), (5, 3)]
    assert places(yellow) == [(3, 6), (4, 6), (5, 6)]
    assert places(red_wins) == [(5, 0), (5, 4)]
    assert places(yellow_wins) == [(2, 6)]
    assert places(landing) == [(2, 6), (4, 1), (4, 2), (4, 3), (5, 0), (5, 4), (5, 5)]


def test_columns_are_named_from_one():
    game = envs.make("connect_four")
    assert [game.action_name(a) for a in range(7)] == list("1234567")
    assert game.parse_action(" 7 ") == 6


def test_picture_of_a_position():
    game = envs.make("connect_four:rows=3,cols=4,connect=3")
    s = game.from_record({"moves": [0, 1, 0, 1, 0]})
    assert game.show(s).splitlines() == ["X . . .", "X O . .", "X O . .", "1 2 3 4", "Red (X) wins"]
    assert game.svg(s).count("#20242a") == 3  # the row is ringed
    draw = envs.make("connect_four:rows=2,cols=2,connect=2")
    assert draw.show(draw.init()).splitlines()[-1] == "Red (X) to move"


def test_a_full_board_without_a_row_is_a_draw():
    game = connect_four.make()
    s = game.from_record({"board": FULL, "to_move": 1})
    assert bool(game.over(s)) and not game.rewards(s).any()
    with pytest.raises(ValueError, match="over"):
        game.from_record({"board": FULL, "to_move": 1, "forfeit": 0})
