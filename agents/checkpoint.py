"""Saving and restoring with orbax. Every save is complete or absent: orbax writes beside the target and renames.

A run's folder holds

    networks/ITERATION/   weights for play, small, all of them kept
    resume/ITERATION/     the whole `Run`: weights, optimiser, replay buffer, games under way, random key; the last two

Each carries `about`: the options of the run, the game's name and the counters.
"""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp
from jax.sharding import Mesh

import envs
from agents import mesh
from agents.config import Config
from agents.iteration import Run, run_specs, start_run
from agents.network import make_network

KEPT = 2  # resume folders: the newest, and one before it in case the disk damages the newest


class CheckpointError(ValueError):
    """A checkpoint is missing, damaged or of another kind; the message is for people."""


def save(folder: Path, run: Run, config: Config, **counters: Any) -> Path:
    """Saves network and run under `folder`; returns the path of the network."""
    iteration = int(run.iteration)
    about = {"config": dataclasses.asdict(config), "iteration": iteration, **counters}
    network = folder / "networks" / str(iteration)
    _write(network, "weights", run.learning.average, about)
    _write(folder / "resume" / str(iteration), "run", run, about)
    for old in numbered(folder / "resume")[:-KEPT]:
        shutil.rmtree(old)
    return network


def _write(path: Path, item: str, tree: Any, about: dict[str, Any]) -> None:
    arguments = {item: ocp.args.StandardSave(tree), "about": ocp.args.JsonSave(about)}
    with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
        checkpointer.save(path.absolute(), ocp.args.Composite(**arguments), force=True)


def _read(path: Path, item: str, argument: Any) -> Any:
    try:
        with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
            restored = checkpointer.restore(path.absolute(), ocp.args.Composite(**{item: argument}))[item]
    except Exception as error:  # orbax raises what its storage raises: any of it means that the folder is unusable
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CheckpointError(f"checkpoint {path} is damaged or incomplete: {reason[:200]}") from error
    if restored is None:
        raise CheckpointError(f"checkpoint {path} is damaged or incomplete: it has no '{item}'")
    return restored


def numbered(folder: Path) -> list[Path]:
    """Checkpoints in a folder, oldest first. Saves that broke off carry orbax's own temporary names."""
    found = [p for p in folder.iterdir() if p.is_dir() and p.name.isdigit()] if folder.is_dir() else []
    return sorted(found, key=lambda p: int(p.name))


def find(path: Path, kind: str) -> Path:
    """The checkpoint meant by `path`: a checkpoint folder itself, or the newest one of a run (`kind` as above).

    Raises:
        CheckpointError: there is none.
    """
    if path.name.isdigit() and path.parent.name == kind and path.is_dir():
        return path
    found = numbered(path / kind)
    if not found:
        what = f"holds no {kind}/ITERATION" if path.is_dir() else "does not exist"
        raise CheckpointError(f"no checkpoint: {path} {what}; give the folder of a run, such as runs/NAME")
    return found[-1]


def about(path: Path) -> dict[str, Any]:
    """What a checkpoint says of itself: `config` (a Config), `iteration` and the counters given to `save`."""
    record = _read(path, "about", ocp.args.JsonRestore())
    try:
        return {**record, "config": Config(**record["config"])}
    except (TypeError, KeyError, ValueError) as error:
        raise CheckpointError(f"checkpoint {path} is of another version: {error}") from error


def _abstract(tree: Any, shardings: Any) -> Any:
    return jax.tree.map(lambda x, y: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=y), tree, shardings)


def load_network(path: Path, config: Config) -> Any:
    """Weights for play from `networks/ITERATION`; `config` from `about`."""
    net = make_network(envs.make(config.env), config)
    shapes = jax.eval_shape(net.init, jax.random.key(0))
    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    return _read(path, "weights", ocp.args.StandardRestore(_abstract(shapes, jax.tree.map(lambda _: device, shapes))))


def load_run(path: Path, config: Config, devices: Mesh) -> Run:
    """The run from `resume/ITERATION`, laid out on `devices`, however many it was saved from; `config` from `about`."""
    game = envs.make(config.env)
    shapes = jax.eval_shape(lambda: start_run(game, make_network(game, config), config))
    shardings = mesh.shardings(devices, run_specs(shapes))
    return _read(path, "run", ocp.args.StandardRestore(_abstract(shapes, shardings)))


def newest_run(folder: Path) -> Path:
    """The run under `folder` whose network was saved last.

    Raises:
        CheckpointError: there is none.
    """
    runs = [p for p in folder.iterdir() if numbered(p / "networks")] if folder.is_dir() else []
    if not runs:
        raise CheckpointError(f"no run with a checkpoint under {folder}/; train one first: python train.py --env=foq")
    return max(runs, key=lambda p: numbered(p / "networks")[-1].stat().st_mtime)
