"""Rules about random games: compilation, the course of play, observations and symmetries."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from envs.check.bench import LANES, Bench
from envs.check.rule import at, close, rule, same

MOST_OBSERVED = 1000  # positions for the rule about frames
RARE = 0.04  # share of actions that may differ there, such as a swap of sides


def rules(s):
    """The position itself, without the history that a transform adds."""
    return getattr(s, "now", s)


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
def offsets_of_legal_actions_stay_on_the_board(bench: Bench) -> None:
    game = bench.game
    if game.offsets is None:
        return
    rows, cols, _ = jax.eval_shape(game.observe, jax.eval_shape(game.init)).shape
    ply, lane, code = np.nonzero(bench.plies.legal)
    if game.to_mover_frame is not None:
        code = game.to_mover_frame[bench.plies.player[ply, lane], code]
    cell, kind = np.divmod(code[code < rows * cols * game.actions_per_cell], game.actions_per_cell)
    down, right = game.offsets[kind].T
    row, col = cell // cols + down, cell % cols + right
    off = (row < 0) | (row >= rows) | (col < 0) | (col >= cols)
    if off.any():
        row, col, *by = (int(x[off.argmax()]) for x in (cell // cols, cell % cols, down, right))
        raise AssertionError(f"offsets: a legal action in row {row}, column {col} goes {by}, off the board")


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
