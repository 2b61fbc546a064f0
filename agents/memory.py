"""What a compiled program needs of each device's memory, and what the devices have: said before anything is lost."""

from __future__ import annotations

import os
from typing import Any

import jax

GIB = 2**30


class TooLittleError(ValueError):
    """The devices have less memory than a run needs; the message is for people."""


def needed(compiled: Any) -> int | None:
    """Bytes that a compiled program plans for on each device: arguments, results that do not take their place, and
    everything in between. None where the compiler does not say."""
    plan = compiled.memory_analysis()
    if plan is None:
        return None
    kept = plan.output_size_in_bytes - plan.alias_size_in_bytes
    return int(plan.argument_size_in_bytes + kept + plan.temp_size_in_bytes)


def there(device: Any) -> int | None:
    """Bytes of a device, or a CPU device's share of the machine's memory; None where nobody says."""
    if device.platform == "cpu":
        if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
            return None
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // len(jax.local_devices())
    return (device.memory_stats() or {}).get("bytes_limit")


def demand(need: int | None, have: int | None, num_envs: int, devices: int, ring: int, capacity: int) -> None:
    """Refuses what cannot fit; `ring` are the bytes of it that the replay buffer takes, for `capacity` rows.

    Raises:
        TooLittleError: with a smaller buffer that should fit where it takes the most, else with the largest halving of
            `num_envs` that should, the rest being in proportion to the games.
    """
    if need is None or have is None or need <= have:
        return
    rest, smaller = need - ring, num_envs
    while smaller > devices and ring + rest * smaller / num_envs > have:
        smaller //= 2
    try_this = f"--num_envs={smaller}, or a smaller --replay_capacity or --batch_size"
    if ring > rest and rest < have:
        try_this = f"--replay_capacity={int(capacity * 0.95 * (have - rest) / ring)}, or a smaller --num_envs"
    raise TooLittleError(
        f"this run needs {need / GIB:.1f} GiB on each device, which has {have / GIB:.1f}: try {try_this}"
    )
