"""Tic-tac-toe against the table of all its positions."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from envs import tictactoe


@pytest.fixture(scope="module")
def layers(expand):
    return expand(tictactoe.mask, tictactoe.step, tictactoe.init(), depth=9)


def test_move_sequence_counts(layers):
    counts = [int(layer.ways.sum()) for layer in layers]
    assert counts == [1, 9, 72, 504, 3024, 15120, 54720, 148176, 200448, 127872]
    assert not layers[-1].legal.any()


def test_different_positions(layers):
    assert sum(len(layer.ways) for layer in layers) == 5478
    assert sum(int((~layer.legal.any(-1)).sum()) for layer in layers) == 958


def test_every_position_agrees_with_the_solved_table(golden, layers):
    table = {(tuple(d["board"]), d["to_move"]): d for d in golden("tictactoe_solved.jsonl.gz")}
    assert len(table) == 5478
    facts = jax.jit(jax.vmap(lambda s: (tictactoe.over(s), tictactoe.rewards(s), tictactoe.player(s))))
    seen = set()
    for layer in layers:
        over, rewards, player = jax.device_get(facts(layer.states))
        boards = layer.states.board.reshape(-1, 9)
        for board, legal, end, reward, who in zip(boards, layer.legal, over, rewards, player, strict=True):
            key = (tuple(board.tolist()), 1 - 2 * int(who))
            want = table[key]
            empty = [] if want["terminal"] else [i for i, stone in enumerate(want["board"]) if stone == 0]
            assert np.flatnonzero(legal).tolist() == empty
            assert bool(end) == want["terminal"]
            mine = want["value"] if want["terminal"] else 0
            assert (reward[who], reward[1 - who]) == (mine, -mine)
            seen.add(key)
    assert seen == set(table)


def test_best_play_keeps_the_solved_value(golden, layers):
    table = {(tuple(d["board"]), d["to_move"]): d for d in golden("tictactoe_solved.jsonl.gz")}
    value = None  # of the layer below, for the player to move there
    for depth in range(len(layers) - 1, -1, -1):
        layer = layers[depth]
        keys = [(tuple(b.ravel().tolist()), 1 - 2 * int(t)) for b, t in zip(*layer.states[:2], strict=True)]
        best = np.full(len(keys), -2)
        if value is not None:
            np.maximum.at(best, layers[depth + 1].parent, -value[layers[depth + 1].child])
        value = np.where(best == -2, [table[key]["value"] for key in keys], best)
        assert value.tolist() == [table[key]["value"] for key in keys]


def test_every_solved_record_loads_and_comes_back(golden):
    for line in golden("tictactoe_solved.jsonl.gz")[::97]:
        record = {"board": line["board"], "to_move": line["to_move"]}
        assert tictactoe.to_record(tictactoe.from_record(record)) == record


# The start position, changed in one respect.
START = {"board": [0] * 9, "to_move": 1}
REFUSED = {
    "no board": ({"to_move": 1}, "fields"),
    "unknown field": (START | {"plies": 0}, "fields"),
    "eight cells": (START | {"board": [0] * 8}, "9 cells"),
    "board as text": (START | {"board": "." * 9}, "9 cells"),
    "strange stone": (START | {"board": [2, -1, -1, 0, 0, 0, 0, 0, 0]}, "9 cells"),
    "nobody to move": (START | {"to_move": 0}, "to_move"),
    "wrong turn": (START | {"to_move": -1}, "numbers of stones"),
    "two stones too many": (START | {"board": [1, 1, 0, 0, 0, 0, 0, 0, 0]}, "numbers of stones"),
    "forfeit of the other": (START | {"forfeit": 1}, "forfeited"),
    "forfeit of nobody": (START | {"forfeit": 7}, "forfeited"),
    "mover has won before": ({"board": [1, 1, 1, -1, -1, -1, 0, 0, 0], "to_move": 1}, "three in a row"),
    "second has won before": ({"board": [-1, -1, -1, 1, 1, 0, 1, 1, 0], "to_move": -1}, "three in a row"),
    "forfeit after a win": ({"board": [1, 1, 1, -1, -1, 0, 0, 0, 0], "to_move": -1, "forfeit": 1}, "over"),
    "forfeit after a draw": ({"board": [1, -1, 1, 1, -1, -1, -1, 1, 1], "to_move": -1, "forfeit": 1}, "over"),
}


@pytest.mark.parametrize(("record", "reason"), REFUSED.values(), ids=REFUSED)
def test_impossible_positions_are_refused_with_the_reason(record, reason):
    with pytest.raises(ValueError, match=reason):
        tictactoe.from_record(record)


def test_names_give_column_and_row_from_below():
    game = tictactoe.make()
    assert [game.action_name(a) for a in range(9)] == ["a3", "b3", "c3", "a2", "b2", "c2", "a1", "b1", "c1"]
    assert game.parse_action(" B2 ") == 4


def test_picture_of_a_position():
    s = tictactoe.from_record({"board": [1, 0, -1, 0, 1, 0, -1, 0, 1], "to_move": -1})
    assert tictactoe.show(s).splitlines() == ["3  X . O", "2  . X .", "1  O . X", "   a b c", "X wins"]


def test_planes_show_own_and_other_stones():
    s = tictactoe.from_record({"board": [1, 0, -1, 0, 1, 0, 0, 0, 0], "to_move": -1})
    own, other = np.moveaxis(np.asarray(tictactoe.observe(s)), -1, 0)
    assert np.flatnonzero(own).tolist() == [2]
    assert np.flatnonzero(other).tolist() == [0, 4]
