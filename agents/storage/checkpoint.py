"""Saving and restoring with orbax. Every checkpoint is complete or absent.

A run's folder holds

    networks/ITERATION/   weights for play, small, all of them kept
    resume/ITERATION/     the whole run: weights, optimiser, replay buffer, games under way, random key; the newest
    best/ITERATION/       a copy of the network that was marked as the best, see `mark_best`

Each carries `about`, the options of the run with its counters, and sums.json, by which damage is found. A checkpoint is
written under another name and renamed once all of it is on the disk, the network before the run of the same iteration:
whenever the program dies, what carries a number is whole.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import errno
import functools
import json
import logging
import os
import shutil
import sys
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

from agents import config as config_lib
from agents.config import Config
from agents.runtime import processes

# Orbax logs pages about every error that it also raises.
logging.getLogger("absl").setLevel(logging.CRITICAL)

SUMS = "sums.json"
# Ends of the names of what is not, or no longer, a checkpoint of the run.
WRITING, OLD = ".writing", ".old"
MOST_ASKED = 1 << 26  # bytes; where a file system cannot reserve, they are written
# What the first process writes by itself, without waiting for others.
ALONE = ocp.options.MultiprocessingOptions(primary_host=0, active_processes={0}, barrier_sync_key_prefix="alone")
# Folders made by a thread are awaited by others; where they cannot be made, these keep the program for 20 minutes.
FOLDERS_FIRST = ocp.options.AsyncOptions(create_directories_asynchronously=False)


class CheckpointError(ValueError):
    """A checkpoint is missing, damaged or of another kind, or cannot be written; the message is for people."""


class Snapshot(NamedTuple):
    """A run as it is saved, whatever it consists of."""

    iteration: int
    run: Any  # pytree of arrays on the device, all that the run goes on from
    weights: Any  # those of the network for play, part of it
    room: int  # bytes, the least that a checkpoint takes


class Saver:
    """Saves a run again and again, behind its training.

    `start` copies what it is given and returns; a thread then writes. There is one save at a time. One that fails takes
    back what it wrote and is reported by `say`; the checkpoints before it stay. With several processes all of them must
    start the same saves in the same order.
    """

    def __init__(self, folder: Path, config: Config, say: Callable[[str], None], saved: int | None = None):
        """`saved` is the iteration that a run goes on from."""
        self.folder, self.config, self.say = folder, config, say
        self.saved = saved  # iteration of the newest complete checkpoint
        self.problem: str | None = None  # why the last save failed, if it did
        self._pool = concurrent.futures.ThreadPoolExecutor(max_workers=1)
        self._writing: tuple[int, concurrent.futures.Future[None]] | None = None
        self._told_late = False
        _hush_writers()
        if jax.process_index() == 0:
            _remove_unfinished(folder)

    def start(self, snapshot: Snapshot, **counters: Any) -> bool:
        """Begins to save a run; False while the save before is still being written, and then nothing is done."""
        if not processes.allgather(self.poll()).all():  # of all processes
            if not self._told_late:
                self.say("the checkpoint before is still being written; the next one waits for it")
            self._told_late = True
            return False
        iteration, self._told_late = snapshot.iteration, False
        about = {"config": dataclasses.asdict(self.config), "iteration": iteration, **counters}
        short = self._no_room(snapshot.room)
        if not processes.allgather(short is None).all():  # else the others would wait for the one without
            self._failed(iteration, short or OSError("another process has no room for it"))
            return True
        try:
            owned = _copy(snapshot.run)
            weights = jax.tree.map(np.array, snapshot.weights)
            items = ocp.CompositeCheckpointHandler(composite_options=ocp.CompositeOptions(async_options=FOLDERS_FIRST))
            checkpointer = ocp.AsyncCheckpointer(items, async_options=FOLDERS_FIRST)
            unfinished = _unfinished(self.folder / "resume", iteration)
            checkpointer.save(unfinished.absolute(), _items("run", owned, about), force=True)
        except Exception as error:  # orbax raises what its storage raises
            self._failed(iteration, error)
        else:
            self._writing = iteration, self._pool.submit(self._complete, checkpointer, weights, about)
        return True

    def poll(self) -> bool:
        """Whether no save is under way; takes note of how the last one ended."""
        if self._writing is None:
            return True
        iteration, writing = self._writing
        if not writing.done():
            return False
        self._writing, error = None, writing.exception()
        if error is None:
            self.saved, self.problem = iteration, None
        else:
            self._failed(iteration, error)
        return True

    def finish(self, snapshot: Snapshot, **counters: Any) -> None:
        """Waits for the save under way and saves the run, unless it is saved already; the last call.

        Raises:
            CheckpointError: it cannot be saved; names the last checkpoint that is intact.
        """
        self.wait()
        if not processes.allgather(self.saved == snapshot.iteration).all():
            self.start(snapshot, **counters)
            self.wait()
        self._pool.shutdown()
        if self.saved != snapshot.iteration:
            raise CheckpointError(f"iteration {snapshot.iteration} could not be saved: {self.problem}; {self.intact()}")

    def wait(self) -> None:
        """Until the save under way has ended, in whatever way."""
        if self._writing is not None:
            concurrent.futures.wait([self._writing[1]])
        self.poll()

    def intact(self) -> str:
        """For people: where the run can go on from."""
        if self.saved is None:
            return "there is no checkpoint yet"
        return f"the last intact checkpoint is {self.folder / 'resume' / str(self.saved)}"

    def _no_room(self, least: int) -> OSError | None:
        """Why the disk cannot take a checkpoint; None where it can."""
        try:
            self._ask_for_room(least)
        except OSError as error:
            return error
        return None

    def _ask_for_room(self, least: int) -> None:
        """Raises OSError where a checkpoint as large as the last one, and `least` bytes, does not fit, or none can be
        made at all. Orbax would find out in the middle, with a traceback for every
        array."""
        if jax.process_index() > 0:
            return
        last = self.folder / "resume" / str(self.saved)
        size = sum(p.stat().st_size for p in last.rglob("*") if p.is_file()) if last.is_dir() else 0
        size = max(size, least, 1)
        for kind in ("networks", "resume"):
            (self.folder / kind).mkdir(parents=True, exist_ok=True)
            if shutil.disk_usage(self.folder / kind).free < size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            room = self.folder / kind / f"room{WRITING}"
            with room.open("wb") as file:  # quotas and limits do not show in the free space
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, min(size, MOST_ASKED))
            room.unlink()

    def _failed(self, iteration: int, error: BaseException) -> None:
        self.problem = _reason(error)
        if jax.process_index() == 0:
            _remove_unfinished(self.folder)
        self.say(f"warning: iteration {iteration} could not be saved: {self.problem}; {self.intact()}")

    def _complete(self, checkpointer: ocp.AsyncCheckpointer, weights: Any, about: dict[str, Any]) -> None:
        """In the thread: waits until the run is on the disk, adds the network, and gives both their names."""
        with contextlib.closing(checkpointer):
            checkpointer.wait_until_finished()
        if jax.process_index() == 0:
            network, run = (_unfinished(self.folder / kind, about["iteration"]) for kind in ("networks", "resume"))
            items = ocp.CompositeCheckpointHandler(
                composite_options=ocp.CompositeOptions(multiprocessing_options=ALONE, async_options=FOLDERS_FIRST)
            )
            with ocp.Checkpointer(items, multiprocessing_options=ALONE) as writer:
                writer.save(network.absolute(), _items("weights", weights, about), force=True)
            _publish(network)
            _publish(run)
            _tidy(self.folder, self.config.keep_checkpoints)


@functools.cache  # once
def _hush_writers() -> None:
    """Where a disk fills in the middle of a save, orbax raises the reason, which is told; each of its writers then
    prints a page more, because what they report to is gone."""
    show = sys.unraisablehook
    sys.unraisablehook = lambda found: None if str(found.exc_value) == "Event loop is closed" else show(found)
    logging.getLogger("asyncio").addFilter(lambda record: "never retrieved" not in record.getMessage())
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)


def _copy(run: Any) -> Any:
    """Arrays that nothing else writes to while they are saved.

    Training gives the buffers of a run back to each iteration. Devices with a memory of their own are read before
    `AsyncCheckpointer.save` returns; but on a CPU numpy, and so orbax, would look into the very buffers.
    """
    on_cpu = any(device.platform == "cpu" for x in jax.tree.leaves(run) for device in x.sharding.device_set)
    return _copied(run) if on_cpu else run


_copied = jax.jit(lambda tree: jax.tree.map(jnp.copy, tree))


def _items(item: str, tree: Any, about: dict[str, Any]) -> ocp.args.Composite:
    return ocp.args.Composite(**{item: ocp.args.StandardSave(tree), "about": ocp.args.JsonSave(about)})


def _unfinished(folder: Path, iteration: int) -> Path:
    return folder / f"{iteration}{WRITING}"


def _reason(error: BaseException) -> str:
    """What storage complains of, in a few words: what the system says where that is told, else the first line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror + (f": {error.filename}" if error.filename else "")
    told = [os.strerror(code) for code in errno.errorcode if os.strerror(code) in str(error)]
    return (told or str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def _publish(unfinished: Path) -> None:
    """Makes a checkpoint of a folder in which everything is written: sums, then the name that says so."""
    path = unfinished.with_name(unfinished.name.removesuffix(WRITING))
    with (unfinished / SUMS).open("w") as file:
        json.dump(_sums(unfinished), file)
        file.flush()
        os.fsync(file.fileno())
    set_aside(path)
    unfinished.rename(path)


def _sums(path: Path) -> dict[str, list[int]]:
    """Size and CRC-32 of every file, by its path."""

    def of_file(file: Path) -> list[int]:
        size = sum = 0
        with file.open("rb") as stream:
            while block := stream.read(1 << 22):
                size, sum = size + len(block), zlib.crc32(block, sum)
        return [size, sum]

    files = sorted(p for p in path.rglob("*") if p.is_file() and p != path / SUMS)
    return {str(file.relative_to(path)): of_file(file) for file in files}


def damage(path: Path) -> str | None:
    """What differs from how the checkpoint was written; None if nothing does, or if nobody knows: one without sums.json
    is as its author left it, and restoring it will tell."""
    if not (path / SUMS).exists():
        return None
    try:
        wanted, found = json.loads((path / SUMS).read_text()), _sums(path)
    except (OSError, ValueError) as error:
        return f"{SUMS} cannot be read: {_reason(error)}"
    if not isinstance(wanted, dict):
        return f"{SUMS} cannot be read"
    differing = [name for name, sum in wanted.items() if found.get(name) != sum]
    if not differing:
        return None
    return f"{differing[0]} is {'not as it was written' if differing[0] in found else 'missing'}"


def set_aside(path: Path) -> None:
    """Takes the number from a checkpoint, if it is there; it is removed when the next save is complete."""
    if path.exists():
        aside = path.with_name(path.name + OLD)
        shutil.rmtree(aside, ignore_errors=True)
        path.rename(aside)


def forget_later(folder: Path, iteration: int) -> None:
    """Sets aside what is later than the iteration a run goes on from: damaged, or another future."""
    for path in (*numbered(folder / "networks"), *numbered(folder / "resume")):
        if int(path.name) > iteration:
            set_aside(path)


def _tidy(folder: Path, keep: int) -> None:
    for old in numbered(folder / "resume")[:-keep]:
        set_aside(old)  # a folder half removed must not look like a checkpoint
    for kind in ("networks", "resume"):
        for aside in (folder / kind).glob(f"*{OLD}"):
            shutil.rmtree(aside)
    _remove_unfinished(folder)


def _remove_unfinished(folder: Path) -> None:
    """Removes what saves that broke off have left, and what is in the way of the next one."""
    for kind in ("networks", "resume"):  # who marks the best network looks after the rest
        for path in (folder / kind).glob(f"*{WRITING}*"):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def mark_best(folder: Path, iteration: int) -> Path:
    """Keeps a copy of networks/ITERATION as the best network of the run, in place of the one before; returns it."""
    writing = _unfinished(folder / "best", iteration)
    shutil.rmtree(writing, ignore_errors=True)
    shutil.copytree(folder / "networks" / str(iteration), writing)
    os.utime(writing)  # `best` goes by it
    _publish(writing)
    marked = folder / "best" / str(iteration)
    for path in (folder / "best").iterdir():
        if path != marked and path.is_dir():
            shutil.rmtree(path)
    return marked


def best(folder: Path) -> Path | None:
    """The network marked last, if any is marked and intact."""
    found = sorted(numbered(folder / "best"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    return next((path for path in found if damage(path) is None), None)


def restore(path: Path, item: str, shapes: Any) -> Any:
    """What a checkpoint holds under this name; `shapes` is its pytree, of `jax.ShapeDtypeStruct` with the places where
    the arrays shall lie, or of numpy arrays.

    Raises:
        CheckpointError: it is damaged, or does not fit the shapes.
    """
    return _read(path, item, ocp.args.StandardRestore(shapes))


def _read(path: Path, item: str, argument: Any) -> Any:
    try:
        with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
            restored = checkpointer.restore(path.absolute(), ocp.args.Composite(**{item: argument}))[item]
    except Exception as error:  # orbax raises what its storage raises: any of it means that the folder is unusable
        if "structures do not match" in str(error):
            raise CheckpointError(f"checkpoint {path} is of another version: {_reason(error)}") from error
        raise CheckpointError(f"checkpoint {path} is damaged or incomplete: {_reason(error)}") from error
    if restored is None:
        raise CheckpointError(f"checkpoint {path} is damaged or incomplete: it has no '{item}'")
    return restored


def numbered(folder: Path) -> list[Path]:
    """Checkpoints in a folder, oldest first."""
    found = [p for p in folder.iterdir() if p.is_dir() and p.name.isdigit()] if folder.is_dir() else []
    return sorted(found, key=lambda p: int(p.name))


def find(path: Path, kind: str) -> Path:
    """The checkpoint meant by `path`: a checkpoint folder itself, or the newest intact one of a run (`kind` is networks
    or resume). Damaged ones that are newer are named in a warning.

    Raises:
        CheckpointError: there is none, or the one that is meant is damaged.
    """
    kinds = {kind, "best"} if kind == "networks" else {kind}
    itself = path.name.isdigit() and path.parent.name in kinds and path.is_dir()
    wanted = [path] if itself else numbered(path / kind)[::-1]
    if not wanted:
        what = f"holds no {kind}/ITERATION" if path.is_dir() else "does not exist"
        raise CheckpointError(f"no checkpoint: {path} {what}; give the folder of a run, such as runs/NAME")
    damaged = []
    for candidate in wanted:
        wrong = damage(candidate)
        if wrong is None:
            for text in damaged:
                _warn(f"{text}; using {candidate}")
            return candidate
        damaged.append(f"checkpoint {candidate} is damaged: {wrong}")
    raise CheckpointError(damaged[0])


@functools.cache  # once, however often a network is looked for
def _warn(text: str) -> None:
    print("warning:", text, file=sys.stderr)


def about(path: Path) -> dict[str, Any]:
    """What a checkpoint says of itself: `config` (a Config), `iteration` and the counters given to `save`."""
    record = _read(path, "about", ocp.args.JsonRestore())
    try:
        return {**record, "config": config_lib.read(record["config"])}
    except (TypeError, KeyError, ValueError) as error:
        raise CheckpointError(f"checkpoint {path} is of another version: {error}") from error


def load_weights(path: Path, shapes: Any) -> Any:
    """Weights for play from `networks/ITERATION`; `shapes` is their pytree of `jax.ShapeDtypeStruct`."""
    on_host = jax.tree.map(lambda x: np.empty(x.shape, x.dtype), shapes)  # each of several processes reads its own
    return jax.tree.map(jnp.asarray, restore(path, "weights", on_host))


def newest_run(folder: Path) -> Path:
    """The run under `folder` whose network was saved last.

    Raises:
        CheckpointError: there is none.
    """
    runs = [p for p in folder.iterdir() if numbered(p / "networks")] if folder.is_dir() else []
    if not runs:
        raise CheckpointError(f"no run with a checkpoint under {folder}/; train one first: python train.py --env=foq")
    return max(runs, key=lambda p: numbered(p / "networks")[-1].stat().st_mtime)
