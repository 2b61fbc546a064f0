"""Results of measurements as tables for a terminal of 80 columns, and as plots."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from agents.arena.match import Result
from agents.arena.solved_positions import Score
from agents.runtime import advice, cli


def show(made: Table) -> None:
    """Prints to standard output; a pipe gets wide lines."""
    cli.console(width=None if sys.stdout.isatty() else 160).print(made)


def tight(title: str, **options: Any) -> Table:
    """An empty table with little space between its columns, so that all figures fit 80 columns of a terminal."""
    return Table(title=title, box=box.SIMPLE, pad_edge=False, show_edge=False, collapse_padding=True, **options)


def match_table(results: list[Result]) -> Table:
    """One row per opponent."""
    out = tight(f"{results[0].a}, 95% intervals over openings")
    out.add_column("against", overflow="fold", min_width=len("against"))
    even = () if results[0].players == 2 else ("even score",)
    for name in ("won/drawn/lost", "score", *even, "Elo", "repeated", "plies"):
        out.add_column(name, justify="right", no_wrap=name not in ("even score", "Elo"))
    for r in results:
        low, high = r.score_interval
        out.add_row(
            r.b,
            f"{r.wins}/{r.draws}/{r.losses}",
            f"{r.score:.1%} [{100 * low:.1f}, {100 * high:.1f}]",
            *(() if r.players == 2 else (f"{1 / r.players:.1%}",)),
            elo_text(r),
            str(r.repeated),
            f"{r.mean_plies:.1f}",
        )
    return out


def openings_note(r: Result, plies: int) -> str:
    """Says how many games were repeated; without random moves nobody expects others."""
    if not plies or not r.repeated:
        return ""
    many = f"{r.openings} opening{'s' if r.openings > 1 else ''} of {plies} moves, up to symmetry"
    return f"{r.a} against {r.b}: only {r.games} different games from {many}; {r.repeated} repeated games do not count"


def elo_text(r: Result) -> str:
    points = lambda x, none: none if x is None else f"{x:+.0f}"
    low, high = r.elo_interval
    return f"{points(r.elo, '+∞' if r.score == 1 else '-∞')} [{points(low, '-')}, {points(high, '+')}]"


def percent(share: float) -> str:
    """With one decimal, unless it is 100%."""
    return "100%" if share == 1 else f"{share:.1%}"


def solved_table(
    game: str, found: dict[str, tuple[str, Score, dict[str, Score]]], phases: np.ndarray, by_chance: np.ndarray
) -> Table:
    """`found` has the player's name and its scores in total and by phase; `by_chance` float[M], the share of right
    moves."""
    out = tight(f"{game}: value kept, 95% intervals")
    out.add_column("phase", min_width=len("49 free"))
    out.add_column("positions", justify="right", no_wrap=True)
    out.add_column("any legal", justify="right", min_width=len("58.0%"))
    for name in found:
        out.add_column(name.replace("_", " "), justify="right", no_wrap=True)
    parts_known = np.unique(phases)
    for part in (*(parts_known if len(parts_known) > 1 else ()), None):
        here = phases == part if part is not None else np.ones(len(phases), bool)
        scores = [whole if part is None else parts[part] for _, whole, parts in found.values()]
        cells = [f"{percent(s.share)} [{100 * s.interval[0]:.0f}, {100 * s.interval[1]:.0f}]" for s in scores]
        if part is None:
            out.add_section()
        out.add_row(part or "all", str(here.sum()), percent(by_chance[here].mean()), *cells)
    out.caption = ", ".join(f"{name.replace('_', ' ')}: {player}" for name, (player, *_) in found.items())
    return out


def verdict_table(mover: str, value: float | None, moves: dict[str, float | None]) -> Table:
    """The mover's result with best play, in total and by the names of the moves; unknown results come last."""
    word = {1.0: "wins", 0.0: "draws", -1.0: "loses", None: "not found out"}
    title = "not found out who wins" if value is None else f"{mover} to move {word[value]}"
    out = tight(title, show_header=False)
    for kind in (1.0, 0.0, -1.0, None):
        names = [name for name, known in moves.items() if known == kind]
        if names:
            out.add_row(word[kind], str(len(names)), " ".join(names))
    return out


def ladder_table(game: str, rows: list[dict[str, Any]]) -> Table:
    """The best first; `rows` are those of `evaluate.py ladder --json`."""
    out = tight(f"{game}: ratings, 95% intervals")
    for name in ("player", "Elo", "interval", "games", "minutes"):
        out.add_column(name, justify="left" if name == "player" else "right", no_wrap=name != "player")
    for row in sorted(rows, key=lambda row: -row["elo"]):
        interval = f"[{row['interval'][0]:+.0f}, {row['interval'][1]:+.0f}]"
        minutes = f"{row['minutes']:.1f}" if "minutes" in row else ""
        out.add_row(row["player"], f"{row['elo']:+.0f}", interval, str(row.get("games", "")), minutes)
    return out


def passing_lines(passed: list[dict[str, Any]]) -> list[str]:
    """When the networks overtook each baseline, see `elo.passed`."""
    said = []
    for row in passed:
        if row["minutes"] is None:
            said.append(f"not better than {row['player']} so far")
        else:
            when = f"{row['minutes']:g} minutes and {row['games']} games{' at most' if row['at_most'] else ''}"
            said.append(f"better than {row['player']} after {when}")
    return said


def demand_plots(path: Path) -> None:
    """Raises ValueError unless `plot_ladder` can write a file of this name; known before any game is played."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError(f"--plot needs matplotlib: {advice.extra('plots')}")
    if path.suffix not in (".png", ".svg"):
        raise ValueError(f"--plot: expected a name that ends in .png or .svg, got {path}")
    if not path.parent.is_dir():
        raise ValueError(f"--plot: there is no folder {path.parent}")


def plot_ladder(rows: list[dict[str, Any]], path: Path) -> None:
    """Ratings of the networks over their games of self-play, with the baselines as lines. If measured, also the share
    of solved positions whose value they keep."""
    from matplotlib.figure import Figure

    networks = [row for row in rows if "games" in row]
    with_solved = "kept_alone" in networks[-1]
    figure = Figure(figsize=(12 if with_solved else 7, 4.5), layout="constrained")
    axes = figure.subplots(1, 2 if with_solved else 1, squeeze=False)[0]
    draw_ladder(axes[0], rows)
    games, minutes = ([row[unit] for row in networks] for unit in ("games", "minutes"))
    if with_solved:
        for name, label in (("kept", "with its search"), ("kept_alone", "network alone")):
            if name not in networks[-1]:
                continue
            share = np.array([row[name] for row in networks])
            reach = np.abs(np.array([row[f"{name}_interval"] for row in networks]).T - share)
            axes[1].errorbar(games, 100 * share, 100 * reach, marker="o", capsize=3, label=label)
        axes[1].set(xlabel="games of self-play", ylabel="value of solved positions kept, %")
        axes[1].legend()
    for one in axes:
        marks = np.linspace(games[0], games[-1], 5) if len(games) > 1 else games
        top = one.secondary_xaxis("top")
        digits = 0 if minutes[-1] >= 10 else 1
        top.set_xticks(marks, [f"{x:.{digits}f}" for x in np.interp(marks, games, minutes)])
        top.set_xlabel("minutes of training")
    figure.savefig(path)


def draw_ladder(axes: Any, rows: list[dict[str, Any]]) -> None:
    """The ratings of `plot_ladder`, on the axes of a figure."""
    networks = [row for row in rows if "games" in row]
    middle = [row["elo"] for row in networks]
    reach = [
        [row["elo"] - row["interval"][0] for row in networks],
        [row["interval"][1] - row["elo"] for row in networks],
    ]
    axes.errorbar([row["games"] for row in networks], middle, reach, marker="o", capsize=3, label="networks")
    for row in rows:
        if "games" not in row:
            axes.axhline(row["elo"], linestyle="--", linewidth=1, color="grey")
            axes.annotate(row["player"], (0.01, row["elo"]), xycoords=("axes fraction", "data"), va="bottom")
    axes.set(xlabel="games of self-play", ylabel="Elo")
