"""Where the proof searches of a run begin, once it has gone on for a while."""

import dataclasses

import jax
import numpy as np

import envs
from agents.config import Config
from agents.network.network import make_network
from agents.runtime import mesh
from agents.training.iteration import make_iteration, run_specs, start_run

SMALL = Config(
    env="tictactoe", num_envs=16, plies_per_iteration=4, num_simulations=2, network="mlp", channels=16, blocks=1,
    replay_capacity=400, batch_size=32, warmup_positions=0, proof_share=0.25,
)  # fmt: skip


def going_on(config: Config, iterations: int):
    """The run and its figures after each iteration."""
    game, one = envs.make(config.env), mesh.make_mesh(16, 32, 1)
    net = make_network(game, config)
    run = mesh.laid_out(lambda: start_run(game, net, config), run_specs, one)()
    iterate = jax.jit(make_iteration(game, net, config, one))
    for _ in range(iterations):
        run, figures = iterate(run, 0.0)
        yield run, figures


def test_searches_that_always_end_begin_at_the_start():
    """All of tic-tac-toe is within reach of 8192 positions."""
    states = list(going_on(SMALL, 10))
    assert all(float(figures["proved"]) == 1 for _, figures in states)
    run, figures = states[-1]
    assert float(run.proof_targets.reach) == 0
    assert float(figures["proof_plies"]) <= 2  # of sixteen lanes one is that young
    assert int(figures["proof_rows"]) == int(run.proof_targets.there.sum()) > 0


def test_searches_begin_where_about_half_of_them_end():
    """512 positions are too few for Connect Four, where only the ends of games are within reach."""
    states = list(going_on(dataclasses.replace(SMALL, env="connect_four"), 20))
    assert 0.2 <= np.mean([float(figures["proved"]) for _, figures in states][8:]) <= 0.8
    assert 10 < float(states[-1][0].proof_targets.reach) < 42
