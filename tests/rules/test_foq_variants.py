"""The single and the multi game against recorded games, solved positions, counts and the pictures of their rules."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from plain_foq import random_game, slides, squares

import envs
from envs import foq, foq_multi, foq_single

RULES = {"foq_single": foq_single, "foq_multi": foq_multi}


# Worked examples of the rules


def test_stuck_player_wins_the_single_game_on_3x3():
    s, step = foq_single.init(3, 3), jax.jit(foq_single.step)
    for action, board in zip((1, 3, 5, 2), ["##. ... ...", "##. #.. ...", "##. ### ...", "### ### ..."], strict=True):
        assert not np.asarray(foq_single.rewards(s)).any()
        s = step(s, action)
        assert " ".join("".join(".#"[x] for x in row) for row in s.ripped.astype(int)) == board
    assert bool(foq_single.over(s)) and int(foq_single.player(s)) == 0
    assert np.asarray(foq_single.rewards(s)).tolist() == [1, -1]
    assert foq_single.show(s).splitlines() == [" 3  # # Q", " 2  # # #", " 1  . . .", "    a b c", "First wins"]


@pytest.fixture(scope="module")
def dropped_out():
    """A has moved, B is stuck and out, C is to move."""
    return foq_multi.step(foq_multi.init(4, 4, [(3, 3), (2, 0), (0, 0)]), 14)


def test_stuck_player_of_three_drops_out_and_still_attacks(dropped_out):
    s = dropped_out
    assert np.asarray(s.dropped).tolist() == [False, True, False]
    assert int(foq_multi.player(s)) == 2 and not bool(foq_multi.over(s))
    assert squares(foq_multi.mask(s)) == [1, 3]  # not the square below, which only B attacks
    lines = [" 4  C * . *", " 3  . . . .", " 2  b . . .", " 1  . . A #", "    a b c d", "Blue (C) to move"]
    assert foq_multi.show(s).splitlines() == lines
    assert foq_multi.svg(s).count('opacity="0.45"') == 1


def test_nobody_wins_alone_when_one_of_three_forfeits(dropped_out):
    s = foq_multi.step(dropped_out, 5)
    assert int(s.forfeit) == 2
    assert np.asarray(foq_multi.rewards(s)).tolist() == [0.5, 0.5, -1]
    assert foq_multi.show(s).splitlines()[-1] == "White (A) and Red (B) win"


def test_two_players_play_the_double_game():
    @jax.jit
    @jax.vmap
    def play(key):
        def ply(both, key):
            double, multi = both
            legal = foq.mask(double)
            action = jax.random.categorical(key, jnp.where(legal, 0.0, -jnp.inf))
            seen = (legal, foq.rewards(double)), (foq_multi.mask(multi), foq_multi.rewards(multi))
            return (foq.step(double, action), foq_multi.step(multi, action)), seen

        return jax.lax.scan(ply, (foq.init(5, 5), foq_multi.init(5, 5, players=2)), jax.random.split(key, 24))[1]

    double, multi = jax.device_get(play(jax.random.split(jax.random.key(0), 64)))
    assert set(double[1][:, -1, 0].tolist()) == {-1, 1}
    for want, got in zip(double, multi, strict=True):
        np.testing.assert_array_equal(got, want)


# Recorded games

GAMES = {  # variant, rows, columns, queens: number of games
    ("foq_single", 8, 8, 1): 11,
    ("foq_single", 5, 7, 1): 10,
    ("foq_single", 9, 9, 1): 10,
    ("foq_multi", 8, 8, 3): 11,
    ("foq_multi", 8, 9, 3): 11,
    ("foq_multi", 8, 9, 4): 22,
    ("foq_multi", 9, 9, 3): 11,
    ("foq_multi", 9, 9, 4): 1,  # over before the first move
}


def eliminated(players: list[int], dropped: np.ndarray) -> list[int]:
    """Players in the order in which they dropped out.

    `dropped` has a row for the start and one for the position after each move, `players` the one who made it.
    """
    order: list[int] = []
    n = dropped.shape[1]
    for mover, before, now in zip([n - 1, *players], [np.zeros(n, bool), *dropped[:-1]], dropped, strict=True):
        assert not (before & ~now).any()
        order += sorted(squares(now & ~before), key=lambda i: (i - mover - 1) % n)
    return order


@pytest.mark.parametrize("group", GAMES, ids=lambda group: "-".join(map(str, group)))
def test_recorded_games_are_reproduced(golden, group):
    variant, size = group[0], group[1:3]
    lines = golden("foq_variants.jsonl.gz")
    games = [g for g in lines if (g["variant"], g["rows"], g["cols"], len(g["starts"])) == group]
    assert len(games) == GAMES[group] and len(lines) == sum(GAMES.values())
    rules, longest = RULES[variant], max(len(game["plies"]) for game in games)
    actions = np.full((len(games), longest + 3), -1, np.int32)  # what comes after the end may not matter
    for i, game in enumerate(games):
        actions[i, : len(game["plies"])] = [ply["action"] for ply in game["plies"]]

    @jax.jit
    @jax.vmap
    def replay(start, actions):
        def ply(s, action):
            return rules.step(s, action), (s, rules.mask(s), rules.over(s), rules.player(s), rules.rewards(s))

        return jax.lax.scan(ply, start, actions)[1]

    places = {str(game["starts"]): game["starts"] for game in games}
    starts = jax.jit(lambda: {name: rules.init(*size, starts) for name, starts in places.items()})()
    states, legal, over, player, rewards = jax.device_get(
        replay(jax.tree.map(lambda *x: np.stack(x), *(starts[str(game["starts"])] for game in games)), actions)
    )
    for i, game in enumerate(games):
        end = len(game["plies"])
        for t, ply in enumerate(game["plies"]):
            assert squares(legal[i, t]) == ply["legal"]
            assert player[i, t] == ply["player"]
            assert squares(states.ripped[i, t + 1]) == ply["ripped"]
            assert states.queens[i, t + 1].tolist() == ply["queens"]
        assert not over[i, :end].any() and over[i, end:].all()
        assert not rewards[i, :end].any() and not legal[i, end:].any()
        want = np.full(rewards.shape[-1], -1 / (rewards.shape[-1] - 1))
        want[game["winner"]] = 1
        np.testing.assert_allclose(rewards[i, end:], np.broadcast_to(want, rewards[i, end:].shape), rtol=1e-6)
        assert (states.forfeit[i] == -1).all()
        if variant == "foq_multi":
            out = eliminated([ply["player"] for ply in game["plies"]], states.dropped[i, : end + 1])
            assert out == game["eliminated"]
        else:
            assert player[i, end] == game["winner"]  # who is stuck, wins


# Counts of move sequences


# The single game played out in full


@pytest.fixture(scope="module")
def solved(golden):
    """Solved positions of the single game, as records with answers and as states."""
    lines = golden("foq_variants_solved.jsonl.gz")
    game = envs.make("foq_single")
    return lines, [game.from_record({k: v for k, v in p.items() if k not in ("legal", "winning")}) for p in lines]


def test_solved_positions_have_the_recorded_legal_actions(solved):
    lines, states = solved
    assert len(lines) == 140
    legal = np.asarray(jax.jit(jax.vmap(foq_single.mask))(jax.tree.map(lambda *x: np.stack(x), *states)))
    assert [squares(row) for row in legal] == [line["legal"] for line in lines]


def test_moves_that_leave_the_other_stuck_are_not_among_the_winning_ones(solved):
    lines, states = solved
    pairs = [(i, action) for i, line in enumerate(lines) for action in line["legal"]]
    position, action = np.array(pairs).T
    batch = jax.tree.map(lambda *x: np.stack(x)[position], *states)
    after = jax.jit(jax.vmap(lambda s, a: foq_single.rewards(foq_single.step(s, a))))(batch, action.astype(np.int32))
    ends = np.asarray(after).any(-1)
    assert ends.sum() == 9  # counted by a plain program
    for (i, a), end, reward, mover in zip(pairs, ends, np.asarray(after), batch.to_move, strict=True):
        assert not end or (a not in lines[i]["winning"] and reward[mover] == -1)


# Observations


def seen_from(states, t: int) -> tuple[list[int], list[set[int]]]:
    """Queens in turn order from the mover at ply t, and the squares that each of them reaches."""
    n = states.queens.shape[1]
    squares_in_turn = np.roll(states.queens[t], -states.to_move[t] % n).tolist()
    return squares_in_turn, [set(slides(states.ripped[t], q)) for q in squares_in_turn]


@pytest.mark.parametrize("spec", ["foq_single:rows=4,cols=5", "foq_multi:rows=5,cols=6", "foq_multi:players=4"])
def test_plain_planes(spec):
    states, planes = random_game(spec, seed=1)
    n, multi = states.queens.shape[1], "multi" in spec
    assert planes.shape[-1] == n + 3 + multi and len(planes) > 3
    for t, seen in enumerate(np.moveaxis(planes, -1, 1)):
        queens, (mine, *rest) = seen_from(states, t)
        others = set().union(*rest)
        np.testing.assert_array_equal(seen[0], states.ripped[t])
        assert [squares(plane) for plane in seen[1 : n + 1]] == [[q] for q in queens]
        assert squares(seen[n + 1]) == sorted(mine - others)
        assert squares(seen[n + 2]) == sorted(others)
        if multi:
            assert squares(seen[n + 3]) == sorted(states.queens[t, states.dropped[t]])
        assert set(np.unique(seen)) <= {0, 1}
    assert not multi or planes[-2, :, :, -1].any()  # somebody was out while the others went on


@pytest.mark.parametrize("spec", ["foq_single:rows=4,cols=5,planes=article", "foq_multi:rows=5,cols=6,planes=article"])
def test_article_planes(spec):
    states, planes = random_game(spec, seed=1)
    assert planes.shape[-1] == 6 and len(planes) > 3
    for t, seen in enumerate(np.moveaxis(planes, -1, 1)):
        for back in range(4):  # the newest board last, the first one repeated
            np.testing.assert_array_equal(seen[3 - back], -states.ripped[max(t - back, 0)].astype(np.float32))
        queens, (mine, *rest) = seen_from(states, t)
        others = set().union(*rest)
        assert squares(seen[4] == 1) == queens[:1]
        assert squares(seen[4] == -1) == sorted(queens[1:])
        assert squares(seen[5] == 1) == sorted(mine - others)
        assert squares(seen[5] == -1) == sorted(others - mine)


# Records

SINGLE = {"variant": "foq_single", "rows": 3, "cols": 3, "ripped": [0, 1], "queens": [1], "to_move": 1}
ENDED = SINGLE | {"ripped": [0, 1, 2, 3, 4, 5], "queens": [2], "to_move": 0}
MULTI = {"variant": "foq_multi", "rows": 4, "cols": 4, "ripped": [0, 8, 14, 15], "queens": [14, 8, 0], "to_move": 2}
MULTI |= {"dropped": [1]}


@pytest.mark.parametrize("record", [SINGLE, SINGLE | {"forfeit": 1}, ENDED, MULTI, MULTI | {"forfeit": 2}])
def test_records_come_back(record):
    rules = RULES[record["variant"]]
    assert rules.to_record(rules.from_record(record)) == record


def test_stuck_players_are_settled_on_loading():
    record = {k: v for k, v in MULTI.items() if k != "dropped"} | {"to_move": 1}
    assert foq_multi.to_record(foq_multi.from_record(record)) == MULTI


REFUSED = {
    "another form": (SINGLE | {"variant": "foq"}, "not 'foq_single'"),
    "field of the multi game": (SINGLE | {"dropped": []}, "fields"),
    "two queens": (SINGLE | {"queens": [0, 1]}, "one queen"),
    "no queen": (SINGLE | {"queens": []}, "one queen"),
    "third player": (SINGLE | {"to_move": 2}, "to_move"),
    "forfeit of the winner": (ENDED | {"forfeit": 0}, "over"),
    "one queen": (MULTI | {"queens": [0], "to_move": 0}, "two or more queens"),
    "queen on an empty square": (MULTI | {"queens": [14, 8, 1]}, "ripped"),
    "fourth player": (MULTI | {"to_move": 3}, "to_move"),
    "mover is out": (MULTI | {"to_move": 1}, "dropped out"),
    "all are out": (MULTI | {"dropped": [0, 1, 2]}, "dropped out"),
    "out twice": (MULTI | {"dropped": [1, 1]}, "twice"),
    "unknown player is out": (MULTI | {"dropped": [3]}, "dropped: expected"),
    "out as text": (MULTI | {"dropped": "1"}, "list of players"),
    "forfeit of the other": (MULTI | {"forfeit": 0}, "forfeited"),
    "forfeit of a stuck player": (MULTI | {"to_move": 1, "dropped": [], "forfeit": 1}, "nobody can have forfeited"),
    "forfeit of the last one": (MULTI | {"dropped": [0, 1], "forfeit": 2}, "nobody can have forfeited"),
}


@pytest.mark.parametrize(("record", "reason"), REFUSED.values(), ids=REFUSED)
def test_impossible_positions_are_refused_with_the_reason(record, reason):
    rules = foq_single if record.keys() <= SINGLE.keys() | {"forfeit"} or record["rows"] == 3 else foq_multi
    with pytest.raises(ValueError, match=reason):
        rules.from_record(record)


def test_a_game_refuses_positions_of_another_one():
    with pytest.raises(ValueError, match="8 x 8, got 3 x 3"):
        envs.make("foq_single").from_record(SINGLE)
    three = envs.make("foq_multi")
    with pytest.raises(ValueError, match="4 queens, got 3"):
        envs.make("foq_multi:players=4").from_record(three.to_record(three.init()))


# Options


def test_defaults_of_the_rules():
    single, multi = envs.make("foq_single"), envs.make("foq_multi")
    assert (single.name, single.num_players, single.num_actions) == ("foq_single:rows=8,cols=8", 2, 64)
    assert (multi.name, multi.num_players, multi.num_actions) == ("foq_multi:rows=8,cols=9,players=3", 3, 72)
    assert np.asarray(single.init().queens).tolist() == [0]
    assert np.asarray(multi.init().queens).tolist() == [0, 71, 8]
    assert np.asarray(foq_multi.init(players=4).queens).tolist() == [0, 71, 8, 63]


BAD_SPECS = {
    "one line": ("foq_single:rows=1", "1 x 8 is too small"),
    "too large": ("foq_single:rows=27", "26"),
    "option of the multi game": ("foq_single:players=2", "known options: rows=8, cols=8, planes=plain"),
    "unknown planes": ("foq_multi:planes=deep", "foq_multi: unknown planes 'deep'"),
    "one player": ("foq_multi:players=1", "2 to 4 players"),
    "five players": ("foq_multi:players=5", "2 to 4 players"),
    "corners coincide": ("foq_multi:rows=1", "different"),
    "negative": ("foq_multi:rows=-4", "-4 x 9"),
    "nobody can move": ("foq_multi:rows=9,players=4", "over before the first move"),
}


@pytest.mark.parametrize(("spec", "reason"), BAD_SPECS.values(), ids=BAD_SPECS)
def test_bad_options_are_refused(spec, reason):
    with pytest.raises(ValueError, match=reason):
        envs.make(spec)


def test_wrong_numbers_of_starting_squares_are_refused():
    with pytest.raises(ValueError, match="one starting square"):
        foq_single.init(starts=[(0, 0), (1, 1)])
    with pytest.raises(ValueError, match="2 to 26 starting squares"):
        foq_multi.init(starts=[(0, 0)])
