"""Trains a network by self-play: python train.py --env=foq --num_envs=1024"""

from __future__ import annotations

import contextlib
import shutil
import signal
import sys
import time
from pathlib import Path

import jax
from jax.sharding import Mesh

import envs
from agents import checkpoint, cli, diagnosis, learner, memory, mesh, preflight
from agents.config import Config
from agents.iteration import Run, make_iteration, run_specs, start_run
from agents.network import Network, make_network
from agents.report import Report
from envs import check


class Stop:
    """Asks the loop to end after the iteration under way; a second signal ends the program at once."""

    def __init__(self, report: Report):
        self.asked = False
        self.report = report
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.ask)

    def ask(self, number, frame):
        del frame
        self.asked = True
        signal.signal(number, signal.SIG_DFL)
        self.report.say("stopping after this iteration; once more to stop at once, losing what was not saved")


def open_folder(config: Config, resume: Path | None) -> Path:
    """The run's folder, made or found; an existing run is never written over."""
    if resume is not None:
        return resume.parent.parent
    name = f"{Path(config.env.split(':')[0]).stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder = Path(config.out or f"runs/{name}")
    if (folder / "networks").exists() or (folder / "metrics.jsonl").exists():
        raise ValueError(f"{folder} holds a run already: go on with --resume={folder}, or choose another --out")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").touch()
    return folder


def discard(folder: Path) -> None:
    """Takes back what was made for a run that cannot begin."""
    (folder / "metrics.jsonl").unlink()
    shutil.rmtree(folder / "tensorboard", ignore_errors=True)
    with contextlib.suppress(OSError):  # it holds something else
        folder.rmdir()


def progress_of(config: Config, iteration: int, minutes: float) -> float:
    """Share of the budget used, from 0 to 1."""
    of_iterations = iteration / config.iterations if config.iterations else 0.0
    of_minutes = minutes / config.minutes if config.minutes else 0.0
    return min(max(of_iterations, of_minutes), 1.0)


def train(config: Config, resume: Path | None) -> None:
    began = time.monotonic()
    game = envs.make(config.env)
    check.demand_form(game)
    net = make_network(game, config)
    devices = mesh.make_mesh(config.num_envs, config.batch_size, config.devices)
    folder = open_folder(config, resume)
    about = checkpoint.about(resume) if resume else {}
    iteration = about.get("iteration", 0)
    done = {name: about.get(name, 0) for name in ("minutes", "total_games", "total_plies")}
    progress = progress_of(config, iteration, done["minutes"])
    if progress >= 1:
        raise ValueError(f"the budget of {folder} is used up: give a larger --iterations or --minutes")
    run = checkpoint.load_run(resume, config, devices) if resume else None
    checkpoint.forget_later(folder, iteration)
    report = Report(folder, iteration, progress)
    stop = Stop(report)
    kind = f"{devices.size} x {devices.devices.flat[0].device_kind}"
    report.say(f"{game.name} on {kind}: {config.num_envs} games in lockstep, run in {folder}")
    try:
        if config.preflight:
            score = preflight.demand(config)
            report.say(f"preflight: a solved toy game was learnt in {score.seconds:.0f} s")
        start, iterate = build(game, net, config, devices, report)
        saver = checkpoint.Saver(folder, config, report.say, iteration if resume else None)
        run, done = loop(iterate, config, run or start(), saver, done, began, report, stop)
    except (memory.TooLittleError, preflight.PreflightError):
        report.close()
        if resume is None:
            discard(folder)
        raise
    finally:
        report.close()
    report.say(f"network: {folder}/networks/{int(run.iteration)} after {done['total_games']} games")
    if game.num_players == 2:  # a match is between two
        report.say(f"evaluate it:  python evaluate.py match {folder} random")
    report.say(f"train longer: python train.py --resume={folder} --minutes={round(done['minutes'] + 30)}")


def build(game: envs.Game, net: Network, config: Config, devices: Mesh, report: Report):
    """The start of a run and its iteration, compiled, once it is known that the memory is enough."""
    began = time.monotonic()
    start = lambda: start_run(game, net, config)
    shapes = jax.eval_shape(start)
    places = mesh.shardings(devices, run_specs(shapes))
    laid_out = jax.tree.map(lambda x, y: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=y), shapes, places)
    iterate = jax.jit(make_iteration(game, net, config, devices), donate_argnums=0).lower(laid_out, 0.0).compile()
    need = memory.needed(iterate)
    memory.demand(need, memory.there(devices.devices.flat[0]), config.num_envs, devices.size)
    size = "" if need is None else f", needs {need / memory.GIB:.2g} GiB on each device"
    report.say(f"compiled in {time.monotonic() - began:.0f} s{size}")
    return jax.jit(start, out_shardings=places), iterate


def loop(
    iterate, config: Config, run: Run, saver: checkpoint.Saver, done: dict, began: float, report: Report, stop: Stop
):
    """Iterates until the budget is used or a signal comes; saves by the clock and at the end.

    Raises:
        NotFiniteError: too many updates in a row were skipped; the checkpoints from before stay.
    """
    saved_at, before = began, done["minutes"]
    progress = progress_of(config, int(run.iteration), before)
    plies = config.num_envs * config.plies_per_iteration
    while progress < 1 and not stop.asked:
        start = time.monotonic()
        run, figures = jax.block_until_ready(iterate(run, progress))
        now = time.monotonic()
        whole = ("games", "replay_rows", "skipped_updates")
        figures = {k: int(v) if k in whole else float(v) for k, v in figures._asdict().items()}
        done = {
            "minutes": before + (now - began) / 60,
            "total_games": done["total_games"] + figures["games"],
            "total_plies": done["total_plies"] + plies,
        }
        progress = progress_of(config, int(run.iteration), done["minutes"])
        left = done["minutes"] * (1 - progress) / progress if progress > 0 else None
        speed = {"moves_per_second": plies / (now - start), "seconds": now - start, "minutes_left": left}
        saver.poll()
        told = {"iteration": int(run.iteration), **done, **speed, "saved_iteration": saver.saved, "plies": plies}
        report.iteration(told | figures, progress)
        if run.learning.skipped >= learner.MOST_SKIPPED:
            saver.wait()
            raise diagnosis.NotFiniteError(diagnosis.write(saver.folder, run, config), saver.intact())
        # What led to a skipped update is not saved over what was there before it.
        due = now - saved_at > 60 * config.checkpoint_minutes and not run.learning.skipped
        if due and saver.start(run, **done):
            saved_at = now
    saver.finish(run, **done)
    return run, done


def main() -> None:
    with cli.errors():
        cli.keep_compiled()
        config, resume = cli.training(sys.argv[1:])
        train(config, resume)


if __name__ == "__main__":
    main()
