"""A run of an older version goes on, and updates that are not finite are skipped on every device."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as Spec

import envs
from agents.config import Config
from agents.network.network import make_network
from agents.run.resume import load_run, save_run
from agents.runtime import mesh
from agents.storage import checkpoint
from agents.training import learner, replay
from agents.training.iteration import start_run

SMALL = Config(
    env="tictactoe", num_envs=16, plies_per_iteration=4, num_simulations=4, network="mlp", channels=16, blocks=1,
    replay_capacity=400, batch_size=32, warmup_positions=64, optimiser="adamw",
)  # fmt: skip


def same(a, b) -> bool:
    return all(jax.tree.leaves(jax.tree.map(lambda x, y: bool(np.array_equal(x, y, equal_nan=True)), a, b)))


def test_a_run_of_another_version_is_refused_in_one_line(tmp_path, monkeypatch):
    game, one = envs.make("tictactoe"), mesh.make_mesh(16, 32, 1)
    run = jax.jit(lambda: start_run(game, make_network(game, SMALL), SMALL))()
    with monkeypatch.context() as older:
        older.setattr(checkpoint, "FORMAT", 1)
        save_run(tmp_path, run, SMALL)
    with pytest.raises(checkpoint.CheckpointError, match=r"of another version: expected format 3, got 1;") as refused:
        load_run(checkpoint.find_checkpoint(tmp_path, "resume"), SMALL, one)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("devices", [1, 2])
def test_an_update_that_is_not_finite_is_skipped(devices):
    """Of three updates the second meets NaN in one row, on one device: all ends as without that update."""
    game = envs.make("tictactoe")
    config = dataclasses.replace(SMALL, normalisation="batch", optimiser="adamw")
    net = make_network(game, config)
    there = mesh.make_mesh(16, 32, devices)

    def batch(rows):
        """Rows are numbers from which a batch follows; 99 is the one that is not finite."""
        spread = jnp.sin(rows[:, None, None, None] * (1.0 + jnp.arange(18).reshape(3, 3, 2)))
        return replay.Batch(
            planes=jnp.where(rows[:, None, None, None] == 99, jnp.nan, spread),
            actions=jnp.tile(jnp.arange(9), (len(rows), 1)),
            policy=jax.nn.one_hot(rows % 9, 9),
            value=jnp.where(rows % 2 == 0, 1.0, -1.0),
        )

    def learn(learning, index):
        update = learner.make_update(net, config)
        return jax.lax.scan(lambda state, rows: update(state, batch(rows), jnp.float32(0)), learning, index)

    start = learner.start_learning(net, config, jax.random.key(0))
    specs = jax.tree.map(lambda _: Spec(), start)
    mapped = jax.jit(
        jax.shard_map(learn, mesh=there, in_specs=(specs, Spec(None, mesh.GAMES)), out_specs=Spec(), check_vma=False)
    )
    good, bad = jnp.arange(32).reshape(2, 16), jnp.arange(16).at[3].set(99)
    wanted, losses = mapped(start, good)
    assert losses.skipped_updates.tolist() == [0, 0]
    found, losses = mapped(start, jnp.stack([good[0], bad, good[1]]))
    assert same(found, wanted)
    assert (int(found.updates), int(found.skipped)) == (2, 0)
    assert losses.skipped_updates.tolist() == [0, 1, 0]
    assert np.isnan(losses.policy_loss).tolist() == [False, True, False]
    for copies in jax.tree.leaves(found):  # alike on every device
        assert same(*(copies.addressable_shards[i].data for i in (0, -1)))
    ended, _ = mapped(start, jnp.stack([good[0], bad, bad]))
    assert (int(ended.updates), int(ended.skipped)) == (1, 2)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(ended))
    # As many in a row as end a run are not forgotten in a good update before anybody looks.
    ended, _ = mapped(start, jnp.stack([*[bad] * learner.MOST_SKIPPED, good[0]]))
    assert (int(ended.updates), int(ended.skipped)) == (1, learner.MOST_SKIPPED)
