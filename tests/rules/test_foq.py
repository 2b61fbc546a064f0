"""Flight of Queen against recorded games, solved positions, counted move sequences and the pictures of its rules."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from plain_foq import random_game, slides, squares

import envs
from envs import foq


def position(picture: str, to_move: str = "A") -> foq.State:
    """Reads a drawing: A and B queens, # ripped, anything else is empty."""
    cells = np.array([line.split() for line in picture.strip().splitlines()])
    queens = [int(np.flatnonzero(cells.ravel() == name)[0]) for name in "AB"]
    ripped = np.isin(cells, ["A", "B", "#"])
    return foq.State(jnp.asarray(ripped), jnp.asarray(queens, jnp.int16), jnp.int8("AB".index(to_move)), jnp.int8(-1))


def draw(s: foq.State) -> str:
    """Draws a position: * legal targets of the mover, x squares that he reaches but may not stop on."""
    legal = np.asarray(foq.mask(s)).reshape(s.ripped.shape)
    reached = np.asarray(foq.reach(s.ripped, s.queens[s.to_move]))
    cells = np.where(s.ripped, "#", np.where(legal, "*", np.where(reached, "x", ".")))
    for name, square in zip("AB", np.asarray(s.queens), strict=True):
        cells[np.unravel_index(square, cells.shape)] = name
    return "\n".join(" ".join(row) for row in cells)


def same_drawing(s: foq.State, picture: str) -> bool:
    return draw(s).split() == picture.split()


# Worked examples of the rules


def test_first_turn_on_4x5():
    picture = """
        A x * * x
        * * . . .
        * . * . .
        x . . x B
    """
    assert same_drawing(foq.init(4, 5), picture)
    assert same_drawing(position(picture), picture)


def test_attacked_squares_may_be_crossed_but_not_stopped_on():
    crossed = foq.step(foq.init(4, 5), 3)
    assert np.flatnonzero(crossed.ripped).tolist() == [0, 1, 2, 3, 19]
    assert (int(crossed.queens[0]), int(crossed.forfeit)) == (3, -1)
    stopped = foq.step(foq.init(4, 5), 1)
    assert (int(stopped.queens[0]), int(stopped.forfeit)) == (0, 0)


def test_queens_block_lines():
    picture = """
        * * . . . . .
        A x x x x x B
        * * . . . . .
    """
    assert same_drawing(position(picture), picture)


def test_stuck_player_loses_on_4x5():
    s = foq.init(4, 5)
    pictures = [
        """
        # # A . .
        . . . . .
        . . . . .
        . . . . B
        """,
        """
        # # A . .
        . . . . B
        . . . . #
        . . . . #
        """,
        """
        # # # . .
        . # . . B
        A . . . #
        . . . . #
        """,
        """
        # # # . .
        . # . . #
        A . . # #
        . . B . #
        """,
    ]
    for action, picture in zip((2, 9, 10, 17), pictures, strict=True):
        assert not bool(foq.over(s)) and not np.asarray(foq.rewards(s)).any()
        s = foq.step(s, action)
        want = position(picture, "AB"[int(s.to_move)])
        assert all(np.array_equal(x, y) for x, y in zip(s, want, strict=True))
    assert same_drawing(
        s,
        """
        # # # . .
        x # . . #
        A x x # #
        x x B . #
        """,
    )
    assert bool(foq.over(s))
    assert np.asarray(foq.rewards(s)).tolist() == [-1, 1]
    assert slides(np.asarray(s.ripped), 17)  # that B could still move is not needed


def test_own_square_stops_the_attack_of_the_other():
    picture = """
        # # # # # # #
        * * A x x x B
        # # # # # # #
    """
    assert same_drawing(position(picture), picture)


def test_most_legal_targets():
    # On (3,4) of an empty board a queen has 8 targets in its row, 7 in its column and 3 + 3 + 4 + 4 on its diagonals.
    assert envs.make("foq").max_legal == 8 + 7 + 14
    # The other queen takes at least one of them away, as every square off the lines has a neighbour on them.
    picture = """
        . * . . * . . * .
        . . * . * . * . .
        . . . * * * . . .
        * * * * A * * * *
        . . . * * * . # #
        . . * . * . * # B
        . * . . * . . x #
        * . . . * . . . *
    """
    assert same_drawing(position(picture), picture)
    assert int(foq.mask(position(picture)).sum()) == 28


@pytest.mark.parametrize("starts", [[(0, 0), (0, 0)], [(0, 0), (4, 0)], [(-1, 0), (0, 0)]])
def test_impossible_starting_squares_are_refused(starts):
    with pytest.raises(ValueError, match="different starting squares on the 4 x 5 board"):
        foq.init(4, 5, starts)


# Recorded games and solved positions

BOARDS = {(8, 9): 20, (5, 5): 11, (9, 9): 11, (7, 8): 11, (6, 7): 10}


@pytest.mark.parametrize("size", BOARDS)
def test_recorded_games_are_reproduced(golden, size):
    games = [game for game in golden("foq.jsonl.gz") if (game["rows"], game["cols"]) == size]
    assert len(games) == BOARDS[size]

    @jax.jit
    @jax.vmap
    def replay(start, actions):
        def ply(s, action):
            following = foq.step(s, action)
            return following, (s, foq.mask(s), foq.over(s), foq.player(s), foq.rewards(s))

        return jax.lax.scan(ply, start, actions)[1]

    starts = [foq.init(*size, starts=game["starts"]) for game in games]
    actions = np.full((len(games), 60), -1, np.int32)  # what comes after the end may not matter
    for i, game in enumerate(games):
        actions[i, : len(game["plies"])] = [ply["action"] for ply in game["plies"]]
    states, legal, over, player, rewards = jax.device_get(
        replay(jax.tree.map(lambda *x: jnp.stack(x), *starts), actions)
    )

    for i, game in enumerate(games):
        end = len(game["plies"])
        for t, ply in enumerate(game["plies"]):
            assert squares(legal[i, t]) == ply["legal"]
            assert player[i, t] == ply["player"]
            assert squares(states.ripped[i, t + 1]) == ply["ripped"]
            assert states.queens[i, t + 1].tolist() == ply["queens"]
        assert not over[i, :end].any() and over[i, end:].all()
        assert not rewards[i, :end].any()
        assert rewards[i, -1, game["winner"]] == 1 and rewards[i, -1, 1 - game["winner"]] == -1
        assert [player[i, end]] == game["eliminated"]
        assert (states.forfeit[i] == -1).all()


@pytest.fixture(scope="module")
def solved(golden):
    """The solved positions, as records with answers and as one batch of states."""
    lines = golden("foq_solved.jsonl.gz")
    fields = ("variant", "rows", "cols", "ripped", "queens", "to_move")
    states = [envs.make("foq").from_record({k: line[k] for k in fields}) for line in lines]
    return lines, jax.tree.map(lambda *x: np.stack(x), *states)


def test_solved_positions_have_the_recorded_legal_actions(solved):
    lines, states = solved
    assert len(lines) == 160
    legal = np.asarray(jax.jit(jax.vmap(foq.mask))(states))
    assert [squares(row) for row in legal] == [line["legal"] for line in lines]
    assert states.to_move.tolist() == [line["to_move"] for line in lines]


def test_moves_that_win_at_once_are_among_the_winning_ones(solved):
    lines, states = solved
    pairs = [(i, action) for i, line in enumerate(lines) for action in line["legal"]]
    position, action = np.array(pairs).T
    ends = jax.jit(jax.vmap(lambda s, a: foq.over(foq.step(s, a))))
    over = np.asarray(ends(jax.tree.map(lambda x: x[position], states), action.astype(np.int32)))
    assert over.any()
    for (i, a), end in zip(pairs, over, strict=True):
        assert not end or a in lines[i]["winning"]


# Counts of move sequences, and small boards played out in full

COUNTS = {
    (8, 9): [1, 18, 299, 4106, 49784],
    (4, 4): [1, 4, 14, 28, 54, 122, 272, 524, 880, 1108, 1216, 916, 762, 352, 158],  # and no game is longer
    (5, 5): [1, 6, 40, 186, 720, 3068, 13000],
}


@pytest.mark.parametrize("size", COUNTS)
def test_move_sequence_counts(expand, size):
    want = COUNTS[size]
    layers = expand(foq.mask, foq.step, foq.init(*size), len(want) - 2)
    counts = [int(layer.ways.sum()) for layer in layers]
    below = int((layers[-1].ways * layers[-1].legal.sum(-1)).sum())  # one deeper, without making the positions
    assert [*counts, below] == want
    if size == (4, 4):
        layers = expand(foq.mask, foq.step, foq.init(*size), 20)
        assert len(layers) == len(want) and not layers[-1].legal.any()


# Slides and observations, against the plain program

SIZES = [(2, 4), (4, 6), (5, 5), (8, 9)]
reach, rip = jax.jit(foq.reach), jax.jit(foq.rip)


@st.composite
def boards(draw):
    """A board with any squares ripped, and a queen on a ripped one."""
    rows, cols = draw(st.sampled_from(SIZES))
    density = draw(st.sampled_from([0.05, 0.3, 0.6]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ripped = rng.random((rows, cols)) < density
    square = draw(st.integers(0, rows * cols - 1))
    ripped[square // cols, square % cols] = True
    return ripped, square


@hypothesis.settings(max_examples=100, deadline=None, derandomize=True, database=None)
@hypothesis.given(boards())
def test_reach_and_rip_equal_a_walk_along_rays(board):
    ripped, square = board
    paths = slides(ripped, square)
    reached = np.asarray(reach(ripped, square))
    assert squares(reached) == sorted(paths)
    assert not (reached & ripped).any()
    for target in sorted(paths)[:4]:
        torn = np.asarray(rip(ripped, square, target))
        assert squares(torn) == sorted({*squares(ripped), *paths[target]})


def reached_by_both(s: foq.State, t: int) -> tuple[set[int], set[int]]:
    """Squares that the mover reaches at ply t, and those that the other player reaches."""
    mover = s.to_move[t]
    return set(slides(s.ripped[t], s.queens[t, mover])), set(slides(s.ripped[t], s.queens[t, 1 - mover]))


def test_plain_planes():
    states, planes = random_game("foq:rows=5,cols=5", seed=1)
    assert planes.shape[1:] == (5, 5, 5) and len(planes) > 4
    for t, seen in enumerate(np.moveaxis(planes, -1, 1)):
        mine, others = reached_by_both(states, t)
        mover = states.to_move[t]
        np.testing.assert_array_equal(seen[0], states.ripped[t])
        assert squares(seen[1]) == [states.queens[t, mover]]
        assert squares(seen[2]) == [states.queens[t, 1 - mover]]
        assert squares(seen[3]) == sorted(mine - others)
        assert squares(seen[4]) == sorted(others)
        assert set(np.unique(seen)) <= {0, 1}


def test_article_planes():
    states, planes = random_game("foq:rows=4,cols=6,planes=article", seed=2)
    assert planes.shape[1:] == (4, 6, 6) and len(planes) > 4
    for t, seen in enumerate(np.moveaxis(planes, -1, 1)):
        for back in range(4):  # the newest board last, the first one repeated
            np.testing.assert_array_equal(seen[3 - back], -states.ripped[max(t - back, 0)].astype(np.float32))
        mine, others = reached_by_both(states, t)
        mover = states.to_move[t]
        assert squares(seen[4] == 1) == [states.queens[t, mover]]
        assert squares(seen[4] == -1) == [states.queens[t, 1 - mover]]
        assert squares(seen[5] == 1) == sorted(mine - others) == squares(foq.mask(jax.tree.map(lambda x: x[t], states)))
        assert squares(seen[5] == -1) == sorted(others - mine)
        assert set(np.unique(seen[4:])) <= {-1, 0, 1}


# Records

START = {"variant": "foq", "rows": 4, "cols": 5, "ripped": [0, 19], "queens": [0, 19], "to_move": 0}
STUCK = {"variant": "foq", "rows": 4, "cols": 5, "ripped": [0, 1, 2, 5, 6, 19], "queens": [0, 19], "to_move": 0}
REFUSED = {
    "field missing": ({k: v for k, v in START.items() if k != "queens"}, "fields"),
    "unknown field": (START | {"dropped": []}, "fields"),
    "another form": (START | {"variant": "foq_single"}, "foq_single"),
    "rows of zero": (START | {"rows": 0}, "rows"),
    "rows in text": (START | {"rows": "4"}, "rows"),
    "too many columns": (START | {"cols": 27}, "cols"),
    "square off the board": (START | {"ripped": [0, 19, 20]}, "ripped"),
    "negative square": (START | {"ripped": [-1, 0, 19]}, "ripped"),
    "half a square": (START | {"ripped": [0, 0.5, 19]}, "ripped"),
    "square twice": (START | {"ripped": [0, 0, 19]}, "twice"),
    "squares in text": (START | {"ripped": "0 19"}, "list of squares"),
    "one queen": (START | {"queens": [0]}, "two queens"),
    "three queens": (START | {"ripped": [0, 4, 19], "queens": [0, 19, 4]}, "two queens"),
    "queens on one square": (START | {"queens": [0, 0]}, "twice"),
    "queen off the board": (START | {"queens": [0, 20]}, "queens"),
    "queen on an empty square": (START | {"queens": [0, 18]}, "ripped"),
    "third player to move": (START | {"to_move": 2}, "to_move"),
    "to move as truth": (START | {"to_move": True}, "to_move"),
    "forfeit of the other": (START | {"forfeit": 1}, "forfeited"),
    "forfeit of nobody": (START | {"forfeit": 2}, "forfeit"),
    "forfeit of a stuck player": (STUCK | {"forfeit": 0}, "over"),
}


@pytest.mark.parametrize(("record", "reason"), REFUSED.values(), ids=REFUSED)
def test_impossible_positions_are_refused_with_the_reason(record, reason):
    with pytest.raises(ValueError, match=reason):
        foq.from_record(record)


def test_a_game_refuses_positions_of_another_board():
    assert foq.to_record(foq.from_record(START)) == START
    with pytest.raises(ValueError, match="8 x 9, got 4 x 5"):
        envs.make("foq").from_record(START)


def test_history_in_records():
    game = envs.make("foq:rows=4,cols=5,planes=article")
    s = game.init()
    for action in (2, 9, 10):
        s = game.step(s, action)
    record = game.to_record(s)
    assert [past["queens"] for past in record["past"]] == [[2, 9], [2, 19], [0, 19]]
    assert record["queens"] == [10, 9]
    assert game.to_record(game.init()) == START | {"past": []}
    assert game.to_record(game.from_record(START)) == START | {"past": []}
    with pytest.raises(ValueError, match="at most 3 positions"):
        game.from_record(START | {"past": [START] * 4})
    with pytest.raises(ValueError, match="two queens"):
        game.from_record(START | {"past": [START | {"queens": [0]}]})


# For people


def test_names_give_column_and_row_from_below():
    game = envs.make("foq")
    assert [game.action_name(a) for a in (0, 8, 9, 63, 71)] == ["a8", "i8", "a7", "a1", "i1"]
    assert game.parse_action(" I1 ") == 71


def test_picture_of_a_position():
    assert foq.show(foq.init(4, 5)).splitlines() == [
        " 4  A . * * .",
        " 3  * * . . .",
        " 2  * . * . .",
        " 1  . . . . B",
        "    a b c d e",
        "White (A) to move",
    ]
