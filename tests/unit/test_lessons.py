"""Lessons: what proofs teach, against tables of perfect play, and how it gets into batches."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from agents.config import Config
from agents.network.network import make_network
from agents.solvers import proof_number
from agents.training import learner, proof_targets, replay

SMALL = Config(
    env="tictactoe", num_envs=16, plies_per_iteration=4, num_simulations=8, network="mlp", channels=16, blocks=1,
    replay_capacity=400, batch_size=32, warmup_positions=0, proof_share=0.25,
    future_weight=1.0,
)  # fmt: skip


def test_where_draws_are_possible_only_wins_are_told():
    """Tic-tac-toe from the start is a draw, so that X does not win is known, but not whether he loses."""
    game = envs.make("tictactoe")
    graph = jax.jit(proof_number.make_claim_prover(game, 8192))(game.init(), jnp.float32(1))
    assert (graph.numbers.refute[0], bool(graph.drawn)) == (0, True)
    memory, _, _, value, there = proof_targets.pick(game, graph, jnp.int32(0), jax.random.key(0), 500)
    rows = np.flatnonzero(there)
    assert len(rows) > 50
    mover = np.asarray(jax.vmap(game.player)(memory))[rows]
    assert (np.asarray(value)[rows] == np.where(mover == 0, 1, -1)).all()


def test_hard_positions_are_as_frequent_as_easy_ones():
    """Single queen, 5 x 5: a quarter of the decided positions took 31 visits and more, and half of the lessons."""
    game = envs.make("foq_single:rows=5,cols=5")
    graph = jax.jit(proof_number.make_claim_prover(game, 1 << 14))(game.init(), jnp.float32(1))
    assert graph.visits[0] == graph.rounds * proof_number.LANES  # every descent begins here
    memory, *_, there = proof_targets.pick(game, graph, jnp.int32(0), jax.random.key(0), 200)
    assert np.asarray(there).all()
    known = np.asarray(proof_number.is_decided(graph.numbers)) & (np.arange(len(graph.actions)) < int(graph.size))
    rows = lambda states: [x.tobytes() for x in np.concatenate([np.asarray(x).reshape(len(x), -1) for x in states], 1)]
    visits = dict(zip(rows(graph.states), np.asarray(graph.visits), strict=True))
    hard = np.mean([visits[row] >= 31 for row in rows(memory)])
    assert (np.asarray(graph.visits)[known] >= 31).mean() < 0.3 < 0.45 < hard


def test_statistics_are_those_of_self_play():
    """A quarter of the batch are proved positions: they are normalised by the other rows and change no statistics."""
    game, config = envs.make("tictactoe"), dataclasses.replace(SMALL, normalisation="batch")
    net = make_network(game, config)
    weights = net.init(jax.random.key(0))
    planes = jax.random.normal(jax.random.key(1), (32, *jax.eval_shape(lambda: game.observe(game.init())).shape))
    actions = jnp.zeros((32, 9), jnp.int32)

    def statistics(planes):
        batch = replay.Batch(planes, actions, jnp.ones((32, 9)) / 9, jnp.zeros(32))
        return jax.tree.leaves(learner.loss(net, weights, batch, config)[1][1]["batch_stats"])

    plain = statistics(planes)
    assert all(np.array_equal(x, y) for x, y in zip(plain, statistics(planes.at[24:].add(7.0)), strict=True))
    changed = [np.array_equal(x, y) for x, y in zip(plain, statistics(planes.at[:24].add(7.0)), strict=True)]
    assert not all(changed)
    alone = net.train(weights, planes[:24], None)[1]["batch_stats"]
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-5), plain, jax.tree.leaves(alone))


def test_what_lessons_cannot_be_for_is_refused():
    game = envs.make("foq_multi")
    with pytest.raises(ValueError, match=r"--proof_share=0.25: proof targets are for two players; foq_multi.* has 3"):
        proof_targets.make_teach(game, dataclasses.replace(SMALL, env="foq_multi"))
    with pytest.raises(ValueError, match="--proof_share: expected 0 to 0.9, got 1"):
        dataclasses.replace(SMALL, proof_share=1)
