"""Memory that a run needs, and what is there."""

import jax
import jax.numpy as jnp
import pytest

from agents import memory


def test_a_program_s_need_by_hand():
    """A mebibyte in and one out; where the argument is given up, the result takes its place."""
    x = jax.ShapeDtypeStruct((2**18,), jnp.float32)
    plain = memory.needed(jax.jit(lambda x: x + 1).lower(x).compile())
    given_up = memory.needed(jax.jit(lambda x: x + 1, donate_argnums=0).lower(x).compile())
    assert 2 * 2**20 <= plain < 2 * 2**20 + 2**16
    assert 2**20 <= given_up < 2**20 + 2**16


def test_what_does_not_fit_is_refused_with_what_would():
    no_buffer = {"num_envs": 1024, "devices": 2, "ring": 0, "capacity": 1000}
    memory.demand(8 * memory.GIB, 8 * memory.GIB, **no_buffer)
    memory.demand(None, 1, **no_buffer)
    memory.demand(1, None, **no_buffer)
    with pytest.raises(
        memory.TooLittleError, match=r"needs 11\.0 GiB on each device, which has 8\.0: try --num_envs=512"
    ):
        memory.demand(11 * memory.GIB, 8 * memory.GIB, **no_buffer)
    with pytest.raises(memory.TooLittleError, match="--num_envs=128"):
        memory.demand(50 * memory.GIB, 8 * memory.GIB, **no_buffer)


def test_where_the_buffer_takes_the_most_it_is_to_be_smaller():
    """2 GiB beside a buffer of 10 leave 6 of 8 for it: 600,000 of a million rows, less one in twenty to be sure."""
    need, ring = 12 * memory.GIB, 10 * memory.GIB
    with pytest.raises(memory.TooLittleError, match="try --replay_capacity=570000, or a smaller --num_envs"):
        memory.demand(need, 8 * memory.GIB, 1024, 2, ring, 1_000_000)
    with pytest.raises(memory.TooLittleError, match="try --num_envs=256, or a smaller --replay_capacity"):
        memory.demand(need, 6 * memory.GIB, 1024, 2, 4 * memory.GIB, 1_000_000)  # 4 and an eighth to a quarter of 8


def test_cpu_devices_share_the_machine():
    have = memory.there(jax.devices("cpu")[0])
    assert have is None or 2**20 < have < 2**50
