"""Animal shogi and shogi of pgx as people play them: names, frames, boards, reasons, lessons.

The games and positions are known ones, or were worked out by hand.
"""

from __future__ import annotations

import functools
import re

import jax
import numpy as np
import pytest

import envs
from agents.serve.views import Position, lesson, look_at
from envs import pgx_bridge
from envs.pgx_bridge.views import KINDS
from play import main


@functools.cache
def after(name: str, moves: str = "") -> Position:
    """The position after some moves, each of them legal."""
    game = envs.make(f"pgx:{name}")
    here = look_at(game, game.init())
    for move in moves.split():
        action = game.parse_action(move)
        assert action in here.legal, f"{move} after {moves}"
        here = here.after(action)
    return here


def names(here: Position) -> set[str]:
    return {way.action for way in here.ways}


@pytest.mark.parametrize(("name", "men"), [("animal_shogi", 5), pytest.param("shogi", 14, marks=pytest.mark.nightly)])
def test_codes_belong_to_the_cells_of_the_observation(name, men):
    """In the mover's frame a move belongs to the cell with the man that makes it, a drop to an empty cell; the first
    planes show the mover's men. Its kind leads to the square in its name: files count from the right, ranks from
    above, for the second player the other way round."""
    game = envs.make(f"pgx:{name}")
    per_cell, frame = game.actions_per_cell, game.to_mover_frame
    step, mask, observe = jax.jit(game.step), jax.jit(game.mask), jax.jit(game.observe)
    draw, s, seen = np.random.default_rng(0), game.init(), {False: 0, True: 0}
    for _ in range(80):
        actions = np.flatnonzero(mask(s))
        if not len(actions):
            s = game.init()
            continue
        mine = np.asarray(observe(s))[..., :men].any(-1).ravel()
        assert game.num_actions == per_cell * mine.size
        rows, cols = np.shape(observe(s))[:2]
        for action in actions:
            drop = "*" in game.action_name(action)
            cell, kind = divmod(frame[int(game.player(s)), action], per_cell)
            assert mine[cell] != drop
            seen[drop] += 1
            file, rank = game.action_name(action).rstrip("+")[-2:]
            end = "abcdefghi".index(rank), cols - int(file)
            end = end if game.player(s) == 0 else (rows - 1 - end[0], cols - 1 - end[1])
            assert (cell // cols + game.offsets[kind, 0], cell % cols + game.offsets[kind, 1]) == end
        s = step(s, draw.choice(actions))
    assert seen[False] > 100 and seen[True] > 10


GENERALS = "3i3h 3i4h 7i7h 7i6h 4i3h 4i4h 4i5h 6i7h 6i6h 6i5h 5i4h 5i5h 5i6h"
FIRST_MOVES = {
    "animal_shogi": "2c2b 2d1c 2d3c 1d1c",
    "shogi": " ".join(
        [GENERALS, "9i9h 1i1h 2h1h", *(f"{x}g{x}f" for x in range(1, 10)), *(f"2h{x}h" for x in range(3, 8))]
    ),
}


@pytest.mark.parametrize("name", FIRST_MOVES)
def test_first_moves(name):
    assert names(after(name)) == set(FIRST_MOVES[name].split())


def test_animal_shogi_answers_a_check_and_drops():
    here = after("animal_shogi", "2c2b")
    assert here.status == "White to move, in check"
    assert names(here) == {"1a2b", "2a2b", "2a1b", "2a3b"}
    here = after("animal_shogi", "2c2b 1a2b")
    assert {name for name in names(here) if "*" in name} == {"C*1a", "C*1b", "C*1c", "C*2c", "C*3b", "C*3c"}
    assert {way.cells for way in here.ways if way.action == "C*1a"} == {("C", "1a")}
    assert "in hand: Black C1, White C1" in here.game.show(here.state)
    assert "<title>C: chick in hand, White 1, Black 1</title>" in here.svg


def test_shogi_exchanges_bishops_and_drops_one():
    here = after("shogi", "7g7f 3c3d")
    assert {"8h2b", "8h2b+"} <= names(here)
    assert {way.label for way in here.ways if way.cells == ("8h", "2b")} == {"8h2b (not promoted)", "8h2b+ (promoted)"}
    here = after("shogi", "7g7f 3c3d 8h2b+")
    assert {name for name in names(here) if name[2:4] == "2b"} == {"3a2b", "8b2b"}
    assert here.game.show(here.state).split("\n")[1] == "b   .  r  .  .  .  .  . +B  ."
    here = after("shogi", "7g7f 3c3d 8h2b+ 3a2b")
    assert {"B*5e", "B*8h", "B*2h"} & names(here) == {"B*5e", "B*8h"}  # Black's rook is on 2h


REASONS = [  # game, moves made, illegal move, reason
    ("animal_shogi", "", "C*2b", "Black has no chick in hand"),
    ("animal_shogi", "2c2b", "3a3b", "the lion is in check, and the giraffe on 3a cannot help"),
    ("animal_shogi", "2c2b 1a2b", "C*2b", "2b holds a White elephant"),
    ("shogi", "", "2h2b", "the rook cannot go from 2h to 2b"),
    ("shogi", "7g7f 3c3d 8h2b+ 3a2b", "B*2h", "2h holds a Black rook"),
    # Black has taken a pawn, and has another one on file 9.
    ("shogi", "7g7f 5c5d 8h3c+ 2a3c", "P*9e", "a pawn cannot be dropped on 9e"),
]


@pytest.mark.parametrize(("name", "moves", "move", "reason"), REASONS)
def test_reasons_for_illegal_moves(name, moves, move, reason):
    here = after(name, moves)
    assert here.reason(here.game.parse_action(move)) == reason


ENDS = [  # game, moves, result of the first player, reason
    ("animal_shogi", "2d1c 2a3b 1c1b 2b2c 1b1a", 1, "the lion is on the last rank"),
]


@pytest.mark.parametrize(("name", "moves", "result", "reason"), ENDS)
def test_reasons_for_the_end(name, moves, result, reason):
    end = after(name, moves)
    assert (end.over, end.rewards, end.why) == (True, (result, -result), reason)


@pytest.mark.parametrize("name", KINDS)
def test_lessons_are_short_and_can_be_drawn(name):
    steps = lesson(envs.make(f"pgx:{name}"))
    assert len(steps) >= 2
    assert all(20 <= len(step["text"]) <= 300 and step["svg"].startswith("<svg") for step in steps)


@pytest.mark.parametrize("name", pgx_bridge.OURS)
def test_games_for_training_are_refused_where_people_play(name, capsys):
    for ui in ("web", "text", "gtp"):
        with pytest.raises(SystemExit) as end:
            main([f"--env=pgx:{name}", f"--ui={ui}", "--port=0", "--no_open"])
        error = capsys.readouterr().err
        assert end.value.code == 2
        assert re.fullmatch(r"error: expected a game for people, got pgx:\w+, .*: try --env=\S+\n", error)
        assert envs.make(error.strip().partition("--env=")[2]).num_players == 2
