"""Saves and restores pytrees with orbax; every checkpoint is complete or absent.

A run's folder holds

    networks/ITERATION/   weights for play; small, all of them kept
    resume/ITERATION/     the whole run: weights, optimiser, replay buffer, games under way, random key; the newest
    best/ITERATION/       a copy of the network marked as the best, see `mark_best`

Each contains `about`, the options and counters of the run, and sums.json, which reveals damage. A checkpoint is written
under another name and renamed once all of it is on the disk. The network comes before the run of the same iteration.
Whenever the program dies, every numbered folder is complete.
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
from typing import Any, NamedTuple, TypedDict, get_type_hints

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

import envs
from agents import config as config_lib
from agents.config import Config
from agents.runtime import advice, cli, processes

# Orbax logs pages about every error that it also raises.
logging.getLogger("absl").setLevel(logging.CRITICAL)

CHECKSUMS_FILE = "sums.json"
FORMAT = 3  # of the arrays of a run; a change of their names or meaning needs a new number
# Suffixes of folders that are not yet, or no longer, checkpoints of the run.
WRITING, OLD = ".writing", ".old"
MOST_ASKED = 1 << 26  # bytes; a file system that cannot reserve space writes them
# For writes by the first process alone, without waiting for the others.
ALONE = ocp.options.MultiprocessingOptions(primary_host=0, active_processes={0}, barrier_sync_key_prefix="alone")
# If a thread makes the folders, other threads wait for them; on failure they hold up the program for 20 minutes.
FOLDERS_FIRST = ocp.options.AsyncOptions(create_directories_asynchronously=False)


class CheckpointError(ValueError):
    """A checkpoint is missing, damaged or of another kind, or cannot be written; the message is for the user."""


class Snapshot(NamedTuple):
    """A run as it is saved, whatever it contains."""

    iteration: int
    run: Any  # pytree of arrays on the device, everything needed to resume
    weights: Any  # of the network for play, part of `run`
    room: int  # bytes, the minimum size of a checkpoint


class Saver:
    """Saves a run repeatedly while it trains.

    `start` copies its arguments and returns; a thread then writes. Only one save runs at a time. A failed save removes
    its files and is reported by `say`; earlier checkpoints stay. With several processes, all must start the same saves
    in the same order.
    """

    def __init__(self, folder: Path, config: Config, say: Callable[[str], None], saved: int | None = None):
        """`saved` is the iteration that a run resumes from."""
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
        """Begins to save a run. Returns False, and does nothing, while the previous save is still being written."""
        if not processes.allgather(self.poll()).all():  # of all processes
            if not self._told_late:
                self.say("the checkpoint before is still being written; the next one waits for it")
            self._told_late = True
            return False
        iteration, self._told_late = snapshot.iteration, False
        about = {"format": FORMAT, "config": dataclasses.asdict(self.config), "iteration": iteration, **counters}
        short = self._no_room(snapshot.room)
        if not processes.allgather(short is None).all():  # else the others would wait for the process without room
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
        """Whether no save is under way; records how the last one ended."""
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
            CheckpointError: it cannot be saved; the message names the last intact checkpoint.
        """
        self.wait()
        if not processes.allgather(self.saved == snapshot.iteration).all():
            self.start(snapshot, **counters)
            self.wait()
        self._pool.shutdown()
        if self.saved != snapshot.iteration:
            raise CheckpointError(f"iteration {snapshot.iteration} could not be saved: {self.problem}; {self.intact()}")

    def wait(self) -> None:
        """Waits until the save under way has succeeded or failed."""
        if self._writing is not None:
            concurrent.futures.wait([self._writing[1]])
        self.poll()

    def intact(self) -> str:
        """Message for the user: where the run can resume."""
        if self.saved is None:
            return "there is no checkpoint yet"
        return f"the last intact checkpoint is {self.folder / 'resume' / str(self.saved)}"

    def _no_room(self, least: int) -> OSError | None:
        """Why the disk cannot take a checkpoint; None if it can."""
        try:
            self._ask_for_room(least)
        except OSError as error:
            return error
        return None

    def _ask_for_room(self, least: int) -> None:
        """Raises OSError unless there is room for a checkpoint as large as the last one and at least `least` bytes.
        Orbax would fail midway, with a traceback for every array."""
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
            with room.open("wb") as file:  # the free space ignores quotas and limits
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, min(size, MOST_ASKED))
            room.unlink()

    def _failed(self, iteration: int, error: BaseException) -> None:
        self.problem = _reason(error)
        if jax.process_index() == 0:
            _remove_unfinished(self.folder)
        self.say(f"warning: iteration {iteration} could not be saved: {self.problem}; {self.intact()}")

    def _complete(self, checkpointer: ocp.AsyncCheckpointer, weights: Any, about: dict[str, Any]) -> None:
        """In the thread: waits until the run is on the disk, adds the network, and gives both their final names."""
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
    """Silences follow-up errors. When a disk fills during a save, orbax raises the reason, which is reported. Each of
    its writers then prints another page, because its event loop is gone."""
    show = sys.unraisablehook
    sys.unraisablehook = lambda found: None if str(found.exc_value) == "Event loop is closed" else show(found)
    logging.getLogger("asyncio").addFilter(lambda record: "never retrieved" not in record.getMessage())
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)


def _copy(run: Any) -> Any:
    """Arrays that nothing else writes to while they are saved.

    Training donates the buffers of a run to each iteration. `AsyncCheckpointer.save` reads devices with their own
    memory before it returns. On a CPU, numpy and therefore orbax would read the donated buffers themselves.
    """
    on_cpu = any(device.platform == "cpu" for x in jax.tree.leaves(run) for device in x.sharding.device_set)
    return _copied(run) if on_cpu else run


_copied = jax.jit(lambda tree: jax.tree.map(jnp.copy, tree))


def _items(item: str, tree: Any, about: dict[str, Any]) -> ocp.args.Composite:
    return ocp.args.Composite(**{item: ocp.args.StandardSave(tree), "about": ocp.args.JsonSave(about)})


def _unfinished(folder: Path, iteration: int) -> Path:
    return folder / f"{iteration}{WRITING}"


def _reason(error: BaseException) -> str:
    """A storage error in a few words: the system's message if there is one, else the first line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror + (f": {error.filename}" if error.filename else "")
    causes = [os.strerror(code) for code in errno.errorcode if os.strerror(code) in str(error)]
    return (causes or str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def _publish(unfinished: Path) -> None:
    """Turns a completely written folder into a checkpoint: adds sums.json, then gives the folder its final name."""
    path = unfinished.with_name(unfinished.name.removesuffix(WRITING))
    with (unfinished / CHECKSUMS_FILE).open("w") as file:
        json.dump(_sums(unfinished), file)
        file.flush()
        os.fsync(file.fileno())
    withdraw(path)
    unfinished.rename(path)


def _sums(path: Path) -> dict[str, list[int]]:
    """Size and CRC-32 of every file, by path."""

    def of_file(file: Path) -> list[int]:
        size = sum = 0
        with file.open("rb") as stream:
            while block := stream.read(1 << 22):
                size, sum = size + len(block), zlib.crc32(block, sum)
        return [size, sum]

    files = sorted(p for p in path.rglob("*") if p.is_file() and p != path / CHECKSUMS_FILE)
    return {str(file.relative_to(path)): of_file(file) for file in files}


def damage(path: Path) -> str | None:
    """How the checkpoint differs from what was written; None if it does not. Also None without sums.json: only
    restoring can then reveal damage."""
    if not (path / CHECKSUMS_FILE).exists():
        return None
    try:
        wanted, found = json.loads((path / CHECKSUMS_FILE).read_text()), _sums(path)
    except (OSError, ValueError) as error:
        return f"{CHECKSUMS_FILE} cannot be read: {_reason(error)}"
    if not isinstance(wanted, dict):
        return f"{CHECKSUMS_FILE} cannot be read"
    differing = [name for name, sum in wanted.items() if found.get(name) != sum]
    if not differing:
        return None
    return f"{differing[0]} is {'not as it was written' if differing[0] in found else 'missing'}"


def withdraw(path: Path) -> None:
    """Takes a checkpoint's number away, if it exists; it is removed when the next save is complete."""
    if path.exists():
        aside = path.with_name(path.name + OLD)
        shutil.rmtree(aside, ignore_errors=True)
        path.rename(aside)


def forget_later(folder: Path, iteration: int) -> None:
    """Sets aside checkpoints later than the iteration that a run resumes from: damaged, or another future."""
    for path in (*numbered(folder / "networks"), *numbered(folder / "resume")):
        if int(path.name) > iteration:
            withdraw(path)


def _tidy(folder: Path, keep: int) -> None:
    for old in numbered(folder / "resume")[:-keep]:
        withdraw(old)  # a half-removed folder must not look like a checkpoint
    for kind in ("networks", "resume"):
        for aside in (folder / kind).glob(f"*{OLD}"):
            shutil.rmtree(aside, ignore_errors=True)  # the new checkpoint is complete, whatever happens to the old one
    _remove_unfinished(folder)


def _remove_unfinished(folder: Path) -> None:
    """Removes the remains of interrupted saves and anything in the way of the next one."""
    for kind in ("networks", "resume"):  # `mark_best` looks after best/
        for path in (folder / kind).glob(f"*{WRITING}*"):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):  # on a read-only disk they stay until the next save
                    path.unlink()


def mark_best(folder: Path, iteration: int) -> Path:
    """Keeps a copy of networks/ITERATION as the best network of the run, replacing any other; returns its path."""
    writing = _unfinished(folder / "best", iteration)
    shutil.rmtree(writing, ignore_errors=True)
    shutil.copytree(folder / "networks" / str(iteration), writing)
    _publish(writing)
    marked = folder / "best" / str(iteration)
    for path in (folder / "best").iterdir():
        if path != marked and path.is_dir():
            shutil.rmtree(path)
    return marked


def restore(path: Path, item: str, shapes: Any) -> Any:
    """Restores `item` of a checkpoint. `shapes` is its pytree of `jax.ShapeDtypeStruct`, with the shardings of the
    result, or of numpy arrays.

    Raises:
        CheckpointError: it is damaged, or whole and does not fit the shapes.
    """
    return _read(path, item, ocp.args.StandardRestore(shapes))


def _read(path: Path, item: str, argument: Any) -> Any:
    try:
        with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
            restored = checkpointer.restore(path.absolute(), ocp.args.Composite(**{item: argument}))[item]
    except Exception as error:  # orbax raises what its storage raises; any error means that the folder is unusable
        whole = (path / CHECKSUMS_FILE).exists() and damage(path) is None
        what = "does not fit this version of the program or the game" if whole else "is damaged or incomplete"
        raise CheckpointError(f"checkpoint {path} {what}: {_reason(error)}") from error
    if restored is None:
        raise CheckpointError(f"checkpoint {path} is damaged or incomplete: it has no '{item}'")
    return restored


def numbered(folder: Path) -> list[Path]:
    """Checkpoints in a folder, oldest first."""
    found = [p for p in folder.iterdir() if p.is_dir() and p.name.isdigit()] if folder.is_dir() else []
    return sorted(found, key=lambda p: int(p.name))


def find_checkpoint(path: Path, kind: str) -> Path:
    """The checkpoint that `path` means: a checkpoint folder itself, or the newest intact one of a run (`kind` is
    networks or resume). A warning names newer ones that are damaged.

    Raises:
        CheckpointError: there is none, or the one that is meant is damaged.
    """
    kinds = {kind, "best"} if kind == "networks" else {kind}
    itself = path.name.isdigit() and path.parent.name in kinds and path.is_dir()
    wanted = [path] if itself else numbered(path / kind)[::-1]
    if not wanted:
        what = f"holds no {kind}/ITERATION" if path.is_dir() else "is a file" if path.exists() else "does not exist"
        if (path / "metrics.jsonl").is_file():
            what += ", since the run ended before its first save"
        raise CheckpointError(f"no checkpoint: {path} {what}; expected the folder of a saved run, such as runs/NAME")
    damaged = []
    for candidate in wanted:
        wrong = damage(candidate)
        if wrong is None:
            for text in damaged:
                _warn(f"{text}; using {candidate}")
            return candidate
        damaged.append(f"checkpoint {candidate} is damaged: {wrong}")
    raise CheckpointError(damaged[0])


@functools.cache  # each warning once, however often a network is looked for
def _warn(text: str) -> None:
    print("warning:", text, file=sys.stderr)


def about(path: Path) -> dict[str, Any]:
    """The record of a checkpoint, see `record`."""
    return record(json.dumps(_read(path, "about", ocp.args.JsonRestore())), f"checkpoint {path}")


class About(TypedDict):
    """What a network carries of its run; a missing number counts as 0."""

    format: int  # see `FORMAT`
    iteration: int
    minutes: float
    total_games: int
    total_plies: int


def record(text: str, where: str) -> dict[str, Any]:
    """The record of a network or a run: `config` (a Config) and the counters of `About`. Every record passes here, and
    nothing is built from one before its form is known.

    Args:
        text: JSON.
        where: the file, for messages.

    Raises:
        CheckpointError: it is damaged, of another version, or for an own game that nobody has named.
    """
    found = _read_record(text, where)
    config = found["config"]
    try:
        env = envs.as_named(config.env)
    except ValueError as error:
        raise CheckpointError(f"{where}: {error}") from None
    if env != config.env:
        cli.note(f"note: {where} was trained for {config.env}, and is used for {env}")
    return {**found, "config": dataclasses.replace(config, env=env)}


def _read_record(text: str, where: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
        if not isinstance(found, dict) or not isinstance(found.get("config"), dict):
            raise ValueError("expected an object with a config")
        for name, kind in get_type_hints(About).items():
            value = found.setdefault(name, 0)
            if type(value) not in (int, kind) or not 0 <= value < 1e15:
                raise ValueError(f"{name} cannot be {str(value)[:80]!r}")
        return {**found, "config": config_lib.config_of_record(found["config"])}
    except (TypeError, ValueError, LookupError, ArithmeticError, RecursionError) as error:
        raise CheckpointError(f"{where} is damaged or of another version: {error}") from error


def load_weights(path: Path, shapes: Any) -> Any:
    """Weights for play from `networks/ITERATION`; `shapes` is their pytree of `jax.ShapeDtypeStruct`."""
    on_host = jax.tree.map(lambda x: np.empty(x.shape, x.dtype), shapes)  # each process reads its own copy
    weights = restore(path, "weights", on_host)
    if not all(np.isfinite(x).all() for x in jax.tree.leaves(weights)):
        raise CheckpointError(f"checkpoint {path} is damaged: its weights are not all finite")
    return jax.tree.map(jnp.asarray, weights)


def newest_run(folder: Path) -> Path:
    """The run under `folder` whose network was saved last.

    Raises:
        CheckpointError: there is none.
    """
    runs = [p for p in folder.iterdir() if numbered(p / "networks")] if folder.is_dir() else []
    if not runs:
        raise CheckpointError(
            f"no run with a checkpoint under {folder}/; train one first: {advice.program_command('train')} --env=foq"
        )
    return max(runs, key=lambda p: numbered(p / "networks")[-1].stat().st_mtime)
