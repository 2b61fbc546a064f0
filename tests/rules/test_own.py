"""Games built from rules alone: the rules of ours again, a game solved by hand, and mistakes told in one line."""

import functools
import json
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from agents.solvers.solve import make_solver
from envs import check, tictactoe
from envs.own import own_game

LINES = np.array([[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]])


class Cells(NamedTuple):
    cells: jax.Array  # int8[3, 3]: 1 the player to move, -1 the other
    to_move: jax.Array


class Mover(NamedTuple):
    cells: jax.Array = jnp.zeros((3, 3), jnp.int8)
    mover: jax.Array = jnp.int8(0)


def lost(s):
    return (s.cells.ravel()[LINES].sum(-1) == -3).any()


RULES = {
    "about": "Noughts and crosses: three in a row win.",
    "init": lambda: Cells(jnp.zeros((3, 3), jnp.int8), jnp.int8(0)),
    "mask": lambda s: s.cells.ravel() == 0,
    "move": lambda s, a: Cells(-s.cells.ravel().at[a].set(1).reshape(3, 3), 1 - s.to_move),
    "rewards": lambda s: jnp.where(lost(s), jnp.where(jnp.arange(2) == s.to_move, -1, 1), 0),
    "observe": lambda s: jnp.stack([s.cells == 1, s.cells == -1], -1),
    "max_plies": 9,
    "over": lost,
    "symmetric": True,
}


@functools.cache
def noughts():
    return own_game(**RULES)


def facts(game):
    look = lambda s: (game.mask(s), game.over(s), game.player(s), game.rewards(s))
    return jax.jit(jax.vmap(look)), jax.jit(jax.vmap(jax.vmap(game.step, (None, 0)), (0, None)))


def test_the_rules_of_tictactoe_again():
    """In all of its 5478 positions, and for every action, legal or not."""
    ours, own = tictactoe.make(), noughts()
    (look, step), (look_own, step_own) = facts(ours), facts(own)
    alike = lambda a, b: jax.tree.map(lambda x, y: np.testing.assert_array_equal(x, y, strict=True), a, b)
    states = jax.tree.map(lambda x: x[None], (ours.init(), own.init()))
    positions = 0
    for _ in range(10):
        found = look(states[0])
        alike(found, look_own(states[1]))
        positions += len(found[0])
        after = step(states[0], jnp.arange(-1, 10)), step_own(states[1], jnp.arange(-1, 10))
        after = jax.tree.map(lambda x: np.asarray(x).reshape(-1, *x.shape[2:]), after)
        alike(look(after[0]), look_own(after[1]))
        legal = np.pad(np.asarray(found[0]), ((0, 0), (1, 1))).ravel()
        boards = after[0].board.reshape(len(legal), 9)
        index = np.unique(np.where(legal[:, None], boards, 9), axis=0, return_index=True)[1]
        states = jax.tree.map(lambda x: x[index[legal[index]]], after)
        if not len(states[0].board):
            break
    assert positions == 5478


def test_every_rule_holds(monkeypatch, capsys):
    assert len(noughts().symmetries) == 8
    monkeypatch.setattr(envs, "make", lambda name: noughts())
    assert check.report(noughts())
    assert "BROKEN" not in capsys.readouterr().out


def boards_after(rows):
    """Chomp by hand: `rows` are the squares left in each row."""
    for r in range(len(rows)):
        for c in range(rows[r]):
            if (r, c) != (0, 0):
                yield (r, c), tuple(min(left, c) if i >= r else left for i, left in enumerate(rows))


@functools.cache
def wins(rows):
    return any(not wins(after) for _, after in boards_after(rows))


@pytest.mark.parametrize(("rows", "cols"), [(3, 4), (2, 5)])
def test_chomp_is_won_by_the_moves_that_win_by_hand(rows, cols):
    game = envs.make(f"docs/chomp.py:rows={rows},cols={cols}")
    verdict = make_solver(game, 4096)(game.init(), all_moves=True, seconds=60)
    right = {r * cols + c for (r, c), after in boards_after((cols,) * rows) if not wins(after)}
    assert {action for action, value in verdict.moves.items() if value == 1} == right
    assert len(verdict.moves) == rows * cols - 1


def test_what_people_see():
    s = noughts().step(noughts().step(noughts().init(), 0), 4)
    assert noughts().show(s) == "3 X . .\n2 . O .\n1 . . .\n  a b c\nA to move"
    assert [noughts().action_name(a) for a in (0, 4, 8)] == ["a3", "b2", "c1"]
    assert "A made an illegal move" in noughts().view.why_over(noughts().step(s, 0))
    game = own_game(**RULES | {"mask": lambda s: jnp.append(s.cells.ravel() == 0, True), "seats": ("X", "O")})
    assert (game.num_actions, game.action_name(9), game.view.cells(9)) == (10, "pass", ())
    assert game.symmetries[3].actions[9] == 9
    assert own_game(**RULES | {"names": [f"n{i}" for i in range(9)]}).parse_action("n7") == 7


def test_records_with_wrong_fields_are_refused():
    s = noughts().step(noughts().init(), 3)
    record = json.loads(json.dumps(noughts().to_record(s)))
    assert record == {"cells": [[0, 0, 0], [-1, 0, 0], [0, 0, 0]], "to_move": 1}
    for wrong, words in (
        ({"to_move": 0.5}, r"to_move: expected int8\[\], got 0.5"),
        ({"to_move": 300}, r"to_move: expected int8\[\], got 300"),
        ({"to_move": True}, r"to_move: expected int8\[\], got True"),
        ({"cells": [[0, 0], [0, 0, 0]]}, r"cells: expected int8\[3, 3\], got lists of different lengths"),
        ({"cells": [0] * 9}, r"cells: expected int8\[3, 3\], got the shape \[9\]"),
        ({"cells": [["x"] * 3] * 3}, r"cells: expected int8\[3, 3\], got"),
        ({"more": 1}, "fields cells and to_move"),
    ):
        with pytest.raises(ValueError, match=words):
            noughts().from_record(record | wrong)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"init": lambda: (jnp.zeros(9), jnp.int8(0))}, "init: expected a NamedTuple of arrays, got tuple"),
        (
            {"mask": lambda s: s.cells == 0},
            r"mask: expected bool\[A\]; ravel\(\) makes one row of a board, got bool\[3,",
        ),
        ({"observe": lambda s: s.cells.ravel()}, r"observe: expected planes \[R, C, P\] or \[R, C\], got int8\[9\]"),
        ({"mask": lambda s: s.cells[0] == 0}, "symmetric: expected 9 actions, one for each cell, got 3"),
        ({"names": ["a"] * 9}, "names: expected 9 different ones, got 1"),
        ({"init": Mover, "player": None}, "player: expected a field to_move or the option player, got cells, mover"),
    ],
)
def test_rules_of_other_shapes_are_refused(changed, words):
    with pytest.raises(ValueError, match=words):
        own_game(**RULES | changed)


def test_a_field_keeps_its_dtype_unless_its_kind_changes(capsys):
    """1 - to_move is int32 with a plain 1 in NumPy; a fraction is a mistake, which `envs.check` names."""
    wide = own_game(**RULES | {"move": lambda s, a: RULES["move"](s, a)._replace(to_move=jnp.int32(1) - s.to_move)})
    assert wide.step(wide.init(), 0).position.to_move.dtype == jnp.int8
    halves = own_game(**RULES | {"move": lambda s, a: RULES["move"](s, a)._replace(to_move=0.5 * s.to_move)})
    assert not check.report(halves)
    assert "to_move: expected int8[] as from init, got float32[]" in capsys.readouterr().out
