"""Chess, Gardner's chess, animal shogi and shogi of pgx as people play them: names, frames, boards, reasons, lessons.

The games and positions are known ones, or were worked out by hand.
"""

from __future__ import annotations

import functools
import re

import jax
import numpy as np
import pytest

import envs
from agents.players.human import coloured
from agents.serve.views import Position, lesson, look_at
from envs import pgx_bridge
from envs.pgx_moves import DROPS
from envs.pgx_views import KINDS
from play import main

# Morphy against the Duke of Brunswick and Count Isouard, Paris 1858: White castles and mates.
OPERA = (
    "e2e4 e7e5 g1f3 d7d6 d2d4 c8g4 d4e5 g4f3 d1f3 d6e5 f1c4 g8f6 f3b3 d8e7 b1c3 c7c6 c1g5 b7b5 c3b5 c6b5 c4b5 b8d7 "
    "e1c1 a8d8 d1d7 d8d7 h1d1 e7e6 b5d7 f6d7 b3b8 d7b8 d1d8"
)
# Sam Loyd's shortest stalemate.
STALEMATE = (
    "e2e3 a7a5 d1h5 a8a6 h5a5 h7h5 h2h4 a6h6 a5c7 f7f6 c7d7 e8f7 d7b7 d8d3 b7b8 d3h7 b8c8 f7g6 c8e6"
)  # fmt: skip
BOTH_PROMOTE = "a2a4 h7h5 a4a5 h5h4 a5a6 h4h3 a6b7 h3g2"


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


def test_a_known_game_of_chess_ends_in_mate():
    end = after("chess", OPERA)
    assert (end.over, end.rewards, end.why) == (True, (1, -1), "checkmate")
    assert end.status == "White wins"
    assert end.game.show(end.state).split("\n")[0] == "8  . n . R k b . r"


def test_both_colours_promote_by_name():
    here = after("chess", BOTH_PROMOTE)
    ways = {way.action: way for way in here.ways if way.cells == ("b7", "a8")}
    labels = {"b7a8": "b7a8 (queen)", "b7a8r": "b7a8r (rook)", "b7a8b": "b7a8b (bishop)", "b7a8n": "b7a8n (knight)"}
    assert {name: way.label for name, way in ways.items()} == labels
    assert here.game.parse_action("b7a8q") == here.game.parse_action("b7a8")
    here = after("chess", f"{BOTH_PROMOTE} b7a8q")
    assert {"g2h1", "g2h1r", "g2h1b", "g2h1n", "g2f1", "g2f1r", "g2f1b", "g2f1n"} <= names(here)
    here = after("chess", f"{BOTH_PROMOTE} b7a8q g2h1n")
    board = here.game.show(here.state).split("\n")
    assert (board[0], board[7]) == ("8  Q n b q k b n r", "1  R N B Q K B N n")


def test_other_pieces_on_the_last_rank_promote_to_nothing():
    """A rook that takes on h8 has the code of a pawn's promotion."""
    moves = "h2h4 g7g5 h4g5 h7h5 h1h5 a7a6"
    assert next(way.label for way in after("chess", moves).ways if way.action == "h5h8") == "h5h8"


def test_frames_of_chess():
    """The second player's move is called as it is seen from White's side, and coded as Black sees it."""
    game = envs.make("pgx:chess")
    code, black = game.parse_action, game.to_mover_frame[1]
    assert game.to_mover_frame[0].tolist() == list(range(game.num_actions))
    for absolute, mover in (
        ("e7e5", "e2e4"),
        ("g8f6", "g1f3"),
        ("e8c8", "e1c1"),
        ("a2a1r", "a7a8r"),
        ("b2c1n", "b7c8n"),
    ):
        assert black[code(absolute)] == code(mover)


@pytest.mark.parametrize(("name", "men"), [("chess", 6), ("gardner_chess", 6), ("animal_shogi", 5), ("shogi", 14)])
def test_codes_belong_to_the_cells_of_the_observation(name, men):
    """In the mover's frame a move belongs to the cell with the man that makes it, a drop to an empty cell; the first
    planes show the mover's men."""
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
        for action in actions:
            drop = "*" in game.action_name(action)
            assert mine[frame[int(game.player(s)), action] // per_cell] != drop
            seen[drop] += 1
        s = step(s, draw.choice(actions))
    assert seen[False] > 100 and (seen[True] > 10) == (name in DROPS)


KNIGHTS = "b1a3 b1c3 g1f3 g1h3"
GENERALS = "3i3h 3i4h 7i7h 7i6h 4i3h 4i4h 4i5h 6i7h 6i6h 6i5h 5i4h 5i5h 5i6h"
FIRST_MOVES = {
    "gardner_chess": "a2a3 b2b3 c2c3 d2d3 e2e3 b1a3 b1c3",
    "animal_shogi": "2c2b 2d1c 2d3c 1d1c",
    "chess": " ".join([KNIGHTS, *(f"{file}2{file}{rank}" for file in "abcdefgh" for rank in "34")]),
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
    ("chess", "", "e4e5", "e4 is empty"),
    ("chess", "", "e7e5", "the Black pawn is not yours"),
    ("chess", "", "a1a3", "the rook on a1 cannot move"),
    ("chess", "e2e4 e7e5", "d1d2", "d2 holds a White pawn"),
    ("chess", "e2e4 e7e5", "d1d4", "the queen cannot go from d1 to d4"),
    ("chess", "e2e4 e7e5", "e1d2", "d2 holds a White pawn"),
    ("chess", "e2e4 e7e5 d1h5 b8c6 h5f7", "e8e7", "the king could be captured"),
    ("chess", "e2e4 e7e5 d1h5 b8c6 h5f7", "a7a6", "the king is in check, and the pawn on a7 cannot help"),
    ("gardner_chess", "", "a1b2", "the rook on a1 cannot move"),
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
    ("chess", "f2f3 e7e5 g2g4 d8h4", -1, "checkmate"),
    ("chess", STALEMATE, 0, "stalemate"),
    ("animal_shogi", "2d1c 2a3b 1c1b 2b2c 1b1a", 1, "the lion is on the last rank"),
    ("chess", "a2a3 a7a6" + " g1f3 g8f6 f3g1 f6g8" * 2, 0, "the third time in this position"),
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


def test_a_board_in_the_terminal_has_the_colours_of_its_players():
    here = after("chess")
    text = coloured(here.game.show(here.state), here.game.view.cased)
    lines = text.split("\n")
    style = lambda line, at: [str(span.style) for span in lines[line].spans if span.start <= at < span.end]
    assert style(0, 3) == ["bold red"] and style(7, 3) == ["bold cyan"]
    assert style(0, 0) == style(8, 3) == ["bright_black"]


@pytest.mark.parametrize("name", pgx_bridge.OURS)
def test_games_for_training_are_refused_where_people_play(name, capsys):
    for ui in ("web", "text", "gtp"):
        with pytest.raises(SystemExit) as end:
            main([f"--env=pgx:{name}", f"--ui={ui}", "--port=0", "--no_open"])
        error = capsys.readouterr().err
        assert end.value.code == 2
        assert re.fullmatch(r"error: expected a game for people, got pgx:\w+, .*: try --env=\S+\n", error)
        assert envs.make(error.strip().partition("--env=")[2]).num_players == 2
