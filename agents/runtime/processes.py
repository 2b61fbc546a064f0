"""Multiple processes that train one network together, usually one per host.

All processes run the same program with the same options. Facts local to a host (the time, a signal, an existing folder)
must lead to the same decision everywhere. Otherwise some processes wait forever in a collective operation that others
never start. Such decisions go through `broadcast_str` and `allgather`. Only the main process prints and writes metrics.
With one process all of this is free.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import traceback
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

CLUSTER = "auto"  # as the coordinator: the cluster's environment lists the processes
LOST_AFTER = 25  # seconds without a heartbeat before a process counts as lost and the others end
MEETING = 300  # seconds to wait for all processes at startup


def connect(coordinator: str, num_processes: int | None, process_id: int | None) -> None:
    """Joins the other processes. Call it before JAX starts its devices. Does nothing without a coordinator.

    Args:
        coordinator: HOST:PORT of the first process, or `auto` on Slurm, Open MPI, Kubernetes or a TPU pod.
        num_processes: number of processes; only with HOST:PORT.
        process_id: index of this process, from 0; only with HOST:PORT.

    Raises:
        ValueError: the options conflict, there is no cluster, or not all processes joined.
    """
    numbers = num_processes, process_id
    if not coordinator:
        if numbers != (None, None):
            raise ValueError("--num_processes and --process_id need --coordinator=HOST:PORT of the first process")
        return
    given: dict[str, Any] = {}
    if coordinator == CLUSTER:
        if numbers != (None, None):
            raise ValueError("--coordinator=auto: the cluster says --num_processes and --process_id; leave them out")
    elif not re.fullmatch(r".+:\d+", coordinator) or num_processes is None or process_id is None:
        raise ValueError(
            f"--coordinator={coordinator}: expected {CLUSTER}, or HOST:PORT with --num_processes and --process_id"
        )
    elif not 0 <= process_id < num_processes:
        raise ValueError(f"--process_id={process_id}: expected 0 to {num_processes - 1}")
    else:
        given = {"coordinator_address": coordinator, "num_processes": num_processes, "process_id": process_id}
        given["cluster_detection_method"] = "deactivate"
    try:
        jax.distributed.initialize(**given, initialization_timeout=MEETING, heartbeat_timeout_seconds=LOST_AFTER)
    except ValueError as error:  # JAX found no cluster
        raise ValueError(f"--coordinator={coordinator}: no cluster says who takes part; give HOST:PORT") from error
    except RuntimeError as error:
        raise ValueError(f"--coordinator={coordinator}: not all processes have met: {_first_line(error)}") from error


def is_main_process() -> bool:
    """Whether this process prints and writes metrics."""
    return jax.process_index() == 0


def broadcast_str(text: str) -> str:
    """The main process's text on every process. Blocks until all processes call it."""
    if jax.process_count() == 1:
        return text
    code = np.frombuffer(text.encode(errors="surrogateescape"), np.uint8)
    length = int(multihost_utils.broadcast_one_to_all(np.int32(len(code))))  # all must send arrays of one shape
    sent = code if is_main_process() else np.zeros(length, np.uint8)
    return bytes(multihost_utils.broadcast_one_to_all(sent)).decode(errors="surrogateescape")


def allgather(*numbers: float) -> np.ndarray:
    """Numbers of all processes, float64[processes, len(numbers)], equal everywhere. They travel as pairs of uint32: JAX
    would cut doubles to single precision, in which the seconds of a long run lose their fractions."""
    own = np.array(numbers, np.float64)
    if jax.process_count() == 1:
        return own[None]
    return np.asarray(multihost_utils.process_allgather(own.view(np.uint32))).view(np.float64)


def whole(tree: Any) -> Any:
    """Sharded arrays as complete numpy arrays, on every process."""
    return jax.device_get(tree) if jax.process_count() == 1 else multihost_utils.process_allgather(tree, tiled=True)


def local(tree: Any) -> Any:
    """Replicated arrays as arrays of this process only."""
    return tree if jax.process_count() == 1 else jax.tree.map(lambda x: x.addressable_data(0), tree)


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Wraps a program so that a failing process of several exits at once.

    A normal exit would wait for the other processes, which wait for this one. The other processes see a failed
    operation, or JAX ends them after `LOST_AFTER` seconds.
    """
    try:
        yield
    except BaseException as error:
        if not jax.distributed.is_initialized():
            raise
        if isinstance(error, jax.errors.JaxRuntimeError):
            print(f"error: process {jax.process_index()}: {_first_line(error)}", file=sys.stderr)
            print("if another process was lost, start all of them again with --resume", file=sys.stderr)
        elif not isinstance(error, SystemExit):
            traceback.print_exc()
        code = error.code if isinstance(error, SystemExit) else 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
