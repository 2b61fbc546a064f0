"""What several processes tell each other arrives whole. The others are stood in for: JAX's own transport is tested
among the integration tests."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from agents.runtime import processes


@pytest.fixture
def two(monkeypatch):
    """Two processes, of which this is the first; arrays cross as JAX sends them, in single precision."""
    monkeypatch.setattr(processes.jax, "process_count", lambda: 2)
    monkeypatch.setattr(
        processes.multihost_utils, "process_allgather", lambda x: np.stack([np.asarray(jnp.asarray(x))] * 2)
    )
    monkeypatch.setattr(processes.multihost_utils, "broadcast_one_to_all", lambda x: np.asarray(jnp.asarray(x)))


def test_numbers_keep_their_digits(two):
    """After eleven days a float32 knows the time to a sixteenth of a second."""
    seconds = 1e6 + 1 / 3
    gathered = processes.allgather(seconds, True)
    assert gathered.shape == (2, 2) and gathered.dtype == np.float64
    assert gathered[:, 0].tolist() == [seconds] * 2
    assert gathered[:, 1].all()


@pytest.mark.parametrize("text", ["", "runs/foq", "x" * 5000, "dessüs", "\udcff in a name"])
def test_texts_are_not_cut(two, text):
    assert processes.broadcast_str(text) == text
