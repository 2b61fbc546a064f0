"""Initial state of a run: from its checkpoint, or with the weights of another network."""

from __future__ import annotations

import dataclasses
import operator
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

import envs
from agents.config import Config
from agents.network.equivariant import width
from agents.network.network import Network, make_network
from agents.network.transfer import add_planes, grow, resize
from agents.runtime import mesh
from agents.storage import checkpoint
from agents.storage import weights as models
from agents.storage.checkpoint import CheckpointError, Snapshot
from agents.training.algorithms import algorithm_of
from agents.training.iteration import Run

# Options that determine the shapes of the weights, or what they mean.
SIZES = (
    "network", "channels", "blocks", "pooling", "slides", "attention_policy", "normalisation", "future_weight",
    "canonical", "input_planes",
)  # fmt: skip


def sizes(path: Path) -> dict[str, Any]:
    """The options of `SIZES` of the network of a run or model; no `input_planes` if it sees all."""
    config = models.about(models.find_network(path))["config"]
    known = {name: getattr(config, name) for name in SIZES}
    return known if config.input_planes else {name: x for name, x in known.items() if name != "input_planes"}


def begin_with(net: Network, config: Config) -> Network:
    """The network of `config`, initialised with the weights of `config.init_from` instead of random ones. They are
    grown to more channels, blocks or planes, or an attention policy, and resized where the board has another size.

    Raises:
        CheckpointError: there is no such network, or it is for another game, larger, or of another kind.
    """
    path = models.find_network(Path(config.init_from))
    its = models.about(path)["config"]
    shapes = _observed(its.env), _observed(config.env)
    planes = its.input_planes or shapes[0][2], config.input_planes or shapes[1][2]
    known = {"channels": its.channels, "blocks": its.blocks, "input_planes": planes[0]}
    known["attention_policy"] = config.attention_policy and its.attention_policy
    small = dataclasses.replace(config, **known)
    if reason := _refusal(its, config, small, planes):
        raise CheckpointError(f"--init_from: {path} is {reason}")
    channels = width(envs.make(its.env), its), width(envs.make(config.env), config)
    on_board = models.shapes_of(config.env, small)
    seeing = models.shapes_of(config.env, dataclasses.replace(small, input_planes=planes[1]))
    try:
        weights = resize(models.load_arrays(path, its), on_board, (shapes[0][:2], shapes[1][:2]), channels[0])
    except ValueError as error:
        raise CheckpointError(f"--init_from: {path} is for {its.env}: {error}") from error
    weights = add_planes(weights, seeing, planes)
    return dataclasses.replace(net, init=lambda key: grow(weights, net.init(key), channels, key))


def _refusal(its: Config, config: Config, small: Config, planes: tuple[int, int]) -> str:
    """Why no network of `its` can begin a run of `config`; "" if it can. `small` is `config` in the sizes of `its`, and
    `planes` are how many both see."""
    if its.env.split(":")[0] != config.env.split(":")[0]:
        return f"a network for {its.env}, not for {config.env}"
    known, wanted = (_observed(env)[2] for env in (its.env, config.env))
    if known != wanted:
        return f"for {its.env} with {known} planes, not {wanted}"
    grows = config.channels >= its.channels and config.blocks >= its.blocks and planes[0] <= planes[1]
    # In other networks new blocks change the outputs.
    grows &= config.blocks == its.blocks or config.network in ("resnet", "equivariant")
    same = operator.eq(*(jax.tree.map(np.shape, models.shapes_of(its.env, one)) for one in (its, small)))
    if same and grows and its.canonical == config.canonical:
        return ""
    named = lambda one: ", ".join(f"--{x}={getattr(one, x)}" for x in SIZES if getattr(its, x) != getattr(config, x))
    return f"a network of {named(its)}, which cannot become one of {named(config)}"


def _observed(env: str) -> tuple[int, int, int]:
    """Rows, columns and planes of a game."""
    game = envs.make(env)
    rows, columns, planes = jax.eval_shape(lambda: game.observe(game.init())).shape
    return rows, columns, planes


def save_run(folder: Path, run: Run, config: Config, **counters: Any) -> Path:
    """Saves network and run under `folder` and waits until they are written; returns the path of the network."""
    checkpoint.Saver(folder, config, lambda text: None).finish(snapshot(run), **counters)
    return folder / "networks" / str(int(run.iteration))


def _abstract(tree: Any, shardings: Any) -> Any:
    return jax.tree.map(lambda x, y: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=y), tree, shardings)


def load_run(path: Path, config: Config, devices: Mesh) -> Run:
    """The run from `resume/ITERATION`, laid out on `devices`, however many devices saved it; `config` from `about`.

    Raises:
        CheckpointError: it is damaged, or of another version.
    """
    found = checkpoint.about(path)["format"]
    if found != checkpoint.FORMAT:
        raise CheckpointError(
            f"checkpoint {path} is of another version: expected format {checkpoint.FORMAT}, got {found}; "
            "its networks still play, and --init_from begins a new run with one"
        )
    game = envs.make(config.env)
    models.note_planes(path, game, config)
    parts = algorithm_of(config)
    shapes = jax.eval_shape(lambda: parts.start_run(game, make_network(game, config), config))
    shardings = mesh.shardings(devices, parts.run_specs(shapes))
    return Run(**checkpoint.restore(path, "run", _abstract(shapes, shardings)._asdict()))


def snapshot(run: Run) -> Snapshot:
    """What is saved of a run. A checkpoint takes at least the size of the learning state."""
    room = sum(x.nbytes for x in jax.tree.leaves(run.learning))
    return Snapshot(int(run.iteration), run._asdict(), run.learning.ema_weights, room)
