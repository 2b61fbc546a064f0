"""Hex against recorded games and a plain flood over the stones."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs


@functools.cache
def replayer(spec: str):
    """Compiled (moves) -> the game's answers before every move and at the end, one row longer than the moves."""
    game = envs.make(spec)

    @jax.jit
    @jax.vmap
    def replay(moves):
        def ply(s, action):
            facts = jnp.sign(s.groups), game.mask(s), game.over(s), game.player(s), game.rewards(s)
            return game.step(s, action), facts

        s, facts = jax.lax.scan(ply, game.init(), moves)
        return s, facts

    return replay


# Recorded games


@pytest.mark.parametrize("swap", [True, False])
def test_recorded_games(golden, swap):
    games = [game for game in golden("hex.jsonl.gz") if game["swap"] == swap]
    assert len(games) == (30 if swap else 10)
    moves = np.full((len(games), 124), -1, np.int32)  # what comes after the end may not matter
    for i, game in enumerate(games):
        moves[i, : len(game["moves"])] = game["moves"]
    last, facts = jax.device_get(replayer(f"hex:size=11,swap={swap}")(moves))
    assert not (last.forfeit >= 0).any()
    swapped = 0
    for i, game in enumerate(games):
        boards, legal, over, player, rewards = (x[i] for x in facts)
        end = len(game["moves"])
        assert not over[:end].any() and over[end:].all()
        assert player[: end + 1].tolist() == [ply % 2 for ply in range(end + 1)]
        for ply, want in game["legal"].items():
            assert np.flatnonzero(legal[int(ply)]).tolist() == (want if int(ply) < end else [])
        assert boards[end].ravel().tolist() == game["final_board"]
        assert not rewards[:end].any()
        assert rewards[end].tolist() == [game["winner"], -game["winner"]]
        swapped += 121 in game["moves"]
    assert swapped == (20 if swap else 0)


# Random games on other sizes, against the plain flood


def test_move_sequence_counts_on_2x2():
    """By hand: b1 touches a2, so that three of the six pairs of stones join top and bottom; each pair is made by 4 of
    the 24 sequences of three moves, hence 12 go on to a fourth move, which fills the board."""
    game = envs.make("hex:size=2,swap=false")
    step, over = jax.jit(game.step), jax.jit(game.over)
    layer, counts = [game.init()], []
    while layer := [step(s, a) for s in layer if not over(s) for a in np.flatnonzero(np.asarray(s.groups) == 0)]:
        counts.append(len(layer))
    assert counts == [4, 12, 24, 12]


# Planes


def test_planes_show_what_is_connected_to_the_edges():
    """By hand. Red (1), to move, has a chain from a2 down to the bottom edge, and d1 at the top. Blue (-1) has a1 at
    the left edge, b3 in the middle, and d3 and d4 at the right."""
    board = np.zeros((4, 4), int)
    board[[1, 2, 3, 0], [0, 0, 0, 3]] = 1
    board[[0, 2, 2, 3], [0, 1, 3, 3]] = -1
    game = envs.make("hex:size=4")
    state = game.from_record({"board": board.ravel().tolist(), "to_move": 1})
    red, blue, swap, *rest = (
        {game.action_name(a) for a in np.flatnonzero(plane)} for plane in np.moveaxis(game.observe(state), -1, 0)
    )
    assert red == {"a2", "a3", "a4", "d1"}
    assert blue == {"a1", "b3", "d3", "d4"}
    assert swap == set()
    top, bottom, left, right, *touching = rest
    assert (top, bottom, left, right) == ({"d1"}, {"a2", "a3", "a4"}, {"a1"}, {"d3", "d4"})
    assert touching == [
        {"b1", "c1", "c2", "d2"},
        {"b1", "b2", "b4", "c4"},
        {"b1"},
        {"d2", "c3", "c4"},
    ]


# Records

START = {"board": [0] * 9, "to_move": 1}
ONE = {"board": [0, 1, 0, 0, 0, 0, 0, 0, 0], "to_move": -1}
WON = {"board": [1, -1, 0, 1, -1, 0, 1, 0, 0], "to_move": -1}
REFUSED = {
    "no board": ({"to_move": 1}, "fields"),
    "unknown field": (START | {"moves": []}, "fields"),
    "another size": (START | {"size": 4}, "expected 3 for size, got 4"),
    "another option": (START | {"swap": False}, "expected True for swap, got False"),
    "eight cells": (START | {"board": [0] * 8}, "9 cells"),
    "strange stone": (START | {"board": [0] * 8 + [2]}, "9 cells"),
    "nobody to move": (START | {"to_move": 0}, "to_move"),
    "wrong turn": (START | {"to_move": -1}, "numbers of stones"),
    "two stones too many": (ONE | {"board": [1, 1, 1, 0, 0, 0, 0, 0, 0]}, "numbers of stones"),
    "swap not counted": ({"board": [0, 0, 0, -1, 0, 0, 0, 0, 0], "to_move": 1, "plies": 1}, "plies is 1, .* make it 2"),
    "plies in text": (ONE | {"plies": "1"}, "plies"),
    "mover has joined": ({"board": [1, -1, 0, 1, -1, 0, 1, -1, 0], "to_move": 1}, "to move has joined"),
    "forfeit of the other": (START | {"forfeit": 1}, "forfeited"),
    "forfeit of nobody": (START | {"forfeit": 7}, "forfeited"),
    "forfeit after a win": (WON | {"forfeit": 1}, "over"),
}


@pytest.mark.parametrize(("record", "reason"), REFUSED.values(), ids=REFUSED)
def test_impossible_positions_are_refused_with_the_reason(record, reason):
    with pytest.raises(ValueError, match=reason):
        envs.make("hex:size=3").from_record(record)


def test_edges_joined_in_two_ways_are_refused():
    board = np.zeros((5, 5), int)
    board[:, [0, 2]] = 1  # two columns of the first player
    board[:4, 1] = board[:4, 3] = -1
    board[4, 4] = -1
    with pytest.raises(ValueError, match="before the last move"):
        envs.make("hex:size=5").from_record({"board": board.ravel().tolist(), "to_move": -1})


def test_what_follows_from_the_stones_may_be_left_out():
    game = envs.make("hex:size=3")
    assert game.to_record(game.from_record(ONE)) == ONE | {"size": 3, "swap": True, "plies": 1}
    swapped = game.step(game.from_record(ONE), 9)
    record = {"board": [0, 0, 0, -1, 0, 0, 0, 0, 0], "to_move": 1}
    assert game.to_record(swapped) == record | {"size": 3, "swap": True, "plies": 2}
    for got, want in zip(game.from_record(record), swapped, strict=True):
        np.testing.assert_array_equal(got, want)
    with pytest.raises(ValueError, match="numbers of stones"):
        envs.make("hex:size=3,swap=false").from_record(record)


@pytest.mark.parametrize("size", [1, 0, -3, 27])
def test_sizes_out_of_range_are_refused(size):
    with pytest.raises(ValueError, match="from 2 to 26"):
        envs.make(f"hex:size={size}")


# For people


def test_names_give_column_and_row_from_above():
    game = envs.make("hex")
    assert [game.action_name(a) for a in (0, 10, 11, 120, 121)] == ["a1", "k1", "a2", "k11", "swap"]
    assert game.parse_action(" K11 ") == 120
    with pytest.raises(ValueError, match="k11"):
        envs.make("hex:swap=false").parse_action("swap")


def test_picture_of_a_position():
    game = envs.make("hex:size=3")
    s = game.from_record(WON)
    assert game.show(s).splitlines() == ["   a b c", " 1  X O .", "  2  X O .", "   3  X . .", "Red (X) wins"]


def test_the_second_player_sees_the_board_over_the_diagonal():
    game = envs.make("hex:size=3")
    assert game.to_mover_frame.tolist() == [list(range(10)), [0, 3, 6, 1, 4, 7, 2, 5, 8, 9]]
    planes = np.asarray(game.observe(game.from_record(ONE)))
    assert np.flatnonzero(planes[..., 1]).tolist() == [3] and planes[..., 2].all() and not planes[..., 0].any()
