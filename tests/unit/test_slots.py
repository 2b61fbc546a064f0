"""Legal actions in slots, by hand and against numpy; random legal actions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agents.actions import at_slots, from_slots, legal_slots, random_action


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
    slots = np.asarray(jax.jit(lambda mask: legal_slots(mask, most + 1))(mask))
    for row, found in zip(mask, slots, strict=True):
        want = np.flatnonzero(row)
        assert found.tolist() == [*want, *[-1] * (most + 1 - len(want))]
    values = rng.random((16, codes)).astype(np.float32)
    back = jax.jit(lambda values, slots, mask: from_slots(at_slots(values, slots), mask))(values, slots, mask)
    np.testing.assert_array_equal(back, np.where(mask, values, 0))


@pytest.mark.parametrize("platform", ["tpu", "default"])
def test_random_actions_are_legal_and_even(platform, monkeypatch):
    monkeypatch.setattr(jax.lax, "platform_dependent", lambda *given, **branches: branches[platform](*given))
    mask = jnp.tile(jnp.array([0, 1, 0, 1, 1], bool), (6000, 1))
    counts = np.bincount(
        np.asarray(jax.jit(lambda key, mask: random_action(key, mask))(jax.random.key(0), mask)), minlength=5
    )
    assert counts[[0, 2]].sum() == 0
    assert (np.abs(counts[[1, 3, 4]] - 2000) < 5 * np.sqrt(6000 * 2 / 9)).all()


@pytest.mark.parametrize("codes", [1, 2, 7, 72, 2998])
@pytest.mark.parametrize("density", [0.0, 0.01, 0.5, 1.0])
def test_random_actions_are_the_same_on_every_device(codes, density, monkeypatch):
    """At least one code is legal in every lane. With a single one there is no other answer."""
    rng = np.random.default_rng(codes)
    mask = rng.random((256, codes)) < density
    mask[np.arange(256), rng.integers(codes, size=256)] = True
    drawn = {}
    for platform in ("tpu", "default"):
        monkeypatch.setattr(jax.lax, "platform_dependent", lambda *given, **branches: branches[platform](*given))
        draw = jax.jit(lambda key, mask: random_action(key, mask))  # one for each platform
        drawn[platform] = np.asarray(draw(jax.random.key(codes), mask))
    np.testing.assert_array_equal(drawn["tpu"], drawn["default"])
    assert mask[np.arange(256), drawn["tpu"]].all()
