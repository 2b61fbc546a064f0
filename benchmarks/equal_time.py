"""Who is stronger after the same minutes of training: this engine or another one, each on the same cores.

python benchmarks/equal_time.py FOLDER --other=FILE.py:FUNCTION [--games connect_four ...] [--seeds 0 1 2]
    [--minutes=20] [--channels=32] [--blocks=3] [--no_ratings] [--plot=FILE] [--name=NAME] [--json]

`FUNCTION(spec, channels, blocks, seed)` returns the other engine's network and an endless iterator over its weights,
one item per training iteration. The network is a function of (weights, planes of `Game.observe`) to logits float[b, A]
and values float[b] for the mover. Both engines train a residual network of the same size; everything else is as its
authors set it. Minutes are wall time from the start of the program, with all compiling. A game may need planes that the
other engine knows, such as `--games go:size=9,history=8`.

Networks of both sides are kept along the way. At each of `MARKS` they play each other, both with the search of this
engine and `SIMULATIONS` simulations, so that training alone is compared. Networks of one side play their predecessors
and a baseline in addition, which gives ratings: those of the figure. These matches take most of the time in long games;
--no_ratings leaves them out.

One file per game, side and seed is written to FOLDER when it is complete; those that exist are not trained again. Pin
the whole program to one core with `taskset -c N`.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import envs
from agents import config
from agents.arena import elo, match, openings, tables
from agents.network.network import Network
from agents.players.players import make_act, make_player
from agents.players.spec import Player
from agents.runtime import cli
from agents.search.policies import make_search
from agents.storage.weights import load_network
from benchmarks import rounds

ROOT = Path(__file__).parents[1]
MARKS = (1 / 4, 1 / 2, 1)  # of the budget
SAVES = 32  # networks kept along a run
SIMULATIONS = 32
PAIRS = 100  # openings of a match, each from both seats
LAST_BATCHES = 2  # as many times more between the last networks
BASELINE = "uct:200"

Other = Callable[[str, int, int, int], tuple[Callable[..., Any], Iterator[Any]]]


class Snapshot(NamedTuple):
    """A network along a run."""

    minutes: float  # since the start of the program
    weights: Any


@dataclasses.dataclass(frozen=True)
class Apply:
    """The part of a network that a search uses."""

    apply: Callable[..., Any]


def train_ours(given: argparse.Namespace, spec: str, seed: int) -> list[Snapshot]:
    """Trains with train.py and its default options for the game. Its `--minutes` begin when all is compiled, so a first
    run of one iteration measures how long that takes, with an empty cache."""
    out = given.folder / f"{named(spec)}-run-{seed}"
    size = [f"--channels={given.channels}", f"--blocks={given.blocks}"]
    fixed = ["--devices=1", "--rating_games=0", "--no_preflight", f"--checkpoint_minutes={given.minutes / SAVES}"]

    def train(cache: str, *options: str) -> float:
        """Minutes that it took."""
        began, words = time.monotonic(), [sys.executable, "train.py", f"--env={spec}", *size, *fixed, *options]
        own = os.environ | {"PYTHONPATH": str(ROOT), "JAX_COMPILATION_CACHE_DIR": cache}
        done = subprocess.run(words, cwd=ROOT, env=own, capture_output=True, text=True)
        if done.returncode:
            raise ValueError(f"{' '.join(words)}: {done.stderr.strip()[-400:]}")
        return (time.monotonic() - began) / 60

    with tempfile.TemporaryDirectory() as cache:
        start = train(cache, "--iterations=1", f"--out={cache}/run")
        left = given.minutes - start
        config.demand(
            left > 0, f"--minutes: expected more than {start:.1f}, which compiling takes, got {given.minutes}"
        )
        train(cache, f"--seed={seed}", f"--minutes={left}", f"--out={out}")
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    minutes = {row["iteration"]: row["minutes"] for row in rows}
    saved = sorted(int(path.name) for path in (out / "networks").iterdir() if path.name.isdigit())
    load = lambda i: jax.device_get(load_network(out / "networks" / str(i)).weights)
    return [Snapshot(start + minutes[i], load(i)) for i in saved if i in minutes]


def train_other(given: argparse.Namespace, spec: str, seed: int) -> list[Snapshot]:
    """Trains the other engine, and keeps its weights about `SAVES` times."""
    began, minutes, found = time.monotonic(), 0.0, []
    _, iterations = given.other(spec, given.channels, given.blocks, seed)
    for weights in iterations:
        minutes = (time.monotonic() - began) / 60
        if minutes > given.minutes and found:
            return found
        if not found or minutes - found[-1].minutes >= given.minutes / SAVES:
            found.append(Snapshot(minutes, jax.device_get(weights)))
    raise ValueError(f"the other engine stopped by itself after {minutes:.1f} minutes")


def snapshots(given: argparse.Namespace, spec: str, side: str, seed: int) -> list[Snapshot]:
    """The newest network at each of `MARKS`."""
    file = given.folder / f"{named(spec)}-{side}-{seed}.pickle"
    if not file.exists():
        train = {"ours": train_ours, "other": train_other}[side]
        file.with_suffix(".new").write_bytes(pickle.dumps([tuple(one) for one in train(given, spec, seed)]))
        file.with_suffix(".new").replace(file)
    kept = [Snapshot(*one) for one in pickle.loads(file.read_bytes())]
    first = kept[0].minutes / MARKS[0]
    config.demand(
        first <= given.minutes, f"--minutes: expected {first:.1f} or more, since {side} has no network before"
    )
    return [[one for one in kept if one.minutes <= given.minutes * mark][-1] for mark in MARKS]


def named(spec: str) -> str:
    return spec.replace(":", "_").replace("=", "")


class Arena:
    """Matches between the two engines and a baseline, each kind compiled once for all weights."""

    def __init__(self, given: argparse.Namespace, spec: str) -> None:
        self.game = envs.make(spec)
        size = {"channels": given.channels, "blocks": given.blocks}
        options = dataclasses.replace(config.preset(self.game, "cpu"), env=spec, **size)
        net = cast(Network, Apply(given.other(spec, given.channels, given.blocks, 0)[0]))
        search = make_search(self.game, net, config.for_play(options, self.game, SIMULATIONS), explore=False)
        self.sides = {
            "ours": Player("ours", make_act(self.game, options, SIMULATIONS)),
            "other": Player("other", lambda w, key, s, plies: search(w, key, s, plies).action),
            BASELINE: make_player(BASELINE, self.game),
        }

    @functools.cache  # noqa: B019, one arena per game
    def match(self, a: str, b: str) -> Callable[..., Iterator[match.Games]]:
        plies = openings.enough_plies(self.game, PAIRS)
        return match.make_match(self.game, self.sides[a], self.sides[b], PAIRS, plies, fair=True)

    def games(self, a: tuple[str, Any], b: tuple[str, Any], seed: int, batches: int = 1) -> match.Games:
        played = itertools.islice(self.match(a[0], b[0])(a[1], b[1], jax.random.key(seed)), batches)
        return match.Games(*(np.concatenate(x, axis=-1) for x in zip(*played, strict=True)))

    def scores(self, ours: list[Any], other: list[Any], seed: int) -> list[match.Games]:
        """The games at each mark."""
        batches = [*[1] * (len(ours) - 1), LAST_BATCHES]
        return [self.games(("ours", a), ("other", b), seed, n) for a, b, n in zip(ours, other, batches, strict=True)]

    def ratings(self, met: list[match.Games], ours: list[Any], other: list[Any], seed: int) -> np.ndarray:
        """Ratings of all networks, first of ours: float[2 * marks], the baseline's is 0; `met`: the games at marks."""
        players = [*(("ours", weights) for weights in ours), *(("other", weights) for weights in other)]
        players.append((BASELINE, None))
        count, last = len(ours), len(ours) - 1
        plan = [(first + i + 1, first + i) for first in (0, count) for i in range(last)]
        plan += [(first + i, 2 * count) for first in (0, count) for i in (0, last)]
        games = met + [self.games(players[a], players[b], seed) for a, b in plan]
        pairs = [*((i, count + i) for i in range(count)), *plan]
        meetings = [elo.Meeting(a, b, match.evidence(one)) for (a, b), one in zip(pairs, games, strict=True)]
        return elo.fit(meetings, len(players), anchor=2 * count)[:-1]


def measure(given: argparse.Namespace, spec: str) -> Iterator[rounds.Row]:
    """One row per seed and mark, and one for the last networks of all seeds together."""
    arena = Arena(given, spec)
    sides = arena.sides["ours"], arena.sides["other"]
    final = []
    for seed in given.seeds:
        ours, other = ([one.weights for one in snapshots(given, spec, side, seed)] for side in ("ours", "other"))
        games = arena.scores(ours, other, seed)
        rated = arena.ratings(games, ours, other, seed) if given.ratings else [None] * (2 * len(MARKS))
        final.append(games[-1])
        for i, mark in enumerate(MARKS):
            found = match.result(*sides, games[i])
            yield row(spec, seed, given.minutes * mark, found, rated[i], rated[len(MARKS) + i])
    whole = match.Games(*(np.concatenate(x, axis=-1) for x in zip(*final, strict=True)))
    yield row(spec, "all", given.minutes, match.result(*sides, whole), None, None)


def row(spec: str, seed: Any, minutes: float, found: match.Result, ours: float | None, other: float | None):
    low, high = found.score_interval
    whole = lambda rating: rating and round(rating)
    return {
        "game": spec, "seed": seed, "minutes": minutes, "games": found.games,
        "score": f"{found.score:.1%} [{100 * low:.1f}, {100 * high:.1f}]", "Elo": tables.elo_text(found),
        "our rating": whole(ours), "its rating": whole(other),
    }  # fmt: skip


def plot(rows: list[rounds.Row], other: str, file: Path) -> None:
    """Ratings over minutes, one panel per game: the mean over seeds, and each seed as a thin line."""
    from matplotlib.figure import Figure

    games = list(dict.fromkeys(row["game"] for row in rows))
    figure = Figure(figsize=(5.5 * len(games), 4), layout="constrained")
    for axes, game in zip(figure.subplots(1, len(games), squeeze=False)[0], games, strict=True):
        rated = [row for row in rows if row["game"] == game and row["our rating"] is not None]
        for i, (label, key) in enumerate({"ripzero": "our rating", other: "its rating"}.items()):
            minutes = sorted({row["minutes"] for row in rated})
            seeds = {row["seed"] for row in rated}
            lines = [[row[key] for row in rated if row["seed"] == seed] for seed in seeds]
            for line in lines:
                axes.plot(minutes, line, color=f"C{i}", linewidth=0.6, alpha=0.6)
            axes.plot(minutes, np.mean(lines, axis=0), color=f"C{i}", marker="o", label=label)
        axes.axhline(0, linestyle="--", linewidth=1, color="grey")
        axes.set(title=game, xlabel="minutes of training on one core", ylabel=f"Elo above {BASELINE}")
        axes.legend()
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of runs and results")
    parser.add_argument("--other", required=True, help="the other engine, FILE.py:FUNCTION")
    parser.add_argument("--games", nargs="+", default=["connect_four"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--channels", type=int, default=32)
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--no_ratings", dest="ratings", action="store_false", help="only the games at the marks")
    parser.add_argument("--plot", type=Path, help="also draw the ratings into this .png or .svg file")
    parser.add_argument("--name", default="the other engine", help="what the figure calls it")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    given.folder = given.folder.resolve()
    with cli.errors():
        config.demand(given.ratings or not given.plot, "--plot: expected no --no_ratings, since it draws ratings")
        if given.plot:
            tables.demand_plots(given.plot)
        given.other = rounds.load(given.other)
        given.folder.mkdir(parents=True, exist_ok=True)
        rows: list[rounds.Row] = []
        rounds.show((rows.append(row) or row for game in given.games for row in measure(given, game)), given.json)
        if given.plot:
            plot(rows, given.name, given.plot)


if __name__ == "__main__":
    main()
