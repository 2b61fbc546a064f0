"""Command-line options of `train.py`: the configuration, and the checkpoint to resume from."""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar, cast

import jax
import tyro

import envs
from agents.config import (
    CHANGEABLE,
    DEFAULT_MINUTES,
    LONG_MINUTES,
    OF_ITERATIONS,
    Config,
    LearnerOptions,
    MatchOptions,
    NetworkOptions,
    Options,
    Range,
    RunOptions,
    SearchOptions,
    SelfplayOptions,
    preset,
)
from agents.run.resume import sizes
from agents.runtime import mesh, processes
from agents.runtime.cli import HELP, demand_values, fail, parse_command
from agents.storage import checkpoint
from envs import check

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class ProcessOptions(Options):
    """Several processes, and a run to continue."""

    coordinator: str = ""
    """For several processes, one on every host: HOST:PORT of the first process. With `auto`, the environment of Slurm,
    Open MPI, Kubernetes or a TPU pod names the processes. See docs/scaling.md."""
    num_processes: Annotated[int | None, Range(least=1, most=2**16)] = None
    """Number of processes; with HOST:PORT."""
    process_id: Annotated[int | None, Range(least=0, most=2**16)] = None
    """Number of this process, from 0; with HOST:PORT."""
    resume: str = ""
    """Folder of a run, or one of its resume/ITERATION. Only the budget, saving, --preflight, --devices and
    --proof_file may change."""


@dataclasses.dataclass(frozen=True)
class Training:
    """Trains a network by self-play. Defaults depend on the game and the device: see them with --env=GAME --help.
    --help-all explains every option in full."""

    run: RunOptions
    selfplay: SelfplayOptions
    search: SearchOptions
    network: NetworkOptions
    learner: LearnerOptions
    match: MatchOptions
    process: ProcessOptions


def _grouped(config: Config, resume: str) -> Training:
    """The options of a config in groups, as --help shows them."""

    def part(kind: type[T]) -> T:
        return kind(**{f.name: getattr(config, f.name) for f in dataclasses.fields(cast(Any, kind))})

    return Training(
        run=part(RunOptions),
        selfplay=part(SelfplayOptions),
        search=part(SearchOptions),
        network=part(NetworkOptions),
        learner=part(LearnerOptions),
        match=part(MatchOptions),
        process=ProcessOptions(resume=resume),
    )


# What other programs call some of these options.
COMMON = {
    "lr": "learning_rate", "epochs": "iterations", "steps": "iterations", "gpus": "devices", "batch": "batch_size",
    "bs": "batch_size", "sims": "num_simulations", "simulations": "num_simulations", "game": "env", "time": "minutes",
}  # fmt: skip


def parse_options(arguments: Sequence[str], base: Config, resume: str = "") -> Config:
    """The config of a command line whose defaults are those of `base`. Options are flat, and --help groups them."""
    given = parse_command(tyro.conf.OmitArgPrefixes[Training], arguments, _grouped(base, resume), meant=COMMON)
    records = (given.run, given.selfplay, given.search, given.network, given.learner, given.match)
    return Config(**{name: value for record in records for name, value in dataclasses.asdict(record).items()})


class _FirstLook(argparse.ArgumentParser):
    """Reads the options on which the defaults of the others depend."""

    def error(self, message: str) -> NoReturn:
        fail(re.sub(r"^argument (\S+): expected one argument$", r"\1: expected a value, got nothing", message))


UNDERSCORED = re.compile(r"(?<=^--)[a-z][a-z0-9-]*")  # names of options, which may be written with hyphens


def _number(text: str | None) -> int | None:
    if text is not None and not re.fullmatch(r"-?[0-9]{1,30}", text):
        raise ValueError(f"--num_processes and --process_id: expected whole numbers, got {text}")
    return None if text is None else int(text)


def training(arguments: Sequence[str]) -> tuple[Config, Path | None]:
    """Parses the options of `train.py`: the config, and the checkpoint to resume from, if any."""
    underscored = lambda argument: UNDERSCORED.sub(lambda name: name[0].replace("-", "_"), argument)
    arguments = [a if a in HELP else underscored(a) for a in arguments]
    demand_values(arguments)
    mesh.claim_cores()
    first = _FirstLook(add_help=False, allow_abbrev=False)
    first.add_argument("--env")
    first.add_argument("--resume", default="")
    first.add_argument("--recipe", default="default")
    first.add_argument("--init_from", default="")
    first.add_argument("--devices")
    first.add_argument("--num_envs")
    first.add_argument("--coordinator", default="")
    first.add_argument("--num_processes")
    first.add_argument("--process_id")
    chosen, _ = first.parse_known_args(arguments)
    number, place = _number(chosen.num_processes), _number(chosen.process_id)
    together = ProcessOptions(chosen.coordinator, number, place)  # judged before the processes wait for each other
    processes.connect(together.coordinator, together.num_processes, together.process_id)
    named = None if chosen.env is None else envs.make(chosen.env)  # it may be the own game of a saved network
    if chosen.resume:
        path = Path(
            processes.broadcast_str(
                str(checkpoint.find_checkpoint(Path(chosen.resume), "resume")) if processes.is_main_process() else ""
            )
        )
        base = checkpoint.about(path)["config"]
        check.demand_form(envs.make(base.env))
    else:
        # A wrong number is refused later, with the other options.
        wanted = int(chosen.devices) if re.fullmatch(r"[1-9][0-9]{0,4}", chosen.devices or "") else jax.device_count()
        # A chosen number of games is for all devices, and the batch that suits it does not grow with them.
        devices = 1 if chosen.num_envs else min(wanted, jax.device_count())
        if named is not None and not HELP & set(arguments):
            check.demand_form(named)  # before the preset, which asks for planes
        path, base = None, preset(named or envs.make("foq"), jax.default_backend(), chosen.recipe, devices)
        base = dataclasses.replace(base, **(sizes(Path(chosen.init_from)) if chosen.init_from else {}))
    config = parse_options(arguments, base, chosen.resume)
    config = dataclasses.replace(config, env=envs.make(config.env).name)
    if config.recipe == "value_generations":
        for name in OF_ITERATIONS:
            if getattr(config, name) != getattr(base, name):
                raise ValueError(f"--{name} is no part of --recipe=value_generations")
    if path is not None:
        changed = [f.name for f in dataclasses.fields(Config) if getattr(config, f.name) != getattr(base, f.name)]
        forbidden = sorted(set(changed) - CHANGEABLE)
        if forbidden:
            allowed = ", ".join(f"--{n}" for n in sorted(CHANGEABLE))
            before = lambda name: "not given" if getattr(base, name) == "" else getattr(base, name)
            refused = ", ".join(f"--{n} (was {before(n)})" for n in forbidden)
            raise ValueError(f"{refused} cannot change with --resume; these can: {allowed}")
    budget_given = any(a.split("=")[0] in ("--iterations", "--minutes") for a in arguments)
    config = _with_budget(config, base, arguments, budget_given)
    if "--preflight" not in arguments:
        begins_long = path is None and (config.minutes or 0) >= LONG_MINUTES and config.recipe != "value_generations"
        config = dataclasses.replace(config, preflight=config.preflight and begins_long)
    return config, path


def _with_budget(config: Config, base: Config, arguments: Sequence[str], given: bool) -> Config:
    """A budget of one kind on the command line replaces the other kind's default. A resumed run may have both."""
    names = {a.split("=")[0] for a in arguments}
    given = given and (base.minutes is None or base.iterations is None)
    if given and "--minutes" not in names:
        config = dataclasses.replace(config, minutes=None)
    if given and "--iterations" not in names:
        config = dataclasses.replace(config, iterations=None)
    if config.iterations is None and config.minutes is None:
        config = dataclasses.replace(config, minutes=DEFAULT_MINUTES)
    return config
