"""Output of a run: one JSON line per iteration, TensorBoard files, warnings and progress for the user."""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto import event_pb2
from tensorboardX.summary import scalar

from agents.run.progress import Progress, log_line
from agents.runtime import advice, cli
from agents.storage.jsonl import Lines

METRICS, TENSORBOARD = "metrics.jsonl", "tensorboard"  # names in the folder of a run
PROTO: Any = event_pb2  # its classes are made on import
BOARD_SECONDS = 10.0  # between two flushes for TensorBoard, which wait for the disk
WATCHED = 30  # fewest iterations over which value metrics are averaged
WATCHED_MOVES = 120_000  # fewest moves of these iterations
FLAT = 0.97  # of the loss of a head that says 0: from this share on nothing has been learned
OVERFIT = 1.05  # of the squared error on new games of a head that says 0: from this share on the head overfits
NEARLY_DRAWN = 0.1  # of the squared result: below this, 0 is a good answer
BOARD_PATIENCE = 60.0  # seconds before the next try after a failure: each try makes a new file


class Board:
    """Scalars for TensorBoard, written by the calling thread. tensorboardX's own thread dies when the disk is full, and
    its caller then hangs."""

    def __init__(self, folder: Path, iteration: int):
        """Continues after `iteration`: later values, left by a crash, are dropped from the curves."""
        self.folder, self.iteration, self.files = folder, iteration, 0
        self.writer: EventsWriter | None = None
        self.flushed = 0.0
        self.failed: OSError | None = None
        self.again = 0.0  # time of the next try after a failure

    def add(self, values: dict[str, float], iteration: int) -> None:
        """Raises OSError if the values are not written; they are then left out."""
        if self.failed is not None and time.monotonic() < self.again:
            raise self.failed
        try:
            writer = self.writer = self.writer or self._open()
            for name, value in values.items():
                writer.write_event(PROTO.Event(summary=scalar(name, value), step=iteration, wall_time=time.time()))
            if time.monotonic() - self.flushed > BOARD_SECONDS:
                self.flushed = time.monotonic()
                writer.flush()
        except OSError as error:
            self.close()
            self.failed, self.again = error, time.monotonic() + BOARD_PATIENCE
            raise
        self.failed = None
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


class BaselineWatch:
    """Reports, once, that a metric was no better than its baseline over `WATCHED` iterations and `WATCHED_MOVES`."""

    def __init__(self, share: float):
        """`share` of the baseline at or above which the metric is no better."""
        self.share, self.warned = share, False
        self.recent: deque[tuple[float, float, int]] = deque()

    def reached(self, figure: float | None, baseline: float | None, moves: int) -> tuple[float, float, int] | None:
        """Means of both and the number of iterations, the first time. Iterations without them, or with nearly all games
        drawn, do not count."""
        if figure is None or not baseline or baseline < NEARLY_DRAWN:
            return None
        self.recent.append((figure, baseline, moves))
        while len(self.recent) > WATCHED and self._moves() - self.recent[0][2] >= WATCHED_MOVES:
            self.recent.popleft()
        count = len(self.recent)
        mean = sum(figure for figure, _, _ in self.recent) / count
        floor = sum(baseline for _, baseline, _ in self.recent) / count
        if self.warned or count < WATCHED or self._moves() < WATCHED_MOVES or mean < self.share * floor:
            return None
        self.warned = True
        return mean, floor, count

    def _moves(self) -> int:
        return sum(moves for *_, moves in self.recent)


class Balance:
    """Watches whether the value head learns alongside the policy, and whether it generalises to new games. In the
    Flight of Queen article it did not learn, and nothing reported it."""

    def __init__(self):
        self.learned, self.overfitted = BaselineWatch(FLAT), BaselineWatch(OVERFIT)

    def warning(self, figures: dict[str, Any]) -> str | None:
        """A warning for the user, once per problem."""
        square = lambda name: None if figures.get(name) is None else figures[name] ** 2
        moves = figures["plies"]
        flat = self.learned.reached(figures.get("value_loss"), figures.get("value_baseline"), moves)
        worse = self.overfitted.reached(square("value_error"), square("value_target_rms"), moves)
        see = f'see "It does not get stronger" in {advice.document("docs/troubleshooting.md")}'
        than = "than one that always says 0"
        if flat is not None:
            numbers = f"(value loss {flat[0]:.3f} of {flat[1]:.3f})"
            return f"warning: in {flat[2]} iterations the value head did no better {than} {numbers}; {see}"
        if worse is not None and not self.learned.warned:
            numbers = f"(squared error {worse[0]:.3f}, {worse[1]:.3f})"
            said = f"the value head predicted new games worse {than} {numbers}: it overfits"
            return f"warning: in {worse[2]} iterations {said}; {see}"
        return None


class Report:
    """Writes to the folder of a run. A terminal shows `Progress`, any other standard error gets a line a minute. A disk
    that cannot be written is reported once and does not end the run."""

    def __init__(self, folder: Path, iteration: int, progress: float):
        """Continues after `iteration`."""
        self.lines = Lines(folder / METRICS, iteration)
        self.board = Board(folder / TENSORBOARD, iteration)
        self.unwritten: set[str] = set()  # already reported to the user
        self.balance = Balance()
        self.console = cli.console(stderr=True)
        self.progress = Progress(self.console, progress)

    def say(self, text: str) -> None:
        """Prints a line for the user on standard error; a failure to do so is ignored."""
        with contextlib.suppress(OSError):
            self.console.print(text, soft_wrap=True)

    def log(self, text: str) -> None:
        """Prints a line for the user where there is no display that shows as much."""
        if not self.console.is_terminal:
            self.say(text)

    def iteration(self, figures: dict[str, Any], progress: float) -> None:
        """Publishes one iteration; NaN becomes null."""
        figures = {name: plain(value) for name, value in figures.items()}
        line = json.dumps(figures)
        self.write(METRICS, lambda: self.lines.add(line))
        known = {name: float(value) for name, value in figures.items() if isinstance(value, int | float)}
        self.write("tensorboard", lambda: self.board.add(known, figures["iteration"]))
        self.progress.share, self.progress.figures = progress, figures
        if self.progress.due():
            self.say(log_line(figures))
        if warning := self.balance.warning(figures):
            self.say(warning)

    def write(self, name: str, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            if name not in self.unwritten:
                self.say(f"warning: {name} cannot be written: {error.strerror}; training goes on")
            self.unwritten.add(name)
        else:
            self.unwritten.discard(name)

    def show_cursor(self) -> None:
        """The display hides the terminal's cursor, and a second Ctrl-C ends the program before it comes back."""
        with contextlib.suppress(OSError):  # the terminal may be gone
            self.console.show_cursor()

    def phase(self, name: str) -> None:
        """Shows the phase that begins now."""
        self.progress.phase = name

    def close(self) -> None:
        self.progress.close()
        self.board.close()
        self.lines.close()


class Silence(Report):
    """For the processes that print nothing, see agents/runtime/processes.py."""

    def __init__(self):
        pass

    def say(self, text: str) -> None:
        pass

    def log(self, text: str) -> None:
        pass

    def iteration(self, figures: dict[str, Any], progress: float) -> None:
        pass

    def write(self, name: str, write: Callable[[], None]) -> None:
        pass

    def show_cursor(self) -> None:
        pass

    def phase(self, name: str) -> None:
        pass

    def close(self) -> None:
        pass


def plain(value: Any) -> Any:
    """A metric as JSON: six digits, None for non-finite numbers, lists for arrays."""
    if isinstance(value, list):
        return [plain(x) for x in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
