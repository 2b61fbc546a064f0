"""SumTo100 against its exact solution and counts of its games."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs import sum_to_100

SIZES = [(100, 10), (100, 100), (21, 3), (7, 1), (1000, 17)]


def table(target: int, largest: int):
    """For every sum but the last, both players to move: legal additions, and sum, end and rewards after each."""
    game = envs.make(f"sum_to_100:target={target},largest={largest}")

    @jax.jit
    def look(totals, turns):
        def one(total, turn):
            s = sum_to_100.State(total, turn, jnp.int8(-1))
            after = jax.vmap(lambda a: game.step(s, a))(jnp.arange(largest))
            return game.mask(s), after, jax.vmap(game.over)(after), jax.vmap(game.rewards)(after)

        return jax.vmap(jax.vmap(one, (0, None)), (None, 0))(totals, turns)

    return jax.device_get(look(jnp.arange(target, dtype=jnp.int16), jnp.arange(2, dtype=jnp.int8)))


@pytest.mark.parametrize(("target", "largest"), SIZES)
def test_every_sum_follows_the_rules_and_has_the_known_winning_addition(target, largest):
    legal, after, over, rewards = table(target, largest)
    for turn in (0, 1):
        wins = {target: False}  # for the player to move
        for total in range(target - 1, -1, -1):
            sums = list(range(total + 1, min(total + largest, target) + 1))
            assert legal[turn, total].tolist() == [total + a + 1 <= target for a in range(largest)]
            for action, following in enumerate(sums):
                assert after.total[turn, total, action] == following
                assert after.to_move[turn, total, action] == 1 - turn
                assert over[turn, total, action] == (following == target)
                mine = 1 if following == target else 0
                assert rewards[turn, total, action, [turn, 1 - turn]].tolist() == [mine, -mine]
            # The exact solution: the remainder is the only winning addition, none means lost.
            r = (target - total) % (largest + 1)
            assert [x - total for x in sums if not wins[x]] == ([r] if r else [])
            wins[total] = bool(r)
            assert (after.forfeit[turn, total] == np.where(legal[turn, total], -1, turn)).all()


def test_lost_sums():
    legal, after, over, rewards = (jax.tree.map(lambda x: x[0], part) for part in table(100, 10))
    value = np.zeros(101, int)
    value[100] = -1  # the player to move at 100 has lost
    for total in range(99, -1, -1):
        assert rewards[total][legal[total] & over[total]].tolist() == [[1, -1]] * (total >= 90)
        value[total] = max(-value[after.total[total][legal[total]]])
    assert np.flatnonzero(value == -1).tolist() == [1, 12, 23, 34, 45, 56, 67, 78, 89, 100]


def test_counts_of_sequences_and_of_complete_games():
    legal, after, over, _ = (jax.tree.map(lambda x: x[0], part) for part in table(100, 10))
    ways, counts, complete = {0: 1}, [], 0
    while ways:
        following, ended = {}, 0
        for total, n in ways.items():
            for action in np.flatnonzero(legal[total]):
                if over[total, action]:
                    ended += n
                else:
                    new = int(after.total[total, action])
                    following[new] = following.get(new, 0) + n
        complete += ended
        counts.append(sum(following.values()) + ended)
        ways = following
    assert counts[:12] == [*(10**n for n in range(1, 11)), 99999832040, 999862406635]
    assert len(counts) == 100
    assert complete == 606147434557459526483161067501


START = {"total": 0, "to_move": 1}
REFUSED = {
    "no total": ({"to_move": 1}, "fields"),
    "unknown field": (START | {"board": []}, "fields"),
    "negative": (START | {"total": -1}, "total"),
    "past the target": (START | {"total": 101}, "from 0 to 100"),
    "half": (START | {"total": 0.5}, "total"),
    "truth": (START | {"total": True, "to_move": -1}, "total"),
    "nobody to move": (START | {"to_move": 0}, "to_move"),
    "second player begins": (START | {"to_move": -1}, "player 1 cannot be to move"),
    "one after two moves": ({"total": 1, "to_move": 1}, "player 0 cannot be to move"),
    "forfeit of the other": (START | {"forfeit": 1}, "forfeited"),
    "forfeit at the end": ({"total": 100, "to_move": 1, "forfeit": 0}, "over"),
}


@pytest.mark.parametrize(("record", "reason"), REFUSED.values(), ids=REFUSED)
def test_impossible_positions_are_refused_with_the_reason(record, reason):
    with pytest.raises(ValueError, match=reason):
        envs.make("sum_to_100").from_record(record)


@pytest.mark.parametrize("options", ["target=1", "target=10001", "largest=0", "target=5,largest=6", "target=-3"])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ValueError, match="sum_to_100: (target|largest)"):
        envs.make(f"sum_to_100:{options}")


def test_planes_mark_the_sum():
    game = envs.make("sum_to_100:target=12,largest=5")
    planes = np.asarray(game.observe(game.from_record({"total": 7, "to_move": -1})))
    assert planes.shape == (1, 13, 1)
    assert np.flatnonzero(planes).tolist() == [7] and planes.max() == 1


def test_names_and_picture():
    game = envs.make("sum_to_100")
    assert [game.action_name(a) for a in (0, 9)] == ["+1", "+10"]
    assert [game.parse_action(text) for text in ("+1", " 10 ")] == [0, 9]
    s = game.from_record({"total": 90, "to_move": -1})
    assert game.show(s) == f"90 of 100  [{'#' * 45}{'.' * 5}]\nSecond to move"
    assert game.show(game.step(s, 9)).endswith("Second wins")
    assert game.show(game.step(s, 10)).endswith("First wins")
