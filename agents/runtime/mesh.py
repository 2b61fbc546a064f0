"""Device meshes: each device plays its own lanes, keeps their replay and learns from its share of each batch.

Within an iteration, only gradients, batch-normalisation statistics, running statistics and metrics are averaged over
the mesh. A CPU counts as one device per core (`claim_cores`) because XLA runs a convolution on one core, whatever the
batch size. Two single-core devices play about twice as fast as one two-core device.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from agents.runtime import cgroups

GAMES = "games"  # the only axis: divides lanes, replay rows and batches
SHARED = 2**31 - 1  # folded into a key; never equals an iteration number


def claim_cores() -> None:
    """Makes every core that this process may use a JAX device. Of a container's limit, such as `docker run --cpus=1.5`,
    whole cores count.

    Has no effect if XLA_FLAGS already sets the number of CPU devices, or once JAX has started its devices.
    """
    if "host_platform_device_count" in os.environ.get("XLA_FLAGS", ""):
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cores = max(1, int(min([cores, *cgroups.cpus()])))
    with contextlib.suppress(RuntimeError):  # raised once the devices have started
        jax.config.update("jax_num_cpu_devices", cores)


def make_mesh(num_envs: int, batch_size: int, wanted: int | None = None, *, everywhere: bool = False) -> Mesh:
    """A mesh of `wanted` devices; by default as many as are available and divide both numbers.

    Takes devices of this process only; with `everywhere`, the same number from every process.

    Raises:
        ValueError: `wanted` devices are not available, or do not divide the lanes or the batch.
    """
    processes = range(jax.process_count()) if everywhere else [jax.process_index()]
    there = [jax.local_devices(process) for process in processes]
    each = range(1, min(map(len, there)) + 1)
    fits = [n * len(there) for n in each if num_envs % (n * len(there)) == 0 and batch_size % (n * len(there)) == 0]
    if not fits or (wanted is not None and wanted not in fits):
        raise ValueError(
            f"--devices={wanted}: expected {len(there)} to the {len(there) * each[-1]} found here"
            + (", as many of every process" if len(there) > 1 else "")
            + f", and divide --num_envs={num_envs} and --batch_size={batch_size}; possible: "
            + (", ".join(map(str, fits)) or "none")
        )
    share = (wanted or fits[-1]) // len(there)
    return Mesh(np.array([device for devices in there for device in devices[:share]]), (GAMES,))


def shardings(mesh: Mesh, specs: Any) -> Any:
    """Shardings on `mesh` for a tree of PartitionSpec."""
    is_spec = lambda x: isinstance(x, PartitionSpec)
    return jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs, is_leaf=is_spec)


def laid_out(start: Callable[[], Any], specs: Callable[[Any], Any], mesh: Mesh) -> Callable[[], Any]:
    """`start` compiled, with its result laid out over the mesh by `specs` from the beginning. A later change of layout
    would compile every program that takes the result again."""
    return jax.jit(start, out_shardings=shardings(mesh, specs(jax.eval_shape(start))))


def numbers(x: Array) -> Array:
    """Global indices of a device's share of an array, int32[len(x)]; inside a mapped function."""
    return jax.lax.axis_index(GAMES) * len(x) + jnp.arange(len(x))


def sum_over_devices(x: Array) -> Array:
    """Sum of an array over all devices; inside a mapped function."""
    return jax.lax.psum(x.sum(), GAMES)


def mean_over_devices(tree: Any) -> Any:
    """Mean over the devices, leaf by leaf; inside a mapped function."""
    return jax.lax.pmean(tree, GAMES)
