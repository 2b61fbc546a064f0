"""Memory that a run needs on each device and on its host, compared with what is there before training starts."""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from agents.config import Config
from agents.runtime import cgroups

GIB = 2**30


class TooLittleError(ValueError):
    """There is less memory than a run needs; the message is for the user."""


def needed(compiled: Any) -> int | None:
    """Bytes that a compiled program plans for on each device: arguments, results that do not replace them, and
    temporaries. None where the compiler gives no plan."""
    plan = compiled.memory_analysis()
    if plan is None:
        return None
    kept = plan.output_size_in_bytes - plan.alias_size_in_bytes
    return int(plan.argument_size_in_bytes + kept + plan.temp_size_in_bytes)


def held(tree: Any) -> int:
    """Bytes that arrays, or shapes with shardings, take on each device."""
    return sum(math.prod(x.sharding.shard_shape(x.shape)) * x.dtype.itemsize for x in jax.tree.leaves(tree))


def there(device: Any, devices: int) -> int | None:
    """Bytes of a device, or the machine's bytes divided among its `devices` CPU devices. None if unknown."""
    if device.platform != "cpu":
        return (device.memory_stats() or {}).get("bytes_limit")
    machine = host()
    return None if machine is None else machine // devices


def host() -> int | None:
    """Bytes of the machine that this process may use: all of them, or a container's limit. None if unknown."""
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return None
    return min([os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), *cgroups.memory()])


class Need(NamedTuple):
    """Bytes on each device."""

    play: int  # of the largest self-play program, including the run
    learn: int  # of the learning program, including the run
    run: int
    ring: int  # the replay buffer, part of `run`
    weights: int  # weights and optimiser, the part of `run` that does not depend on games
    saved: bool  # whether a save keeps a second copy of the run

    @property
    def most(self) -> int:
        return max(self.play, self.learn) + self.saved * self.run


SPARE = 0.05  # of the memory that a proposal leaves free: its estimates scale only roughly
SCALARS = 32  # bytes per buffer row, at most, that updates need to draw rows
HALVINGS = 12


def proposal(need: Need, have: int, config: Config, devices: int, length: Callable[[Config], int]) -> Config | None:
    """Options under which a run fits: a smaller replay buffer if that is enough, then smaller batches, fewer games.

    Args:
        need: what the run of `config` takes.
        length: rows of time in the buffer of given options, which has a minimum whatever the capacity.

    Returns:
        None if weights and optimiser leave no room.
    """
    longest, t = length(config), config.plies_per_iteration
    row = need.ring / longest / config.num_envs
    lanes = need.run - need.ring - need.weights
    # What the programs need beyond the run. Of learning, gradients, steps and scalars do not shrink.
    play, learn = need.play - need.run, need.learn - need.run
    stays = min(learn, 2 * need.weights + int(SCALARS / devices * longest * config.num_envs))
    halvings = sorted(itertools.product(range(HALVINGS), repeat=2), key=lambda pair: (sum(pair), pair))
    for of_games, of_batch in halvings:
        games, batch = config.num_envs >> of_games, config.batch_size >> of_batch
        if games << of_games != config.num_envs or batch << of_batch != config.batch_size:
            continue
        if games % devices or batch % devices:
            continue
        share = 1 / 2**of_games
        rest = need.weights + lanes * share
        programs = max(play * share, stays + (learn - stays) / 2**of_batch)
        room = ((1 - SPARE) * have - rest * (1 + need.saved) - programs) / (1 + need.saved)
        fits = dataclasses.replace(config, num_envs=games, batch_size=batch)
        least = length(dataclasses.replace(fits, replay_capacity=1))
        rows = int(room / (row * games))
        rows = longest if rows >= longest else rows // t * t  # whole iterations
        if rows < least:
            continue
        return fits if rows == length(fits) else dataclasses.replace(fits, replay_capacity=rows * games)
    return None


def demand_fit(
    need: Need,
    have: int | None,
    config: Config,
    devices: int,
    length: Callable[[Config], int],
    place: str = "on each device, which has",
) -> None:
    """Refuses a run that cannot fit, see `proposal`.

    Raises:
        TooLittleError: the message names options that would fit.
    """
    if have is None or need.most <= have:
        return
    fits = proposal(need, have, config, devices, length)
    names = ("replay_capacity", "batch_size", "num_envs")
    changed = [f"--{x}={getattr(fits, x)}" for x in names if fits and getattr(fits, x) != getattr(config, x)]
    try_this = " ".join(changed) or "a smaller network, by --channels or --blocks"
    raise TooLittleError(f"this run needs {need.most / GIB:.1f} GiB {place} {have / GIB:.1f}: try {try_this}")
