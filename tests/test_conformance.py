"""What every game must hold, run over the registry: a new game is covered as soon as it is listed.

Positions come from random games that are played inside one compiled scan for each game.
"""

from __future__ import annotations

import json
import os
import pathlib
import pkgutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs

SPECS = [*envs.list(), "foq:rows=5,cols=5", "foq:rows=4,cols=6,planes=article"]
LANES = 64  # games played at random
SAMPLE = 48  # positions that are looked at closely
AFTER = 3  # plies after the longest possible game


class Ply(NamedTuple):
    """Numpy arrays with leading axes [ply, lane]; finished games go on standing still."""

    state: Any
    action: Any
    legal: Any
    over: Any
    player: Any
    rewards: Any


class Facts(NamedTuple):
    """All that a game says of one position and one action."""

    step: Any
    mask: Any
    over: Any
    player: Any
    rewards: Any
    observe: Any
    recalled: Any  # observe(remember(s))
    evaluate: Any


class Bench:
    """A game with its compiled functions, the random games and a sample of their positions."""

    def __init__(self, spec: str):
        self.game = game = envs.make(spec)
        size = game.num_actions
        outside = [-1, -2, -size, -size - 1, size, size + 7, 2**31 - 1, -(2**31)]
        self.codes = np.array([*range(size), *outside], np.int32)
        self.facts_of_one = jax.jit(self.facts)
        self.facts_of_many = jax.jit(jax.vmap(self.facts))
        self.after = jax.jit(jax.vmap(self.after_every_code))
        lanes = jax.jit(jax.vmap(self.play))
        self.plies: Ply = jax.device_get(lanes(jax.random.split(jax.random.key(0), LANES)))
        self.plies = jax.tree.map(lambda x: np.swapaxes(x, 0, 1), self.plies)
        self.sample, self.actions = self.pick()

    def play(self, key) -> Ply:
        game = self.game

        def ply(s, key):
            legal = game.mask(s)
            action = jax.random.categorical(key, jnp.where(legal, 0.0, -jnp.inf)).astype(jnp.int32)
            return game.step(s, action), Ply(s, action, legal, game.over(s), game.player(s), game.rewards(s))

        return jax.lax.scan(ply, game.init(), jax.random.split(key, game.max_plies + AFTER))[1]

    def facts(self, s, action) -> Facts:
        game = self.game
        value = jnp.float32(0) if game.evaluate is None else game.evaluate(s)
        recalled = game.observe(game.remember(s))
        return Facts(
            game.step(s, action),
            game.mask(s),
            game.over(s),
            game.player(s),
            game.rewards(s),
            game.observe(s),
            recalled,
            value,
        )

    def after_every_code(self, s):
        """Positions after step and after move, and who has won, for all codes, those out of range included."""
        game = self.game
        stepped = jax.vmap(game.step, (None, 0))(s, self.codes)
        moved = jax.vmap(game.move, (None, 0))(s, jnp.arange(game.num_actions))
        return stepped, moved, jax.vmap(game.over)(stepped), jax.vmap(game.rewards)(stepped)

    def pick(self):
        """Positions of every stage, the first and a finished one among them, each with the action taken there."""
        plies, lanes = self.plies.over.shape
        last = int((~self.plies.over).sum(0).max())
        ply = np.linspace(0, min(last + 1, plies - 1), SAMPLE).astype(int)
        lane = np.arange(SAMPLE) % lanes
        return jax.tree.map(lambda x: x[ply, lane], (self.plies.state, self.plies.action))

    def position(self, ply: int, lane: int = 0):
        return jax.tree.map(lambda x: jnp.asarray(x[ply, lane]), self.plies.state)


@pytest.fixture(scope="module", params=SPECS)
def bench(request):
    return Bench(request.param)


@pytest.fixture(scope="module")
def game(bench):
    return bench.game


@pytest.fixture(scope="module")
def after(bench):
    """What follows each position of the sample, for every code."""
    return jax.device_get(bench.after(bench.sample))


def rules(s):
    """The position itself, without the history that a transform adds."""
    return getattr(s, "now", s)


def assert_same(got, want, message=""):
    """Equal in structure, dtype, shape and every entry."""
    assert jax.tree.structure(got) == jax.tree.structure(want), message
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        g, w = np.asarray(g), np.asarray(w)
        assert (g.dtype, g.shape) == (w.dtype, w.shape), message
        np.testing.assert_array_equal(g, w, message)


def assert_close(got, want):
    """Like `assert_same`, but floats may differ in the last digits."""
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape)
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-6, atol=1e-6)


def at(tree, index):
    return jax.tree.map(lambda x: x[index], tree)


# The record


def test_name_gives_the_game_back(game):
    assert envs.make(game.name) is game


def test_sizes_are_plain_positive_numbers(game):
    for size in (game.num_players, game.num_actions, game.max_plies, game.max_legal):
        assert type(size) is int and size >= 1
    assert game.max_legal <= game.num_actions


def test_view_is_a_permutation_for_each_player(game):
    if game.to_view is not None:
        assert game.to_view.shape == (game.num_players, game.num_actions)
        for codes in game.to_view:
            assert sorted(codes.tolist()) == list(range(game.num_actions))


# Shapes


def test_step_and_move_keep_structure_and_dtypes(game):
    s = game.init()
    like = jax.eval_shape(lambda: s)
    for function in (game.step, game.move):
        for action in (0, np.int32(0), np.int64(0), jnp.int8(0)):
            got = jax.eval_shape(function, s, action)
            assert jax.tree.structure(got) == jax.tree.structure(like)
            assert [(x.dtype, x.shape, x.weak_type) for x in jax.tree.leaves(got)] == [
                (x.dtype, x.shape, False) for x in jax.tree.leaves(like)
            ]


def test_init_takes_a_key_or_none(game):
    assert_same(game.init(None), game.init())
    assert jax.tree.structure(game.init(jax.random.key(0))) == jax.tree.structure(game.init())


def test_answers_have_the_promised_dtypes_and_shapes(game):
    form = jax.eval_shape(lambda: (game.mask(game.init()), game.over(game.init()), game.player(game.init())))
    assert [(x.dtype, x.shape) for x in form] == [(bool, (game.num_actions,)), (bool, ()), (np.int32, ())]
    rewards = jax.eval_shape(lambda: game.rewards(game.init()))
    assert (rewards.dtype, rewards.shape) == (np.float32, (game.num_players,))
    planes = jax.eval_shape(lambda: game.observe(game.init()))
    assert (planes.dtype, planes.ndim) == (np.float32, 3)
    if game.evaluate is not None:
        value = jax.eval_shape(lambda: game.evaluate(game.init()))
        assert (value.dtype, value.shape) == (np.float32, ())


# Compilation


def test_compiled_equals_plain(bench):
    for i in (0, SAMPLE // 2, SAMPLE - 1):
        s, action = jax.tree.map(jnp.asarray, at((bench.sample, bench.actions), i))
        assert_close(bench.facts_of_one(s, action), bench.facts(s, action))


def test_batched_equals_looped(bench):
    many = jax.device_get(bench.facts_of_many(bench.sample, bench.actions))
    for i in range(0, SAMPLE, 4):
        assert_close(at(many, i), jax.device_get(bench.facts_of_one(at(bench.sample, i), bench.actions[i])))


def test_one_trace_for_all_positions_and_actions(game):
    traces = []

    @jax.jit
    def step(s, action):
        traces.append(action)
        return game.step(s, action)

    s = game.init()
    for action in (0, 1, 1, game.num_actions, -1):
        s = step(s, jnp.int32(action))
    step(game.from_record(game.to_record(s)), jnp.int32(0))
    assert len(traces) == 1


def test_importing_games_starts_no_device():
    names = [f"envs.{module.name}" for module in pkgutil.iter_modules(envs.__path__)]
    assert {"envs.foq", "envs.tictactoe", "envs.game"} <= set(names)
    root = pathlib.Path(__file__).parents[1]

    def run(code):  # where no device can be started
        environment = os.environ | {"JAX_PLATFORMS": "no_such_platform"}
        return subprocess.run([sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, text=True)

    done = run(f"import envs, {', '.join(names)}")
    assert done.returncode == 0, done.stderr
    assert run("import jax.numpy as jnp; jnp.zeros(1)").returncode != 0  # the trap works


# Play


def test_mask_is_empty_exactly_when_the_game_is_over(bench):
    np.testing.assert_array_equal(bench.plies.legal.any(-1), ~bench.plies.over)


def test_every_game_ends_within_the_longest(bench):
    assert not bench.plies.over[0].any()
    assert bench.plies.over[bench.game.max_plies].all()


def test_positions_have_no_more_legal_actions_than_promised(bench):
    assert bench.plies.legal.sum(-1).max() <= bench.game.max_legal


def test_rewards_are_zero_until_the_end_and_sum_to_zero(bench):
    rewards, over = bench.plies.rewards, bench.plies.over
    assert not rewards[~over].any()
    np.testing.assert_allclose(rewards.sum(-1), 0, atol=1e-6)
    assert np.abs(rewards).max() <= 1


def test_random_games_are_not_all_won_by_one_player(bench):
    assert len(set(bench.plies.rewards[-1].argmax(-1).tolist())) > 1


def test_players_are_numbered_from_zero(bench):
    assert set(np.unique(bench.plies.player)) <= set(range(bench.game.num_players))


def test_move_equals_step_for_legal_actions(bench, after):
    legal = jax.device_get(bench.facts_of_many(bench.sample, bench.actions)).mask
    assert legal.any()
    stepped, moved, _, _ = after
    pairs = zip(jax.tree.leaves(stepped), jax.tree.leaves(moved), strict=True)
    for step, move in pairs:
        np.testing.assert_array_equal(step[:, : bench.game.num_actions][legal], move[legal])


def assert_fixed(states, stepped, codes):
    for old, new in zip(jax.tree.leaves(states), jax.tree.leaves(stepped), strict=True):
        np.testing.assert_array_equal(new, np.broadcast_to(np.asarray(old)[:, None], new.shape))
        assert new.shape[1] == len(codes)


def test_finished_games_stand_still_whatever_the_action(bench, after):
    over = np.asarray(jax.vmap(bench.game.over)(bench.sample))
    assert over.any()
    assert_fixed(at(bench.sample, over), at(after[0], over), bench.codes)


def test_illegal_actions_lose_at_once(bench, after):
    game = bench.game
    facts = jax.device_get(bench.facts_of_many(bench.sample, bench.actions))
    stepped, _, over, rewards = after
    illegal = np.ones(over.shape, bool)
    illegal[:, : game.num_actions] = ~facts.mask
    illegal[facts.over] = False
    position, code = np.nonzero(illegal)
    assert (code < game.num_actions).any() and (code >= game.num_actions).any()

    assert over[position, code].all()
    loser = facts.player[position]
    want = np.where(np.arange(game.num_players) == loser[:, None], -1.0, 1.0 / (game.num_players - 1))
    np.testing.assert_allclose(rewards[position, code], want, rtol=1e-6)

    before, ended = rules(at(bench.sample, position)), rules(at(stepped, (position, code)))
    assert (before.forfeit == -1).all()
    np.testing.assert_array_equal(ended.forfeit, loser)
    assert_same(ended._replace(forfeit=before.forfeit), before)


def test_forfeited_games_stand_still_whatever_the_action(bench, after):
    facts = jax.device_get(bench.facts_of_many(bench.sample, bench.actions))
    # By turns a code that is just not legal here, where there is one, and a code out of range.
    size = bench.game.num_actions
    inside = (np.arange(SAMPLE) % 2 == 1) & ~facts.mask.all(-1)
    forfeited = at(after[0], (np.arange(SAMPLE), np.where(inside, facts.mask.argmin(-1), size)))
    stepped, _, over, rewards = jax.device_get(bench.after(forfeited))
    assert over.all()
    assert_fixed(forfeited, stepped, bench.codes)
    lost = np.take_along_axis(rewards, facts.player[:, None, None], 2)
    assert (lost[~facts.over] == -1).all()


# Observations


def test_observation_needs_only_what_is_remembered(bench):
    facts = jax.device_get(bench.facts_of_many(bench.sample, bench.actions))
    np.testing.assert_array_equal(facts.recalled, facts.observe)
    assert np.isfinite(facts.observe).all()


def test_hand_made_value_is_bounded_and_exact_at_the_end(bench):
    facts = jax.device_get(bench.facts_of_many(bench.sample, bench.actions))
    assert np.abs(facts.evaluate).max() <= 1
    if bench.game.evaluate is not None:
        mine = np.take_along_axis(facts.rewards, facts.player[:, None], 1)[:, 0]
        np.testing.assert_allclose(facts.evaluate[facts.over], mine[facts.over])


# Symmetries


def test_first_symmetry_is_the_identity(bench):
    identity = bench.game.symmetries[0]
    np.testing.assert_array_equal(identity.actions, np.arange(bench.game.num_actions))
    assert_same(jax.vmap(identity.state)(bench.sample), bench.sample)


def test_symmetries_are_different_permutations(game):
    codes = [tuple(symmetry.actions.tolist()) for symmetry in game.symmetries]
    assert all(sorted(c) == list(range(game.num_actions)) for c in codes)
    assert len(set(codes)) == len(codes)
    assert len({symmetry.name for symmetry in game.symmetries}) == len(codes)


def test_symmetries_commute_with_the_rules(bench):
    plain = jax.device_get(bench.facts_of_many(bench.sample, bench.actions))
    for symmetry in bench.game.symmetries:
        turned_states = jax.vmap(symmetry.state)(bench.sample)
        turned = jax.device_get(bench.facts_of_many(turned_states, symmetry.actions[bench.actions]))
        assert_same(turned.step, jax.vmap(symmetry.state)(plain.step), symmetry.name)
        np.testing.assert_array_equal(turned.mask[:, symmetry.actions], plain.mask, symmetry.name)
        np.testing.assert_array_equal(turned.observe, jax.vmap(symmetry.planes)(plain.observe), symmetry.name)
        assert_same(turned[2:5], plain[2:5], symmetry.name)


# For people


def test_records_come_back_unchanged_along_a_game(bench):
    last = int(bench.plies.over[:, 0].argmax())  # the ply at which game 0 is over
    for ply in sorted({*range(0, last, 5), 1, last}):
        s = bench.position(ply)
        record = bench.game.to_record(s)
        assert_same(bench.game.from_record(record), s)
        text = json.dumps(record)
        assert_same(bench.game.from_record(json.loads(text)), s)
        assert "forfeit" not in record


def test_records_keep_a_forfeit(bench):
    s = bench.game.step(bench.position(1), -1)
    record = json.loads(json.dumps(bench.game.to_record(s)))
    assert record["forfeit"] == int(bench.game.player(s))
    assert_same(bench.game.from_record(record), s)


def test_action_names_come_back(game):
    names = [game.action_name(a) for a in range(game.num_actions)]
    assert [game.parse_action(name) for name in names] == list(range(game.num_actions))
    assert len(set(names)) == game.num_actions


@pytest.mark.parametrize("name", ["", "no such move", "-1", "99999999", "a0"])
def test_bad_action_names_are_refused(game, name):
    with pytest.raises(ValueError, match="."):
        game.parse_action(name)


def test_pictures_of_all_stages(bench):
    last = int(bench.plies.over[:, 0].argmax())
    start = bench.position(0)
    for s in (start, bench.position(last // 2), bench.position(last), bench.game.step(start, -1)):
        assert bench.game.show(s).strip()
        assert ElementTree.fromstring(bench.game.svg(s)).tag.endswith("svg")


@pytest.mark.parametrize("record", [None, 5, [], "text", {}])
def test_what_is_no_record_is_refused(game, record):
    with pytest.raises(ValueError, match="record"):
        game.from_record(record)
