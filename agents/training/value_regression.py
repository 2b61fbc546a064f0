"""Value learning without search: generations of games, each followed by regression on their results.

The method follows an article on tic-tac-toe and SumTo100. Generation 0 plays at random. Later, every move leads to the
successor with the best value, except for a share of random moves. The value head learns the result of the game,
discounted towards the opening. A generation is one iteration: its games fill the replay, and a tenth of them are held
out.

Three things differ from the article. A finished successor is worth its result, not the network's value. Rows are seen
through a symmetry of the game. There is no dropout, because every generation brings new games.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as Spec

from agents.actions import legal_slots, random_action, to_mover_frame
from agents.config import Config
from agents.network.network import Network
from agents.runtime import keys, mesh
from agents.search.greedy import value_greedy
from agents.training import iteration, learner, replay, selfplay
from agents.training.iteration import Run, on_mesh, run_specs
from agents.training.replay import Replay
from agents.training.selfplay import Ended, Lanes, Row
from envs.game import Array, Game

__all__ = ["make_learn", "make_play", "run_specs", "start_run", "value_greedy"]

GAMMA = 0.95  # discount of the result for every ply up to the end
EPSILONS = (0.5, 0.5, 0.1)  # share of random moves at the first, second and later plies
EPOCHS = 5  # average number of times that a row is drawn
HELD_OUT = 10  # every tenth lane is for validation
VALIDATED = 4096  # validation rows per device
CHUNK = 64  # most updates per call of the learner
ARCHIVED = 1000  # games of a generation that each device logs


class GenerationMetrics(NamedTuple):
    games: Array
    plies: Array  # of all games together
    game_length: Array
    draw_rate: Array
    first_win_rate: Array
    replay_rows: Array  # without held-out rows


class RegressionMetrics(NamedTuple):
    validation_loss: Array  # squared value error on held-out games, after learning
    policy_loss: Array  # always 0
    value_loss: Array
    target_entropy: Array  # always 0
    value_baseline: Array
    gradient_norm: Array
    skipped_updates: Array
    learning_rate: Array


def start_run(game: Game, net: Network, config: Config) -> Run:
    """The run before its first generation."""
    net_key, lanes_key, run_key = jax.random.split(jax.random.key(config.seed), 3)
    lanes = new_lanes(game, lanes_key, config.num_envs, config)
    learning = learner.start_learning(net, config, net_key)
    rows = jax.eval_shape(make_games(game, net), learning.ema_weights, lanes_key, lanes, jnp.bool(False))[1]
    reference_weights = jax.tree.map(jnp.copy, learning.ema_weights) if config.rating_games else None
    ring = replay.empty_replay(rows, ring_length(game, config))
    return Run(learning, reference_weights, ring, lanes, jax.random.key_data(run_key), jnp.int32(0))


def ring_length(game: Game, config: Config) -> int:
    """Rows of time in the buffer: one generation of complete games, whatever the capacity."""
    del config
    return game.max_plies


def new_lanes(game: Game, key: Array, count: int, config: Config) -> Lanes:
    plain = dataclasses.replace(config, random_opening_plies=0)
    return selfplay.new_games(game, key, count, plain)


def make_games(game: Game, net: Network):
    """`play(weights, key, lanes, at_random) -> (lanes, Row[max_plies, B])`: games from start to end. After the end,
    rows have no legal action and repeat the result."""
    greedy = value_greedy(game, net)

    def ply(weights, at_random: Array, lanes: Lanes, now: tuple[Array, Array, Array]) -> tuple[Lanes, Row]:
        key, epsilon, _ = now
        states, going = lanes.states, ~jax.vmap(game.over)(lanes.states)
        mask = jax.vmap(game.mask)(states)
        greedy_key, random_key, lot_key = keys.split(key, 3)
        best = jax.lax.cond(
            going.any() & ~at_random, lambda: greedy(weights, greedy_key, states), lambda: jnp.zeros_like(lanes.plies)
        )
        adventurous = keys.draw_lanes(jax.random.uniform, lot_key, best.shape) < epsilon
        action = jnp.where(adventurous | at_random, random_action(random_key, mask), best)
        moved = selfplay.where_lanes(going, jax.vmap(game.move)(states, action), states)
        player = jax.vmap(game.player)(states)
        slots = to_mover_frame(game, legal_slots(mask, game.max_legal), player)
        nothing = jnp.zeros(best.shape, jnp.float16)
        row = Row(
            observation_state=jax.vmap(game.observation_state)(states),
            action=action.astype(jnp.int16),
            actions=slots.astype(jnp.int16),
            policy=jnp.zeros(slots.shape, jnp.float16),
            policy_kl=nothing,
            player=player.astype(jnp.int8),
            values=jnp.zeros((*best.shape, game.num_players), jnp.float16),
            raw_value=nothing,
            resigned=jnp.zeros_like(going),
            done=going & jax.vmap(game.over)(moved),
            rewards=jax.vmap(game.rewards)(moved),
            plies=lanes.plies.astype(jnp.int16),
        )
        return selfplay.advance(lanes, action, moved, going), row

    def play(weights: Any, key: Array, lanes: Lanes, at_random: Array) -> tuple[Lanes, Row]:
        t = jnp.arange(game.max_plies)
        epsilons = jnp.asarray(EPSILONS)[jnp.minimum(t, len(EPSILONS) - 1)]
        every = keys.split(key, game.max_plies)
        return jax.lax.scan(lambda lanes, now: ply(weights, at_random, lanes, now), lanes, (every, epsilons, t))

    return play


def discounted(rows: Row) -> tuple[Array, Array]:
    """Results and value targets of the rows, by seat, starting from the mover: (result float32[T, B, n], the same
    discounted by `GAMMA` for every ply up to the end of the game)."""
    players = jnp.arange(rows.rewards.shape[-1])
    seats = (rows.player[..., None].astype(jnp.int32) + players) % len(players)
    result = jnp.take_along_axis(jnp.broadcast_to(rows.rewards[-1], seats.shape), seats, axis=-1)
    length = rows.plies[-1] + rows.done[-1]  # the plies of a finished game no longer change
    left = jnp.maximum(length - rows.plies, 0)[..., None].astype(jnp.float32)
    return result, result * GAMMA**left


def of_games(rows: Row) -> Array:
    """bool[T, B], rows before the end of their game."""
    return (rows.actions >= 0).any(-1)


def held_out(lanes: Array) -> Array:
    """bool[B], whether a lane is only validated, never learned; `lanes` is this device's share."""
    return mesh.numbers(lanes) % HELD_OUT == HELD_OUT - 1


def make_play(game: Game, net: Network, config: Config, devices: Mesh):
    """`play(run) -> (run, GenerationMetrics, Ended)`: the games of one generation, which then fill the replay."""
    play_games = make_games(game, net)

    def play(run: Run) -> tuple[Run, GenerationMetrics, Ended]:
        now = iteration.keys_of(run)
        lanes = new_lanes(game, keys.fold_in(now.play, 0), len(run.lanes.plies), config)
        lanes, rows = play_games(run.learning.ema_weights, keys.fold_in(now.play, 1), lanes, run.iteration == 0)
        result, target = discounted(rows)
        learned = of_games(rows) & ~held_out(lanes.plies)
        games, rewards = mesh.sum_over_devices(rows.done), rows.rewards[-1]
        played = GenerationMetrics(
            games=games,
            plies=mesh.sum_over_devices(lanes.plies),
            game_length=mesh.sum_over_devices(lanes.plies) / games,
            draw_rate=mesh.sum_over_devices((rewards == 0).all(-1)) / games,
            first_win_rate=mesh.sum_over_devices(rewards[:, 0] > 0) / games,
            replay_rows=mesh.sum_over_devices(learned),
        )
        moves = jnp.where(jnp.arange(game.max_plies) < lanes.plies[:, None], lanes.moves, -1).astype(jnp.int16)
        nobody, all_there = jnp.zeros_like(lanes.played_out), jnp.ones_like(lanes.played_out)
        ended = Ended(moves, lanes.opening, nobody, rewards, all_there)
        ended = jax.tree.map(lambda x: x[:ARCHIVED], ended)
        return run._replace(replay=Replay(rows, result, target, learned, jnp.int32(0)), lanes=lanes), played, ended

    return on_mesh(play, devices, lambda specs: (specs, Spec(), Spec(mesh.GAMES)))


def make_learn(game: Game, net: Network, config: Config, devices: Mesh):
    """`learn(run, progress) -> (run, RegressionMetrics)`: `EPOCHS` times as many random rows as the generation has."""
    if config.num_envs < 2 * devices.size:
        each = f"each of {devices.size} devices"
        raise ValueError(f"--num_envs: expected two games or more for {each}, got {config.num_envs}")
    batch = config.batch_size // devices.size
    # Small enough that rounding to whole chunks hardly changes how often a row is drawn.
    size = min(max(EPOCHS * config.num_envs // (4 * config.batch_size), 1), CHUNK)
    update = learner.make_learner(game, net, config, size)

    def learn(run: Run, progress: Array) -> tuple[Run, RegressionMetrics]:
        draw_key, check_key = jax.random.split(iteration.keys_of(run).draw)

        def chunk(i: Array, carry):
            learning, total = carry
            index = replay.draw(run.replay, jax.random.fold_in(draw_key, i), (size, batch))
            learning, losses = update(learning, run.replay, index, progress)
            return learning, jax.tree.map(lambda t, x: t + jnp.nanmean(x), total, losses)

        rows = mesh.sum_over_devices(run.replay.known)
        chunks = jnp.maximum(jnp.round(EPOCHS * rows / (config.batch_size * size)).astype(jnp.int32), 1)
        nothing = learner.Losses(*[jnp.float32(0)] * len(learner.Losses._fields))
        learning, losses = jax.lax.fori_loop(0, chunks, chunk, (run.learning, nothing))
        losses = mesh.mean_over_devices(jax.tree.map(lambda x: x / chunks, losses))
        others = of_games(run.replay.rows) & held_out(run.replay.known[0])
        index = replay.draw(run.replay._replace(known=others), check_key, (VALIDATED,))
        sample = replay.sample(game, run.replay, index, config)
        error = jnp.square(net.apply(learning.ema_weights, sample.planes)[1] - sample.value).mean()
        some = others.any()  # a device may have no such lane
        counted, total = mesh.sum_over_devices(some), mesh.sum_over_devices(jnp.where(some, error, 0.0))
        learned = RegressionMetrics(
            validation_loss=jnp.where(counted > 0, total / counted, jnp.nan),
            policy_loss=losses.policy_loss,
            value_loss=losses.value_loss,
            target_entropy=losses.target_entropy,
            value_baseline=losses.value_baseline,
            gradient_norm=losses.gradient_norm,
            skipped_updates=losses.skipped_updates * size * chunks,
            learning_rate=learner.learning_rate(config, run.learning.updates, progress),
        )
        return run._replace(learning=learning, iteration=run.iteration + 1), learned

    return on_mesh(learn, devices, lambda specs: (specs, Spec()))
