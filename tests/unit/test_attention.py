"""The attention policy: moves scored by the cells where they start and end."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from agents.config import Config, preset
from agents.network.attention import FEATURES, AttentionPolicy, by_product, ends_of, of_moves
from agents.network.network import make_network

OFFSETS = ((0, 1), (-1, 0), (2, -1), (0, 1), (0, 0))  # two kinds go the same way, one stays
ROWS, COLS = 3, 4


def test_every_action_reads_its_pair_of_cells():
    """A pair has the number 100 start + end, so each action tells where it came from; its slope goes back there."""
    cells = ROWS * COLS
    number = lambda start, end: 100 * start + end
    pairs = jnp.array([[[number(start, end) for end in range(cells)] for start in range(cells)]], jnp.float32)
    read, back = jax.vjp(lambda pairs: of_moves(pairs, OFFSETS, ROWS, COLS), pairs)
    wanted, slopes = np.zeros(cells * len(OFFSETS)), np.zeros((cells, cells))
    for row in range(ROWS):
        for col in range(COLS):
            for kind, (down, right) in enumerate(OFFSETS):
                to, action = (row + down, col + right), (row * COLS + col) * len(OFFSETS) + kind
                if 0 <= to[0] < ROWS and 0 <= to[1] < COLS:
                    wanted[action] = number(row * COLS + col, to[0] * COLS + to[1])
                    slopes[row * COLS + col, to[0] * COLS + to[1]] += 1 + action
    np.testing.assert_array_equal(read[0], wanted)
    on_tpu = by_product(pairs, ends_of(np.array(OFFSETS), ROWS, COLS))
    np.testing.assert_array_equal(on_tpu.ravel(), wanted)
    (slope,) = back(1.0 + jnp.arange(cells * len(OFFSETS), dtype=jnp.float32)[None])
    np.testing.assert_allclose(slope[0], slopes, rtol=1e-6)


def test_a_mark_on_a_cell_calls_for_the_moves_that_end_there():
    """With constant features of the start and the mark as the only feature of the end, the logits are those of the
    mark at the end, by the root of the number of features."""
    policy: Any = AttentionPolicy(OFFSETS)
    mark = jnp.zeros((1, ROWS, COLS, 2)).at[0, 1, 2, 1].set(1)
    weights = policy.init(jax.random.key(0), mark)
    assert not policy.apply(weights, mark).any()  # it starts at zero
    start, end = weights["params"]["start"], weights["params"]["end"]
    weights = {
        "params": {"start": start | {"kernel": 0 * start["kernel"]}, "end": {"kernel": end["kernel"].at[1].set(3)}}
    }
    logits = np.asarray(policy.apply(weights, mark)).reshape(ROWS, COLS, len(OFFSETS))
    called = {(1, 1, 0), (2, 2, 1), (1, 1, 3), (1, 2, 4)}  # to the right, up, to the right, and staying; (-1, 3) is off
    assert set(zip(*np.nonzero(logits), strict=True)) == called
    assert logits[1, 1, 0] == pytest.approx(3 * FEATURES**0.5, rel=1e-5)


def test_it_is_the_default_where_moves_go_far():
    chess, hexes = envs.make("chess:size=5"), envs.make("hex:size=5")
    assert preset(chess, "cpu").attention_policy and not preset(hexes, "cpu").attention_policy
    near = dataclasses.replace(chess, offsets=np.array(OFFSETS).clip(-1, 1))
    assert not preset(near, "cpu").attention_policy  # the next cell is seen anyway
    assert not preset(chess, "cpu", recipe="alphazero").attention_policy
    refusal = "^--attention_policy: expected a game that says where its actions lead, got hex"
    with pytest.raises(ValueError, match=refusal):
        make_network(hexes, Config(env=hexes.name, attention_policy=True))


def test_a_network_prefers_a_move_for_its_end():
    """Without blocks the cells of a network see one step around them. What stands on a4 still changes how it likes the
    move from a1 to a4, but only with the attention policy."""
    game = envs.make("chess")
    config = Config(env=game.name, channels=8, blocks=0, pooling=False, normalisation="none")
    a1, a4, kinds, north = 56, (4, 0), game.actions_per_cell, game.offsets.tolist().index([-3, 0])
    planes = jax.random.bernoulli(jax.random.key(1), 0.3, (2, 8, 8, 21)).astype(jnp.float32)
    planes = planes.at[1].set(planes[0].at[a4].set(1 - planes[0][a4]))
    noise = lambda x: x + 0.3 * jax.random.normal(jax.random.key(x.size), x.shape)
    for attention in (False, True):
        net = make_network(game, dataclasses.replace(config, attention_policy=attention))
        logits = net.apply(jax.tree.map(noise, net.init(jax.random.key(0))), planes)[0].reshape(2, 64, kinds)
        assert (logits[0, a1, north] != logits[1, a1, north]) == attention
