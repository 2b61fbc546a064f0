"""What knowing the board's symmetry is worth: trains networks that learn it in different ways, and measures them.

python benchmarks/symmetry.py FOLDER [--games connect_four ...] [--arms ...] [--budgets moves time] [--seeds 0 1 2]
                              [--minutes=10] [--json]

Arms, in the order of `ARMS`: no use of the symmetry; a random symmetry for each learned row (the default); the
equivariant network with as many channels, so with the same arithmetic and fewer free weights, and a wide one with as
many free weights; the canonical orientation; leaves averaged over all symmetries.
For an equivariant network augmentation changes nothing (tests/integration/test_equivariant.py), so there is no arm with
both.

Every arm is trained once for each budget. `moves`: all play the same number of moves, which the default network plays
in --minutes. `time`: as many moves as the arm itself plays in --minutes; only arms that take over a fifth more time for
a move have it. A short run in FOLDER/probe times each arm, so give this program a core of its own.

One JSON file per arm, seed and budget is written to FOLDER when it is complete; those that exist are skipped. Another
call with the same FOLDER goes on. --list and --mean only show what there is, a line for each run or for each arm.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import envs
from agents.arena import match, openings, solved_positions, tables
from agents.config import Config
from agents.players.players import make_player
from agents.players.spec import Player
from agents.runtime import cli
from agents.storage.weights import load_network
from benchmarks import rounds, searched_value

ROOT = Path(__file__).parents[1]
ARMS: dict[str, list[str]] = {
    "nothing": ["--no_augment"],
    "augmented": [],
    "equivariant": ["--network=equivariant", "--no_augment"],
    "equivariant, wide": ["--network=equivariant", "--no_augment", "--channels={wide}"],
    "canonical": ["--canonical", "--no_augment"],
    "averaged": ["--leaf_symmetry=average", "--root_symmetry=average", "--no_augment"],
}
REFERENCE = "augmented"
ORDER = sorted(ARMS, key=lambda arm: arm != REFERENCE)
SOLVED = {"connect_four": "connect_four_solved", "foq": "foq_solved", "foq_single": "foq_variants_solved"}
LANES = 256  # games in lockstep
PROBE = 6  # iterations of the run that times an arm
SIMILAR = 0.2  # an arm that takes so much more or less time has no run of its own for the budget `time`
POINTS = 6  # networks of a learning curve
GAMES = 200  # of a match against the reference
SIMULATIONS = 16  # of training and of the match
SEARCHED = 64  # simulations on solved positions


@dataclasses.dataclass(frozen=True)
class Task:
    """One training run, and where its result goes."""

    folder: Path
    game: str
    arm: str
    seed: int
    budget: str  # moves or time
    iterations: int

    @property
    def name(self) -> str:
        arm = self.arm.replace(", ", "_").replace(" ", "_")
        game = self.game.replace(":", "_").replace("=", "")
        return f"{game}-{arm}-{self.budget}-{self.seed}"

    @property
    def result(self) -> Path:
        return self.folder / f"{self.name}.json"

    @property
    def run(self) -> Path:
        return self.folder / self.name


def python(*words: Any) -> str:
    """What a program of this repository prints."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"{' '.join(command)}: {done.stderr.strip()[-400:]}")
    return done.stdout


def wide(game: str) -> int:
    """Channels of an equivariant network with about as many free weights as the default network."""
    symmetries = len(envs.make(game).symmetries)
    return symmetries * round(Config.channels / symmetries**0.5)


def train(game: str, arm: str, seed: int, iterations: int, out: Path) -> list[dict[str, Any]]:
    """Trains a network, unless it was trained for as many iterations already, and returns the figures of all."""
    file = out / "metrics.jsonl"
    read = lambda: [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    if (out / "networks" / str(iterations)).exists() and len(figures := read()) == iterations:
        return figures
    shutil.rmtree(out, ignore_errors=True)
    fixed = ["--devices=1", f"--num_envs={LANES}", "--rating_games=0", "--no_preflight", "--checkpoint_minutes=0.1"]
    fixed += [f"--num_simulations={SIMULATIONS}"]
    chosen = [f"--env={game}", f"--seed={seed}", f"--iterations={iterations}", f"--out={out}"]
    python("train.py", *fixed, *chosen, *(word.format(wide=wide(game)) for word in ARMS[arm]))
    return read()


def quickest(figures: list[dict[str, Any]]) -> float:
    """Seconds of an iteration. The least of several, since other work can only make one longer."""
    return min(row["seconds"] for row in figures[2:] or figures)


@functools.cache
def seconds_of(folder: Path, game: str, arm: str) -> float:
    """Seconds of an iteration of a short run."""
    return quickest(train(game, arm, 0, PROBE, Task(folder, game, arm, 0, "probe", PROBE).run))


@functools.cache
def solved_of(name: str) -> tuple[solved_positions.SolvedPositions, Any, np.ndarray]:
    """The solved positions of a game; and positions with their values, half of them won and half of them lost."""
    game = envs.make(name)
    file = ROOT / "tests" / "golden" / f"{SOLVED[name]}.jsonl.gz"
    return solved_positions.read_positions(file, game), *searched_value.positions(name, game)


class Measure:
    """Measures trained networks of one game and arm against those of the reference. Compiled once for all seeds."""

    def __init__(self, task: Task):
        trained = load_network(task.run)
        self.game, self.apply = trained.game, jax.jit(trained.net.apply)
        self.ours, self.theirs = player(task, SIMULATIONS), player(reference(task), SIMULATIONS)
        plies = openings.enough_plies(self.game, GAMES // 2)
        self.match = match.make_match(self.game, self.ours, self.theirs, GAMES // 2, plies, False)
        if task.game in SOLVED:
            self.solved, *self.valued = solved_of(task.game)
            self.observe = jax.jit(jax.vmap(self.game.observe))
            searched = player(task, SEARCHED)
            self.searched = dataclasses.replace(searched, act=jax.jit(searched.act))

    def score(self, task: Task) -> dict[str, Any]:
        """A match against the reference of the same seed, from random openings."""
        ours, theirs = (load_network(one.run).weights for one in (task, reference(task)))
        played = next(self.match(ours, theirs, jax.random.key(task.seed)))
        return dataclasses.asdict(match.result(self.ours, self.theirs, played))

    def kept(self, chosen: np.ndarray) -> dict[str, Any]:
        """Solved positions in which these moves keep the value: number, share and its 95% interval."""
        right = np.take_along_axis(self.solved.right, chosen[:, None], axis=1)[:, 0]
        return dataclasses.asdict(solved_positions.scores(right, self.solved.phases)[0])

    def alone(self, network: Path) -> dict[str, Any]:
        """Solved positions in which the likeliest move of the network keeps the value."""
        logits, _ = self.apply(load_network(network).weights, self.observe(self.solved.states))
        return self.kept(np.where(self.solved.legal, np.asarray(logits), -np.inf).argmax(-1))

    def curve(self, task: Task, figures: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """How networks along the run do in solved positions."""
        moves = {row["iteration"]: row["total_plies"] for row in figures}
        saved = sorted(int(path.name) for path in (task.run / "networks").iterdir() if path.name.isdigit())
        chosen = sorted({saved[i] for i in np.linspace(0, len(saved) - 1, POINTS).round().astype(int)})
        return [{"moves": moves[i], **self.alone(task.run / "networks" / str(i))} for i in chosen if i in moves]

    def positions(self, task: Task, figures: list[dict[str, Any]]) -> dict[str, Any]:
        """The figures on solved positions. `value_error` is the mean squared error of the network's value, where half
        of the positions are won and half of them lost."""
        weights, (states, values) = load_network(task.run).weights, self.valued
        error = np.square(np.asarray(self.apply(weights, self.observe(states))[1]) - values).mean()
        chosen = solved_positions.choose(dataclasses.replace(self.searched, weights=weights), self.solved)
        return {
            "curve": self.curve(task, figures),
            "alone": self.alone(task.run),
            "searched": self.kept(chosen),
            "value_error": float(error),
        }


def reference(task: Task) -> Task:
    return dataclasses.replace(task, arm=REFERENCE, budget="moves")


def player(task: Task, simulations: int) -> Player:
    """The newest network of a run, with a search."""
    return make_player(f"{task.run}@{simulations}", load_network(task.run).game)


@functools.lru_cache(maxsize=1)
def measure_of(first: Task) -> Measure:
    return Measure(first)


def measured(task: Task, first: Task) -> dict[str, Any]:
    """Trains and measures one arm. `first` is its task with the first seed."""
    figures = train(task.game, task.arm, task.seed, task.iterations, task.run)
    measure = measure_of(first)
    found: dict[str, Any] = {
        "game": task.game, "arm": task.arm, "seed": task.seed, "budget": task.budget,
        "iterations": task.iterations, "moves": figures[-1]["total_plies"], "seconds": quickest(figures),
    }  # fmt: skip
    if task.game in SOLVED:
        found |= measure.positions(task, figures)
    if (task.arm, task.budget) != (REFERENCE, "moves"):
        found["match"] = measure.score(task)
    return found


def tasks(given: argparse.Namespace) -> Iterator[Task]:
    """The reference first, since the others play against it. An arm about as fast as the reference is trained once, for
    both budgets."""
    for game in given.games:
        seconds = functools.partial(seconds_of, given.folder, game)
        usual = given.iterations or max(1, round(60 * given.minutes / seconds(REFERENCE)))
        for budget, arm in itertools.product(given.budgets, (arm for arm in ORDER if arm in given.arms)):
            own = usual if budget == "moves" else max(1, round(usual * seconds(REFERENCE) / seconds(arm)))
            same = abs(usual / own - 1) <= SIMILAR
            for seed in given.seeds:
                yield Task(given.folder, game, arm, seed, *(("moves", usual) if same else ("time", own)))


def row(found: dict[str, Any]) -> rounds.Row:
    """One run as a line of the table."""
    share = lambda name: found[name]["share"] if name in found else None
    game = found.get("match")
    names = {name: found[name] for name in ("game", "arm", "budget", "seed", "moves", "seconds")}
    figures = {"alone": share("alone"), "@64": share("searched"), "value error": found.get("value_error")}
    return names | figures | {"score": game and game["score"], "interval": game and game["score_interval"]}


def mean_rows(found: list[dict[str, Any]]) -> Iterator[rounds.Row]:
    """All seeds of an arm as a line: the median of the times, means of the other figures, and the interval of the mean
    score over the games of all matches. `in time` is `alone` at the moment of the run when an arm that is slower than
    the reference has used the time of a whole run of it."""
    usual: dict[str, float] = {}
    for (game, arm, budget), group in itertools.groupby(found, lambda one: (one["game"], one["arm"], one["budget"])):
        runs = list(group)
        rows = [row(one) for one in runs]
        line: rounds.Row = {"game": game, "arm": arm, "budget": budget, "seeds": len(rows)}
        for name in ("moves", "alone", "@64", "value error", "score"):
            line[name] = None if rows[0][name] is None else float(np.mean([one[name] for one in rows]))
        line["seconds"] = float(np.median([one["seconds"] for one in rows]))
        usual |= {game: line["seconds"]} if arm == REFERENCE else {}
        line["in time"] = None
        if "curve" in runs[0] and budget == "moves" and game in usual:
            part = min(1.0, usual[game] / line["seconds"])
            line["in time"] = float(np.mean([along(one, part) for one in runs]))
        line["interval"] = None
        if line["score"] is not None:
            half = np.sqrt(sum(np.ptp(one["interval"]) ** 2 for one in rows)) / len(rows) / 2
            line["interval"] = line["score"] - half, line["score"] + half
        yield line


def along(found: dict[str, Any], progress: float) -> float:
    """Share of solved positions kept after that part of the run."""
    moves, shares = ([point[name] for point in found["curve"]] for name in ("moves", "share"))
    return float(np.interp(progress * found["moves"], moves, shares))


def shown(line: rounds.Row) -> rounds.Row:
    """The line as people read it."""
    percent = lambda x: None if x is None else f"{x:.1%}"
    digits = lambda x: None if x is None else round(x, 3)
    low, high = map(percent, line["interval"] or (None, None))
    changed = {name: percent(line[name]) for name in ("alone", "in time", "@64", "score") if name in line}
    changed |= {name: digits(line[name]) for name in ("seconds", "value error")}
    return line | changed | {"moves": round(line["moves"]), "interval": low and f"[{low}, {high}]"}


def saved(folder: Path) -> list[dict[str, Any]]:
    """All results of a folder, by game, arm, budget and seed, the reference first."""
    found = [json.loads(path.read_text()) for path in folder.glob("*-*.json")]
    if not found:
        raise ValueError(f"expected results in {folder}, got none")
    return sorted(found, key=lambda one: (one["game"], ORDER.index(one["arm"]), one["budget"], one["seed"]))


def results(given: argparse.Namespace) -> Iterator[rounds.Row]:
    if given.list:
        yield from map(row, saved(given.folder))
        return
    if given.mean:
        yield from mean_rows(saved(given.folder))
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    for task in dict.fromkeys(tasks(given)):
        if not task.result.exists():
            text = json.dumps(measured(task, dataclasses.replace(task, seed=given.seeds[0])), indent=1)
            task.result.with_suffix(".new").write_text(text)
            task.result.with_suffix(".new").replace(task.result)
        found = json.loads(task.result.read_text())
        if found["iterations"] != task.iterations:
            raise ValueError(f"{task.result}: expected {task.iterations} iterations, got {found['iterations']}")
        yield row(found)


def plot(folder: Path, file: Path) -> None:
    """Learning curves of the budget `moves` in each game with solved positions: the mean over seeds, and each seed as a
    thin line."""
    from matplotlib.figure import Figure

    found = [one for one in saved(folder) if "curve" in one and one["budget"] == "moves"]
    games = list(dict.fromkeys(one["game"] for one in found))
    if not games:
        raise ValueError(f"expected a game with solved positions for --plot, got none in {folder}")
    figure = Figure(figsize=(3.3 * len(games), 3.6), layout="constrained")
    panels = figure.subplots(1, len(games), squeeze=False)[0]
    for axes, game in zip(panels, games, strict=True):
        for i, arm in enumerate(ARMS):
            curves = [one["curve"] for one in found if (one["game"], one["arm"]) == (game, arm)]
            lines = [([point["moves"] / 1000 for point in c], [100 * point["share"] for point in c]) for c in curves]
            for line in lines:
                axes.plot(*line, color=f"C{i}", linewidth=0.6, alpha=0.6)
            if lines:
                moves = np.linspace(max(x[0] for x, _ in lines), min(x[-1] for x, _ in lines), 20)
                mean = np.mean([np.interp(moves, *line) for line in lines], axis=0)
                axes.plot(moves, mean, color=f"C{i}", label=arm)
        axes.set(title=game, xlabel="thousand moves of self-play")
    panels[0].set(ylabel="solved positions whose value is kept, %")
    panels[0].legend()
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of runs and results")
    parser.add_argument("--games", nargs="+", default=["connect_four"])
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--budgets", nargs="+", choices=("moves", "time"), default=["moves", "time"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--iterations", type=int, help="of the budget `moves`, in place of --minutes")
    parser.add_argument("--list", action="store_true", help="show the runs that there are, run nothing")
    parser.add_argument("--mean", action="store_true", help="show a line for all seeds of an arm, run nothing")
    parser.add_argument("--plot", type=Path, help="also draw the learning curves into this .png or .svg file")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    given.folder = given.folder.resolve()
    with cli.errors():
        if given.plot:
            tables.demand_plots(given.plot)
        lines = results(given)
        rounds.show(lines if given.json else map(shown, lines), given.json)
        if given.plot:
            plot(given.folder, given.plot)


if __name__ == "__main__":
    main()
