"""What knowing the board's symmetry is worth: trains networks that learn it in different ways, and measures them.

python benchmarks/symmetry.py FOLDER [--games connect_four ...] [--arms ...] [--budgets moves time] [--seeds 0 1 2]
                              [--minutes=10] [--json]

Arms, in the order of `ARMS`: no use of the symmetry; a random symmetry for each learned row (the default); the
equivariant network with as many channels, so with the same arithmetic and fewer free weights, and a wide one with as
many free weights; the canonical orientation; two of these with half the updates, so that a row is drawn 1.5 times
instead of 3 times; leaves averaged over all symmetries, with and without augmentation.
For an equivariant network augmentation changes nothing (tests/unit/test_equivariant.py), so there is no arm with both.

Every arm is trained once for each budget. `moves`: all play the same number of moves, which the default network plays
in --minutes of processor time, or those of --iterations. `time`: as many moves as the arm itself plays in --minutes.
Processor time is measured once per arm, without compiling, so neighbours on the machine do not change what an arm is
given.

One JSON file per arm, seed and budget is written to FOLDER when it is complete; those that exist are skipped. Another
call with the same FOLDER goes on. --list only shows what there is.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import resource
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
from agents.arena import solved_positions, tables
from agents.config import Config
from agents.players.players import make_player
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
    "augmented, half the draws": ["--replay_ratio=1.5"],
    "equivariant, half the draws": ["--network=equivariant", "--no_augment", "--replay_ratio=1.5"],
    "averaged": ["--leaf_symmetry=average", "--root_symmetry=average", "--no_augment"],
    "averaged, augmented": ["--leaf_symmetry=average", "--root_symmetry=average"],
}
REFERENCE = "augmented"
SOLVED = {"connect_four": "connect_four_solved", "foq": "foq_solved", "foq_single": "foq_variants_solved"}
LANES = 256  # games in lockstep
PROBES = (2, 14)  # iterations of the runs that time an arm
POINTS = 6  # networks of a learning curve
GAMES = 200  # of a match against the reference


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
        return f"{self.game.partition(':')[0]}-{arm}-{self.budget}-{self.seed}"

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
    """Trains a network in a new folder and returns the figures of all iterations."""
    shutil.rmtree(out, ignore_errors=True)
    fixed = ["--devices=1", f"--num_envs={LANES}", "--rating_games=0", "--no_preflight", "--checkpoint_minutes=0.2"]
    chosen = [f"--env={game}", f"--seed={seed}", f"--iterations={iterations}", f"--out={out}"]
    python("train.py", *fixed, *chosen, *(word.format(wide=wide(game)) for word in ARMS[arm]))
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def seconds_of(folder: Path, game: str, arm: str) -> float:
    """Processor seconds of an iteration, from runs of two lengths that start alike. Measured once per folder."""
    file = folder / "seconds.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    if f"{game} {arm}" not in known:
        spent = []
        for iterations in (PROBES[0], *PROBES):  # the first run compiles for the others
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            train(game, arm, 0, iterations, folder / "probe")
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        known[f"{game} {arm}"] = (spent[2] - spent[1]) / (PROBES[1] - PROBES[0])
        file.write_text(json.dumps(known, indent=1))
    return known[f"{game} {arm}"]


def seconds_known(task: Task) -> float | None:
    """Processor seconds of an iteration, if they were measured."""
    file = task.folder / "seconds.json"
    return json.loads(file.read_text()).get(f"{task.game} {task.arm}") if file.exists() else None


def curve(task: Task, figures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Share of solved positions in which networks along the run keep the value, without search."""
    moves = {row["iteration"]: row["total_plies"] for row in figures}
    saved = sorted(int(path.name) for path in (task.run / "networks").iterdir() if path.name.isdigit())
    chosen = sorted({saved[i] for i in np.linspace(0, len(saved) - 1, POINTS).round().astype(int)})
    return [{"moves": moves[i], **kept(task, f"{task.run}/networks/{i}@0")} for i in chosen if i in moves]


def kept(task: Task, player: str) -> dict[str, Any]:
    """Positions of tests/golden in which the player keeps the value: number, share and its 95% interval."""
    game = envs.make(task.game)
    file = ROOT / "tests" / "golden" / f"{SOLVED[task.game]}.jsonl.gz"
    solved = solved_positions.read_positions(file, game)
    chosen = solved_positions.choose(make_player(player, game), solved)
    right = np.take_along_axis(solved.right, chosen[:, None], axis=1)[:, 0]
    return dataclasses.asdict(solved_positions.scores(right, solved.phases)[0])


def value_error(task: Task) -> float:
    """Mean squared error of the network's value in solved positions, half of them won and half of them lost."""
    trained = load_network(task.run)
    states, values = searched_value.positions(task.game, trained.game)
    planes = jax.jit(jax.vmap(trained.game.observe))(states)
    return float(np.square(np.asarray(trained.net.apply(trained.weights, planes)[1]) - values).mean())


def measure(task: Task) -> dict[str, Any]:
    """Trains and measures one arm."""
    figures = train(task.game, task.arm, task.seed, task.iterations, task.run)
    found: dict[str, Any] = {
        "game": task.game, "arm": task.arm, "seed": task.seed, "budget": task.budget,
        "iterations": task.iterations, "moves": figures[-1]["total_plies"], "seconds": seconds_known(task),
    }  # fmt: skip
    if task.game in SOLVED:
        found |= {"curve": curve(task, figures), "alone": kept(task, f"{task.run}@0")}
        found |= {"searched": kept(task, f"{task.run}@64"), "value_error": value_error(task)}
        found["learned_value_loss"] = float(np.mean([row["value_loss"] for row in figures[-POINTS:]]))
    reference = dataclasses.replace(task, arm=REFERENCE, budget="moves").run
    if task.run != reference:
        said = python("evaluate.py", "match", task.run, reference, f"--games={GAMES}", "--json")
        found["match"] = json.loads(said.splitlines()[-1])
    return found


def tasks(given: argparse.Namespace) -> Iterator[Task]:
    """The reference of each seed first, since the others play against it. An arm as fast as the reference has the same
    budget twice and is trained once."""
    order = sorted(given.arms, key=lambda arm: arm != REFERENCE)
    within_time = lambda game, arm: max(1, round(60 * given.minutes / seconds_of(given.folder, game, arm)))
    for game in given.games:
        usual = given.iterations or within_time(game, REFERENCE)
        for seed, budget, arm in itertools.product(given.seeds, given.budgets, order):
            own = usual if budget == "moves" else within_time(game, arm)
            same = abs(own / usual - 1) <= 0.05
            yield Task(given.folder, game, arm, seed, *(("moves", usual) if same else ("time", own)))


def row(found: dict[str, Any]) -> rounds.Row:
    match, alone, searched = (found.get(name) for name in ("match", "alone", "searched"))
    share = lambda kept: kept and f"{kept['share']:.1%}"
    score = match and "{:.1%} [{:.1%}, {:.1%}]".format(match["score"], *match["score_interval"])
    error = found.get("value_error") and round(found["value_error"], 3)
    names = {name: found[name] for name in ("arm", "budget", "seed", "moves")}
    times = {"s/iteration": found["seconds"] and round(found["seconds"], 2)}
    return names | times | {"alone": share(alone), "@64": share(searched), "value error": error, "score": score}


def results(given: argparse.Namespace) -> Iterator[rounds.Row]:
    if given.list:
        yield from (row(json.loads(path.read_text())) for path in sorted(given.folder.glob("*-*.json")))
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    for task in dict.fromkeys(tasks(given)):
        if not task.result.exists():
            text = json.dumps(measure(task), indent=1)
            task.result.with_suffix(".new").write_text(text)
            task.result.with_suffix(".new").replace(task.result)
        yield row(json.loads(task.result.read_text()))


def plot(folder: Path, file: Path) -> None:
    """Learning curves of the arms that play equally many moves: the mean over seeds, and each seed as a thin line."""
    from matplotlib.figure import Figure

    found = [json.loads(path.read_text()) for path in sorted(folder.glob("*-*.json"))]
    found = [one for one in found if one["budget"] == "moves" and "curve" in one]
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for i, arm in enumerate(arm for arm in ARMS if any(one["arm"] == arm for one in found)):
        curves = [one["curve"] for one in found if one["arm"] == arm]
        lines = [([point["moves"] for point in c], [100 * point["share"] for point in c]) for c in curves]
        for line in lines:
            axes.plot(*line, color=f"C{i}", linewidth=0.6, alpha=0.6)
        moves = np.linspace(max(x[0] for x, _ in lines), min(x[-1] for x, _ in lines), 20)
        axes.plot(moves, np.mean([np.interp(moves, *line) for line in lines], axis=0), color=f"C{i}", label=arm)
    axes.set(xlabel="moves of self-play", ylabel="value of solved positions kept without search, %")
    axes.legend()
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
    parser.add_argument("--list", action="store_true", help="show what there is, run nothing")
    parser.add_argument("--plot", type=Path, help="also draw the learning curves into this .png or .svg file")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    given.folder = given.folder.resolve()
    with cli.errors():
        if given.plot:
            tables.demand_plots(given.plot)
        rounds.show(results(given), given.json)
        if given.plot:
            plot(given.folder, given.plot)


if __name__ == "__main__":
    main()
