"""Progress of a run: a few rows that a terminal redraws in place, and a line a minute for everybody else."""

from __future__ import annotations

import contextlib
import math
import time
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

WIDTH = 78  # columns at most
REDRAWS = 2  # a second
LOG_SECONDS = 60.0  # between two lines of the log


class Progress:
    """Rows at the bottom of a terminal; on any other console only `due` matters."""

    def __init__(self, console: Console, share: float):
        """`share` of the budget is used already."""
        self.console, self.share, self.phase, self.figures = console, share, "", {}
        self.began, self.logged = time.monotonic(), -math.inf
        self.live = Live(console=console, get_renderable=self.rows, refresh_per_second=REDRAWS)
        if console.is_terminal:
            self.live.start()

    def due(self) -> bool:
        """Whether it is time for the next line of the log. The first iteration always has one."""
        now = time.monotonic()
        if now - self.logged < LOG_SECONDS:
            return False
        self.logged = now
        return True

    def rows(self) -> Group:
        width = min(WIDTH, self.console.width)
        table = Table.grid(padding=(0, 2), pad_edge=False)
        table.width = width
        for name, text in details(self.figures):
            table.add_row(Text(name, no_wrap=True), Text(text, no_wrap=True, overflow="ellipsis"))
        return Group(self.head(width), *([table] if table.rows else []))

    def head(self, width: int) -> Table:
        """Phase, share of the budget, time."""
        minutes, seconds = divmod(int(time.monotonic() - self.began), 60)
        left = time_left(self.figures)
        line = Table.grid(padding=(0, 2), pad_edge=False, expand=True)
        line.width = width
        line.add_column(no_wrap=True)
        line.add_column(ratio=1)
        line.add_column(no_wrap=True)
        words = f"{self.share:.0%}  {minutes}:{seconds:02}" + (f", {left}" if left else "")
        line.add_row(Text(f"{self.phase:9}"), ProgressBar(total=1.0, completed=self.share), Text(words))
        return line

    def close(self) -> None:
        """Leaves the last rows on the screen, if it is still there."""
        with contextlib.suppress(OSError):
            self.live.stop()


def details(figures: dict[str, Any]) -> list[tuple[str, str]]:
    """Name and text of each row about the last iteration; none before the first one ends."""
    if not figures:
        return []
    known = lambda name: figures.get(name) is not None
    rows = [
        (
            f"iteration {figures['iteration']}",
            f"{figures['moves_per_second']:,.0f} moves/s, {figures['total_games']:,} games, "
            f"{figures['total_plies']:,} moves",
        )
    ]
    if known("policy_loss") and figures.get("target_entropy"):
        floor = f"floor {figures['target_entropy']:.3f}, the entropy of the search's policy"
        rows.append(("policy loss", f"{figures['policy_loss']:.3f}  ({floor})"))
    if known("value_loss") and known("value_baseline"):
        level = f"{figures['value_baseline']:.3f} where nothing is learned"
        rows.append(("value loss", f"{figures['value_loss']:.3f}  ({level})"))
    if known("game_length") and known("draw_rate"):
        rows.append(("games", f"{figures['game_length']:.1f} moves long, {figures['draw_rate']:.0%} drawn"))
    if known("rating"):
        rows.append(("rating", f"{figures['rating']:+.0f} Elo above the network that the run began with"))
    if known("gate_passed"):
        last = f", {figures['rating_score']:.0%} of the points in the last match" if known("rating_score") else ""
        rows.append(("gate", f"{figures['gate_passed']} networks passed{last}"))
    if figures.get("skipped_updates"):
        rows.append(("skipped", f"{figures['skipped_updates']} updates that were not finite"))
    return rows


def time_left(figures: dict[str, Any]) -> str:
    """Time left of the budget, by the pace of the whole run: single iterations differ too much."""
    minutes = figures.get("minutes_left")
    return "" if minutes is None else f"{minutes:.0f} min left" if minutes >= 1 else f"{60 * minutes:.0f} s left"


def log_line(figures: dict[str, Any]) -> str:
    """The last iteration in one line of at most 80 columns."""
    form = {"policy_loss": "policy loss {:.3f}", "value_loss": "value loss {:.3f}", "rating": "rating {:.0f}"}
    parts = [f"iteration {figures['iteration']}", f"{figures['moves_per_second']:.0f} moves/s"]
    parts += [text.format(figures[name]) for name, text in form.items() if figures.get(name) is not None]
    return ", ".join([*parts, *filter(None, [time_left(figures)])])
