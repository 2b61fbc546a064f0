"""Rules about random games: compilation, the course of play, observations and symmetries."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from envs import pictures
from envs.check.bench import LANES, Bench
from envs.check.rule import at, close, rule, same

RARE = 0.04  # share of actions that may differ in the rule about frames, such as a swap of sides
UNLIKE = -0.2  # a correlation of what should go together that is no accident
TURNS = {  # ways of seeing a board
    "with its rows reversed": lambda x: x[::-1],
    "with its columns reversed": lambda x: x[:, ::-1],
    "upside down": lambda x: x[::-1, ::-1],
    "with rows and columns exchanged": lambda x: x.T,
    "with rows and columns exchanged and reversed": lambda x: x.T[::-1, ::-1],
}


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
    wrong = np.argwhere(bench.plies.legal.any(-1) == bench.plies.over)
    if len(wrong):
        ply, lane = wrong[0]
        how = "a legal action though the game is over" if bench.plies.over[ply, lane] else "none though it goes on"
        raise AssertionError(f"mask: expected a legal action until the end, got {how}, after {ply} plies")


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
    won = ended[ended.any(-1)]  # the others are draws
    best = set(won.argmax(-1).tolist())
    assert len(best) != 1, f"rewards: expected different winners, got player {min(best)} in all {len(won)} won games"


NOT_CELLS = "actions are not the cells of the board: make sure that they and the planes are seen from the mover's side"


def planes_at_actions(bench: Bench) -> tuple[np.ndarray, Callable[..., np.ndarray]] | None:
    """The cells of the board, int[R, C], and `filled(player, seen)`: the share of the player's actions at whose cell
    one plane or another is filled, for every pair of the planes that tell cells apart, if the player sees cell i as
    `seen[i]`. None if actions are not cells."""
    game = bench.game
    rows, cols, _ = jax.eval_shape(game.observe, jax.eval_shape(game.init)).shape
    on_cells = rows * cols * game.actions_per_cell
    if not 0 <= game.num_actions - on_cells <= 2:
        return None
    played, board = bench.unfinished, np.arange(rows * cols).reshape(rows, cols)
    code = played.action if game.to_mover_frame is None else game.to_mover_frame[played.player, played.action]
    planes = np.asarray(jax.jit(jax.vmap(game.observe))(played.state)).reshape(len(code), rows * cols, -1)
    planes = planes[..., (planes != planes[:, :1]).any((0, 1))] != 0

    def filled(player: int, seen: np.ndarray = board) -> np.ndarray:
        who = np.flatnonzero((code < on_cells) & (played.player == player))
        empty = ~planes[who, seen.ravel()[code[who] // game.actions_per_cell]]
        return 1 - empty.T.astype(np.float32) @ empty / max(len(who), 1)

    return board, filled


@rule
def frames_turn_actions_as_planes_turn_the_board(bench: Bench) -> str | None:
    """Where the first player's actions all see the same at their cell, such as a piece of their own or none, the other
    players' actions do too, unless `to_mover_frame` and `observe` disagree about the mover's side."""
    if (found := planes_at_actions(bench)) is None:
        return NOT_CELLS
    board, filled = found
    turns = {name: turn(board) for name, turn in TURNS.items() if turn(board).shape == board.shape}
    first = filled(0)
    always = (first == 0) | (first == 1)
    for other in range(1, bench.game.num_players):
        off = lambda seen, other=other: int((always & (np.abs(filled(other, seen) - first) > RARE)).sum())
        as_it_is, (best, name) = off(board), min((off(seen), name) for name, seen in turns.items())
        given = bench.game.to_mover_frame is not None
        ask = "turn actions as observe turns the board" if given else "have to be given"
        assert 2 * best >= as_it_is, (
            f"actions of player 0 and of player {other} see different planes at their cells; {name}, the board would "
            f"look the same to both: does to_mover_frame {ask}?"
        )


@rule
def planes_are_the_movers(bench: Bench) -> str | None:
    """No plane is filled at the cells of the first player's actions alone and another at those of another player's:
    pieces of the first player, whoever is to move, and of the other."""
    if (found := planes_at_actions(bench)) is None:
        return NOT_CELLS
    _, filled = found
    first = filled(0)
    for other in range(1, bench.game.num_players):
        theirs = filled(other)
        apart = ((first == 1) & (theirs <= RARE)).any() and ((theirs == 1) & (first <= RARE)).any()
        assert not apart, (
            f"observe: expected planes of the mover, got some that are filled at the cells of all actions of player 0 "
            f"and others at those of player {other}"
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
    wanted, got = list(range(bench.game.num_players)), np.unique(bench.plies.player).tolist()
    assert set(got) <= set(wanted), f"player: expected {wanted}, got {got}"


@rule
def move_equals_step_for_legal_actions(bench: Bench) -> None:
    after = bench.after_sample
    legal = jax.device_get(bench.facts_of_many(bench.sample, bench.actions)).mask
    stepped, moved, _, _ = after
    within = jax.tree.map(lambda x: x[:, : bench.game.num_actions], stepped)
    same(at(moved, legal), at(within, legal), "move against step")


def fixed(states, stepped, what):
    """Requires that no action changed the positions."""
    wide = lambda old, new: np.broadcast_to(np.asarray(old)[:, None], np.shape(new))
    same(stepped, jax.tree.map(wide, states, stepped), what)


@rule
def finished_games_do_not_change_whatever_the_action(bench: Bench) -> None:
    after = bench.after_sample
    over = jax.device_get(bench.facts_of_many(bench.sample, bench.actions)).over
    if over.any():  # else another rule is broken
        fixed(at(bench.sample, over), at(after[0], over), "step of a finished game")


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
    going = ~over[position, code]
    if going.any():
        which = f"{bench.codes[code[going]][0]} of {game.num_actions} actions"
        raise AssertionError(
            f"over: expected the end after the illegal action {which}; do step and mask heed `forfeit`?"
        )
    loser = facts.player[position]
    want = np.where(np.arange(game.num_players) == loser[:, None], -1.0, 1.0 / (game.num_players - 1))
    close(rewards[position, code], want.astype(np.float32), "rewards after an illegal action")

    before, ended = rules(at(bench.sample, position)), rules(at(stepped, (position, code)))
    same(before.forfeit, np.full_like(before.forfeit, -1), "forfeit before an illegal action")
    same(ended.forfeit, loser.astype(ended.forfeit.dtype), "forfeit after an illegal action")
    same(ended._replace(forfeit=before.forfeit), before, "state after an illegal action, but for `forfeit`")


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
    assert over.all(), "over: expected True after a forfeit, got False"
    fixed(forfeited, stepped, "step of a forfeited game")
    lost = np.take_along_axis(rewards, facts.player[:, None, None], 2)
    assert (lost[~facts.over] == -1).all(), "rewards: expected -1 for the player who forfeited, got another"


# Observations


@rule
def observation_needs_only_what_is_remembered(bench: Bench) -> None:
    facts = jax.device_get(bench.facts_of_many(bench.sample, bench.actions))
    same(facts.recalled, facts.observe, "observe(observation_state(s)) against observe(s)")


@rule
def planes_are_finite(bench: Bench) -> None:
    planes = jax.device_get(bench.facts_of_many(bench.sample, bench.actions)).observe
    wrong = np.flatnonzero(~np.isfinite(planes).all((0, 1, 2)))
    assert not len(wrong), f"observe: expected finite numbers, got others in plane {wrong[0]}"


@rule
def heuristic_value_is_bounded_and_exact_at_the_end(bench: Bench) -> None:
    facts = jax.device_get(bench.facts_of_many(bench.sample, bench.actions))
    if bench.game.hints.evaluate is not None:
        most = np.abs(facts.evaluate).max()
        assert most <= 1, f"evaluate: expected -1 to 1, got {most} in size"
        mine = np.take_along_axis(facts.rewards, facts.player[:, None], 1)[:, 0]
        close(facts.evaluate[facts.over], mine[facts.over], "evaluate of a finished game")


@rule
def heuristic_value_is_the_movers(bench: Bench) -> None:
    """It need not foretell the result, but for no player may it foretell the opposite."""
    game, played = bench.game, bench.unfinished
    if game.hints.evaluate is None:
        return
    value = np.asarray(jax.jit(jax.vmap(game.hints.evaluate))(played.state))
    for player in range(game.num_players):
        own = played.player == player
        together = correlation(value[own], played.rewards[own, player])
        wrong = f"evaluate: expected larger values where player {player} wins, got smaller ones; is it the mover's?"
        assert together > UNLIKE, wrong


def correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Of two samples; 0 if one of them is always the same."""
    return float(np.corrcoef(x, y)[0, 1]) if len(x) > 1 and np.ptp(x) > 0 and np.ptp(y) > 0 else 0.0


@rule
def cells_belong_to_players_or_nobody_and_turn_with_the_board(bench: Bench) -> None:
    game = bench.game
    if game.hints.owners is None:
        return
    owners = jax.jit(jax.vmap(game.hints.owners))
    plain = np.asarray(owners(bench.sample))
    inside = plain.min() >= 0 and plain.max() <= game.num_players
    assert inside, f"owners: expected 0 to {game.num_players}, got {plain.min()} to {plain.max()}"
    last = np.asarray(owners(at(bench.plies.state, -1)))
    for player in range(game.num_players):
        together = correlation((last == player).sum(-1), bench.plies.rewards[-1, :, player])
        assert together > UNLIKE, f"owners: expected more cells for player {player} in games that they win, got fewer"
    for symmetry in game.symmetries:
        turned = np.asarray(owners(jax.vmap(symmetry.state)(bench.sample)))
        same(turned[:, symmetry.actions], plain, f"owners, turned by the symmetry {symmetry.name}")


# Symmetries


@rule
def first_symmetry_is_the_identity(bench: Bench) -> None:
    identity = bench.game.symmetries[0]
    same(identity.actions, np.arange(bench.game.num_actions, dtype=identity.actions.dtype), "symmetries[0].actions")
    same(jax.vmap(identity.state)(bench.sample), bench.sample, "symmetries[0].state")


@rule
def symmetries_are_different_permutations(bench: Bench) -> None:
    game = bench.game
    codes = [tuple(symmetry.actions.tolist()) for symmetry in game.symmetries]
    for symmetry, code in zip(game.symmetries, codes, strict=True):
        every = sorted(code) == list(range(game.num_actions))
        assert every, f"actions of the symmetry {symmetry.name}: expected every code once"
    assert len(set(codes)) == len(codes), "symmetries: expected different actions, got two alike"
    assert len({symmetry.name for symmetry in game.symmetries}) == len(codes), "symmetries: expected different names"


@rule
def symmetries_commute_with_the_rules(bench: Bench) -> None:
    plain = jax.device_get(bench.facts_of_many(bench.sample, bench.actions))
    for symmetry in bench.game.symmetries:
        turned_states = jax.vmap(symmetry.state)(bench.sample)
        turned = jax.device_get(bench.facts_of_many(turned_states, symmetry.actions[bench.actions]))
        of = f"of the board turned by the symmetry {symmetry.name}"
        same(turned.step, jax.vmap(symmetry.state)(plain.step), f"step {of}")
        same(turned.mask[:, symmetry.actions], plain.mask, f"mask {of}")
        same(turned.observe, jax.vmap(symmetry.planes)(plain.observe), f"observe {of}")
        for name in ("over", "player", "rewards"):
            same(getattr(turned, name), getattr(plain, name), f"{name} {of}")


# To look at


def a_random_game(bench: Bench) -> str:
    """The end of a random game as text: whether the right player has won no rule can know."""
    game = bench.game
    lane = int((bench.plies.rewards[-1] != 0).any(-1).argmax())  # a draw would say nothing about who has won
    last = int(bench.plies.over[:, lane].argmax())
    end = bench.position(last, lane)
    status, why = pictures.status(game.drawing, game.drawing.compiled(end)), game.view.why_over(end)
    said = f"{status}: {why}" if why else status
    return f"A random game ended at ply {last}. {said}. Is that right? No rule can know.\n{game.show(end)}"
