"""What a run tells: one JSON line per iteration, TensorBoard files, a line for people and a bar of progress."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from tensorboardX import SummaryWriter

METRICS = "metrics.jsonl"


class Report:
    """Writes to the folder of a run. A terminal shows a short line per iteration, a pipe gets the JSON lines."""

    def __init__(self, folder: Path, iteration: int, progress: float):
        """Goes on after `iteration`: lines of later iterations, which a crash left behind, are dropped."""
        path = folder / METRICS
        lines = path.read_text().splitlines() if path.exists() else []
        kept = [line for line in lines if json.loads(line)["iteration"] <= iteration]
        path.write_text("".join(line + "\n" for line in kept))
        self.file = path.open("a")
        self.board = SummaryWriter(str(folder / "tensorboard"), purge_step=iteration + 1)
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
        figures = {name: plain(value) for name, value in figures.items()}
        line = json.dumps(figures)
        self.file.write(line + "\n")
        self.file.flush()
        for name, value in figures.items():
            if isinstance(value, int | float):
                self.board.add_scalar(name, value, figures["iteration"])
        self.bar.update(self.task, completed=progress, description=f"iteration {figures['iteration']}")
        if sys.stdout.isatty():
            self.say(summary(figures))
        else:
            print(line, flush=True)

    def close(self) -> None:
        self.bar.stop()
        self.board.close()
        self.file.close()


def plain(value: Any) -> Any:
    """A figure as JSON has it: six digits, None for NaN, lists for arrays."""
    if isinstance(value, list):
        return [plain(x) for x in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def summary(figures: dict[str, Any]) -> str:
    """The figures that people follow, in one line."""
    show = lambda name, form: "-" if figures[name] is None else format(figures[name], form)
    speed = show("moves_per_second", ".0f")
    left = figures["minutes_left"]
    return (
        f"iteration {figures['iteration']:4d}  games {figures['total_games']:7d}  moves/s {speed}"
        f"  policy loss {show('policy_loss', '.3f')} (floor {show('target_entropy', '.3f')})"
        f"  value loss {show('value_loss', '.3f')}  draws {show('draw_rate', '.0%')}"
        f"  length {show('game_length', '.1f')}  rating {show('rating', '.0f')}"
        + ("" if left is None else f"  left {left:.0f} min")
    )
