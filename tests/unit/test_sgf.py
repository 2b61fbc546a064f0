"""Games of Go as SGF: both ways, as other programs write it, and broken files."""

import random

import jax
import numpy as np
import pytest
from sgfmill import boards, sgf, sgf_moves

import envs
from agents.serve import sgf as ours
from envs import saved

GAME = envs.make("go:size=9,komi=6.5")


def random_game(seed, plies):
    """Start, actions and all positions of a random game."""
    mask, move = jax.jit(GAME.mask), jax.jit(GAME.move)
    rng, names, state = random.Random(seed), [], GAME.init()
    for _ in range(plies):
        legal = np.flatnonzero(mask(state))
        if not len(legal):
            break
        names.append(GAME.action_name(rng.choice(legal.tolist())))
        state = move(state, GAME.parse_action(names[-1]))
    states, actions = saved.replay(GAME, GAME.init(), names)
    return states, actions


@pytest.fixture(scope="module")
def played():
    return random_game(3, 60)


def with_players(actions, first=0):
    return [((first + i) % 2, action) for i, action in enumerate(actions)]


def test_a_whole_game_both_ways(played):
    states, actions = played
    text = ours.write_sgf(GAME, states[0], with_players(actions), ours.score(states[-1], 6.5))
    start, names, _ = ours.start_from_sgf(GAME, text.encode())
    again, same = saved.replay(GAME, start, names)
    assert same == actions
    assert GAME.to_record(again[-1]) == GAME.to_record(states[-1])


def test_sgfmill_plays_the_same_game(played):
    """Its own board, captures included, is the independent program; and its area score."""
    states, actions = played
    file = sgf.Sgf_game.from_string(ours.write_sgf(GAME, states[0], with_players(actions)))
    assert (file.get_size(), file.get_komi()) == (9, 6.5)
    board, moves = sgf_moves.get_setup_and_moves(file)
    for colour, point in moves:
        if point is not None:
            board.play(point[0], point[1], colour)
    cells = np.array([[{"b": 1, "w": -1, None: 0}[board.get(8 - r, c)] for c in range(9)] for r in range(9)])
    assert cells.ravel().tolist() == GAME.to_record(states[-1])["board"]
    margin = board.area_score() - 6.5
    assert ours.score(states[-1], 6.5) == f"{'B' if margin > 0 else 'W'}+{abs(margin):g}"


def test_set_up_stones_handicap_and_who_begins():
    text = "(;FF[4]GM[1]SZ[9]KM[6.5]HA[2]AB[cc][gg]AW[ee];W[cg];B[tt];W[])"
    start, names, _ = ours.start_from_sgf(GAME, text.encode())
    assert names == ["C3", "pass", "pass"]  # SGF counts rows from the top: cg is column c, row 7 of 9
    board = GAME.to_record(start)["board"]
    assert [GAME.action_name(p) for p in np.flatnonzero(board)] == ["C7", "E5", "G3"]
    assert board[GAME.parse_action("E5")] == -1
    assert int(GAME.player(start)) == 1
    whites, *_ = ours.start_from_sgf(GAME, b"(;SZ[9]AB[cc]AW[dd][ee]PL[W])")
    assert int(GAME.player(whites)) == 1
    for text, first in (("HA[2]AB[cc][gg]", 1), ("HA[2]AB[cc][gg]PL[B]", 0), ("AB[cc][gg]AW[dd][ee]", 0), ("HA[2]", 0)):
        assert int(GAME.player(ours.start_from_sgf(GAME, f"(;SZ[9]{text})".encode())[0])) == first
    again, names, _ = ours.start_from_sgf(GAME, ours.write_sgf(GAME, start, [(1, 5)]).encode())
    assert GAME.to_record(again)["board"] == board
    assert int(GAME.player(again)) == 1
    assert names == ["F9"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("(;SZ[9]AB[bb][dd]AW[cc]PL[B])", []),  # as many turns of both make these stones, one of White's a pass
        ("(;SZ[9]AB[bb][dd]AW[cc]PL[B];B[];W[])", ["pass", "pass"]),
        ("(;SZ[9]AB[cc]AW[dd][ee]PL[W];W[];B[aa])", ["pass", "A9"]),
        ("(;SZ[9]AB[cc][gg];W[];B[])", ["pass", "pass"]),
    ],
)
def test_a_set_up_position_has_no_pass_before_it(text, names):
    start, actions, _ = ours.start_from_sgf(GAME, text.encode())
    assert actions == names
    assert int(start.now.passes) == 0
    position = start
    for name in actions:
        assert not bool(GAME.over(position))
        position = GAME.move(position, GAME.parse_action(name))
    assert bool(GAME.over(position)) == (names == ["pass", "pass"])
    again = GAME.from_record(GAME.to_record(start))
    assert GAME.to_record(again) == GAME.to_record(start)


def test_games_other_than_go_are_refused():
    with pytest.raises(ValueError, match="game number 2"):
        ours.start_from_sgf(GAME, b"(;GM[2]SZ[9];B[cc])")


def test_variations_and_comments_are_passed_over():
    text = "(;SZ[9]KM[6.5]C[a comment \\] here];B[aa]C[good](;W[bb];B[cc])(;W[dd]))"
    assert ours.start_from_sgf(GAME, text.encode())[1] == ["A9", "B8", "C7"]


@pytest.mark.parametrize(
    ("text", "resigned"),
    [
        ("(;SZ[9]RE[B+R];B[aa])", 1),
        ("(;SZ[9]RE[w+resign];B[aa])", 0),
        ("(;SZ[9]RE[W+12.5];B[aa])", None),
        ("(;SZ[9]RE[B+T];B[aa])", None),
        ("(;SZ[9]RE[?];B[aa])", None),
        ("(;SZ[9]RE[B+R];B[aa];W[];B[])", None),  # over before
        ("(;SZ[9]RE[B+R];B[];W[aa])", 1),
    ],
)
def test_who_resigned_is_read(text, resigned):
    assert ours.start_from_sgf(GAME, text.encode()).resigned == resigned


def test_a_mark_on_every_point_is_where_sgfmill_sees_it():
    for action in (0, 8, 40, 72, 80):
        file = sgf.Sgf_game.from_string(ours.write_sgf(GAME, GAME.init(), [(0, action)]))
        row, col = file.get_main_sequence()[1].get_move()[1]
        assert boards.Board(9).side == 9
        assert GAME.action_name(action) == f"{'ABCDEFGHJ'[col]}{row + 1}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "SGF"),
        ("nonsense", "SGF"),
        ("(;SZ[9]", "SGF"),
        ("(;SZ[nine])", "SGF"),
        ("(;SZ[9]KM[nan])", r"SGF: the komi is not a number: KM\[nan\]"),
        ("(;SZ[9]KM[much])", r"SGF: the komi is not a number: KM\[much\]"),
        ("(;SZ[9];B[aa];W[zz])", r"SGF: move 2: no point of this board: W\[zz\]"),
        ("(;SZ[25];B[aa])", "SGF: a board of 25 lines; known are 5 to 19"),
        ("(;SZ[9];B[aa];B[bb])", "SGF: at move 2 it is not the turn of Black"),
        ("(;SZ[9];B[aa];AB[bb])", "SGF: stones are set up in the middle"),
        ("(;SZ[9]AB[aa]AW[ba][ab])", "no liberty"),
        ("(;SZ[13]KM[6.5];B[aa])", "this game is one of --env=go:size=13,komi=6.5"),
        ("(;SZ[9]KM[7.5];B[aa])", "this game is one of --env=go:size=9,komi=7.5"),
        ("(;SZ[9];B[aa];W[bb];B[aa])", "move 3: 'A9' is not legal"),
        ("(" * 100_000, "SGF"),
    ],
)
def test_broken_files_are_refused_in_a_line(text, words):
    with pytest.raises(ValueError, match=words) as refused:
        start, names, _ = ours.start_from_sgf(GAME, text.encode())
        saved.replay(GAME, start, names)
    assert "\n" not in str(refused.value)


def test_only_go_has_sgf():
    game = envs.make("tictactoe")
    with pytest.raises(ValueError, match="SGF is for games of Go"):
        ours.start_from_sgf(game, b"(;SZ[9])")
    with pytest.raises(ValueError, match="SGF is for games of Go"):
        ours.write_sgf(game, game.init(), [])


@pytest.mark.parametrize("encoding", ["zlib_codec", "rot13", "hex", "bz2", "no such", "undefined", "uu", ""])
def test_only_encodings_of_text_are_read(encoding):
    """Python knows others, which raise LookupError where text is wanted."""
    game = envs.make("go:size=5,komi=7.5")
    file = f"(;FF[4]CA[{encoding}]SZ[5]KM[7.5]RE[B+R];B[cc])".encode()
    try:
        assert ours.start_from_sgf(game, file).actions == ["C3"]
    except ValueError as error:
        assert str(error).startswith("SGF: ")
