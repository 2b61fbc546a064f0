"""What a run tells: one JSON line per iteration, TensorBoard files, a line for people and a bar of progress."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto import event_pb2
from tensorboardX.summary import scalar

METRICS = "metrics.jsonl"
PROTO: Any = event_pb2  # makes its classes when it is imported
BOARD_SECONDS = 10.0  # between two writes for TensorBoard: each waits for the disk


class Lines:
    """A file of JSON lines that a full disk cannot tear: what does not fit waits, and is written once there is room."""

    def __init__(self, path: Path, iteration: int):
        """Goes on after `iteration`: lines of later iterations, and half a line that a crash left, are dropped."""
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        kept = [line for line in lines if _iteration_of(line) <= iteration]
        if kept != lines or not path.exists():
            changed = path.with_name(path.name + ".new")
            changed.write_bytes(b"".join(kept))
            changed.replace(path)
        self.file = path.open("ab", buffering=0)
        self.written, self.waiting = path.stat().st_size, b""

    def add(self, line: str) -> None:
        """Raises OSError when the line has to wait."""
        self.waiting += line.encode() + b"\n"
        count = 0
        try:
            count = self.file.write(self.waiting)
        finally:
            whole = self.waiting[:count].rfind(b"\n") + 1
            self.written, self.waiting = self.written + whole, self.waiting[whole:]
            if count > whole:
                os.ftruncate(self.file.fileno(), self.written)
        if self.waiting:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _iteration_of(line: bytes) -> float:
    """The iteration that a line is about; infinity for one that is not whole."""
    try:
        return json.loads(line)["iteration"] if line.endswith(b"\n") else math.inf
    except (ValueError, KeyError, TypeError):
        return math.inf


class Board:
    """Scalars for TensorBoard. Written by this thread: tensorboardX's own thread dies of a full disk, and
    whoever waits for it hangs."""

    def __init__(self, folder: Path, iteration: int):
        """Goes on after `iteration`: curves beyond it, which a crash left behind, are dropped."""
        self.folder, self.iteration, self.files = folder, iteration, 0
        self.writer: EventsWriter | None = None
        self.flushed = 0.0

    def add(self, values: dict[str, float], iteration: int) -> None:
        """Raises OSError when the values are not written; they are then left out."""
        try:
            writer = self.writer = self.writer or self._open()
            for name, value in values.items():
                writer.write_event(PROTO.Event(summary=scalar(name, value), step=iteration, wall_time=time.time()))
            if time.monotonic() - self.flushed > BOARD_SECONDS:
                self.flushed = time.monotonic()
                writer.flush()
        except OSError:
            self.close()
            raise
        self.iteration = iteration

    def _open(self) -> EventsWriter:
        self.folder.mkdir(exist_ok=True)
        self.files += 1
        writer = EventsWriter(str(self.folder / "events"), f".{os.getpid()}.{self.files}")
        purge = PROTO.SessionLog(status=PROTO.SessionLog.START)
        writer.write_event(PROTO.Event(session_log=purge, step=self.iteration + 1, wall_time=time.time()))
        return writer

    def close(self) -> None:
        writer, self.writer = self.writer, None
        if writer is not None:
            with contextlib.suppress(OSError):
                writer.close()


class Report:
    """Writes to the folder of a run. A terminal shows a short line per iteration, a pipe gets the JSON lines. A disk
    that takes nothing is told of, once, and does not end the run."""

    def __init__(self, folder: Path, iteration: int, progress: float):
        """Goes on after `iteration`."""
        self.lines = Lines(folder / METRICS, iteration)
        self.board = Board(folder / "tensorboard", iteration)
        self.unwritten: set[str] = set()  # that the reader knows of
        self.console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("left"))
        self.bar = Progress(*columns, TimeRemainingColumn(), console=self.console, disable=not self.console.is_terminal)
        self.task = self.bar.add_task("compiling", total=1.0)
        self.bar.update(self.task, completed=progress)
        self.bar.start()

    def say(self, text: str) -> None:
        """A line for people, on standard error."""
        self.console.print(text, highlight=False, soft_wrap=True)

    def iteration(self, figures: dict[str, Any], progress: float) -> None:
        """Publishes one iteration; NaN becomes null."""
        figures = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in figures.items()}
        line = json.dumps({k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in figures.items()})
        self._write(METRICS, lambda: self.lines.add(line))
        known = {name: value for name, value in figures.items() if value is not None}
        self._write("tensorboard", lambda: self.board.add(known, figures["iteration"]))
        self.bar.update(self.task, completed=progress, description=f"iteration {figures['iteration']}")
        if sys.stdout.isatty():
            self.say(summary(figures))
        else:
            print(line, flush=True)

    def _write(self, name: str, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            if name not in self.unwritten:
                self.say(f"warning: {name} cannot be written: {error.strerror}; training goes on")
            self.unwritten.add(name)
        else:
            self.unwritten.discard(name)

    def close(self) -> None:
        self.bar.stop()
        self.board.close()
        self.lines.file.close()


def summary(figures: dict[str, Any]) -> str:
    """The figures that people follow, in one line."""
    show = lambda name, form: "-" if figures[name] is None else format(figures[name], form)
    speed = show("moves_per_second", ".0f")
    left = figures["minutes_left"]
    return (
        f"iteration {figures['iteration']:4d}  games {figures['total_games']:7d}  moves/s {speed}"
        f"  policy loss {show('policy_loss', '.3f')} (floor {show('target_entropy', '.3f')})"
        f"  value loss {show('value_loss', '.3f')}  draws {show('draw_rate', '.0%')}"
        f"  length {show('game_length', '.1f')}"
        + (f"  {figures['skipped_updates']} updates skipped" if figures["skipped_updates"] else "")
        + ("" if left is None else f"  left {left:.0f} min")
    )
