"""The same program on one, two and eight devices."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="module")
def on_devices(tmp_path_factory):
    command = [sys.executable, str(ROOT / "tests/integration/on_devices.py"), str(tmp_path_factory.mktemp("run"))]
    ended = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return json.loads(ended.stdout)


@pytest.mark.parametrize("kind", ["gumbel", "puct"])
def test_self_play_is_the_same_on_any_number_of_devices(on_devices, kind):
    """Rows, targets and lanes after six iterations with a table for a network, bit for bit but for zeros' signs."""
    found = on_devices[kind]
    assert found["differences"] == {count: [] for count in (["1", "2", "8"] if kind == "gumbel" else ["1", "8"])}
    # There is something to compare: whole iterations, games that ended or were given up, and no two lanes alike.
    assert found["rows"] == 6 * 4 * 16
    assert found["ended"] > found["given_up"] > 0
    assert found["different_lanes"] == 16


def test_a_checkpoint_of_eight_devices_goes_on_on_any_number(on_devices):
    """Self-play bit for bit, the learner on the same rows but for rounding."""
    assert set(on_devices["checkpoints"]) == {"1", "2", "8"}
    for count, found in on_devices["checkpoints"].items():
        assert found["restored"] == []
        assert found["lanes"] == [16 // int(count)] * int(count)
        assert found["played"] == []
        assert found["apart"] < 2e-5
        assert found["learned"] > 1e-3
