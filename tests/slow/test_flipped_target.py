"""The preflight notices a value target of the wrong sign."""

import pytest
from flipped import turned

import envs
from agents.config import preset
from agents.run import preflight
from agents.training import replay


@pytest.mark.parametrize("flipped", ["target"])
def test_preflight_catches_a_flipped_sign(flipped, monkeypatch):
    config = preset(envs.make("tictactoe"), "cpu")
    monkeypatch.setattr(replay, "value_targets", turned(replay.value_targets, 0))  # what the value head learns
    with pytest.raises(preflight.PreflightError, match="a sign is wrong in the code"):
        preflight.demand_learning(config)
