"""Legal actions in slots, by hand and against numpy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents.actions import at_slots, from_slots, legal_slots


def test_by_hand():
    mask = jnp.array([[0, 1, 0, 1, 1], [0, 0, 0, 0, 0]], bool)
    slots = legal_slots(mask, 4)
    assert slots.tolist() == [[1, 3, 4, -1], [-1, -1, -1, -1]]
    values = jnp.array([[5, 6, 7, 8, 9], [1, 2, 3, 4, 5]])
    assert at_slots(values, slots).tolist() == [[6, 8, 9, 0], [0, 0, 0, 0]]
    assert at_slots(values, slots, -1).tolist() == [[6, 8, 9, -1], [-1, -1, -1, -1]]
    assert from_slots(jnp.array([[3, 2, 1, 0], [9, 9, 9, 9]]), mask).tolist() == [[0, 3, 0, 2, 1], [0, 0, 0, 0, 0]]


@pytest.mark.parametrize("codes", [1, 2, 7, 64, 65, 2998])
@pytest.mark.parametrize("density", [0.01, 0.5, 1.0])
@pytest.mark.parametrize("platform", ["tpu", "default"])
def test_against_numpy(codes, density, platform, monkeypatch):
    """The TPU's branch runs on a CPU here."""
    monkeypatch.setattr(jax.lax, "platform_dependent", lambda *given, **branches: branches[platform](*given))
    rng = np.random.default_rng(codes)
    mask = rng.random((16, codes)) < density
    most = max(1, mask.sum(1).max())
    slots = np.asarray(legal_slots(jnp.asarray(mask), most + 1))
    for row, found in zip(mask, slots, strict=True):
        want = np.flatnonzero(row)
        assert found.tolist() == [*want, *[-1] * (most + 1 - len(want))]
    values = rng.random((16, codes)).astype(np.float32)
    back = from_slots(at_slots(jnp.asarray(values), jnp.asarray(slots)), jnp.asarray(mask))
    np.testing.assert_array_equal(back, np.where(mask, values, 0))
