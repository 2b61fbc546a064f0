"""One training iteration on the device: self-play with its metrics, then updates with theirs.

Both phases are functions from `Run` to `Run`. The host dispatches both and synchronises once per iteration. `Run` holds
the complete state, so a restored `Run` continues as if it had never stopped. On several devices each holds its share of
the lanes and of the replay, see agents/runtime/mesh.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as Spec

from agents.config import Config, SelfplayOptions
from agents.network.network import Network
from agents.runtime import keys, mesh
from agents.search import halving, packing
from agents.search.policies import make_search
from agents.training import learner, proof_targets, replay, selfplay
from agents.training.learner import Learning
from agents.training.proof_targets import ProofTargets
from agents.training.replay import Replay, first_in_game, ring_length
from agents.training.selfplay import Ended, Lanes, Row, SearchFunction
from envs.game import Array, Game


class Run(NamedTuple):
    learning: Learning
    reference_weights: Any | None  # opponent of the next match; with `gate` these weights play (agents/run/gating.py)
    replay: Replay
    lanes: Lanes
    key: Array  # uint32[2], raw key data; each iteration folds its number in
    iteration: Array  # int32[], iterations done
    proof_targets: ProofTargets | None = None  # with `proof_share`


class SelfplayMetrics(NamedTuple):
    """Metrics of self-play: means over the iteration's rows or games, NaN where there is nothing to average."""

    games: Array  # games that ended
    game_length: Array  # mean plies of these games
    draw_rate: Array
    first_win_rate: Array  # share won by player 0
    resign_rate: Array  # share that ended by resignation
    false_resign_rate: Array  # see `false_resign_rate`
    length_cap_rate: Array  # share that lasted `max_plies`: ended by the length cap, where there is one
    value_error: Array  # RMS of (value when played - result), over rows whose game has just ended
    value_target_rms: Array  # RMS result of these rows: `value_error` of a head that always says 0
    calibration: Array  # float32[2, CALIBRATION_BINS]: counts of these rows by value, and sums of their results
    search_entropy: Array  # entropy of the improved policy, nats
    search_policy_kl: Array  # KL divergence of the improved policy from the network's, nats
    distinct: Array  # share of distinct positions among a device's rows of the iteration
    replay_rows: Array  # rows of the buffer whose game has ended
    broken_rows: Array  # rows where the network or the search returned a non-finite number
    proved: Array  # this and the next two as in `proof_targets.ProofMetrics`; NaN without `proof_share`
    proof_plies: Array
    proof_rows: Array


class LearnerMetrics(NamedTuple):
    """Metrics of learning: means over the iteration's updates."""

    policy_loss: Array
    value_loss: Array
    policy_entropy: Array
    target_entropy: Array
    value_baseline: Array
    future_loss: Array
    gradient_norm: Array
    skipped_updates: Array  # number of updates skipped because something was not finite
    learning_rate: Array
    replay_age: Array  # mean plies since the drawn rows were played


# Resignation is disabled while its false-positive rate on no-resign games exceeds this (Silver et al. 2017, methods),
# or while there are no such games. A value head that has learned little would teach itself its own errors.
MAX_FALSE_RESIGN_RATE = 0.05

CALIBRATION_BINS = 10  # of equal width over [-1, 1]


def updates_per_iteration(config: Config) -> int:
    """Updates in every iteration: each learned row of self-play is drawn `replay_ratio` times on average."""
    rows = config.num_envs * config.plies_per_iteration
    of_batch = config.batch_size - proof_targets.rows_per_batch(config, config.batch_size)
    return max(1, round(config.replay_ratio * rows / max(of_batch, 1)))


def start_run(game: Game, net: Network, config: Config) -> Run:
    """The run before its first iteration."""
    key = jax.random.key(config.seed)
    net_key, lanes_key, run_key = jax.random.split(key, 3)
    lanes = selfplay.start_lanes(game, lanes_key, config)
    learning = learner.start_learning(net, config, net_key)
    play = selfplay.make_selfplay(game, make_search(game, net, config, explore=True), config)
    rows = jax.eval_shape(play, learning.ema_weights, key, lanes)[1]
    ring = replay.empty_replay(rows, ring_length(game, config))
    reference_weights = jax.tree.map(jnp.copy, learning.ema_weights) if config.rating_games else None
    taught = proof_targets.no_proof_targets(game, config) if config.proof_share else None
    return Run(learning, reference_weights, ring, lanes, jax.random.key_data(run_key), jnp.int32(0), taught)


def run_specs(run: Run) -> Run:
    """How a run lies on a mesh: games under way and the rings are divided by lanes, the rest is replicated."""
    everywhere = jax.tree.map(lambda _: Spec(), run)
    of_lanes = lambda ring: jax.tree.map(lambda _: Spec(None, mesh.GAMES), ring)._replace(cursor=Spec())
    taught = None if run.proof_targets is None else of_lanes(run.proof_targets)._replace(reach=Spec())
    lanes = jax.tree.map(lambda _: Spec(mesh.GAMES), run.lanes)
    return everywhere._replace(replay=of_lanes(run.replay), lanes=lanes, proof_targets=taught)


class Keys(NamedTuple):
    """Keys of one iteration."""

    play: Array  # one per lane
    draw: Array  # one per device, which draws from its own rows
    teach: Array  # likewise, where it searches for proofs
    proved: Array  # likewise, which proof rows it draws


def keys_of(run: Run) -> Keys:
    """Keys of the current iteration; call inside a mapped function."""
    key = jax.random.fold_in(jax.random.wrap_key_data(run.key), run.iteration)
    play, _, draw = jax.random.split(key, 3)
    of_lanes = keys.of_lanes(play, mesh.numbers(run.lanes.plies))
    return Keys(of_lanes, *jax.random.split(jax.random.fold_in(draw, jax.lax.axis_index(mesh.GAMES)), 3))


def make_play(game: Game, net: Network, config: Config, devices: Mesh, search: SearchFunction | None = None):
    """`play(run) -> (run, SelfplayMetrics, Ended)`: T plies of self-play, inserted into the replay. With `proof_share`,
    every device also adds positions from proof searches. `search` replaces that of `config`."""
    platform = devices.devices.flat[0].platform
    forms = {"order": halving.order_on(platform), "packed": packing.packs_on(platform)}
    search = search or make_search(game, net, config, explore=True, **forms)
    selfplay_of = selfplay.make_selfplay(game, search, config)
    teach = proof_targets.make_teach(game, config) if config.proof_share and not config.proof_file else None

    def play(run: Run) -> tuple[Run, SelfplayMetrics, Ended]:
        now = keys_of(run)
        weights = run.reference_weights if config.gate else run.learning.ema_weights
        lanes, rows, ended = selfplay_of(weights, now.play, run.lanes, may_resign(game, config, run))
        after = replay.insert(run.replay, rows, config.value_lambda, game.max_plies)
        played = summarise(game, config, rows, run.replay, after)
        if teach is not None and run.proof_targets is not None:
            targets, metrics = teach(run.proof_targets, lanes, now.teach)
            run, played = run._replace(proof_targets=targets), played._replace(**metrics._asdict())
        elif run.proof_targets is not None:  # written by `proof_file.make_feed`
            played = played._replace(proof_rows=mesh.sum_over_devices(run.proof_targets.there))
        return run._replace(replay=after, lanes=lanes), played, pack(ended)

    return on_mesh(play, devices, lambda specs: (specs, Spec(), Spec(mesh.GAMES)))


def make_learn(game: Game, net: Network, config: Config, devices: Mesh):
    """`learn(run, progress) -> (run, LearnerMetrics)`: U updates from the replay, which end the iteration. `progress`
    in [0, 1] is the share of the budget used so far. Updates begin once
    every device has at least one iteration's number of rows with known results."""
    num_updates, batch = updates_per_iteration(config), config.batch_size // devices.size
    if config.proof_share and batch < 2:
        raise ValueError(f"--proof_share needs a --batch_size of at least {2 * devices.size}, two rows for each device")
    update = learner.make_learner(game, net, config, num_updates)
    proof_rows = num_updates, proof_targets.rows_per_batch(config, batch)
    rows = config.num_envs // devices.size * config.plies_per_iteration

    def learn(run: Run, progress: Array) -> tuple[Run, LearnerMetrics]:
        now = keys_of(run)
        recent = replay.recent(run.replay, replay.window(game, config, run.iteration + 1))
        index = replay.draw(recent, now.draw, (num_updates, batch))
        taught = None if run.proof_targets is None else proof_targets.draw(run.proof_targets, now.proved, proof_rows)

        def no_updates(learning):
            nothing = jnp.full(num_updates, jnp.nan)
            return learning, learner.Losses(*[nothing] * len(learner.Losses._fields))

        # The first games to end leave few rows. One iteration's updates would draw each of them a hundred times, and
        # the network would overfit. Later, `window` always holds enough rows.
        ready = jax.lax.pmin(recent.known.sum(), mesh.GAMES) >= rows
        learning, losses = jax.lax.cond(
            ready,
            lambda learning: update(learning, run.replay, index, progress, run.proof_targets, taught),
            no_updates,
            run.learning,
        )
        learned = LearnerMetrics(
            learning_rate=learner.learning_rate(config, run.learning.updates, progress),
            replay_age=jnp.where(ready, mesh.mean_over_devices(replay.age(run.replay, index).mean()), jnp.nan),
            **{name: mesh.mean_over_devices(jnp.nanmean(value)) for name, value in losses._asdict().items()}
            | {"skipped_updates": mesh.mean_over_devices(jnp.nansum(losses.skipped_updates))},
        )
        return run._replace(learning=learning, iteration=run.iteration + 1), learned

    return on_mesh(learn, devices, lambda specs: (specs, Spec()))


def on_mesh(function: Callable[..., Any], devices: Mesh, outputs: Callable[[Run], Any]) -> Callable[..., Any]:
    """Maps a function of a run, and of arguments that are the same everywhere, over the devices."""

    def mapped(run: Run, *others: Any) -> Any:
        specs = run_specs(run)
        # The learner averages gradients explicitly, so that it reads the same on one device and on many.
        return jax.shard_map(
            function, mesh=devices, in_specs=(specs, *[Spec()] * len(others)), out_specs=outputs(specs), check_vma=False
        )(run, *others)

    return mapped


def make_iteration(game: Game, net: Network, config: Config, devices: Mesh):
    """Both phases in one function: `iterate(run, progress) -> (run, {metric: value})`."""
    play, learn = make_play(game, net, config, devices), make_learn(game, net, config, devices)

    def iterate(run: Run, progress: Array) -> tuple[Run, dict[str, Array]]:
        run, played, _ = play(run)
        run, learned = learn(run, progress)
        return run, {**played._asdict(), **learned._asdict()}

    return iterate


def pack(ended: Ended) -> Ended:
    """The games that ended [E, ...] out of all plies [T, B, ...]. E is a quarter of T * B, or B if that is larger. All
    games fit unless they last under four plies on average."""
    plies, lanes = ended.there.shape
    first = jnp.argsort(~ended.there.ravel(), stable=True)[: max(lanes, plies * lanes // 4)]
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[first], ended)


def summarise(game: Game, config: Config, rows: Row, before: Replay, after: Replay) -> SelfplayMetrics:
    games, moves = mesh.sum_over_devices(rows.done), rows.plies + ~rows.resigned
    share = lambda condition: mesh.sum_over_devices(condition & rows.done) / games
    policy = rows.policy.astype(jnp.float32)
    entropy = -jnp.where(policy > 0, policy * jnp.log(jnp.maximum(policy, 1e-30)), 0.0).sum(-1)
    learned = (policy > 0).any(-1)
    of_learned = lambda x: mesh.sum_over_devices(jnp.where(learned, x, 0)) / mesh.sum_over_devices(learned)
    written = jnp.arange(len(after.known)) - before.cursor
    fresh = (written >= 0) & (written < len(rows.done))
    completed = after.known & (fresh[:, None] | ~before.known)
    result, raw = after.result[..., 0], after.rows.raw_value.astype(jnp.float32)
    root_mean = lambda x: jnp.sqrt(
        mesh.sum_over_devices(jnp.where(completed, jnp.square(x), 0)) / mesh.sum_over_devices(completed)
    )
    finite = lambda x: jnp.isfinite(x).reshape(*rows.done.shape, -1).all(-1)
    answered = finite(rows.raw_value) & finite(rows.values) & finite(rows.policy)
    return SelfplayMetrics(
        games=games,
        game_length=mesh.sum_over_devices(jnp.where(rows.done, moves, 0)) / games,
        draw_rate=share((rows.rewards == 0).all(-1)),
        first_win_rate=share(rows.rewards[..., 0] > 0),
        resign_rate=share(rows.resigned),
        false_resign_rate=false_resign_rate(config, after, completed),
        length_cap_rate=share(moves >= game.max_plies),
        value_error=root_mean(raw - result),
        value_target_rms=root_mean(result),
        calibration=calibration(raw, result, completed),
        search_entropy=of_learned(entropy),
        search_policy_kl=of_learned(rows.policy_kl.astype(jnp.float32)),
        distinct=mesh.mean_over_devices(distinct_share(rows)),
        replay_rows=mesh.sum_over_devices(after.known),
        broken_rows=mesh.sum_over_devices(~answered),
        proved=jnp.float32(jnp.nan),
        proof_plies=jnp.float32(jnp.nan),
        proof_rows=jnp.float32(jnp.nan),
    )


def may_resign(game: Game, config: Config, run: Run) -> Array:
    """Whether players may resign in the next iteration, bool[].

    Resignation is disabled until the longest game has had time to end. A run begins in the middle of random games
    (`selfplay.start_lanes`), so its first results come from endings. A value head that has seen only endings must not
    end new games.
    """
    begun = run.iteration * config.plies_per_iteration >= game.max_plies
    return begun & (false_resign_rate(config, run.replay, run.replay.known) <= MAX_FALSE_RESIGN_RATE)


def false_resign_rate(config: SelfplayOptions, replay: Replay, counted: Array) -> Array:
    """Among games in which a player could have resigned but played on, the share in which the first of these players
    did not lose; NaN without such games. They count where that row is `counted`. Rows that resigned are left out: they
    would only confirm themselves."""
    rows = replay.rows
    of_mover = rows.player[..., None] == jnp.arange(rows.values.shape[-1])
    searched = jnp.where(of_mover, rows.values, 0).sum(-1)  # a gather would take these numbers one by one on a TPU
    hopeless = first_in_game(replay, (searched < config.resign_threshold) & ~rows.resigned) & counted
    return mesh.sum_over_devices(hopeless & (replay.result[..., 0] > -1)) / mesh.sum_over_devices(hopeless)


def calibration(value: Array, outcome: Array, counted: Array) -> Array:
    """Counts of the `counted` values in each bin of [-1, 1], and the sums of their results there."""
    part = jnp.clip((value + 1) / 2 * CALIBRATION_BINS, 0, CALIBRATION_BINS - 1).astype(jnp.int32)
    inside = (part[..., None] == jnp.arange(CALIBRATION_BINS)) & counted[..., None]
    axes = tuple(range(value.ndim))
    sums = jnp.stack([inside.sum(axes, dtype=jnp.float32), jnp.where(inside, outcome[..., None], 0.0).sum(axes)])
    return jax.lax.psum(sums, mesh.GAMES)


def distinct_share(rows: Row) -> Array:
    """Share of distinct positions among the rows, compared by a 32-bit hash of their bytes."""
    total = rows.done.size
    code = jnp.zeros(total, jnp.uint32)
    for leaf in jax.tree.leaves(rows.observation_state):
        flat = leaf.reshape(total, -1).astype(jnp.int32).astype(jnp.uint32)
        odd = (2 * jnp.arange(flat.shape[1], dtype=jnp.uint32) + 1) * jnp.uint32(2654435761)
        mixed = (flat + odd) * (odd ^ jnp.uint32(0x9E3779B9))
        code = code * jnp.uint32(31) + ((mixed ^ (mixed >> 15)) * jnp.uint32(2246822519)).sum(-1, dtype=jnp.uint32)
    code = jnp.sort(code)
    return (1 + (code[1:] != code[:-1]).sum()) / total
