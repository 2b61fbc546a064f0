"""Trains a network by self-play: python train.py --env=foq --num_envs=1024"""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
from jax.sharding import Mesh

import envs
from agents import checkpoint, cli, memory, mesh
from agents.archive import Archive
from agents.config import Config, stage, stages
from agents.iteration import Learnt, Played, Run, make_learn, make_play, run_specs, start_run
from agents.network import Network, make_network
from agents.rating import Match, Rating, due, make_rating
from agents.report import Report
from agents.selfplay import Ended
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
    shutil.rmtree(folder / "tensorboard")
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
    rating = Rating(**about.get("rating", {}))
    progress = progress_of(config, iteration, done["minutes"])
    if progress >= 1:
        raise ValueError(f"the budget of {folder} is used up: give a larger --iterations or --minutes")
    run = checkpoint.load_run(resume, config, devices) if resume else None
    report = Report(folder, iteration, progress)
    archive = Archive(folder, game, iteration)
    stop = Stop(report)
    kind = f"{devices.size} x {devices.devices.flat[0].device_kind}"
    report.say(f"{game.name} on {kind}: {config.num_envs} games in lockstep, run in {folder}")
    try:
        programs = build(game, net, config, devices, report)
        run = run or programs.start()
        run, done = loop(programs, config, run, folder, done, rating, began, report, archive, stop)
    except memory.TooLittleError:
        report.close()
        if resume is None:
            discard(folder)
        raise
    finally:
        report.close()
        archive.close()
    report.say(f"network: {folder}/networks/{int(run.iteration)} after {done['total_games']} games")
    if game.num_players == 2:  # a match is between two
        report.say(f"evaluate it:  python evaluate.py match {folder} random")
    report.say(f"train longer: python train.py --resume={folder} --minutes={round(done['minutes'] + 30)}")


@dataclasses.dataclass(frozen=True)
class Programs:
    """What a run consists of, compiled."""

    start: Callable[[], Run]
    play: dict[Config, Callable[[Run], tuple[Run, Played, Ended]]]  # by the options of its stage
    learn: Callable[[Run, float], tuple[Run, Learnt]]
    rate: Match | None


def build(game: envs.Game, net: Network, config: Config, devices: Mesh, report: Report) -> Programs:
    """The parts of a run, once it is known that the memory is enough."""
    began = time.monotonic()
    start = lambda: start_run(game, net, config)
    shapes = jax.eval_shape(start)
    places = mesh.shardings(devices, run_specs(shapes))
    laid_out = jax.tree.map(lambda x, y: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=y), shapes, places)
    compiled = lambda part, *others: jax.jit(part, donate_argnums=0).lower(laid_out, *others).compile()
    play = {now: compiled(make_play(game, net, now, devices)) for now in stages(config)}
    learn = compiled(make_learn(game, net, config, devices), 0.0)
    needs = [memory.needed(program) for program in (*play.values(), learn)]
    need = max((n for n in needs if n is not None), default=None)
    memory.demand(need, memory.there(devices.devices.flat[0]), config.num_envs, devices.size)
    size = "" if need is None else f", needs {need / memory.GIB:.2g} GiB on each device"
    report.say(f"compiled in {time.monotonic() - began:.0f} s{size}")
    rate = make_rating(game, config) if config.rating_games else None
    return Programs(jax.jit(start, out_shardings=places), play, learn, rate)


def loop(
    programs: Programs,
    config: Config,
    run: Run,
    folder: Path,
    done: dict,
    rating: Rating,
    began: float,
    report: Report,
    archive: Archive,
    stop: Stop,
):
    """Iterates until the budget is used or a signal comes; saves by the clock and at the end."""
    saved_at, before = began, done["minutes"]
    progress = progress_of(config, int(run.iteration), before)
    plies = config.num_envs * config.plies_per_iteration
    while progress < 1 and not stop.asked:
        start = time.monotonic()
        # Both phases are sent off together; the host waits for the first only to tell their times apart.
        run, played, ended = programs.play[stage(config, progress)](run)
        run, learnt = programs.learn(run, progress)
        jax.block_until_ready(played)
        turned = time.monotonic()
        jax.block_until_ready((run, learnt))
        now = time.monotonic()
        figures = {k: np.asarray(v).tolist() for k, v in {**played._asdict(), **learnt._asdict()}.items()}
        figures |= {"games": int(figures["games"]), "replay_rows": int(figures["replay_rows"])}
        archive.add(int(run.iteration), ended)
        done = {
            "minutes": before + (now - began) / 60,
            "total_games": done["total_games"] + figures["games"],
            "total_plies": done["total_plies"] + plies,
        }
        progress = progress_of(config, int(run.iteration), done["minutes"])
        if programs.rate is not None and due(config, run, rating):
            run, rating = programs.rate(run, rating)
        left = done["minutes"] * (1 - progress) / progress if progress > 0 else None
        speed = {
            "moves_per_second": plies / (now - start),
            "seconds": now - start,
            "play_seconds": turned - start,
            "learn_seconds": now - turned,
            "rating_seconds": time.monotonic() - now,
            "minutes_left": left,
        }
        strength = {"rating": rating.elo if rating.updates else None, "rating_score": rating.score}
        report.iteration(
            {"iteration": int(run.iteration), **done, **speed, **strength, "plies": plies, **figures}, progress
        )
        if now - saved_at > 60 * config.checkpoint_minutes or progress >= 1 or stop.asked:
            checkpoint.save(folder, run, config, rating=dataclasses.asdict(rating), **done)
            saved_at = now
    return run, done


def main() -> None:
    with cli.errors():
        cli.keep_compiled()
        config, resume = cli.training(sys.argv[1:])
        train(config, resume)


if __name__ == "__main__":
    main()
