"""The loop of a run on the host: compiled programs, iterations, saves, and the end."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

import envs
from agents.config import Config, RunOptions, stage, stages
from agents.network.network import Network
from agents.run import diagnosis, game_log, memory, preflight
from agents.run.folder import discard
from agents.run.game_log import GameLog
from agents.run.gating import Rating, RatingMatch, due, make_rating
from agents.run.metrics import Report, Silence
from agents.run.resume import load_run, snapshot
from agents.runtime import advice, cli, mesh, processes
from agents.storage import checkpoint, weights
from agents.training import learner, proof_file, replay
from agents.training.algorithms import algorithm_of
from agents.training.iteration import Run
from agents.training.selfplay import Ended


def stop_signals() -> list[signal.Signals]:
    """Ctrl-C, a request to end, and a terminal that was closed, unless nohup made the program ignore that."""
    numbers, hangup = [signal.SIGINT, signal.SIGTERM], getattr(signal, "SIGHUP", None)  # Windows has none
    if hangup is not None and signal.getsignal(hangup) != signal.SIG_IGN:
        numbers.append(hangup)
    return numbers


class Stop:
    """Asks the loop to end after the current iteration or match; a second signal ends the program at once."""

    def __init__(self, report: Report):
        self.asked, self.ends = False, "compiling"  # what has to end before the run does
        self.report = report
        self.before = {number: signal.signal(number, self.ask) for number in stop_signals()}

    def ask(self, number, frame):
        del frame
        self.asked = True
        signal.signal(number, signal.SIG_DFL)
        self.report.show_cursor()
        self.report.say(f"stopping after {self.ends}; Ctrl-C again stops at once and loses unsaved work")

    def restore(self):
        """Hands the signals back to the program that called the training, such as a notebook."""
        for number, handler in self.before.items():
            if handler is not None:  # it was installed by Python
                signal.signal(number, handler)


def progress_of(config: RunOptions, iteration: int, minutes: float) -> float:
    """Share of the budget used, from 0 to 1."""
    of_iterations = iteration / config.iterations if config.iterations else 0.0
    of_minutes = minutes / config.minutes if config.minutes else 0.0
    return min(max(of_iterations, of_minutes), 1.0)


def train_in(folder: Path, game: envs.Game, net: Network, config: Config, devices: Mesh, resume: Path | None) -> None:
    """Trains until the budget is used up, from the checkpoint `resume` or from the start."""
    about = checkpoint.about(resume) if resume else {}
    iteration = about.get("iteration", 0)
    done = {name: about.get(name, 0) for name in ("minutes", "total_games", "total_plies")}
    try:
        rating = Rating(**about.get("rating", {}))
    except TypeError as error:
        raise checkpoint.CheckpointError(f"checkpoint {resume} is of another version: {error}") from None
    progress = progress_of(config, iteration, done["minutes"])
    if progress >= 1:
        raise ValueError(f"the budget of {folder} is used up: give a larger --iterations or --minutes")
    report = Report(folder, iteration, progress) if processes.is_main_process() else Silence()
    games = GameLog(folder, game, iteration) if processes.is_main_process() else None
    stop = Stop(report)
    kind = f"{devices.size} x {devices.devices.flat[0].device_kind}"
    report.say(f"{game.name} on {kind}: {config.num_envs} games in lockstep, run in {folder}")
    if resume and any(getattr(config, name) != getattr(about["config"], name) for name in ("iterations", "minutes")):
        report.say(f"new budget: {progress:.0%} of it is used; the schedule of the learning rate continues from there")
    built = False
    try:
        programs = build(game, net, config, devices, report, lambda: stop.asked)
        built, stop.ends = True, "this iteration"  # and the memory suffices
        run = load_run(resume, config, devices) if resume else programs.start()
        if processes.is_main_process():
            checkpoint.forget_later(folder, iteration)
        saver = checkpoint.Saver(folder, config, report.say, iteration if resume else None)
        services = RunServices(saver, report, games, stop)
        run, done = loop(programs, services, config, run, done, rating)
    except Exception as error:
        unsaved = not checkpoint.numbered(folder / "networks")
        if resume is None and (not built or (unsaved and isinstance(error, preflight.PreflightError))):
            report.close()
            discard(folder)
        raise
    finally:
        stop.restore()
        report.close()
        if games is not None:
            games.close()
    report.say(f"network: {folder}/networks/{int(run.iteration)} after {done['total_games']} games")
    own = f" --env={game.name}" if ".py" in game.name else ""  # a game of one's own has to be named
    if not int(run.iteration):  # stopped while compiling
        return report.say(advice_to_go_on(folder, config, run, done["minutes"]) + own)
    report.say(f"play against it: {advice.program_command('play')} --env={game.name} --opponent={folder}")
    report.say(f"evaluate it:     {advice.program_command('evaluate')} match {folder} random{own}")
    needs = "" if importlib.util.find_spec("matplotlib") else f"   (first {advice.extra('plots')})"
    report.say(f"look at it:      python -m agents.run.report {folder}{own}{needs}")
    report.say(advice_to_go_on(folder, config, run, done["minutes"]) + own)


def advice_to_go_on(folder: Path, config: Config, run: Run, minutes: float) -> str:
    """How to continue a run that was stopped, or to extend one whose budget is used."""
    command = f"{advice.program_command('train')} --resume={folder}"
    if progress_of(config, int(run.iteration), minutes) < 1:
        return f"continue:        {command}"
    if config.minutes is None:
        return f"train longer:    {command} --iterations={2 * int(run.iteration)}"
    return f"train longer:    {command} --minutes={round(minutes + 30)}"


@dataclasses.dataclass(frozen=True)
class RunPrograms:
    """The compiled programs of a run."""

    start: Callable[[], Run]
    play: dict[Config, Callable[[Run], tuple[Run, Any, Ended]]]  # by the options of its stage; with metrics
    learn: Callable[[Run, float], tuple[Run, Any]]  # with metrics
    feed: Callable[[Run], Run]  # adds rows of `--proof_file` before each iteration
    rate: RatingMatch | None


@dataclasses.dataclass(frozen=True)
class RunServices:
    """Outputs and stop signal of a run."""

    saver: checkpoint.Saver
    report: Report
    archive: GameLog | None  # None in processes that print nothing
    stop: Stop


def build(
    game: envs.Game, net: Network, config: Config, devices: Mesh, report: Report, asked: Callable[[], bool]
) -> RunPrograms:
    """Compiles the programs of a run and checks that they fit into memory; `asked` interrupts rating matches."""
    began = time.monotonic()
    report.phase("compiling")
    report.say("compiling, which takes about a minute on an idle machine")
    parts = algorithm_of(config)
    start = lambda: parts.start_run(game, net, config)
    shapes = jax.eval_shape(start)
    places = mesh.shardings(devices, parts.run_specs(shapes))
    feed = proof_file.make_feed(game, config, places.proof_targets) if config.proof_file else lambda run: run
    laid_out = jax.tree.map(lambda x, y: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=y), shapes, places)
    compiled = lambda part, *others: jax.jit(part, donate_argnums=0).lower(laid_out, *others).compile()
    with ThreadPoolExecutor() as together:  # compiling one program leaves other cores idle
        plays = {now: together.submit(compiled, parts.make_play(game, net, now, devices)) for now in stages(config)}
        learning = together.submit(compiled, parts.make_learn(game, net, config, devices), 0.0)
        while wait([*plays.values(), learning], cli.HEARTBEAT).not_done:
            report.log(f"still compiling after {time.monotonic() - began:.0f} s")
    play, learn = {now: future.result() for now, future in plays.items()}, learning.result()
    row = replay.row_bytes(shapes.replay.rows)
    size = demand_memory(play.values(), learn, laid_out, config, devices, functools.partial(parts.ring_length, game))
    report.say(f"compiled in {time.monotonic() - began:.0f} s{size}, {row} bytes per replay row")
    rate = make_rating(game, config, asked) if config.rating_games else None
    return RunPrograms(jax.jit(start, out_shardings=places), play, learn, feed, rate)


def demand_memory(
    play: Iterable[Any], learn: Any, run: Run, config: Config, devices: Mesh, length: Callable[[Config], int]
) -> str:
    """Refuses a run that does not fit, given its compiled programs and its shapes; else says what it needs."""
    plays, learns = [memory.needed(program) for program in play], memory.needed(learn)
    if learns is None or None in plays:
        return ""
    local = len(devices.local_devices)
    device = devices.local_devices[0]
    need = memory.Need(
        play=max(n for n in plays if n is not None),
        learn=learns,
        run=memory.held(run),
        ring=memory.held((run.replay, run.proof_targets)),  # both grow with --replay_capacity
        weights=memory.held((run.learning, run.reference_weights)),
        saved=device.platform == "cpu",
    )
    memory.demand_fit(need, memory.there(device, local), config, devices.size, length)
    machine = memory.host()
    if not need.saved and machine is not None:  # a save goes through the host's memory
        copy = need._replace(play=need.run, learn=need.run)
        place = "of its host's memory for each device, to be saved, which has"
        memory.demand_fit(copy, machine // local, config, devices.size, length, place)
    return f", needs {need.most / memory.GIB:.2g} GiB per device"


def iterate(
    programs: RunPrograms, config: Config, run: Run, progress: float, report: Report
) -> tuple[Run, Ended, dict]:
    """One iteration and its metrics. Both phases are dispatched together; the host waits for the first only to show and
    time the phases separately."""
    report.phase("self-play")
    start = time.monotonic()
    run, played, ended = programs.play[stage(config, progress)](programs.feed(run))
    run, learned = programs.learn(run, progress)
    jax.block_until_ready(played)
    turned = time.monotonic()
    report.phase("learning")
    jax.block_until_ready((run, learned))
    end = time.monotonic()
    figures = {name: np.asarray(value).tolist() for name, value in {**played._asdict(), **learned._asdict()}.items()}
    whole = ("games", "plies", "replay_rows", "skipped_updates", "broken_rows")
    figures |= {name: round(figures[name]) for name in whole if name in figures}
    plies = figures.get("plies", config.num_envs * config.plies_per_iteration)
    times = {"seconds": end - start, "play_seconds": turned - start, "learn_seconds": end - turned}
    return run, ended, {"plies": plies, "moves_per_second": plies / (end - start), **times, **figures}


PACE = 50  # iterations that tell how long one takes


def minutes_left(config: Config, iteration: int, minutes: float, pace: Sequence[float]) -> float:
    """Minutes until the budget is used, from the time of recent iterations; compiling is not among them."""
    left = [] if config.minutes is None else [config.minutes - minutes]
    if config.iterations is not None:
        left.append((config.iterations - iteration) * sum(pace) / len(pace))
    return max(0.0, min(left))


def loop(programs: RunPrograms, services: RunServices, config: Config, run: Run, done: dict, rating: Rating):
    """Iterates until the budget is used or a signal comes; saves by the clock and at the end. The clock starts here,
    with all programs compiled.

    The preflight comes after the first iteration, so that progress shows early. It must not run beside the iterations:
    all CPU devices share one pool of threads, and a device waiting for the others keeps its thread.

    Raises:
        PreflightError: the preflight failed.
        NotFiniteError: too many consecutive updates were skipped, or self-play met non-finite outputs, which make its
            games worthless. Earlier checkpoints stay.
    """
    saver, report = services.saver, services.report
    began = time.monotonic()
    saved_at, before, preflight_due = began, done["minutes"], config.preflight
    pace: deque[float] = deque(maxlen=PACE)
    progress = progress_of(config, int(run.iteration), before)
    # The saved run determines the match, so a resumed run plays it first.
    _, asked = agreed(0, services.stop.asked)
    run, rating, asked = rate_if_due(programs, services, config, run, rating, asked)
    while progress < 1 and not asked:
        run, ended, figures = iterate(programs, config, run, progress, report)
        elapsed, asked = agreed(time.monotonic() - began, services.stop.asked)
        now = began + elapsed
        pace.append(figures["seconds"] / 60)
        done = {
            "minutes": before + (now - began) / 60,
            "total_games": done["total_games"] + figures["games"],
            "total_plies": done["total_plies"] + figures["plies"],
        }
        progress = progress_of(config, int(run.iteration), done["minutes"])
        run, rating, asked = rate_if_due(programs, services, config, run, rating, asked)
        saver.poll()
        ended = processes.whole(ended)
        row = {"iteration": int(run.iteration), **done, "saved_iteration": saver.saved, **figures}
        row |= {"distinct_openings": game_log.distinct_openings(ended)}
        # A sum over the matches that networks have passed would rise by luck alone.
        rated = rating.updates and not config.gate
        row |= {"rating": rating.elo if rated else None, "rating_score": rating.score}
        row |= {"gate_passed": rating.taken} if config.gate else {}
        row |= {"rating_seconds": time.monotonic() - now}
        row |= {"minutes_left": minutes_left(config, int(run.iteration), done["minutes"], pace)}
        report.iteration(row, progress)
        if preflight_due and not asked:
            report.phase("preflight")
            score, preflight_due = preflight.demand_learning(config), False
            report.say(f"preflight: a solved toy game was learned in {score.seconds:.0f} s")
            _, asked = agreed(0, services.stop.asked)
        if services.archive is not None:
            report.write("games", functools.partial(services.archive.add, int(run.iteration), ended))
        counters = {**done, "rating": dataclasses.asdict(rating)}
        if figures.get("broken_rows") or run.learning.skipped >= learner.MOST_SKIPPED:
            saver.wait()
            raise diagnosis.NotFiniteError(diagnosis.write_diagnosis(saver.folder, run, config), run, saver.intact())
        # A state with skipped updates must not replace the checkpoint from before them.
        ripe = now - saved_at > 60 * config.checkpoint_minutes and not run.learning.skipped
        if ripe and saver.start(snapshot(run), **counters):
            saved_at = now
    report.phase("saving")  # at once after a stop request: little time may be left
    try:
        saver.finish(snapshot(run), **done, rating=dataclasses.asdict(rating))
    except checkpoint.CheckpointError:
        keep_network(saver.folder, run, config, done, report)
        raise
    return run, done


def rate_if_due(
    programs: RunPrograms, services: RunServices, config: Config, run: Run, rating: Rating, asked: bool
) -> tuple[Run, Rating, bool]:
    """Plays the rating match if it is due and no stop is `asked` for: it may outlast the notice before a machine is
    taken away, so a stop request skips or abandons it. Returns also whether a stop is asked for now."""
    if programs.rate is not None and due(config, run, rating) and not asked:
        services.report.phase("match")
        run, rating = programs.rate(run, rating)
        _, asked = agreed(0, services.stop.asked)
    return run, rating, asked


LAST = "last"  # folder of the network of a run whose last checkpoint could not be written


def keep_network(folder: Path, run: Run, config: Config, done: dict, report: Report) -> None:
    """Writes the network alone, as one file: that may work where a checkpoint fails, so that hours of training are not
    lost."""
    trained = processes.whole(run.learning.ema_weights)
    if not processes.is_main_process():
        return
    try:
        path = weights.write_network(
            folder / LAST, {"config": config, "iteration": int(run.iteration), **done}, trained
        )
    except OSError as error:
        report.say(f"warning: the network alone could not be written either: {error.strerror}")
    else:
        report.say(f"warning: of iteration {int(run.iteration)} only the network is kept: {path}")


def agreed(elapsed: float, asked: bool) -> tuple[float, bool]:
    """What all processes decide by: the elapsed seconds of the first process, and whether any was asked to stop."""
    gathered = processes.allgather(elapsed, asked)
    return float(gathered[0, 0]), bool(gathered[:, 1].any())
