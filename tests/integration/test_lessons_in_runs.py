"""Lessons in runs: how they get into batches, on two devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from agents.config import Config
from agents.network.network import make_network
from agents.run.resume import load_run, save_run
from agents.runtime import mesh
from agents.storage import checkpoint
from agents.training import proof_targets, replay
from agents.training.iteration import make_iteration, run_specs, start_run

SMALL = Config(
    env="tictactoe", num_envs=16, plies_per_iteration=4, num_simulations=8, network="mlp", channels=16, blocks=1,
    replay_capacity=400, batch_size=32, warmup_positions=0, proof_share=0.25,
    future_weight=1.0,
)  # fmt: skip


@pytest.fixture(scope="module")
def parts():
    game = envs.make(SMALL.env)
    net, one = make_network(game, SMALL), mesh.make_mesh(16, 32, 1)
    start = mesh.laid_out(lambda: start_run(game, net, SMALL), run_specs, one)
    return game, start, jax.jit(make_iteration(game, net, SMALL, one)), one


@pytest.mark.nightly
def test_accelerators_search_side_by_side_and_find_the_same(parts, monkeypatch):
    """Eight searches from other positions, one after another and three at once."""
    rows = proof_targets.rows_per_iteration(SMALL) * SMALL.num_envs
    monkeypatch.setattr(proof_targets, "ROWS_PER_SEARCH", rows // 8)
    monkeypatch.setattr(proof_targets, "SIDE_BY_SIDE", 3)
    game, start, _, one = parts
    run = start()
    specs = run_specs(run)

    def taught():
        teach = proof_targets.make_teach(game, SMALL)
        mapped = jax.shard_map(
            lambda targets, lanes: teach(targets, lanes, jax.random.key(3)), mesh=one, check_vma=False,
            in_specs=(specs.proof_targets, specs.lanes), out_specs=(specs.proof_targets, jax.sharding.PartitionSpec()),
        )  # fmt: skip
        return jax.device_get(jax.jit(mapped)(run.proof_targets, run.lanes))

    in_turn = taught()
    monkeypatch.setattr(jax.lax, "platform_dependent", lambda *given, default, **others: default(*given))
    at_once = taught()
    assert jax.tree.all(jax.tree.map(np.array_equal, in_turn, at_once))
    assert in_turn[0].there.sum() > 8


def test_a_row_that_is_drawn_twice_has_two_numbers(parts):
    """So that it is seen through different symmetries where a share has fewer rows than there are symmetries."""
    game, start, _, _ = parts
    run, twice = start(), jnp.array([3, 3, 5, 3])
    assert len(set(replay.take(game, run.replay, twice, SMALL).number.tolist())) == 4
    assert len(set(proof_targets.take(game, run.proof_targets, twice, SMALL)[0].number.tolist())) == 4


def test_batches_hold_lessons_where_there_are_some(parts):
    """A quarter of 32 rows, in the places written; elsewhere rows of self-play stay."""
    game, start, iterate, _ = parts
    run = start()
    for _ in range(6):
        run, _ = iterate(run, 0.0)
    taught = jnp.arange(8)
    full = run.proof_targets._replace(there=run.proof_targets.there.at[0].set(jnp.arange(16) < 5))
    from_proofs = proof_targets.take(game, full, taught, SMALL)
    batch = jax.device_get(
        proof_targets.mixed(game, replay.take(game, run.replay, jnp.arange(32), SMALL), from_proofs, SMALL)
    )
    own = [
        jax.device_get(replay.sample(game, run.replay, part, SMALL)) for part in (jnp.arange(24), jnp.arange(24, 32))
    ]
    proof_rows = jax.device_get(replay.batch_of(game, from_proofs[0], SMALL))
    assert batch.planes.shape[0] == 32
    for name in batch._fields:
        rows, plain, last, taught_rows = (getattr(x, name) for x in (batch, own[0], own[1], proof_rows))
        assert (rows[:24] == plain).all() and (rows[24:29] == taught_rows[:5]).all() and (rows[29:] == last[5:]).all()
    # Tic-tac-toe has eight symmetries: each of the eight rows meets one.
    for i, symmetry in enumerate(game.symmetries):
        state = symmetry.state(jax.tree.map(lambda x: x[0, i], run.proof_targets.observation_state))
        assert (proof_rows.planes[i] == game.observe(state)).all()
        legal = np.asarray(game.mask(state))
        assert all(legal[code] for code in proof_rows.actions[i] if code >= 0)
    assert (
        proof_rows.policy.sum(-1).round(5).tolist()
        == np.asarray(run.proof_targets.right[0, :8].any(-1), float).tolist()
    )
    assert (proof_rows.future == -1).all()


def test_each_lesson_is_drawn_as_often_as_a_row(parts):
    """Places never written are not drawn."""
    _, start, iterate, _ = parts
    run = start()
    for _ in range(3):
        run, _ = iterate(run, 0.0)
    assert int(run.proof_targets.cursor) == 3 * proof_targets.rows_per_iteration(SMALL) == 3
    places = np.asarray(proof_targets.draw(run.proof_targets, jax.random.key(0), (4800,)))
    counts = np.bincount(places, minlength=48)
    assert len(counts) == 48 and (np.abs(counts - 100) < 50).all()


def test_a_run_goes_on_with_its_lessons(parts, tmp_path):
    _, start, iterate, one = parts
    run = start()
    for _ in range(3):
        run, _ = iterate(run, 0.0)
    save_run(tmp_path, run, SMALL)
    again = load_run(checkpoint.find_checkpoint(tmp_path, "resume"), SMALL, one)
    one_on, two_on = (jax.device_get(iterate(x, 0.0)[0]) for x in (run, again))
    equal = jax.tree.map(lambda x, y: np.array_equal(x, y, equal_nan=True), one_on, two_on)
    assert all(jax.tree.leaves(equal))
    assert one_on.proof_targets.there.sum() > 0


@pytest.mark.nightly
def test_devices_search_below_lanes_of_their_own():
    devices = mesh.make_mesh(16, 32, 2)
    game = envs.make(SMALL.env)
    net = make_network(game, SMALL)
    run = mesh.laid_out(lambda: start_run(game, net, SMALL), run_specs, devices)()
    iterate = jax.jit(make_iteration(game, net, SMALL, devices))
    for _ in range(4):
        run, figures = iterate(run, 0.0)
    assert float(figures["proof_rows"]) == int(run.proof_targets.there.sum())
    left, right = np.split(np.asarray(run.proof_targets.there), 2, axis=1)
    assert left.any() and right.any()
    assert float(run.proof_targets.reach) >= 0
