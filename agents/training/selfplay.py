"""Games in lockstep: B lanes play T plies, a finished game restarts in its lane, and every ply becomes a row.

Lanes continue across calls, so no position is lost when an iteration ends. The result of a row is known only when its
game has ended, see `value_targets`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from agents.actions import at_slots, legal_slots, random_action, to_mover_frame
from agents.config import Config, SelfplayOptions
from agents.runtime import keys
from agents.search.tree import SearchResult
from envs.game import Array, Game

SearchFunction = Callable[[Any, Array, Any, Array], SearchResult]


class Lanes(NamedTuple):
    """Games under way."""

    states: Any  # [B, ...], none of them finished
    plies: Array  # int32[B], moves made in each
    played_out: Array  # bool[B], without resignation
    moves: Array  # int16[B, max_plies], moves made from the start position on; meaningless beyond `plies`
    opening: Array  # int16[B], how many of them were made before play began


class Row(NamedTuple):
    """One ply of one game, as stored in the replay buffer. Arrays lead with [T, B] in a trajectory."""

    observation_state: Any  # game.observation_state(s): what `observe` needs
    action: Array  # int16[], the move made, an absolute code
    actions: Array  # int16[K], legal codes in the mover's frame, -1 in empty slots
    policy: Array  # float16[K], the search's improved policy on them; all 0 without a search
    policy_kl: Array  # float16[], Kullback-Leibler divergence of that policy from the network's, nats
    player: Array  # int8[], the mover
    values: Array  # float16[n], searched value for every player
    raw_value: Array  # float16[], the network's value for the mover
    resigned: Array  # bool[], the mover resigned; the move is not made
    done: Array  # bool[], the game ended here
    rewards: Array  # float32[n], result of the game where `done`, else 0
    plies: Array  # int16[], moves made before this one
    owners: Array | None = None  # int8[A], owner of each cell where `done`; if `future_weight` and `Hints.owners`


def where_lanes(condition: Array, new: Any, old: Any) -> Any:
    """`new` in the lanes where `condition` bool[B] holds, else `old`; for pytrees of arrays [B, ...]."""
    pick = lambda x, y: jnp.where(condition.reshape(condition.shape + (1,) * (y.ndim - 1)), x, y)
    return jax.tree.map(pick, new, old)


class Ended(NamedTuple):
    """Games that ended in an iteration, as stored in the game log; arrays lead with [E]."""

    moves: Array  # int16[max_plies], from the start position on; -1 after the last
    opening: Array  # int16[], how many of them were made before play began
    resigned: Array  # bool[]
    rewards: Array  # float32[n]
    there: Array  # bool[], False in an empty place


def new_games(game: Game, key: Array, count: int, config: SelfplayOptions) -> Lanes:
    """New games, each after 0 to `random_opening_plies` random moves, uniformly distributed; none of them finished. A
    share `played_out` of them never resigns."""
    start_key, plies_key, play_key, out_key = keys.split(key, 4)
    any_number = lambda key, shape: jax.random.randint(key, shape, 0, config.random_opening_plies + 1)
    wanted = keys.draw_lanes(any_number, plies_key, (count,))

    def ply(t: Array, lanes: Lanes) -> Lanes:
        action = random_action(keys.fold_in(play_key, t), jax.vmap(game.mask)(lanes.states))
        moved = jax.vmap(game.move)(lanes.states, action)
        return advance(lanes, action, moved, (t < wanted) & ~jax.vmap(game.over)(moved))

    states = jax.vmap(game.init)(keys.each(start_key, count))
    start = jax.lax.fori_loop(0, config.random_opening_plies, ply, empty_lanes(game, states))
    played_out = keys.draw_lanes(jax.random.uniform, out_key, (count,)) < config.played_out
    return start._replace(played_out=played_out, opening=start.plies.astype(jnp.int16))


def empty_lanes(game: Game, states: Any) -> Lanes:
    """Games in which no move has been made yet."""
    count = len(jax.tree.leaves(states)[0])
    plies, moves = jnp.zeros(count, jnp.int32), jnp.zeros((count, game.max_plies), jnp.int16)
    return Lanes(states, plies, jnp.zeros(count, bool), moves, jnp.zeros(count, jnp.int16))


def advance(lanes: Lanes, action: Array, moved: Any, plays: Array) -> Lanes:
    """Advances the lanes where `plays` holds by one move: `action` led to `moved`."""
    here = (jnp.arange(lanes.moves.shape[1]) == lanes.plies[:, None]) & plays[:, None]
    return lanes._replace(
        states=where_lanes(plays, moved, lanes.states),
        plies=lanes.plies + plays,
        moves=jnp.where(here, action[:, None].astype(jnp.int16), lanes.moves),
    )


def restart(game: Game, key: Array, lanes: Lanes, done: Array, config: SelfplayOptions) -> Lanes:
    """Starts a new game in every lane that is `done`, bool[B], see `new_games`."""
    return where_lanes(done, new_games(game, key, done.shape[0], config), lanes)


def start_lanes(game: Game, key: Array, config: SelfplayOptions) -> Lanes:
    """Lanes in the middle of random games, so that the batch is not all openings first and all endings later."""
    count, from_start = config.num_envs, dataclasses.replace(config, random_opening_plies=0)
    start_key, plies_key, play_key = jax.random.split(key, 3)
    wait = jax.random.randint(plies_key, (count,), 0, game.max_plies)

    def ply(t: Array, lanes: Lanes) -> Lanes:
        action_key, restart_key = jax.random.split(jax.random.fold_in(play_key, t))
        action = random_action(action_key, jax.vmap(game.mask)(lanes.states))
        moved = jax.vmap(game.move)(lanes.states, action)
        lanes = advance(lanes, action, moved, t < wait)
        return restart(game, restart_key, lanes, jax.vmap(game.over)(lanes.states), from_start)

    lanes = jax.lax.fori_loop(0, game.max_plies, ply, new_games(game, start_key, count, from_start))
    return lanes._replace(opening=lanes.plies.astype(jnp.int16))


def make_selfplay(game: Game, search: SearchFunction, config: Config):
    """Self-play of T plies as one pure function.

    Args:
        game: rules.
        search: from `make_search`.
        config: options.

    Returns:
        `play(weights, key, lanes, may_resign) -> (lanes, Row[T, B], Ended[T, B])`; `may_resign` bool[]; `key` is one
        key, or one for each lane (agents/runtime/keys.py).
    """
    threshold = config.resign_threshold
    if threshold > -1 and game.num_players != 2:
        raise ValueError(
            f"--resign_threshold={threshold}: expected a game for two players, {game.name} has {game.num_players}"
        )

    def ply(weights, may_resign, lanes: Lanes, key: Array) -> tuple[Lanes, tuple[Row, Ended]]:
        search_key, restart_key = keys.split(key)
        states = lanes.states
        found = search(weights, search_key, states, lanes.plies)
        # Found as the trees find theirs, with one slot more, so that a compiler does both at once.
        slots = legal_slots(jax.vmap(game.mask)(states), game.max_legal + 1)[:, :-1]
        player = jax.vmap(game.player)(states)
        moved = jax.vmap(game.move)(states, found.action)
        resigned = (found.value < threshold) & ~lanes.played_out & (threshold > -1) & may_resign
        lost = jnp.where(player[:, None] == jnp.arange(game.num_players), -1.0, 1.0)
        done = resigned | jax.vmap(game.over)(moved)
        row = Row(
            observation_state=jax.vmap(game.observation_state)(states),
            action=found.action.astype(jnp.int16),
            actions=to_mover_frame(game, slots, player).astype(jnp.int16),
            policy=at_slots(found.policy, slots).astype(jnp.float16),
            policy_kl=found.policy_kl.astype(jnp.float16),
            player=player.astype(jnp.int8),
            values=found.values.astype(jnp.float16),
            raw_value=found.raw_value.astype(jnp.float16),
            resigned=resigned,
            done=done,
            rewards=jnp.where(resigned[:, None], lost, jax.vmap(game.rewards)(moved)),
            plies=lanes.plies.astype(jnp.int16),
            owners=jax.vmap(game.hints.owners)(moved) if game.hints.owners and config.future_weight else None,
        )
        lanes = advance(lanes, found.action, moved, jnp.ones_like(done))
        ended = ended_games(lanes, row)
        return restart(game, restart_key, lanes, done, config), (row, ended)

    def play(weights: Any, key: Array, lanes: Lanes, may_resign: Array | bool = True):
        of_plies = keys.split(key, config.plies_per_iteration)
        lanes, (rows, ended) = jax.lax.scan(lambda lanes, key: ply(weights, may_resign, lanes, key), lanes, of_plies)
        return lanes, rows, ended

    return play


def ended_games(lanes: Lanes, row: Row) -> Ended:
    """The games of the lanes, for those that have just ended with `row`; a resigned game lacks the last move."""
    played = jnp.arange(lanes.moves.shape[1]) < (lanes.plies - row.resigned)[:, None]
    moves = jnp.where(played, lanes.moves, -1).astype(jnp.int16)
    return Ended(moves, lanes.opening, row.resigned, row.rewards, row.done)


def value_targets(rows: Row, value_lambda: float) -> tuple[Array, Array]:
    """Value target of each row: the result of its game, blended with the searched values on the way there.

    The lambda-return of Sutton and Barto 2018, section 12.1, with rewards at the end only. The target is (1 - lambda)
    times the searched values of the next row plus lambda times that row's target. Lambda 1 gives the result itself,
    unbiased but as noisy as the play that follows. A smaller lambda relies on nearer positions.

    Args:
        rows: [T, B], in the order of play.
        value_lambda: from 0 to 1.

    Returns:
        (target float32[T, B, n] by seat, starting from the mover, known bool[T, B]). While a game continues beyond the
        last row, its targets are unknown and 0.
    """
    players = jnp.arange(rows.rewards.shape[-1])

    def back(carry, row):
        following, known = carry  # target of the next row, by player
        done, rewards, player, values = row
        target, known = jnp.where(done[:, None], rewards, following), done | known
        seats = (player[:, None].astype(jnp.int32) + players) % len(players)
        mine = jnp.where(known[:, None], jnp.take_along_axis(target, seats, axis=-1), 0.0)
        return ((1 - value_lambda) * values.astype(jnp.float32) + value_lambda * target, known), (mine, known)

    start = jnp.zeros_like(rows.rewards[0]), jnp.zeros_like(rows.done[0])
    return jax.lax.scan(back, start, (rows.done, rows.rewards, rows.player, rows.values), reverse=True)[1]
