"""Value generations from self-play to learning, on two devices."""

import dataclasses

import jax
import pytest

import envs
from agents.config import preset
from agents.network.network import make_network
from agents.runtime import mesh
from agents.training import iteration, value_regression

GAME = envs.make("tictactoe")
CONFIG = dataclasses.replace(preset(GAME, "cpu", "value_generations"), num_envs=4000, channels=64, batch_size=64)


def test_a_generation_fills_the_replay_and_is_learned():
    net, devices = make_network(GAME, CONFIG), mesh.make_mesh(4000, 64)
    assert devices.size == 2
    run = mesh.laid_out(lambda: value_regression.start_run(GAME, net, CONFIG), value_regression.run_specs, devices)()
    play = jax.jit(value_regression.make_play(GAME, net, CONFIG, devices))
    learn = jax.jit(value_regression.make_learn(GAME, net, CONFIG, devices))
    losses, rows = [], 0.0
    for _ in range(3):
        run, played, ended = play(run)
        run, learned = learn(run, 0.5)
        losses.append(float(learned.validation_loss))
        rows += float(played.replay_rows)
        assert int(played.games) == 4000
        share = float(played.replay_rows / (played.game_length * played.games))
        assert share == pytest.approx(0.9, abs=0.01)  # a tenth is held out
        assert ended.moves.shape == (2000, 9) and bool(ended.there.all())
    assert losses[0] < float(learned.value_baseline) + 0.1
    assert int(run.learning.updates) == pytest.approx(5 * rows / 64, rel=0.1)  # five times through each generation
    assert int(learned.skipped_updates) == 0 and int(run.iteration) == 3
    assert isinstance(run, iteration.Run)
