"""Checks one game against the rules that every game must satisfy: python -m envs.check GAME

GAME is a registry name with options, or a file of your own; see `envs.make`. Positions come from random games, played
in one compiled scan. Each rule is a function named after its requirement, and raises AssertionError if the game breaks
the rule. The project's tests run the same rules over the whole registry.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import traceback
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import envs
from envs import saved
from envs.game import Game

LANES = 64  # random games
SAMPLE = 48  # positions to examine closely
BYTES = 2**30  # for the positions after every action; a game that needs more memory gets a smaller sample
STEPS = 50_000  # about as many positions after every action; a game with more actions gets a smaller sample
MOST_OBSERVED = 1000  # positions for the rule about frames
RARE = 0.04  # share of actions that may differ there, such as a swap of sides
AFTER = 3  # plies after the longest possible game
LONGEST_STEP = 300  # characters, see `Step`


class Ply(NamedTuple):
    """Numpy arrays with leading axes [ply, lane]; finished games repeat their last position."""

    state: Any
    action: Any
    legal: Any
    over: Any
    player: Any
    rewards: Any


class Facts(NamedTuple):
    """Every output of a game for one position and one action."""

    step: Any
    mask: Any
    over: Any
    player: Any
    rewards: Any
    observe: Any
    recalled: Any  # observe(observation_state(s))
    evaluate: Any


class Bench:
    """A game with its compiled functions, its random games and a sample of their positions."""

    def __init__(self, game: Game):
        self.game = game
        size = game.num_actions
        outside = [-1, -2, -size, -size - 1, size, size + 7, 2**31 - 1, -(2**31)]
        self.codes = np.array([*range(size), *outside], np.int32)
        position = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(jax.eval_shape(game.init)))
        most = min(BYTES // (2 * position), STEPS) // len(self.codes)
        self.looked_at = int(np.clip(most, 8, SAMPLE))
        self.facts_of_one = jax.jit(self.facts)
        self.facts_of_many = jax.jit(jax.vmap(self.facts))
        self.after = jax.jit(lambda states: jax.lax.map(self.after_every_code, states))

    @functools.cached_property
    def plies(self) -> Ply:
        lanes = jax.jit(jax.vmap(self.play))
        played: Ply = jax.device_get(lanes(jax.random.split(jax.random.key(0), LANES)))
        return jax.tree.map(lambda x: np.swapaxes(x, 0, 1), played)

    def play(self, key) -> Ply:
        game = self.game

        def ply(s, key):
            legal = game.mask(s)
            action = jax.random.categorical(key, jnp.where(legal, 0.0, -jnp.inf)).astype(jnp.int32)
            return game.step(s, action), Ply(s, action, legal, game.over(s), game.player(s), game.rewards(s))

        return jax.lax.scan(ply, game.init(), jax.random.split(key, game.max_plies + AFTER))[1]

    def facts(self, s, action) -> Facts:
        game = self.game
        value = jnp.float32(0) if game.hints.evaluate is None else game.hints.evaluate(s)
        recalled = game.observe(game.observation_state(s))
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
        """(step, move, over, rewards): `move` for all codes in range, the others also for codes out of range."""
        game = self.game
        stepped = jax.vmap(game.step, (None, 0))(s, self.codes)
        moved = jax.vmap(game.move, (None, 0))(s, jnp.arange(game.num_actions))
        return stepped, moved, jax.vmap(game.over)(stepped), jax.vmap(game.rewards)(stepped)

    @functools.cached_property
    def picked(self):
        """Positions of every stage, including the first and a finished one, each with the action taken there."""
        plies, lanes = self.plies.over.shape
        last = int((~self.plies.over).sum(0).max())
        ply = np.linspace(0, min(last + 1, plies - 1), self.looked_at).astype(int)
        lane = np.arange(self.looked_at) % lanes
        return jax.tree.map(lambda x: x[ply, lane], (self.plies.state, self.plies.action))

    @property
    def sample(self):
        return self.picked[0]

    @property
    def actions(self):
        return self.picked[1]

    @functools.cached_property
    def after_sample(self):
        """`after_every_code` of each position of the sample."""
        return jax.device_get(self.after(self.sample))

    def position(self, ply: int, lane: int = 0):
        return jax.tree.map(lambda x: jnp.asarray(x[ply, lane]), self.plies.state)


Rule = Callable[[Bench], None]
RULES: dict[str, Rule] = {}
FORM: dict[str, Rule] = {}  # rules that need no game to be played: quick enough before every run


def rule(function: Rule) -> Rule:
    """Adds a function to `RULES` under its name in words."""
    RULES[function.__name__.replace("_", " ")] = function
    return function


def form(function: Rule) -> Rule:
    """Adds a function to `FORM` too."""
    FORM[function.__name__.replace("_", " ")] = function
    return rule(function)


def refused(function: Callable[[Any], Any], argument: Any) -> None:
    """Requires a ValueError with a reason."""
    name = getattr(function, "__name__", "it")
    try:
        got = function(argument)
    except ValueError as error:
        assert str(error), f"{name}({argument!r}): expected a ValueError with a reason, got one without"
    except Exception as error:
        said = f"{name}({argument!r}): expected ValueError, got {type(error).__name__}: {error}"
        raise AssertionError(said).with_traceback(error.__traceback__) from None
    else:
        raise AssertionError(f"{name}({argument!r}): expected ValueError, got {got!r}")


def rules(s):
    """The position itself, without the history that a transform adds."""
    return getattr(s, "now", s)


def same(got, want, message=""):
    """Requires equal structure, dtype, shape and entries."""
    assert jax.tree.structure(got) == jax.tree.structure(want), message
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        g, w = np.asarray(g), np.asarray(w)
        assert (g.dtype, g.shape) == (w.dtype, w.shape), message
        np.testing.assert_array_equal(g, w, message)


def close(got, want):
    """Like `same`, but floats may differ in the last digits."""
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape)
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-6, atol=1e-6)


def at(tree, index):
    return jax.tree.map(lambda x: x[index], tree)


# Answers


@form
def answers_have_the_promised_dtypes_and_shapes(bench: Bench) -> None:
    game = bench.game
    promised(game, "mask", game.mask, bool, game.num_actions)
    promised(game, "over", game.over, bool)
    promised(game, "player", game.player, np.int32)
    promised(game, "rewards", game.rewards, np.float32, game.num_players)
    planes = jax.eval_shape(lambda: game.observe(game.init()))
    assert (planes.dtype, planes.ndim) == (np.float32, 3), f"observe: expected float32[R, C, P], got {shaped(planes)}"
    if game.hints.evaluate is not None:
        promised(game, "evaluate", game.hints.evaluate, np.float32)
    if game.hints.owners is not None:
        promised(game, "owners", game.hints.owners, np.int8, game.num_actions)


def promised(game: Game, name: str, function: Callable[[Any], Any], dtype: Any, *shape: int) -> None:
    """Requires this dtype and shape of the function's answer for a position."""
    got = jax.eval_shape(lambda: jnp.asarray(function(game.init())))
    want = jax.ShapeDtypeStruct(shape, dtype)
    assert (got.dtype, got.shape) == (want.dtype, want.shape), f"{name}: expected {shaped(want)}, got {shaped(got)}"


def shaped(x: jax.ShapeDtypeStruct) -> str:
    return f"{x.dtype}{list(x.shape)}"


# The record


@form
def name_gives_the_game_back(bench: Bench) -> None:
    game = bench.game
    assert envs.make(game.name) is game


@form
def sizes_are_plain_positive_numbers(bench: Bench) -> None:
    game = bench.game
    for size in (game.num_players, game.num_actions, game.max_plies, game.max_legal):
        assert type(size) is int and size >= 1
    assert game.max_legal <= game.num_actions
    assert max(game.num_actions, game.max_plies) < 2**15, "codes and plies are kept in 16 bits"


@form
def actions_of_cells_fill_the_board(bench: Bench) -> None:
    game = bench.game
    if game.actions_per_cell != 1:
        rows, cols, _ = jax.eval_shape(game.observe, jax.eval_shape(game.init)).shape
        assert 0 <= game.num_actions - rows * cols * game.actions_per_cell <= 2


@form
def to_mover_frame_is_a_permutation_for_each_player(bench: Bench) -> None:
    game = bench.game
    if game.to_mover_frame is not None:
        assert game.to_mover_frame.shape == (game.num_players, game.num_actions)
        for codes in game.to_mover_frame:
            assert sorted(codes.tolist()) == list(range(game.num_actions))


# Shapes


@form
def step_and_move_keep_structure_and_dtypes(bench: Bench) -> None:
    game = bench.game
    s = like = jax.eval_shape(game.init)
    for function in (game.step, game.move):
        for action in (0, np.int32(0), np.int64(0), jnp.int8(0)):
            got = jax.eval_shape(function, s, action)
            assert jax.tree.structure(got) == jax.tree.structure(like), "expected a state of the same fields as init's"
            for (path, want), have in zip(jax.tree.leaves_with_path(like), jax.tree.leaves(got), strict=True):
                field, alike = (
                    jax.tree_util.keystr(path).strip("."),
                    (have.dtype, have.shape) == (want.dtype, want.shape),
                )
                assert alike, f"{field}: expected {shaped(want)} as from init, got {shaped(have)}"
                assert not have.weak_type, f"{field}: expected a type of its own, got a weak one: use astype"


@form
def init_takes_a_key_or_none(bench: Bench) -> None:
    game = bench.game
    start, keyed = jax.jit(game.init)(), jax.jit(game.init)(jax.random.key(0))
    same(jax.jit(game.init)(None), start)
    assert jax.tree.structure(keyed) == jax.tree.structure(start)


# Compilation


@rule
def compiled_equals_plain(bench: Bench) -> None:
    for i in (bench.looked_at // 2, bench.looked_at - 1):
        s, action = jax.tree.map(jnp.asarray, at((bench.sample, bench.actions), i))
        close(bench.facts_of_one(s, action), bench.facts(s, action))


@rule
def batched_equals_looped(bench: Bench) -> None:
    many = jax.device_get(bench.facts_of_many(bench.sample, bench.actions))
    for i in range(0, bench.looked_at, 4):
        close(at(many, i), jax.device_get(bench.facts_of_one(at(bench.sample, i), bench.actions[i])))


@rule
def one_trace_for_all_positions_and_actions(bench: Bench) -> None:
    game = bench.game
    traces = []

    @jax.jit
    def step(s, action):
        traces.append(action)
        return game.step(s, action)

    s = bench.position(0)
    for action in (0, 1, 1, game.num_actions, -1):
        s = step(s, jnp.int32(action))
    step(game.from_record(game.to_record(s)), jnp.int32(0))
    assert len(traces) == 1


# Play


@rule
def mask_is_empty_exactly_when_the_game_is_over(bench: Bench) -> None:
    np.testing.assert_array_equal(bench.plies.legal.any(-1), ~bench.plies.over)


@form
def some_action_is_legal_at_the_start(bench: Bench) -> None:
    game = bench.game
    mask, over = jax.jit(lambda: (game.mask(game.init()), game.over(game.init())))()
    assert mask.any(), "mask: expected a legal action in the first position, got none"
    assert not over, "over: expected False in the first position, got True"


@rule
def every_game_ends_within_the_longest(bench: Bench) -> None:
    going = int((~bench.plies.over[bench.game.max_plies]).sum())
    most = f"max_plies = {bench.game.max_plies}"
    assert not going, f"expected the end after {most} plies at most, got {going} of {LANES} random games that go on"


@rule
def positions_have_no_more_legal_actions_than_promised(bench: Bench) -> None:
    most = int(bench.plies.legal.sum(-1).max())
    assert most <= bench.game.max_legal, f"expected at most max_legal = {bench.game.max_legal}, got {most}"


@rule
def rewards_are_zero_until_the_end_and_sum_to_zero(bench: Bench) -> None:
    rewards, over = bench.plies.rewards, bench.plies.over
    assert not rewards[~over].any(), "rewards: expected zeros until the end, got others"
    odd = rewards[np.abs(rewards.sum(-1)) > 1e-6]
    assert not len(odd), f"rewards: expected a sum of 0, got {odd[0].tolist()}"
    assert np.abs(rewards).max() <= 1, f"rewards: expected -1 to 1, got {np.abs(rewards).max()}"


@rule
def random_games_are_not_all_won_by_one_player(bench: Bench) -> None:
    ended = bench.plies.rewards[-1][bench.plies.over[-1]]
    assert not len(ended) or len(set(ended.argmax(-1).tolist())) > 1


@rule
def frames_turn_actions_as_planes_turn_the_board(bench: Bench) -> None:
    """Where the first player's actions all see the same at their cell, such as a piece of their own or none, the other
    players' actions do too, unless `to_mover_frame` and `observe` disagree about the mover's side."""
    game = bench.game
    rows, cols, _ = jax.eval_shape(game.observe, jax.eval_shape(game.init)).shape
    on_cells = rows * cols * game.actions_per_cell
    if game.to_mover_frame is None or not 0 <= game.num_actions - on_cells <= 2:
        return
    going = np.argwhere(~bench.plies.over)
    ply, lane = going[np.linspace(0, len(going) - 1, MOST_OBSERVED).astype(int)].T
    state, action, player = (jax.tree.map(lambda x: x[ply, lane], part) for part in bench.plies[:2] + bench.plies[4:5])
    code = game.to_mover_frame[player, action]
    planes = np.asarray(jax.jit(jax.vmap(game.observe))(state)).reshape(len(ply), rows * cols, -1)
    there = planes[np.arange(len(ply)), np.minimum(code, on_cells - 1) // game.actions_per_cell] != 0
    uneven = (planes != planes[:, :1]).any((0, 1))  # planes that tell cells apart
    share = lambda of: there[of & (code < on_cells)].mean(0)
    first = share(player == 0)
    for other in range(1, game.num_players):
        off = uneven & ((first == 0) | (first == 1)) & (np.abs(share(player == other) - first) > RARE)
        if off.any():
            always = "empty" if first[off.argmax()] == 0 else "filled"
            raise AssertionError(
                f"plane {off.argmax()} is {always} at the cell of every action of player 0, but not of player {other}: "
                "does to_mover_frame turn actions as observe turns the board?"
            )


@rule
def players_are_numbered_from_zero(bench: Bench) -> None:
    assert set(np.unique(bench.plies.player)) <= set(range(bench.game.num_players))


@rule
def move_equals_step_for_legal_actions(bench: Bench) -> None:
    after = bench.after_sample
    legal = jax.device_get(bench.facts_of_many(bench.sample, bench.actions)).mask
    assert legal.any()
    stepped, moved, _, _ = after
    pairs = zip(jax.tree.leaves(stepped), jax.tree.leaves(moved), strict=True)
    for step, move in pairs:
        np.testing.assert_array_equal(step[:, : bench.game.num_actions][legal], move[legal])


def fixed(states, stepped, codes):
    for old, new in zip(jax.tree.leaves(states), jax.tree.leaves(stepped), strict=True):
        np.testing.assert_array_equal(new, np.broadcast_to(np.asarray(old)[:, None], new.shape))
        assert new.shape[1] == len(codes)


@rule
def finished_games_do_not_change_whatever_the_action(bench: Bench) -> None:
    after = bench.after_sample
    over = jax.device_get(bench.facts_of_many(bench.sample, bench.actions)).over
    assert over.any()
    fixed(at(bench.sample, over), at(after[0], over), bench.codes)


@rule
def illegal_actions_lose_at_once(bench: Bench) -> None:
    after = bench.after_sample
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
    same(ended._replace(forfeit=before.forfeit), before)


@rule
def forfeited_games_do_not_change_whatever_the_action(bench: Bench) -> None:
    after = bench.after_sample
    facts = jax.device_get(bench.facts_of_many(bench.sample, bench.actions))
    # Alternates between an illegal code in range, if there is one, and a code out of range.
    size = bench.game.num_actions
    places = np.arange(bench.looked_at)
    inside = (places % 2 == 1) & ~facts.mask.all(-1)
    forfeited = at(after[0], (places, np.where(inside, facts.mask.argmin(-1), size)))
    stepped, _, over, rewards = jax.device_get(bench.after(forfeited))
    assert over.all()
    fixed(forfeited, stepped, bench.codes)
    lost = np.take_along_axis(rewards, facts.player[:, None, None], 2)
    assert (lost[~facts.over] == -1).all()


# Observations


@rule
def observation_needs_only_what_is_remembered(bench: Bench) -> None:
    facts = jax.device_get(bench.facts_of_many(bench.sample, bench.actions))
    np.testing.assert_array_equal(facts.recalled, facts.observe)
    assert np.isfinite(facts.observe).all()


@rule
def heuristic_value_is_bounded_and_exact_at_the_end(bench: Bench) -> None:
    facts = jax.device_get(bench.facts_of_many(bench.sample, bench.actions))
    assert np.abs(facts.evaluate).max() <= 1
    if bench.game.hints.evaluate is not None:
        mine = np.take_along_axis(facts.rewards, facts.player[:, None], 1)[:, 0]
        np.testing.assert_allclose(facts.evaluate[facts.over], mine[facts.over])


@rule
def cells_belong_to_players_or_nobody_and_turn_with_the_board(bench: Bench) -> None:
    game = bench.game
    if game.hints.owners is None:
        return
    owners = jax.jit(jax.vmap(game.hints.owners))
    plain = np.asarray(owners(bench.sample))
    assert plain.min() >= 0 and plain.max() <= game.num_players
    for symmetry in game.symmetries:
        turned = np.asarray(owners(jax.vmap(symmetry.state)(bench.sample)))
        np.testing.assert_array_equal(turned[:, symmetry.actions], plain, symmetry.name)


# Symmetries


@rule
def first_symmetry_is_the_identity(bench: Bench) -> None:
    identity = bench.game.symmetries[0]
    np.testing.assert_array_equal(identity.actions, np.arange(bench.game.num_actions))
    same(jax.vmap(identity.state)(bench.sample), bench.sample)


@rule
def symmetries_are_different_permutations(bench: Bench) -> None:
    game = bench.game
    codes = [tuple(symmetry.actions.tolist()) for symmetry in game.symmetries]
    assert all(sorted(c) == list(range(game.num_actions)) for c in codes)
    assert len(set(codes)) == len(codes)
    assert len({symmetry.name for symmetry in game.symmetries}) == len(codes)


@rule
def symmetries_commute_with_the_rules(bench: Bench) -> None:
    plain = jax.device_get(bench.facts_of_many(bench.sample, bench.actions))
    for symmetry in bench.game.symmetries:
        turned_states = jax.vmap(symmetry.state)(bench.sample)
        turned = jax.device_get(bench.facts_of_many(turned_states, symmetry.actions[bench.actions]))
        same(turned.step, jax.vmap(symmetry.state)(plain.step), symmetry.name)
        np.testing.assert_array_equal(turned.mask[:, symmetry.actions], plain.mask, symmetry.name)
        np.testing.assert_array_equal(turned.observe, jax.vmap(symmetry.planes)(plain.observe), symmetry.name)
        same(turned[2:5], plain[2:5], symmetry.name)


# For people


@rule
def records_come_back_unchanged_along_a_game(bench: Bench) -> None:
    last = int(bench.plies.over[:, 0].argmax())  # the ply at which game 0 is over
    for ply in sorted({*range(0, last, 5), 1, last}):
        s = bench.position(ply)
        record = bench.game.to_record(s)
        assert "forfeit" not in record, "to_record: expected `forfeit` after a forfeit only, see records.with_forfeit"
        same(bench.game.from_record(record), s)
        text = json.dumps(record)
        same(bench.game.from_record(json.loads(text)), s)


@rule
def records_keep_a_forfeit(bench: Bench) -> None:
    s = jax.jit(bench.game.step)(bench.position(1), -1)
    record = json.loads(json.dumps(bench.game.to_record(s)))
    assert "forfeit" in record, "to_record: expected `forfeit` after a forfeit, see records.with_forfeit"
    assert record["forfeit"] == int(bench.game.player(s))
    same(bench.game.from_record(record), s)


@rule
def action_names_can_be_read_back(bench: Bench) -> None:
    game = bench.game
    names = [game.action_name(a) for a in range(game.num_actions)]
    assert [game.parse_action(name) for name in names] == list(range(game.num_actions))
    assert len(set(names)) == game.num_actions


@rule
def bad_action_names_are_refused(bench: Bench) -> None:
    for name in ("", "no such move", "-1", "99999999", "a0"):
        refused(bench.game.parse_action, name)


@rule
def pictures_of_all_stages(bench: Bench) -> None:
    last = int(bench.plies.over[:, 0].argmax())
    start = bench.position(0)
    forfeited = jax.jit(bench.game.step)(start, -1)
    for s in (start, bench.position(last // 2), bench.position(last), forfeited):
        assert bench.game.show(s).strip()
        assert ElementTree.fromstring(bench.game.svg(s)).tag.endswith("svg")


@rule
def every_legal_action_can_be_pointed_at(bench: Bench) -> None:
    """Its cells are in the picture, and actions with the same cells have different labels."""
    game, last = bench.game, int(bench.plies.over[:, 0].argmax())
    for s in (bench.position(0), bench.position(last // 3), bench.position(last * 2 // 3)):
        picture = ElementTree.fromstring(game.svg(s))
        there = [x.get("data-cell") for x in picture.iter() if x.get("data-cell")]
        assert len(set(there)) == len(there), "two cells have the same name"
        cells, label = game.view.cells or (lambda action: ()), game.view.label or game.action_name
        ways = [(cells(a), label(a)) for a in map(int, np.flatnonzero(np.asarray(game.mask(s))))]
        lost = {name for names, _ in ways for name in names} - set(there)
        assert not lost, f"the picture has no cell {min(lost)}"
        assert len(set(ways)) == len(ways), "two actions have the same cells and words"


@rule
def lesson_is_short_and_its_moves_are_legal(bench: Bench) -> None:
    for step in bench.game.view.lesson:
        assert 0 < len(step.text) <= LONGEST_STEP, f"a step of the lesson has {len(step.text)} characters"
        game = envs.make(step.board) if step.board else bench.game
        states, _ = saved.replay(game, game.init(), step.moves)
        assert game.svg(states[-1])


@rule
def what_is_no_record_is_refused(bench: Bench) -> None:
    for record in (None, 5, [], "text", {}):
        refused(bench.game.from_record, record)


def broken(name: str, holds: Rule, bench: Bench) -> str | None:
    """The violation of a rule in one line, or None if the rule holds."""
    try:
        holds(bench)
    except Exception as error:  # any exception is a violation, and its message is the answer
        said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        frames = traceback.extract_tb(error.__traceback__)
        kind = "" if isinstance(error, AssertionError) and said else f" ({type(error).__name__})"
        return f"{name}: {said or frames[-1].line}{kind}{_place(bench.game, frames)}"
    return None


def _place(game: Game, frames: traceback.StackSummary) -> str:
    """The innermost line of the game's own file on the way to an error, as words."""
    file = game.name.partition(".py")[0] + ".py"
    inside = [frame for frame in frames if Path(frame.filename).resolve() == Path(file).resolve()]
    return f", in line {inside[-1].lineno} of {file}" if inside else ""


def demand_form(game: Game) -> None:
    """Raises a ValueError that names the first rule of `FORM` that the game breaks. A game from a file must also end,
    which random games show: otherwise a run would never learn."""
    bench = Bench(game)
    endless = {"every game ends within the longest": every_game_ends_within_the_longest}
    for name, holds in (FORM | (endless if ".py" in game.name else {})).items():
        wrong = broken(name, holds, bench)
        if wrong:
            raise ValueError(f"{game.name} breaks the rule {wrong}")


def report(game: Game) -> bool:
    """Prints whether each rule holds; returns True if all do."""
    bench, wrongs = Bench(game), 0
    for number, (name, holds) in enumerate((FORM | RULES).items(), 1):
        if sys.stderr.isatty():  # a rule that hangs has a name
            print(f"...     {name}", end="\r", file=sys.stderr, flush=True)
        wrong = broken(name, holds, bench)
        wrongs += wrong is not None
        print(f"BROKEN  {wrong}" if wrong else f"holds   {name}", flush=True)
        if number == len(FORM) and wrongs:
            print(f"{game.name}: {len(RULES) - number} more rules are checked once these hold")
            return False
    print(f"{game.name}: {len(RULES) - wrongs} of {len(RULES)} rules hold")
    return not wrongs


def main() -> None:
    if not __debug__:
        print("error: python -O leaves the checks out; run it without", file=sys.stderr)
        raise SystemExit(2)
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__)
        return
    if len(sys.argv) != 2:
        print("error: expected one argument, a game: python -m envs.check foq", file=sys.stderr)
        raise SystemExit(2)
    try:
        game = envs.make(sys.argv[1])
    except (ValueError, OSError) as error:
        print("error:", error, file=sys.stderr)
        raise SystemExit(2) from None
    try:
        holds = report(game)
    except KeyboardInterrupt:
        os._exit(130)  # a function of the game may never return
    if not holds:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
