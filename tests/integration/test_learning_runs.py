"""Self-play and learning in whole iterations: other games, three players, two devices."""

import dataclasses

import jax
import numpy as np
import pytest

import envs
from agents.config import Config, preset
from agents.network.network import make_network
from agents.runtime import mesh
from agents.training import replay
from agents.training.iteration import make_iteration, run_specs, start_run

SMALL = Config(
    env="tictactoe", num_envs=16, plies_per_iteration=4, num_simulations=8, network="mlp", channels=16, blocks=1,
    replay_capacity=400, batch_size=32, warmup_positions=0,
)  # fmt: skip
ONE = mesh.make_mesh(16, 32, 1)


@pytest.mark.nightly
def test_of_othello_the_discs_in_the_end_are_learnt():
    """After an iteration as long as a game, rows tell who has more discs, as the results do."""
    game = envs.make("othello")
    config = dataclasses.replace(SMALL, env=game.name, plies_per_iteration=120, num_simulations=2, future_weight=1.0)
    net = make_network(game, config)
    iterate = jax.jit(make_iteration(game, net, config, ONE))
    run, _ = iterate(mesh.laid_out(lambda: start_run(game, net, config), run_specs, ONE)(), 0.0)
    index = replay.draw(run.replay, jax.random.key(0), (64,))
    batch = replay.sample(game, run.replay, index, config)
    mine, others = ((np.asarray(batch.future) == seat).sum(-1) for seat in range(2))
    np.testing.assert_array_equal(np.sign(mine - others), np.asarray(batch.value))
    assert (mine + others > 40).all()
    assert (np.asarray(batch.future)[:, 64] == 2).all()


@pytest.mark.nightly
def test_three_players_learn_a_value_for_every_seat():
    game = envs.make("foq_multi:rows=4,cols=4")
    small = {"channels": 8, "blocks": 1, "slides": False, "num_simulations": 4}
    config = dataclasses.replace(preset(game, "cpu"), **small, num_envs=16, replay_capacity=400, batch_size=32)
    assert config.resign_threshold == -1
    net = make_network(game, config)
    run = mesh.laid_out(lambda: start_run(game, net, config), run_specs, ONE)()
    iterate = jax.jit(make_iteration(game, net, config, ONE))
    for _ in range(4):
        run, figures = iterate(run, 0.0)
    assert np.isfinite([figures["policy_loss"], figures["value_loss"], figures["future_loss"]]).all()
    index = replay.draw(run.replay, jax.random.key(0), (32,))
    batch = replay.sample(game, run.replay, index, dataclasses.replace(config, future_weight=1.0))
    assert batch.value.shape == (32, 3)
    np.testing.assert_allclose(batch.value.sum(-1), 0, atol=1e-6)
    logits, value = net.apply(run.learning.ema_weights, batch.planes)
    assert (logits.shape, value.shape) == ((32, 16), (32, 3))
    assert batch.future.min() >= 0 and batch.future.max() == 3


def test_nothing_is_learned_from_a_handful_of_rows():
    """An iteration has 64 rows. Updates begin once 64 rows have known results."""
    game = envs.make(SMALL.env)
    net = make_network(game, SMALL)
    run = mesh.laid_out(lambda: start_run(game, net, SMALL), run_specs, ONE)()
    iterate = jax.jit(make_iteration(game, net, SMALL, ONE))
    seen = []
    for _ in range(5):
        run, figures = iterate(run, 0.0)
        seen.append((int(figures["replay_rows"]), int(run.learning.updates), np.isfinite(figures["value_loss"])))
    rows, updates, losses = zip(*seen, strict=True)
    assert 0 < rows[0] < 64 < rows[-1]
    made = np.diff((0, *updates))
    np.testing.assert_array_equal(made > 0, np.array(rows) >= 64)
    np.testing.assert_array_equal(losses, made > 0)
    assert len(set(made[made > 0])) == 1


def test_devices_share_the_work():
    """On two devices a run plays, learns and counts as on one: every lane goes on, and the weights stay the same."""
    game, devices = envs.make(SMALL.env), mesh.make_mesh(16, 32, 2)
    net = make_network(game, SMALL)
    run = mesh.laid_out(lambda: start_run(game, net, SMALL), run_specs, devices)()
    iterate = jax.jit(make_iteration(game, net, SMALL, devices))
    ended = 0
    for _ in range(6):
        run, figures = iterate(run, 0.0)
        ended += int(figures["games"])
    assert run.replay.known.sharding.shard_shape(run.replay.known.shape) == (28, 8)
    assert int(figures["replay_rows"]) == int(run.replay.known.sum())
    assert ended == int(run.replay.rows.done.sum())
    assert (np.asarray(run.replay.known[:8]).any(0)).all()
    assert not np.array_equal(
        run.replay.rows.observation_state.board[:24, :8], run.replay.rows.observation_state.board[:24, 8:]
    )
    for leaf in jax.tree.leaves(run.learning):
        here, there = (np.asarray(shard.data) for shard in leaf.addressable_shards)
        np.testing.assert_array_equal(here, there)
    assert int(run.learning.updates) > 0
