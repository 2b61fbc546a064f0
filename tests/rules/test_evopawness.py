"""EvoPawness against recorded games, a plain program of its rules and positions worked out by hand."""

from __future__ import annotations

import copy
import re

import jax
import numpy as np
import pytest
from plain_evopawness import legal_names, planes_of, turned

import envs
from envs import evopawness

# Recorded games


@pytest.fixture(scope="module")
def games(golden):
    return golden("evopawness.jsonl.gz")


@pytest.fixture(scope="module")
def replayed(games):
    """Numpy arrays [game, ply] of the recorded games: state before each ply, mask, over, rewards; then 4 more plies."""

    @jax.jit
    @jax.vmap
    def replay(actions):
        def ply(s, action):
            facts = evopawness.mask(s), evopawness.over(s), evopawness.rewards(s)
            return evopawness.step(s, action), (s, *facts)

        return jax.lax.scan(ply, evopawness.init(), actions)[1]

    actions = np.full((len(games), 254), evopawness.SKIP, np.int32)  # what comes after the end may not matter
    for row, game in zip(actions, games, strict=True):
        row[: len(game["plies"])] = [ply["action"] for ply in game["plies"]]
    return jax.device_get(replay(actions))


def test_recorded_games_are_reproduced(games, replayed):
    assert len(games) == 60
    states, legal, over, rewards = replayed
    checked = 0
    for i, game in enumerate(games):
        end = len(game["plies"])
        records = [game["start"], *(ply["state"] for ply in game["plies"])]
        for t, record in enumerate(records):
            assert evopawness.to_record(jax.tree.map(lambda x: x[i, t], states)) == record
        for t, ply in enumerate(game["plies"]):
            assert evopawness.action_name(ply["action"]) == ply["key"]
            if "legal" in ply:
                checked += 1
                assert np.flatnonzero(legal[i, t]).tolist() == ply["legal"]
        assert not over[i, :end].any() and over[i, end:].all() and not legal[i, end:].any()
        assert game["terminal"] or end == 250
        assert not rewards[i, :end].any()
        want = {0: [1, -1], 1: [-1, 1], None: [0, 0]}[game["winner"]]
        assert (rewards[i, end:] == want).all()
        for leaf in jax.tree.leaves(states):  # nothing happens after the end
            assert (leaf[i, end:] == leaf[i, end]).all()
    assert checked > 3000


def test_every_mask_equals_the_plain_program(games, replayed):
    legal, skips = replayed[1], 0
    for i, game in enumerate(games):
        records = [game["start"], *(ply["state"] for ply in game["plies"])]
        for t in range(len(game["plies"])):
            names = [evopawness.action_name(a) for a in np.flatnonzero(legal[i, t])]
            assert sorted(names) == sorted(legal_names(records[t]))
            skips += names == ["skip"]
    assert skips > 20


def test_most_legal_actions(replayed):
    assert 60 < replayed[1].sum(-1).max() <= evopawness.MAX_LEGAL


def test_a_position_takes_less_than_100_bytes():
    assert sum(np.asarray(x).nbytes for x in evopawness.init()) == 68


# Planes and the perspective flip


@pytest.fixture(params=["this platform", "tpu"])
def facts(request, monkeypatch):
    """facts(records) -> (planes [N, 140, 9, 9], masks [N, A]) of game records of one default game: as on this platform,
    and by the branch of the program that a TPU takes."""
    if request.param == "tpu":
        monkeypatch.setattr(jax.lax, "platform_dependent", lambda *given, tpu, default: tpu(*given))
    game = envs.make("evopawness")
    look = jax.jit(jax.vmap(lambda s: (game.observe(s), game.mask(s))))

    def of(records):
        states = jax.tree.map(lambda *x: np.stack(x), *map(game.from_record, records))
        planes, masks = jax.device_get(look(states))
        return np.moveaxis(planes, -1, 1), masks

    return of


def histories(games) -> list[list[dict]]:
    """Positions of every stage with those before them, newest first."""
    found = []
    for i, game in enumerate(games):
        records = [game["start"], *(ply["state"] for ply in game["plies"])]
        ends = {i % 6, (17 * i) % (len(records) - 1), len(records) - 2}
        found += [records[max(end - 4, 0) : end + 1][::-1] for end in sorted(ends)]
    return found


def test_planes_equal_the_plain_program(games, facts):
    chosen = histories(games)
    planes, _ = facts([past[0] | {"past": past[1:]} for past in chosen])
    assert {len(past) for past in chosen} == {1, 2, 3, 4, 5}
    for seen, past in zip(planes, chosen, strict=True):
        np.testing.assert_array_equal(seen, planes_of(past))
    states = jax.tree.map(lambda *x: np.stack(x), *(evopawness.from_record(past[0]) for past in chosen))
    now = np.asarray(jax.jit(jax.vmap(envs.make("evopawness:history=1").observe))(states))
    np.testing.assert_array_equal(np.moveaxis(now, -1, 1), planes[:, :28])


def test_turned_positions_look_the_same_and_offer_the_turned_actions(games, facts):
    chosen = [past for past in histories(games) if past[0]["turn"] < 240]
    planes, masks = facts([past[0] | {"past": past[1:]} for past in chosen])
    mirrored, mirror_masks = facts([turned(past[0]) | {"past": list(map(turned, past[1:]))} for past in chosen])
    np.testing.assert_array_equal(mirrored, planes)
    flip = envs.make("evopawness").to_mover_frame[1]
    assert masks.any()
    np.testing.assert_array_equal(mirror_masks[:, flip], masks)


def test_view_of_each_player():
    white, black = envs.make("evopawness").to_mover_frame
    assert (white == np.arange(2998)).all() and (black[black] == white).all()
    parse = evopawness.parse_action
    pairs = [("a*2,3", "a*6,3"), ("m*1,0*1,0", "m*7,0*-1,0"), ("p*0,8*B", "p*8,8*B"), ("skip", "skip")]
    pairs += [("m*4,4*-2,1", "m*4,4*2,1"), ("m*3,2*-3,-3", "m*5,2*3,-3"), ("m*3,2*0,3", "m*5,2*0,3")]
    for one, other in pairs:
        assert black[parse(one)] == parse(other)


def test_shifts_lead_where_their_names_say_and_other_actions_stay():
    game = envs.make("evopawness")
    step = lambda name: game.offsets[evopawness.parse_action(name) % 37].tolist()
    assert [step(name) for name in ("a*2,3", "p*6,8*B", "m*4,4*-2,1", "m*3,2*0,3")] == [[0, 0], [0, 0], [-2, 1], [0, 3]]
    assert all(game.action_name(5 + k).split("*")[2] == "{},{}".format(*game.offsets[5 + k]) for k in range(32))


# Single rules, by hand


def piece(player, kind, y, x, hp, atk, step, active=True):
    names = ("player", "type", "y", "x", "hp", "atk", "step", "active")
    return dict(zip(names, (player, kind, y, x, hp, atk, step, active), strict=True))


KINGS = [piece(0, "king", 8, 4, 15, 3, 3), piece(1, "king", 0, 4, 15, 3, 3)]
FAR = [piece(0, "knight", 8, 8, 5, 4, 1), piece(1, "knight", 0, 0, 5, 4, 1)]  # so that nobody is out of pawns


def position(turn, mana, *pieces, runes=(), forfeit=None):
    kinds = {(4, 0): "atk", (4, 4): "hp", (4, 8): "step"}
    runes = [{"y": y, "x": x, "kind": kinds[y, x]} for y, x in runes]
    pieces = sorted(pieces, key=lambda p: (p["player"], p["y"], p["x"]))
    record = {"turn": turn, "to_move": turn % 2, "mana": list(mana), "pieces": pieces, "runes": runes}
    return record if forfeit is None else record | {"forfeit": forfeit}


step, mask = jax.jit(evopawness.step), jax.jit(evopawness.mask)


def play(record, name):
    return evopawness.to_record(step(evopawness.from_record(record), evopawness.parse_action(name)))


def legal(record):
    return {evopawness.action_name(a) for a in np.flatnonzero(mask(evopawness.from_record(record)))}


def test_the_attacker_stays_wounds_and_kills():
    rook = piece(0, "rook", 4, 3, 9, 5, 2)
    before = position(2, (4, 4), *KINGS, *FAR, rook, piece(1, "queen", 2, 3, 9, 4, 2))
    wounded = position(3, (4, 5), *KINGS, *FAR, rook, piece(1, "queen", 2, 3, 4, 4, 2))
    assert play(before, "m*4,3*-2,0") == wounded
    weak = position(2, (4, 4), *KINGS, *FAR, rook, piece(1, "queen", 2, 3, 5, 4, 2))
    assert play(weak, "m*4,3*-2,0") == position(3, (4, 5), *KINGS, *FAR, rook)


def test_how_the_author_judged_a_position():
    """White: knight 0.3 * 5 + 0.1 * (4 + 1) = 2, rook 2.7 + 0.7 = 3.4, king 12, four dead pawns of Black: 57.4 points.
    Black: knight 2, a sleeper that does not count, king 15, three dead pawns of White: 47."""
    kings = [piece(0, "king", 8, 4, 12, 3, 3), KINGS[1]]
    pieces = [*kings, *FAR, piece(0, "rook", 4, 3, 9, 5, 2)]
    whole = position(2, (4, 4), *pieces)
    np.testing.assert_allclose(evopawness.points(evopawness.from_record(whole)), [57.4, 47], rtol=1e-5)
    asleep = position(3, (4, 4), *pieces, piece(1, "soldier", 1, 2, 5, 1, 1, active=False))
    points = evopawness.points(evopawness.from_record(asleep))
    np.testing.assert_allclose(points, [47.4, 47], rtol=1e-5)
    mover_is_ahead = [float(evopawness.strength(evopawness.from_record(record))) > 0 for record in (whole, asleep)]
    assert mover_is_ahead == [True, False]


def test_kings_attack_up_to_three_cells_away_but_never_move():
    near = piece(1, "rook", 5, 1, 9, 5, 1)
    record = position(2, (0, 0), *KINGS, FAR[1], piece(0, "soldier", 7, 0, 5, 1, 1, False), near)
    assert legal(record) == {"m*8,4*-3,-3"}
    assert play(record, "m*8,4*-3,-3")["pieces"][-1]["hp"] == 9 - 3


def test_skip_only_when_nothing_else_is_possible():
    sleepers = [piece(0, "soldier", 7, x, 5, 1, 1, False) for x in (0, 2)]
    assert legal(position(2, (2, 0), *KINGS, FAR[1], *sleepers)) == {"skip"}
    assert legal(position(2, (3, 0), *KINGS, FAR[1], *sleepers)) == {"a*7,0", "a*7,2"}
    after = play(position(2, (2, 0), *KINGS, FAR[1], *sleepers), "skip")
    assert after == position(3, (2, 1), *KINGS, FAR[1], *sleepers)


def test_promotion_sets_hit_points_and_adds_to_the_rest():
    bishop = piece(1, "bishop", 3, 3, 20, 7, 3)
    after = play(position(3, (0, 10), *KINGS, *FAR, bishop), "p*3,3*Q")
    assert after == position(4, (1, 0), *KINGS, *FAR, piece(1, "queen", 3, 3, 9, 8, 3))
    soldier = piece(0, "soldier", 3, 8, 2, 1, 2)
    after = play(position(4, (6, 10), *KINGS, *FAR, soldier), "p*3,8*B")
    runes = [(4, 0), (4, 4), (4, 8)]  # turn 5: the runes are laid
    assert after == position(5, (1, 10), *KINGS, *FAR, piece(0, "bishop", 3, 8, 7, 2, 3), runes=runes)


def test_a_rune_is_collected_before_the_refresh_and_its_place_stays_empty():
    queen = piece(0, "queen", 4, 6, 20, 8, 2)
    before = position(4, (0, 0), *KINGS, *FAR, queen, runes=[(4, 8)])
    after = position(5, (0, 1), *KINGS, *FAR, piece(0, "queen", 4, 8, 20, 8, 3), runes=[(4, 0), (4, 4)])
    assert play(before, "m*4,6*0,2") == after
    before = position(6, (0, 0), *KINGS, *FAR, piece(0, "rook", 4, 3, 19, 7, 2), runes=[(4, 0), (4, 4)])
    taken = play(before, "m*4,3*0,1")
    assert taken == position(7, (0, 1), *KINGS, *FAR, piece(0, "rook", 4, 4, 20, 7, 2), runes=[(4, 0)])
    jumped = play(before, "m*4,3*0,2")
    assert jumped == position(7, (0, 1), *KINGS, *FAR, piece(0, "rook", 4, 5, 19, 7, 2), runes=[(4, 0), (4, 4)])


def test_codes_of_the_rules():
    codes = {"a*1,0": 333, "p*3,3*Q": 1114, "m*0,1*2,1": 69, "m*7,4*-1,0": 2484, "skip": 2997}
    assert {name: evopawness.parse_action(name) for name in codes} == codes
    assert evopawness.parse_action(" P*3,3*q ") == 1114
    assert np.flatnonzero(mask(evopawness.init())).tolist() == [333, 407, 481, 555, 629]


def test_the_cap_makes_a_draw_unless_the_last_action_decides():
    game = envs.make("evopawness:max_plies=2,history=1")
    assert game is envs.make("evopawness:history=1,max_plies=2") is not envs.make("evopawness:history=1")

    @jax.jit
    def follow(s, action):
        s = game.step(s, action)
        return s, game.over(s), game.mask(s).any(), game.rewards(s)

    s, over, more, _ = follow(game.init(), game.parse_action("a*1,0"))
    assert not over and more
    s, over, more, rewards = follow(s, game.parse_action("a*7,0"))
    assert over and not more and rewards.tolist() == [0, 0]
    assert not evopawness.over(s) and not evopawness.over(s, max_plies=None)
    last = position(2, (0, 0), KINGS[0], piece(1, "king", 0, 4, 4, 3, 3), FAR[1], piece(0, "knight", 2, 3, 5, 4, 1))
    s, over, more, rewards = follow(game.from_record(last), game.parse_action("m*2,3*-2,1"))
    assert over and not more and rewards.tolist() == [1, -1]
    assert s.turn == 3 and jax.eval_shape(game.observe, s).shape == (9, 9, 28)


# Records, options, people

START = evopawness.to_record(evopawness.init())


def changed(*path, to):
    """The start with one value exchanged."""
    record = copy.deepcopy(START)
    place = record
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return record


def with_runes(*runes):
    return START | {"runes": [dict(zip(("y", "x", "kind"), rune, strict=True)) for rune in runes]}


ROOK = piece(1, "rook", 4, 4, 9, 5, 1)
KINGLESS = [p for p in START["pieces"] if p != KINGS[0]]
REFUSED = {
    "field missing": ({k: v for k, v in START.items() if k != "mana"}, "a record with the fields"),
    "unknown field": (START | {"cap": 250}, "a record with the fields"),
    "turn of zero": (changed("turn", to=0), "turn"),
    "turn in text": (changed("turn", to="1"), "turn"),
    "wrong side to move": (changed("to_move", to=0), "odd turns"),
    "mana above ten": (changed("mana", 0, to=11), "mana"),
    "three stocks": (changed("mana", to=[5, 5, 5]), "two numbers"),
    "pieces no list": (changed("pieces", to={}), "list"),
    "piece no object": (changed("pieces", 0, to="K"), "piece"),
    "piece field missing": (changed("pieces", 0, to={"player": 0}), "a piece with the fields"),
    "third player": (changed("pieces", 0, "player", to=2), "player"),
    "off the board": (changed("pieces", 0, "x", to=9), "x"),
    "dead piece": (changed("pieces", 0, "hp", to=0), "hp"),
    "too many hit points": (changed("pieces", 0, "hp", to=21), "hp"),
    "too strong": (changed("pieces", 0, "atk", to=9), "atk"),
    "too far": (changed("pieces", 0, "step", to=4), "step"),
    "active in numbers": (changed("pieces", 0, "active", to=1), "active"),
    "unknown type": (changed("pieces", 0, "type", to="pawn"), "soldier, knight"),
    "inactive rook": (changed("pieces", 0, "type", to="rook"), "only soldiers"),
    "soldier between": (changed("pieces", 0, "x", to=1), "column"),
    "inactive soldier ahead": (changed("pieces", 0, "y", to=6), "inactive"),
    "king elsewhere": (changed("pieces", 5, "x", to=3), "kings"),
    "two on a cell": (changed("pieces", 1, "x", to=0), "one cell"),
    "six pawns": (START | {"pieces": [*START["pieces"], ROOK]}, "Black has more"),
    "no king": (START | {"pieces": KINGLESS}, "can have lost"),
    "nobody there": (START | {"pieces": []}, "can have lost"),
    "rune elsewhere": (with_runes((4, 2, "hp")), "runes lie"),
    "rune of another kind": (with_runes((4, 4, "atk")), "runes lie"),
    "rune twice": (with_runes((4, 4, "hp"), (4, 4, "hp")), "one of each"),
    "rune under a piece": (position(3, (0, 0), *KINGS, *FAR, ROOK, runes=[(4, 4)]), "under a piece"),
    "forfeit of the other": (START | {"forfeit": 0}, "forfeited"),
    "forfeit after the end": (position(3, (0, 0), *KINGS, FAR[0], forfeit=1), "over"),
    "forfeit after the cap": (position(251, (0, 0), *KINGS, *FAR, forfeit=1), "over"),
}


@pytest.mark.parametrize(("record", "reason"), REFUSED.values(), ids=REFUSED)
def test_impossible_positions_are_refused_with_the_reason(record, reason):
    with pytest.raises(ValueError, match=reason):
        evopawness.from_record(record)


@pytest.mark.parametrize("option", ["max_plies=0", "max_plies=30001", "history=0", "history=17", "history=five"])
def test_bad_options_are_refused(option):
    with pytest.raises(ValueError, match=option.split("=")[0]):
        envs.make(f"evopawness:{option}")


def test_picture_of_a_position():
    sleeper = piece(0, "soldier", 7, 2, 5, 1, 1, False)
    record = position(3, (7, 10), *KINGS, *FAR, ROOK, sleeper, runes=[(4, 8)])
    lines = evopawness.show(evopawness.from_record(record)).splitlines()
    assert lines[0].split() == list("012345678")
    assert lines[1].split() == ["0", "n5/4/1", ".", ".", ".", "k15/3/3", ".", ".", ".", "."]
    assert lines[5].split() == ["4", ".", ".", ".", ".", "r9/5/1", ".", ".", ".", "+step"]
    assert lines[8].split() == ["7", ".", ".", "S5/1/1z", ".", ".", ".", ".", ".", "."]
    assert lines[10:] == ["Black to move, turn 3; mana: White 7, Black 10"]
    assert {line.index(".") for line in lines[2:4]} == {3}


def test_cells_say_what_is_to_be_known_of_them():
    sleeper = piece(0, "soldier", 7, 2, 5, 1, 1, False)
    record = position(3, (7, 10), *KINGS, *FAR, ROOK, sleeper, runes=[(4, 8)])
    picture = evopawness.make(history=1).svg(evopawness.from_record(record))
    says = dict(re.findall(r"<title>(\d,\d): (.*?)</title>", picture))
    assert says["7,2"].startswith("White soldier, asleep, 5 hp, 1 atk, step 1; ")
    assert "3 mana" in says["7,2"]
    assert any(words.endswith("it can become a queen, for 10 mana") for words in says.values())
    assert "1 mana" in says["0,4"]
    assert says["4,8"] == "rune, +1 step for the piece that moves here"
    assert "+2 atk" in says["4,0"]
    assert says["3,3"] == "empty"
