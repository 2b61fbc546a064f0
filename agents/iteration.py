"""One iteration as a single function from run to run: self-play, insertion, updates, figures.

The host meets the device once per iteration: everything that a run is lies in `Run`, so a saved `Run` goes on as if it
had never stopped. On several devices each holds its share of the lanes and of the replay, see agents/mesh.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as Spec

from agents import learner, mesh, replay, selfplay
from agents.config import Config
from agents.learner import Learning
from agents.network import Network
from agents.replay import Replay
from agents.search import make_search
from agents.selfplay import Lanes, Row
from envs.game import Array, Game


class Run(NamedTuple):
    learning: Learning
    replay: Replay
    lanes: Lanes
    key: Array  # uint32[2], raw key data; each iteration folds its number in
    iteration: Array  # int32[], iterations done


class Figures(NamedTuple):
    """What an iteration reports; means over the iteration's rows or updates. NaN where there was nothing to average."""

    games: Array  # games that ended
    game_length: Array  # their mean number of plies
    draw_rate: Array
    first_win_rate: Array  # share won by player 0
    resign_rate: Array  # share given up
    resign_errors: Array  # of the rows in games played out that could have been given up, the share not lost after all
    value_error: Array  # RMS difference of the network's value at the time and the outcome, rows completed just now
    search_entropy: Array  # of the improved policy, nats
    distinct: Array  # share of different positions among the iteration's rows of a device
    policy_loss: Array
    value_loss: Array
    policy_entropy: Array
    target_entropy: Array
    future_loss: Array
    gradient_norm: Array
    skipped_updates: Array  # how many were not made, because something was not finite
    learning_rate: Array
    replay_age: Array  # mean plies since the drawn rows were played
    replay_rows: Array  # rows that can be drawn


def updates_per_iteration(config: Config) -> int:
    """Updates that draw each row `replay_ratio` times on average; the same number in every iteration."""
    return max(1, round(config.replay_ratio * config.num_envs * config.plies_per_iteration / config.batch_size))


def start_run(game: Game, net: Network, config: Config) -> Run:
    """The run before its first iteration."""
    key = jax.random.key(config.seed)
    net_key, lanes_key, run_key = jax.random.split(key, 3)
    lanes = selfplay.start_lanes(game, lanes_key, config.num_envs, config.played_out)
    play = selfplay.make_selfplay(game, make_search(game, net, config, explore=True), config)
    rows = jax.eval_shape(play, jax.eval_shape(net.init, net_key), key, lanes)[1]
    ring = replay.empty_replay(rows, replay.ring_length(game, config))
    learning = learner.start_learning(net, config, net_key)
    return Run(learning, ring, lanes, jax.random.key_data(run_key), jnp.int32(0))


def run_specs(run: Run) -> Run:
    """How a run lies on a mesh: lanes are divided, in the games under way and in the replay, the rest is everywhere."""
    everywhere = jax.tree.map(lambda _: Spec(), run)
    ring = jax.tree.map(lambda _: Spec(None, mesh.GAMES), run.replay)._replace(cursor=Spec())
    return everywhere._replace(replay=ring, lanes=jax.tree.map(lambda _: Spec(mesh.GAMES), run.lanes))


Iterate = Callable[[Run, Array], tuple[Run, Figures]]


def make_iteration(game: Game, net: Network, config: Config, devices: Mesh) -> Iterate:
    """`iterate(run, progress) -> (run, Figures)`; `progress` in [0, 1] is the share of the budget used so far."""
    num_updates, batch = updates_per_iteration(config), config.batch_size // devices.size
    play = selfplay.make_selfplay(game, make_search(game, net, config, explore=True), config)
    learn = learner.make_learner(game, net, config, num_updates)

    def iterate(run: Run, progress: Array) -> tuple[Run, Figures]:
        key = jax.random.fold_in(jax.random.wrap_key_data(run.key), run.iteration)
        play_key, draw_key = jax.random.split(jax.random.fold_in(key, jax.lax.axis_index(mesh.GAMES)))
        lanes, rows = play(run.learning.average, play_key, run.lanes)
        before = run.replay
        after = replay.insert(before, rows, config.value_lambda)
        index = replay.draw(after, draw_key, (num_updates, batch))

        def no_updates(learning):
            nothing = jnp.full(num_updates, jnp.nan)
            return learning, learner.Losses(*[nothing] * len(learner.Losses._fields))

        # Nothing to learn from until the first games have ended on every device.
        ready = jax.lax.pmin(after.known.any().astype(jnp.int32), mesh.GAMES) > 0
        learning, losses = jax.lax.cond(
            ready, lambda learning: learn(learning, after, index, progress), no_updates, run.learning
        )
        rate = learner.learning_rate(config, run.learning.updates, progress)
        figures = summarise(config, rows, before, after, index, losses, rate)
        return Run(learning, after, lanes, run.key, run.iteration + 1), figures

    def on_mesh(run: Run, progress: Array) -> tuple[Run, Figures]:
        specs = run_specs(run)
        # Gradients are averaged by hand in the learner, so that it reads the same on one device and on many.
        mapped = jax.shard_map(
            iterate, mesh=devices, in_specs=(specs, Spec()), out_specs=(specs, Spec()), check_vma=False
        )
        return mapped(run, progress)

    return on_mesh


def summarise(
    config: Config, rows: Row, before: Replay, after: Replay, index: Array, losses: learner.Losses, rate: Array
) -> Figures:
    games = mesh.total(rows.done)
    share = lambda condition: mesh.total(condition & rows.done) / games
    policy = rows.policy.astype(jnp.float32)
    entropy = -jnp.where(policy > 0, policy * jnp.log(jnp.maximum(policy, 1e-30)), 0.0).sum(-1)
    written = jnp.arange(len(after.known)) - before.cursor
    fresh = (written >= 0) & (written < len(rows.done))
    completed = after.known & (fresh[:, None] | ~before.known)
    # Games given up would agree with themselves.
    searched = jnp.take_along_axis(after.rows.values, after.rows.player[..., None].astype(jnp.int32), axis=-1)[..., 0]
    hopeless = completed & (searched < -config.resign) & ~after.rows.resigned
    result = after.result[..., 0]
    error = jnp.square(after.rows.raw_value.astype(jnp.float32) - result)
    return Figures(
        games=games,
        game_length=mesh.total(jnp.where(rows.done, rows.plies + 1, 0)) / games,
        draw_rate=share((rows.rewards == 0).all(-1)),
        first_win_rate=share(rows.rewards[..., 0] > 0),
        resign_rate=share(rows.resigned),
        resign_errors=mesh.total(hopeless & (result > -1)) / mesh.total(hopeless),
        value_error=jnp.sqrt(mesh.total(jnp.where(completed, error, 0)) / mesh.total(completed)),
        search_entropy=mesh.mean(entropy.mean()),
        distinct=mesh.mean(distinct_share(rows)),
        learning_rate=rate,
        replay_age=jnp.where(games >= 0, mesh.mean(replay.age(after, index).mean()), jnp.nan),
        replay_rows=mesh.total(after.known),
        **{name: mesh.mean(jnp.nanmean(value)) for name, value in losses._asdict().items()}
        | {"skipped_updates": mesh.mean(jnp.nansum(losses.skipped_updates))},
    )


def distinct_share(rows: Row) -> Array:
    """Share of different positions among the rows, told apart by a 32-bit hash of their bytes."""
    total = rows.done.size
    code = jnp.zeros(total, jnp.uint32)
    for leaf in jax.tree.leaves(rows.memory):
        flat = leaf.reshape(total, -1).astype(jnp.int32).astype(jnp.uint32)
        odd = (2 * jnp.arange(flat.shape[1], dtype=jnp.uint32) + 1) * jnp.uint32(2654435761)
        mixed = (flat + odd) * (odd ^ jnp.uint32(0x9E3779B9))
        code = code * jnp.uint32(31) + ((mixed ^ (mixed >> 15)) * jnp.uint32(2246822519)).sum(-1, dtype=jnp.uint32)
    code = jnp.sort(code)
    return (1 + (code[1:] != code[:-1]).sum()) / total
