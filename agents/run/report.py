"""One self-contained HTML page about a run: python -m agents.run.report runs/NAME [PAGE.html]"""

from __future__ import annotations

import dataclasses
import html
import io
import itertools
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro

import envs
from agents.arena.ladder import LADDER
from agents.run import game_log
from agents.run.metrics import METRICS
from agents.runtime import advice, cli
from agents.storage import jsonl
from agents.storage import weights as models
from envs import saved
from envs.game import seats

REPORT_FILE = "report.html"
COUNTERS = ("iteration", "minutes", "total_games", "total_plies")  # in every line
SAMPLES, PICTURES = 3, 6  # sampled games, and positions of each
MOST_POINTS = 300  # of a curve
LINE_COLOURS = ("#2f6fb0", "#c8672b", "#4c9a5b", "#8a63a8")

Rows = list[dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Panel:
    """Curves over the iterations of a run."""

    title: str
    what: str  # one sentence on how to read it
    curves: tuple[tuple[str, str], ...]  # (metric, label)
    share: bool = False  # from 0 to 1
    stacked: bool = False


PANELS = (
    Panel(
        "Policy loss", "Cross entropy to the search's policy; it cannot fall below the entropy of that policy.",
        (("policy_loss", "loss"), ("target_entropy", "floor"), ("policy_entropy", "entropy of the network")),
    ),
    Panel(
        "Value loss", "Squared error to the result. A head that is not below the dashed line has learned nothing.",
        (("value_loss", "loss"), ("value_baseline", "always 0"), ("validation_loss", "games held out")),
    ),
    Panel(
        "Value error in play", "Root mean square difference of the network's value when it moved and the result.",
        (("value_error", "error"), ("value_target_rms", "of a head that says 0")),
    ),
    Panel(
        "Search", "Entropy of the improved policy, and how far it is from the network's own (nats).",
        (("search_entropy", "entropy"), ("search_policy_kl", "divergence")),
    ),
    Panel(
        "Auxiliary losses", "Who makes each move in the rest of the game, or owns its cell in the end.",
        (("future_loss", "future"),),
    ),
    Panel(
        "Proofs", "Plies after which proof searches begin: as early as half of them finish.",
        (("proof_plies", "plies"),),
    ),
    Panel("Game length", "Mean number of plies.", (("game_length", "plies"),)),
    Panel(
        "Results", "Shares of the games that ended.",
        (
            ("first_win_rate", "first player won"), ("draw_rate", "drawn"), ("resign_rate", "resigned"),
            ("length_cap_rate", "as long as can be"),
        ),
        share=True,
    ),
    Panel(
        "Variety", "Share of different positions among those of an iteration, and of different openings.",
        (("distinct", "positions"), ("distinct_openings", "openings")), share=True,
    ),
    Panel(
        "Rating", "Elo above the network that the run began with, by matches against earlier selves.",
        (("rating", "Elo"),),
    ),
    Panel(
        "Wins minus losses", "Of the match of each generation against the one before.",
        (("wins_minus_losses", "share"),),
    ),
    Panel("Speed", "Moves of self-play a second, learning included.", (("moves_per_second", "moves/s"),)),
    Panel(
        "Time by phase", "Seconds of an iteration.",
        (("play_seconds", "self-play"), ("learn_seconds", "learning"), ("rating_seconds", "matches")), stacked=True,
    ),
)  # fmt: skip


def read_metrics(folder: Path) -> Rows:
    """The iterations of a run, with metrics derived from them.

    Raises:
        ValueError: there are none.
    """
    path = folder / METRICS
    if not path.is_file():
        raise ValueError(f"{folder} holds no {METRICS}: give the folder of a run, such as runs/NAME")
    rows = list(jsonl.read(path))
    if not rows:
        raise ValueError(f"{path} is empty: the run has not finished an iteration yet")
    for number, row in enumerate(rows, 1):
        absent = [name for name in COUNTERS if type(row.get(name)) not in (int, float)]
        if absent or not all(_plottable(value) for value in row.values()):
            raise jsonl.damaged(path, number, f"expected numbers{f' in {absent[0]}' if absent else ''}")
    for row in rows:
        if "validation_loss" in row and row.get("rating_score") is not None:
            row["wins_minus_losses"] = 2 * row["rating_score"] - 1
    return rows


def _plottable(value: Any) -> bool:
    """Whether a metric is a number, absent, or a list of such, as a calibration is."""
    return all(map(_plottable, value)) if isinstance(value, list) else value is None or type(value) in (int, float)


def _two_columns(value: Any) -> bool:
    columns = value if isinstance(value, list) and len(value) == 2 else [None]
    return all(isinstance(column, list) and all(type(x) in (int, float) for x in column) for column in columns)


def new_figure(wide: bool = False):
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ValueError(f"the report needs matplotlib: {advice.extra('plots')}") from error
    figure = Figure(figsize=(9.6 if wide else 4.8, 2.7), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    return figure, axes


def as_svg(figure: Any) -> str:
    """The figure as SVG; its text and frame take the colour of the page."""
    import matplotlib

    out = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9}):
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg") :].replace("#000000", "currentColor")


def averaged(rows: Rows, names: Sequence[str]) -> Rows:
    """At most `MOST_POINTS` rows: means over equally many iterations, weighted by the games that ended in each. Of a
    long run each iteration says little, and all of them are a band instead of a curve."""
    size = -(-len(rows) // MOST_POINTS)
    if size == 1:
        return rows
    found = []
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        mean: dict[str, Any] = {"iteration": part[-1]["iteration"]}
        for name in names:
            known = [(row[name], row.get("games") or 1) for row in part if row.get(name) is not None]
            total = sum(weight for _, weight in known)
            mean[name] = sum(value * weight for value, weight in known) / total if known else None
        found.append(mean)
    return found


def draw_panel(panel: Panel, rows: Rows) -> str | None:
    """The panel as SVG, without metrics that are always 0 or missing; None if no metric is left."""
    known = [(name, label) for name, label in panel.curves if any(row.get(name) for row in rows)]
    if not known:
        return None
    figure, axes = new_figure()
    rows = averaged(rows, [name for name, _ in known])
    x = [row["iteration"] for row in rows]
    values = lambda name: [float("nan") if row.get(name) is None else row[name] for row in rows]
    if panel.stacked:
        axes.stackplot(
            x, *(values(name) for name, _ in known), labels=[label for _, label in known], colors=LINE_COLOURS
        )
    else:
        for (name, label), colour in zip(known, LINE_COLOURS, strict=False):
            style = "--" if name in ("target_entropy", "value_baseline") else "-"
            axes.plot(x, values(name), style, label=label, color=colour, marker="." if len(rows) < 40 else None)
    if panel.share:
        axes.set_ylim(0, 1.02)
    axes.locator_params(axis="x", integer=True)
    axes.set_xlabel("iteration")
    if len(known) > 1:
        axes.legend(frameon=False, fontsize=8)
    return as_svg(figure)


def draw_calibration(rows: Rows) -> str | None:
    """Mean results by the network's value, in the last fifth of the run."""
    late = [row["calibration"] for row in rows[-max(1, len(rows) // 5) :] if row.get("calibration")]
    if not late:
        return None
    sizes = {len(column) for part in late for column in part} if all(map(_two_columns, late)) else set()
    if len(sizes) != 1 or 0 in sizes:
        raise ValueError(f"{METRICS} is damaged: expected a calibration of two lists of numbers, of one length")
    counts, sums = ([sum(column) for column in zip(*(part[i] for part in late), strict=True)] for i in (0, 1))
    width = 2 / len(counts)
    middles = [-1 + width * (i + 0.5) for i in range(len(counts))]
    points = [(x, s / c, c) for x, s, c in zip(middles, sums, counts, strict=True) if c]
    if not points:  # no game ended in that time
        return None
    figure, axes = new_figure()
    axes.plot([-1, 1], [-1, 1], "--", color="grey", linewidth=1)
    most = max(c for *_, c in points)
    axes.scatter(
        [x for x, *_ in points], [y for _, y, _ in points], [8 + 90 * c / most for *_, c in points], LINE_COLOURS[0]
    )
    axes.set(xlabel="value that the network gave", ylabel="mean result", xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))
    return as_svg(figure)


def ladder_panel(folder: Path) -> str | None:
    """Ratings of the networks and the baselines, if `evaluate.py ladder` has measured them."""
    path = folder / LADDER
    if not path.is_file():
        return None
    from agents.arena.tables import draw_ladder as draw

    figure, axes = new_figure(wide=True)
    try:
        draw(axes, json.loads(path.read_text(encoding="utf-8"))["ratings"])
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {type(error).__name__}: {error}") from None
    return as_svg(figure)


def draw_race(trained: models.TrainedNetwork) -> str | None:
    """For the race to a sum: the network's value of every total for the player to move, next to the exact value."""
    game = trained.game
    name, _, options = game.name.partition(":")
    if name != "sum_to_100":
        return None
    target, largest = (int(option.partition("=")[2]) for option in options.split(","))
    totals = np.arange(target)
    states = jax.tree.map(lambda x: jnp.broadcast_to(x, (target, *x.shape)), game.init())
    states = states._replace(total=jnp.asarray(totals, states.total.dtype))
    _, value = jax.jit(trained.net.apply)(trained.weights, jax.vmap(game.observe)(states))
    figure, axes = new_figure(wide=True)
    lost = (target - totals) % (largest + 1) == 0  # the opponent answers every addition so that both add largest + 1
    axes.step(totals, np.where(lost, -1, 1), where="mid", color="grey", linewidth=1, label="exact")
    axes.plot(totals, np.asarray(value), ".-", color=LINE_COLOURS[0], label="network")
    axes.set(xlabel="total", ylabel="value for the player to move", ylim=(-1.1, 1.1))
    axes.legend(frameon=False, fontsize=8)
    return as_svg(figure)


def pictures(game: envs.Game, line: dict[str, Any]) -> list[tuple[str, str]]:
    """Positions of a logged game as (caption, SVG), evenly spaced from the start of play to the end."""
    states = game_log.replay(game, line)
    first, last = line["opening"], len(states) - 1
    plies = sorted({first + round((last - first) * i / (PICTURES - 1)) for i in range(PICTURES)})
    caption = lambda t: f"after {t} move{'s' if t != 1 else ''}" + (f": {line['moves'][t - 1]}" if t else "")
    return [(caption(t), with_unique_ids(game.svg(states[t]))) for t in plies]


_serial = itertools.count()


def with_unique_ids(svg: str) -> str:
    """The picture with unique identifiers, so that many fit on one page."""
    mark = f"p{next(_serial)}"
    for name in set(re.findall(r'\bid="([^"]+)"', svg)):
        svg = svg.replace(f'id="{name}"', f'id="{mark}{name}"').replace(f"#{name}", f"#{mark}{name}")
    return svg


def samples(game: envs.Game, folder: Path) -> str:
    """Games of self-play from the start, the middle and the end of the run."""
    whole = lambda: (line for line in game_log.read_games(folder) if len(line["moves"]) >= 2 * line["opening"])
    count = sum(1 for _ in whole())  # twice through the file: all games of a long run fill gigabytes
    if not count:
        return ""
    wanted = {round((count - 1) * i / max(SAMPLES - 1, 1)) for i in range(min(SAMPLES, count))}
    chosen = [line for number, line in enumerate(whole()) if number in wanted]
    parts = []
    for line in chosen:
        won = [seats(game)[i] for i, reward in enumerate(line["rewards"]) if reward > 0]
        ending = (
            "drawn" if not won else f"{' and '.join(won)} won" + (", the other resigned" if line["resigned"] else "")
        )
        shown = "".join(
            f"<figure>{svg}<figcaption>{html.escape(caption)}</figcaption></figure>"
            for caption, svg in pictures(game, line)
        )
        moves = " ".join(line["moves"][line["opening"] :])
        parts.append(
            f"<h3>Iteration {line['iteration']}: {ending}</h3><div class='film'>{shown}</div>"
            f"<p class='moves'>{html.escape(moves)}</p>"
        )
    return "<h2>Games</h2>" + "".join(parts)


def facts(rows: Rows, config: Any, game: envs.Game) -> str:
    """The key facts of the run as a table."""
    last = rows[-1]
    search = f"{config.search}, {config.num_simulations} simulations"
    known: Sequence[tuple[str, Any]] = (
        ("game", game.name), ("recipe", config.recipe), ("iterations", last["iteration"]),
        ("minutes", f"{last['minutes']:.1f}"), ("games", f"{last['total_games']:,}"),
        ("moves", f"{last['total_plies']:,}"), ("network", f"{config.network}, {config.channels} x {config.blocks}"),
        ("search", "none" if config.recipe == "value_generations" else search), ("lanes", config.num_envs),
        ("rating", "-" if last.get("rating") is None else f"{last['rating']:.0f}"),
    )  # fmt: skip
    return "".join(f"<div><dt>{name}</dt><dd>{html.escape(str(value))}</dd></div>" for name, value in known)


STYLE = """
:root { color-scheme: light dark; --ink: #22262b; --soft: #6a727b; --page: #fbfaf7; --card: #fff; --line: #e4e1d9; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e2dc; --soft: #a0a6ad; --page: #17191c; --card: #1f2226; --line: #33373d; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 0; }
main { max-width: 1080px; margin: 0 auto; padding: 2rem 1.2rem 4rem; }
h1 { font-size: 1.7rem; margin: 0 0 1rem; } h2 { margin: 2.5rem 0 1rem; font-size: 1.25rem; }
h3 { font-size: 1rem; margin: 1.6rem 0 .6rem; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(170px, 1fr)); gap: .8rem; margin: 0; }
dt { color: var(--soft); font-size: .8rem; } dd { margin: 0; font-weight: 600; overflow-wrap: anywhere; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(440px, 100%), 1fr)); gap: 1rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: .9rem 1rem; }
.card h3 { margin: 0; } .card p { margin: .1rem 0 .5rem; color: var(--soft); font-size: .85rem; }
.card svg { width: 100%; height: auto; } .card svg text { fill: currentColor; } .wide { grid-column: 1 / -1; }
.film { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: .8rem; }
.film svg { width: 100%; height: auto; } figure { margin: 0; }
figcaption, .moves { color: var(--soft); font-size: .8rem; }
"""


def report_page(folder: Path) -> str:
    """The whole page.

    Raises:
        ValueError: the folder holds no run.
    """
    rows = read_metrics(folder)
    trained = models.load_network(folder)
    game, config = trained.game, trained.config
    cards = [(panel.title, panel.what, draw_panel(panel, rows), "") for panel in PANELS]
    calibrated = "Results of positions by the value that the network gave them: right on the line, large dots are many."
    cards.append(("Calibration", calibrated, draw_calibration(rows), ""))
    cards.append(("Ladder", "Ratings of the networks and of the baselines.", ladder_panel(folder), " wide"))
    cards.append(("Value of every total", "Beside the exact one.", draw_race(trained), " wide"))
    shown = "".join(
        f"<section class='card{kind}'><h3>{title}</h3><p>{what}</p>{svg}</section>"
        for title, what, svg, kind in cards
        if svg
    )
    name = html.escape(folder.resolve().name)
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{name}</title>"
        f"<meta name='viewport' content='width=device-width, initial-scale=1'><style>{STYLE}</style><main>"
        f"<h1>{name}</h1><dl>{facts(rows, config, game)}</dl><h2>Curves</h2><div class='grid'>{shown}</div>"
        f"{samples(game, folder)}</main></html>"
    )


@dataclasses.dataclass(frozen=True)
class ReportCommand:
    """Writes one page about a run: curves, calibration, games."""

    run: tyro.conf.Positional[Path]
    """Folder of a run."""
    page: tyro.conf.Positional[Path | None] = None
    """File to write; by default report.html in that folder."""
    env: str | None = None
    """Game of your own that the run is for; others need no name."""


def main(show: Callable[[str], None] = print) -> None:
    with cli.errors():
        command = cli.parse_command(ReportCommand, sys.argv[1:])
        if command.env is not None:
            envs.make(command.env)
        folder, target = command.run, command.page or command.run / REPORT_FILE
        text = report_page(folder)
        saved.write(target, text)
        show(f"{target}: {len(text) / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
