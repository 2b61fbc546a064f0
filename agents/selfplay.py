"""Games in lockstep: B lanes play T plies, a finished game restarts in its lane, and every ply becomes a row.

Lanes go on across calls, so no position is thrown away because an iteration ended; the outcome of a row is known only
when its game has ended, see `outcomes`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from agents import keys
from agents.config import Config
from agents.slots import at_slots, legal_slots
from envs.game import Array, Game


class Lanes(NamedTuple):
    """Games under way."""

    states: Any  # [B, ...], none of them finished
    plies: Array  # int32[B], moves made in each
    played_out: Array  # bool[B], never given up


class Row(NamedTuple):
    """One ply of one game, as the replay buffer keeps it. Arrays here lead with [T, B] in a trajectory."""

    memory: Any  # game.remember(s): what `observe` needs
    action: Array  # int16[], the move made, an absolute code
    actions: Array  # int16[K], legal codes in the mover's frame, -1 in empty slots
    policy: Array  # float16[K], the search's improved policy on them
    player: Array  # int8[], who moved
    values: Array  # float16[n], searched value for every player
    raw_value: Array  # float16[], the network's own for the mover
    resigned: Array  # bool[], the mover gave the game up; the move is not made
    done: Array  # bool[], the game ended here
    rewards: Array  # float32[n], result of the game where `done`, else 0
    plies: Array  # int16[], moves made before this one


def where_lanes(condition: Array, new: Any, old: Any) -> Any:
    """`new` in the lanes where `condition` bool[B] holds, else `old`; for pytrees of arrays [B, ...]."""
    pick = lambda x, y: jnp.where(condition.reshape(condition.shape + (1,) * (y.ndim - 1)), x, y)
    return jax.tree.map(pick, new, old)


def new_games(game: Game, key: Array, count: int, random_plies: int, played_out: float) -> Lanes:
    """Games at the start, each after 0 to `random_plies` random moves, drawn evenly; none of them finished. A share
    `played_out` of them will never be given up."""
    start_key, plies_key, play_key, out_key = keys.split(key, 4)
    wanted = keys.draw(lambda key, shape: jax.random.randint(key, shape, 0, random_plies + 1), plies_key, (count,))

    def ply(t: Array, lanes: Lanes) -> Lanes:
        action = random_action(keys.fold_in(play_key, t), jax.vmap(game.mask)(lanes.states))
        moved = jax.vmap(game.move)(lanes.states, action)
        plays = (t < wanted) & ~jax.vmap(game.over)(moved)
        return lanes._replace(states=where_lanes(plays, moved, lanes.states), plies=lanes.plies + plays)

    states = jax.vmap(game.init)(keys.each(start_key, count))
    out = keys.draw(jax.random.uniform, out_key, (count,)) < played_out
    start = Lanes(states, jnp.zeros(count, jnp.int32), out)
    return jax.lax.fori_loop(0, random_plies, ply, start)


def restart(game: Game, key: Array, lanes: Lanes, done: Array, random_plies: int, played_out: float) -> Lanes:
    """Puts a new game in every lane that is `done`, bool[B], see `new_games`."""
    return where_lanes(done, new_games(game, key, done.shape[0], random_plies, played_out), lanes)


def random_action(key: Array, mask: Array) -> Array:
    """A legal action of each lane, uniformly; int32[B] from bool[B, A].

    The r-th legal action for one random r, in an order by columns: with the codes laid out as a square, first the
    column is found, then the row. That takes one random number a lane, no running sum over all codes, and adds up whole
    rows of bytes. Without a legal action the result is meaningless.
    """
    lanes, codes = mask.shape
    width = math.isqrt(codes - 1) + 1
    square = jnp.pad(mask, ((0, 0), (0, -codes % width))).reshape(lanes, -1, width)
    inside = square.sum(1, dtype=jnp.uint8 if square.shape[1] < 256 else jnp.int32).astype(jnp.int32)
    upto = jnp.cumsum(inside, axis=-1)
    below = lambda key, shape, most: jax.random.randint(key, shape, 0, most)
    r = keys.draw(below, key, (lanes,), jnp.maximum(upto[:, -1], 1))[:, None]
    column = jnp.minimum((upto <= r).sum(-1, dtype=jnp.int32), width - 1)
    before = jnp.where(upto <= r, inside, 0).sum(-1, keepdims=True)
    chosen = jnp.take_along_axis(square, column[:, None, None], axis=2)[:, :, 0]
    row = (jnp.cumsum(chosen, axis=-1, dtype=jnp.int32) <= r - before).sum(-1, dtype=jnp.int32)
    return jnp.minimum(row, square.shape[1] - 1) * width + column


def start_lanes(game: Game, key: Array, num_envs: int, played_out: float = 0.0) -> Lanes:
    """Lanes in the middle of random games, so that the batch is not all openings, later all endings."""
    start_key, plies_key, play_key = jax.random.split(key, 3)
    wait = jax.random.randint(plies_key, (num_envs,), 0, game.max_plies)

    def ply(t: Array, lanes: Lanes) -> Lanes:
        action_key, restart_key = jax.random.split(jax.random.fold_in(play_key, t))
        action = random_action(action_key, jax.vmap(game.mask)(lanes.states))
        moved = jax.vmap(game.move)(lanes.states, action)
        plays = t < wait
        lanes = lanes._replace(states=where_lanes(plays, moved, lanes.states), plies=lanes.plies + plays)
        return restart(game, restart_key, lanes, jax.vmap(game.over)(lanes.states), 0, played_out)

    return jax.lax.fori_loop(0, game.max_plies, ply, new_games(game, start_key, num_envs, 0, played_out))


def make_selfplay(game: Game, search, config: Config):
    """`play(weights, key, lanes) -> (lanes, Row[T, B])`, with `search` from `make_search`; `key` is one, or one for each
    lane (agents/keys.py)."""

    def ply(weights, lanes: Lanes, key: Array) -> tuple[Lanes, Row]:
        search_key, restart_key = keys.split(key)
        states = lanes.states
        found = search(weights, search_key, states, lanes.plies)
        slots = legal_slots(jax.vmap(game.mask)(states), game.max_legal)
        player = jax.vmap(game.player)(states)
        moved = jax.vmap(game.move)(states, found.action)
        resigned = (found.value < -config.resign) & ~lanes.played_out & (config.resign < 1)
        lost = jnp.where(player[:, None] == jnp.arange(game.num_players), -1.0, 1.0)
        done = resigned | jax.vmap(game.over)(moved)
        row = Row(
            memory=jax.vmap(game.remember)(states),
            action=found.action.astype(jnp.int16),
            actions=to_view(game, slots, player).astype(jnp.int16),
            policy=at_slots(found.policy, slots).astype(jnp.float16),
            player=player.astype(jnp.int8),
            values=found.values.astype(jnp.float16),
            raw_value=found.raw_value.astype(jnp.float16),
            resigned=resigned,
            done=done,
            rewards=jnp.where(resigned[:, None], lost, jax.vmap(game.rewards)(moved)),
            plies=lanes.plies.astype(jnp.int16),
        )
        lanes = Lanes(moved, lanes.plies + 1, lanes.played_out)
        return restart(game, restart_key, lanes, done, config.random_plies, config.played_out), row

    if config.resign < 1 and game.num_players != 2:
        raise ValueError(f"--resign={config.resign}: giving up is for two players; {game.name} has {game.num_players}")

    def play(weights: Any, key: Array, lanes: Lanes) -> tuple[Lanes, Row]:
        of_plies = keys.split(key, config.plies_per_iteration)
        return jax.lax.scan(lambda lanes, k: ply(weights, lanes, k), lanes, of_plies)

    return play


def to_view(game: Game, actions: Array, player: Array) -> Array:
    """Absolute action codes [B, K] in the mover's frame; -1 stays."""
    if game.to_view is None:
        return actions
    viewed = jnp.take_along_axis(jnp.asarray(game.to_view)[player], jnp.maximum(actions, 0), axis=-1)
    return jnp.where(actions < 0, -1, viewed)


def outcomes(rows: Row, value_lambda: float) -> tuple[Array, Array]:
    """What the value head learns of each row: its game's result, blended with the searched values on the way there.

    The lambda-return of Sutton and Barto 2018, section 12.1, of rewards at the end only: the target is
    (1 - lambda) times the values that the search found at the next row plus lambda times that row's target. 1 gives the
    result itself, unbiased but as noisy as the play that follows; less looks nearer.

    Args:
        rows: [T, B], in the order of play.
        value_lambda: from 0 to 1.

    Returns:
        (target float32[T, B, n] by seat from the player who moved on, known bool[T, B]); unknown while the game goes on
        beyond the last row, and then 0.
    """
    players = jnp.arange(rows.rewards.shape[-1])

    def back(carry, row):
        following, known = carry  # target of the next row for every player
        done, rewards, player, values = row
        target, known = jnp.where(done[:, None], rewards, following), done | known
        seats = (player[:, None].astype(jnp.int32) + players) % len(players)
        mine = jnp.where(known[:, None], jnp.take_along_axis(target, seats, axis=-1), 0.0)
        return ((1 - value_lambda) * values.astype(jnp.float32) + value_lambda * target, known), (mine, known)

    start = jnp.zeros_like(rows.rewards[0]), jnp.zeros_like(rows.done[0])
    return jax.lax.scan(back, start, (rows.done, rows.rewards, rows.player, rows.values), reverse=True)[1]
