"""Memory that a run needs, and what is there."""

import dataclasses
import functools
import os

import jax
import jax.numpy as jnp
import pytest

import envs
from agents.config import Config
from agents.run import memory
from agents.run.memory import GIB, Need
from agents.runtime import cgroups, mesh
from agents.training import replay


def test_a_program_s_need_by_hand():
    """A mebibyte in and one out; where the argument is given up, the result takes its place."""
    x = jax.ShapeDtypeStruct((2**18,), jnp.float32)
    plain = memory.needed(jax.jit(lambda x: x + 1).lower(x).compile())
    given_up = memory.needed(jax.jit(lambda x: x + 1, donate_argnums=0).lower(x).compile())
    assert 2 * 2**20 <= plain < 2 * 2**20 + 2**16
    assert 2**20 <= given_up < 2**20 + 2**16


def test_a_device_holds_its_share():
    """1024 numbers divided by two and ten that are everywhere, of 4 bytes."""
    two = mesh.make_mesh(2, 2, 2)
    divided, everywhere = mesh.shardings(two, (jax.sharding.PartitionSpec(mesh.GAMES), jax.sharding.PartitionSpec()))
    shape = lambda n, sharding: jax.ShapeDtypeStruct((n,), jnp.float32, sharding=sharding)
    assert memory.held([shape(1024, divided), shape(10, everywhere)]) == 4 * (512 + 10)


GO = Config(env="go:size=19", num_envs=4096, batch_size=4096, plies_per_iteration=32, replay_capacity=1_000_000)


def length(config: Config, max_plies: int = 722) -> int:
    """As `replay.ring_length`: 1,000,000 rows are 245 for each of 4096 lanes, but games of 722 plies need 754."""
    return replay.ring_length(dataclasses.replace(envs.make("tictactoe"), max_plies=max_plies), config)


def need_of(config: Config, length, row: int, weights: int, saved: bool, devices: int = 2) -> Need:
    """A run by hand, of `row` bytes for a row. Besides there are 10 kB for a lane, ten times that when it plays;
    updates take 50 kB for a row of a batch and twice the weights."""
    ring = row * length(config) * config.num_envs // devices
    run = ring + weights + 10_000 * config.num_envs // devices
    play = run + 100_000 * config.num_envs // devices
    learn = run + 2 * weights + 50_000 * config.batch_size // devices
    return Need(play, learn, run, ring, weights, saved)


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("max_plies", [9, 722])
@pytest.mark.parametrize("gib", [0.3, 1, 2, 4])
@pytest.mark.parametrize("batch", [4096, 65536])
def test_what_is_proposed_fits(saved, max_plies, gib, batch):
    """Also where every lane has to have room for its longest game, so that a smaller capacity alone changes nothing."""
    config, lengths = dataclasses.replace(GO, batch_size=batch), functools.partial(length, max_plies=max_plies)
    need = functools.partial(need_of, length=lengths, row=1500, weights=10_000_000, saved=saved)
    before, have = need(config), int(gib * GIB)
    fits = memory.proposal(before, have, config, 2, lengths)
    if before.most <= have:
        return
    assert fits is not None
    assert need(fits).most <= have
    # It is not much too small either: with twice the rows, games and batch there would be no room.
    larger = dataclasses.replace(
        fits, num_envs=min(2 * fits.num_envs, 4096), batch_size=min(2 * fits.batch_size, batch),
        replay_capacity=min(2 * fits.replay_capacity, config.replay_capacity),
    )  # fmt: skip
    assert need(larger).most > have


def test_a_smaller_buffer_comes_first_where_that_is_enough():
    """10 GB of rows, 1,000,000 of 10 kB: beside 4 GB for the rest 5.5 of 10 GB are left once a twentieth is spared."""
    lengths = functools.partial(length, max_plies=9)
    need = Need(14_000_000_000, 10_000_000_000, 10_000_000_000, 10_000_000_000, 0, False)
    config = dataclasses.replace(GO, num_envs=1000, plies_per_iteration=10)
    fits = memory.proposal(need, 10_000_000_000, config, 1, lengths)
    assert fits == dataclasses.replace(config, replay_capacity=550_000)
    with pytest.raises(
        memory.TooLittleError, match=r"needs 13\.0 GiB on each device, which has 9\.3: try --replay_capacity=550000$"
    ):
        memory.demand_fit(need, 10_000_000_000, config, 1, lengths)


def test_games_and_batches_are_halved_where_the_buffer_cannot_be_smaller():
    """736 rows for each lane whatever the capacity: of 16 GB for 4096 lanes a half fits into 10. Where the updates take
    most it is the batch: 8 GB for 4096 rows are 4 for 2048."""
    gb = 1_000_000_000
    config = dataclasses.replace(GO, replay_capacity=95_000)
    fits = memory.proposal(Need(16 * gb, 8 * gb, 8 * gb, 7 * gb, 0, False), 10 * gb, config, 2, length)
    assert fits == dataclasses.replace(config, num_envs=2048)
    fits = memory.proposal(Need(3 * gb, 10 * gb, 2 * gb, gb, 0, False), 8 * gb, config, 2, length)
    assert fits == dataclasses.replace(config, batch_size=2048)
    with pytest.raises(memory.TooLittleError, match="try a smaller network"):
        memory.demand_fit(Need(9 * gb, 9 * gb, 9 * gb, gb, 8 * gb, False), 8 * gb, config, 2, length)


def test_what_is_saved_on_a_cpu_is_a_copy_in_the_same_memory():
    need = Need(play=5, learn=6, run=4, ring=1, weights=0, saved=True)
    assert need.most == 10
    memory.demand_fit(need, 10, GO, 1, length)
    memory.demand_fit(need, None, GO, 1, length)
    memory.demand_fit(need._replace(saved=False), 6, GO, 1, length)
    with pytest.raises(memory.TooLittleError):
        memory.demand_fit(need, 9, GO, 1, length)


def test_cpu_devices_share_the_machine():
    have = memory.there(jax.devices("cpu")[0], 2)
    assert have is None or 2**20 < have < 2**50
    assert have is None or have == memory.host() // 2


def test_the_limit_of_a_container_counts(monkeypatch):
    monkeypatch.setattr(cgroups, "memory", lambda: iter([5000, 4000]))
    assert not hasattr(os, "sysconf") or memory.host() == 4000
    monkeypatch.setattr(cgroups, "memory", lambda: iter([]))
    assert not hasattr(os, "sysconf") or memory.host() == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
