"""Several processes that train one network together, usually one on every host.

All of them run the same program on the same options. What a host knows by itself (the time, a signal, a folder that is
there) has to be decided alike by all of them, or some wait for ever in a collective operation that others never begin:
such decisions go through `told` and `gathered`. Only the first process speaks and writes figures. With one process all
of this costs nothing.
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

CLUSTER = "auto"  # as a coordinator: where the cluster's environment says who takes part
LOST_AFTER = 25  # seconds of silence after which a process counts as lost, and the others end
MEETING = 300  # seconds to wait for all processes at the start
LONGEST = 1024  # bytes of a text


def connect(coordinator: str, num_processes: int | None, process_id: int | None) -> None:
    """Joins the other processes; before anything that starts jax's devices. Does nothing without a coordinator.

    Args:
        coordinator: HOST:PORT of the first process, or `auto` on Slurm, Open MPI, Kubernetes or a TPU pod.
        num_processes: how many there are; with HOST:PORT.
        process_id: which of them this is, from 0; with HOST:PORT.

    Raises:
        ValueError: options that do not go together, no cluster, or not all processes came.
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
            f"--coordinator={coordinator}: want {CLUSTER}, or HOST:PORT with --num_processes and --process_id"
        )
    elif not 0 <= process_id < num_processes:
        raise ValueError(f"--process_id={process_id}: must be from 0 to {num_processes - 1}")
    else:
        given = {"coordinator_address": coordinator, "num_processes": num_processes, "process_id": process_id}
        given["cluster_detection_method"] = "deactivate"
    try:
        jax.distributed.initialize(**given, initialization_timeout=MEETING, heartbeat_timeout_seconds=LOST_AFTER)
    except ValueError as error:  # jax found no cluster
        raise ValueError(f"--coordinator={coordinator}: no cluster says who takes part; give HOST:PORT") from error
    except RuntimeError as error:
        raise ValueError(f"--coordinator={coordinator}: not all processes have met: {_first_line(error)}") from error


def is_main_process() -> bool:
    """Whether this process is the one that speaks."""
    return jax.process_index() == 0


def broadcast_str(text: str) -> str:
    """The first process's text, on all of them; until then they wait for each other. At most `LONGEST` bytes."""
    if jax.process_count() == 1:
        return text
    line = np.zeros(LONGEST, np.uint8)
    code = text.encode()[:LONGEST] if is_main_process() else b""
    line[: len(code)] = np.frombuffer(code, np.uint8)
    return bytes(multihost_utils.broadcast_one_to_all(line)).rstrip(b"\0").decode(errors="ignore")


def allgather(*numbers: float) -> np.ndarray:
    """The numbers of all processes, [processes, len(numbers)], the same everywhere; of several in single precision."""
    if jax.process_count() == 1:
        return np.array([numbers])
    return np.asarray(multihost_utils.process_allgather(np.array(numbers, np.float32)))


def whole(tree: Any) -> Any:
    """Arrays that are divided among devices as numpy arrays, on every process."""
    return jax.device_get(tree) if jax.process_count() == 1 else multihost_utils.process_allgather(tree, tiled=True)


def local(tree: Any) -> Any:
    """Arrays that lie whole on every device, as arrays of this process alone."""
    return tree if jax.process_count() == 1 else jax.tree.map(lambda x: x.addressable_data(0), tree)


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Around a program: one that fails among several ends at once.

    The usual end of a process waits for the others, who wait for it. That of a lost one shows in the others as a
    failed operation, or after `LOST_AFTER` seconds jax ends them itself.
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
