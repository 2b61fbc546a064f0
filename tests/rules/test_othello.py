"""Othello against recorded games, counted move sequences and a walk along lines."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs import othello


def turned_by(board: np.ndarray, square: int, colour: int) -> list[int]:
    """Plain walk along the eight lines: discs that turn over, none where the move is not allowed."""
    r, c = divmod(square, 8)
    found = []
    for down, right in ((a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b):
        line, a, b = [], r + down, c + right
        while 0 <= a < 8 and 0 <= b < 8 and board[a, b] == -colour:
            line.append(a * 8 + b)
            a, b = a + down, b + right
        if 0 <= a < 8 and 0 <= b < 8 and board[a, b] == colour:
            found += line
    return sorted(found) if board[r, c] == 0 else []


# Recorded games


def test_recorded_games(golden):
    games = golden("othello.jsonl.gz")
    assert len(games) == 40
    moves = np.full((len(games), 121), -1, np.int32)  # what comes after the end may not matter
    for i, game in enumerate(games):
        moves[i, : len(game["moves"])] = game["moves"]

    @jax.jit
    @jax.vmap
    def replay(moves):
        def ply(s, action):
            facts = othello.board(s), othello.mask(s), othello.over(s), othello.player(s), othello.rewards(s)
            return othello.step(s, action), facts

        return jax.lax.scan(ply, othello.init(), moves)

    last, facts = jax.device_get(replay(moves))
    assert not (last.forfeit >= 0).any()
    passes = 0
    for i, game in enumerate(games):
        boards, legal, over, player, rewards = (x[i] for x in facts)
        end = len(game["moves"])
        assert [np.flatnonzero(row).tolist() for row in legal[:end]] == game["legal"]
        assert not over[:end].any() and over[end:].all() and not legal[end:].any()
        assert player[: end + 1].tolist() == [ply % 2 for ply in range(end + 1)]
        assert boards[end].ravel().tolist() == game["final_board"]
        assert ((boards[end] > 0).sum(), (boards[end] < 0).sum()) == (game["black"], game["white"])
        assert not rewards[:end].any()
        assert rewards[end].tolist() == [game["winner"], -game["winner"]]
        passes += (moves[i] == othello.PASS).sum()
    assert passes == 56


# Counted move sequences


def halves(s):
    """The state with 16-bit words, as `expand` compares states by 16-bit numbers."""
    return jax.tree.map(lambda x: jax.lax.bitcast_convert_type(x, jnp.uint16) if x.dtype == jnp.uint32 else x, s)


def whole(s):
    return jax.tree.map(lambda x: jax.lax.bitcast_convert_type(x, jnp.uint32) if x.dtype == jnp.uint16 else x, s)


def test_move_sequence_counts(expand):
    mask, step = lambda s: othello.mask(whole(s)), lambda s, a: halves(othello.step(whole(s), a))
    layers = expand(mask, step, halves(othello.init()), depth=7)
    counts = [int(layer.ways.sum()) for layer in layers]
    assert counts == [1, 4, 12, 56, 244, 1396, 8200, 55092]
    assert int((layers[-1].ways * layers[-1].legal.sum(-1)).sum()) == 390216


# Any board, against the plain walk

FACTS = jax.jit(lambda s: (othello.mask(s), othello.over(s), othello.rewards(s)))
STEP = jax.jit(othello.step)


def position(board: np.ndarray, turn: int) -> othello.State:
    words = lambda colour: np.packbits(board.ravel() == colour, bitorder="little").view("<u4")
    return othello.State(words(turn), words(-turn), np.int8((1 - turn) // 2), np.int8(-1))


@hypothesis.settings(max_examples=200, deadline=None, derandomize=True, database=None)
@hypothesis.given(st.sampled_from([0.2, 0.5, 0.9, 1.0]), st.sampled_from([0.1, 0.5, 0.9]), st.integers(0, 2**32 - 1))
def test_any_board_follows_the_plain_rules(filled, share, seed):
    rng = np.random.default_rng(seed)
    board = np.where(rng.random((8, 8)) < filled, np.where(rng.random((8, 8)) < share, 1, -1), 0)
    turn = int(rng.choice([1, -1]))
    s = position(board, turn)
    turned = {a: turned_by(board, a, turn) for a in range(64)}
    places = [a for a in range(64) if turned[a]]
    other = any(turned_by(board, a, -turn) for a in range(64))
    legal, over, rewards = jax.device_get(FACTS(s))
    assert np.flatnonzero(legal).tolist() == (places or ([64] if other else []))
    assert over == (not places and not other)
    lead = np.sign(board.sum()) if over else 0
    assert rewards.tolist() == [lead, -lead]
    for a in rng.permutation(np.flatnonzero(legal))[:3]:
        after = jax.device_get(STEP(s, np.int32(a)))
        want = board.copy().ravel()
        if a < 64:
            want[[a, *turned[int(a)]]] = turn
        assert (after.to_move, after.forfeit) == ((1 + turn) // 2, -1)
        for got, expected in zip(after, position(want, -turn), strict=True):
            np.testing.assert_array_equal(got, expected)


def test_a_run_does_not_go_on_around_the_edge():
    board = np.zeros((8, 8), int)
    board[2, 6], board[2, 7], board[3, 0] = 1, -1, 0  # h3 is enclosed only if a4 followed it
    board[4, 0], board[4, 1] = -1, 1  # and a5 only if h4 came before it
    board[6, 7], board[7, 0] = -1, 1
    assert not FACTS(position(board, 1))[0][:64].any()


# Records

START = {"board": othello.START.ravel().tolist(), "to_move": 1}


def changed(**squares: int) -> list[int]:
    """The start with some squares changed."""
    cells = list(START["board"])
    for name, colour in squares.items():
        cells[othello.NAMES.index(name)] = colour
    return cells


REFUSED = {
    "no board": ({"to_move": 1}, "fields"),
    "unknown field": (START | {"plies": 0}, "fields"),
    "too few squares": (START | {"board": [0] * 63}, "64 squares"),
    "strange disc": (START | {"board": changed(a1=2)}, "64 squares"),
    "nobody to move": (START | {"to_move": 0}, "to_move"),
    "empty middle": (START | {"board": changed(d4=0)}, "middle"),
    "white begins": (START | {"to_move": -1}, "start"),
    "another start": (START | {"board": changed(d4=1, d5=-1)}, "start"),
    "black twice": ({"board": changed(d3=1, d4=1), "to_move": 1}, "after one move"),
    "disc apart": ({"board": changed(d3=1, d4=1, h8=-1), "to_move": 1}, "apart"),
    "forfeit of the other": (START | {"forfeit": 1}, "forfeited"),
    "forfeit of nobody": (START | {"forfeit": 7}, "forfeited"),
    "forfeit after the end": ({"board": [1] * 64, "to_move": 1, "forfeit": 0}, "over"),
}


@pytest.mark.parametrize(("record", "reason"), REFUSED.values(), ids=REFUSED)
def test_impossible_positions_are_refused_with_the_reason(record, reason):
    with pytest.raises(ValueError, match=reason):
        othello.from_record(record)


# For people


def test_names_give_column_and_row_from_above():
    game = envs.make("othello")
    assert [game.action_name(a) for a in (0, 7, 19, 63, 64)] == ["a1", "h1", "d3", "h8", "pass"]
    assert game.parse_action(" D3 ") == 19


def test_picture_of_the_start():
    assert othello.show(othello.init()).splitlines() == [
        "   a b c d e f g h",
        "1  . . . . . . . .",
        "2  . . . . . . . .",
        "3  . . . * . . . .",
        "4  . . * O X . . .",
        "5  . . . X O * . .",
        "6  . . . . * . . .",
        "7  . . . . . . . .",
        "8  . . . . . . . .",
        "X 2, O 2; Black (X) to move",
    ]


def test_planes_of_the_start():
    own, other, own_moves, other_moves, ones = np.moveaxis(np.asarray(othello.observe(othello.init())), -1, 0)
    assert (np.flatnonzero(own).tolist(), np.flatnonzero(other).tolist()) == ([28, 35], [27, 36])
    assert np.flatnonzero(own_moves).tolist() == [19, 26, 37, 44]  # d3, c4, f5, e6
    assert np.flatnonzero(other_moves).tolist() == [20, 29, 34, 43]  # e3, f4, c5, d6
    assert ones.all()


def test_planes_list_the_moves_of_both_players():
    """In random games the third plane is the mask, and the fourth is the mask if the other player were to move."""
    game = envs.make("othello")
    swapped = lambda s: s._replace(mine=s.others, others=s.mine, to_move=1 - s.to_move)
    squares = lambda s: game.mask(s)[:64].reshape(8, 8)
    see = jax.jit(lambda s: (game.observe(s), squares(s), squares(swapped(s)), game.mask(s)))
    rng, state, passes = np.random.default_rng(5), game.init(), 0
    for _ in range(game.max_plies):
        planes, mine, others, legal = see(state)
        assert np.array_equal(planes[..., 2], mine) and np.array_equal(planes[..., 3], others)
        if not legal.any():
            break
        passes += int(legal[64])
        state = game.move(state, int(rng.choice(np.flatnonzero(legal))))
    assert game.over(state)


def test_hand_made_value_prefers_corners_and_places():
    corner = othello.from_record({"board": changed(b2=-1, c3=-1, a1=1), "to_move": 1})
    assert float(othello.evaluate(corner)) > 0
    assert float(othello.evaluate(corner._replace(mine=corner.others, others=corner.mine))) < 0
    assert float(othello.evaluate(othello.init())) == 0  # four places each
