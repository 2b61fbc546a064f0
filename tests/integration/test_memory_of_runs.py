"""A run that does not fit into memory says what to change, and then it fits."""

import dataclasses
import re

import pytest

import envs
from agents.config import Config
from agents.network.network import make_network
from agents.run import memory, metrics
from agents.run.loop import build
from agents.runtime import mesh


@pytest.mark.parametrize(
    ("there", "smaller"),
    [
        pytest.param(10_000_000, {"replay_capacity"}, marks=pytest.mark.nightly),
        (3_000_000, {"replay_capacity", "num_envs"}),
    ],
)
def test_the_advice_of_a_run_that_does_not_fit_lets_it_begin(there, smaller, monkeypatch):
    """Rows of 87 bytes, which self-play and saving double and treble: 40,000 of them are more than 10 MB."""
    config = Config(
        env="tictactoe", num_envs=32, plies_per_iteration=4, num_simulations=2, network="mlp", channels=16, blocks=1,
        replay_capacity=40_000, batch_size=32,
    )  # fmt: skip
    game, one = envs.make(config.env), mesh.make_mesh(32, 32, 1)
    begin = lambda config: build(game, make_network(game, config), config, one, metrics.Silence(), lambda: False)
    monkeypatch.setattr(memory, "host", lambda: there)
    with pytest.raises(memory.TooLittleError) as refused:
        begin(config)
    advice = {name: int(value) for name, value in re.findall(r"--(\w+)=(\d+)", str(refused.value))}
    assert set(advice) == smaller
    begin(dataclasses.replace(config, **advice))
