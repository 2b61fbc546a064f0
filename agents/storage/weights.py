"""Networks for play, from a run or from a small half-precision file such as those in models/."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import jax
import numpy as np

import envs
from agents import config as config_lib
from agents.config import Config
from agents.network.network import Network, make_network
from agents.storage import checkpoint
from agents.storage.checkpoint import CheckpointError
from envs.game import Game

FILE = "network.npz"
ABOUT = "about"
PACKED = Path(__file__).parents[1] / "models"  # in a wheel
SHIPPED = PACKED if PACKED.is_dir() else Path(__file__).parents[2] / "models"


def locate(path: Path) -> Path:
    """`path` itself, or the shipped network NAME if `path` reads models/NAME and nothing exists there."""
    shipped = SHIPPED / path.name
    return shipped if path.parent == Path("models") and not path.exists() and shipped.is_dir() else path


def find(path: Path) -> Path:
    """The network that `path` means: the folder of a model, or the newest network of a run.

    Raises:
        CheckpointError: there is none.
    """
    path = locate(path)
    return path if (path / FILE).is_file() else checkpoint.find(path, "networks")


@functools.lru_cache(maxsize=64)
def shipped(game: Game) -> str | None:
    """The shipped network for exactly this game, if any; as models/NAME where that path leads to it."""
    folders = sorted(path.parent for path in SHIPPED.glob(f"*/{FILE}"))
    path = next((path for path in folders if about(path)["config"].env == game.name), None)
    if path is None:
        return None
    short = Path("models") / path.name
    return str(short if locate(short).exists() and locate(short).samefile(path) else path)


def about(path: Path) -> dict[str, Any]:
    """The record of a network: `config` (a Config), `iteration` and the counters of the run so far."""
    if not (path / FILE).is_file():
        return checkpoint.about(path)
    try:
        record = json.loads(str(_read(path)[ABOUT]))
        return {**record, "config": config_lib.read(record["config"])}
    except (TypeError, KeyError, ValueError) as error:
        raise CheckpointError(f"{path / FILE} is damaged or of another version: {error}") from error


def digest(path: Path) -> str:
    """16 hexadecimal digits that identify the contents of a network's files, wherever they lie; `path` from `find`."""
    file = path / FILE
    files = [file] if file.is_file() else sorted(found for found in path.rglob("*") if found.is_file())
    parts = [f"{found.relative_to(path)}".encode() + b"\0" + found.read_bytes() for found in files]
    return hashlib.blake2s(b"".join(parts), digest_size=8).hexdigest()


def load(path: Path, config: Config) -> Any:
    """Weights in float32; `path` from `find`, `config` from `about`."""
    if not (path / FILE).is_file():
        return checkpoint.load_weights(path, shapes_of(config.env, config))
    stored = _read(path)
    shapes = shapes_of(config.env, config)

    def leaf(where: Any, wanted: Any) -> np.ndarray:
        name = jax.tree_util.keystr(where)
        if name not in stored or stored[name].shape != wanted.shape:
            raise CheckpointError(f"{path / FILE} does not fit its game: {name}")
        return stored[name].astype(wanted.dtype)

    return jax.tree_util.tree_map_with_path(leaf, shapes)


@dataclasses.dataclass(frozen=True)
class TrainedNetwork:
    """A network with its weights, its game and the options that it was trained with."""

    path: Path
    game: Game
    config: Config
    net: Network
    weights: Any


def load_network(path: str | Path, game: Game | None = None) -> TrainedNetwork:
    """Loads the newest network of a run, one of its networks/ITERATION, or a model such as models/foq.

    Args:
        path: the folder.
        game: the game that the network has to be for; None accepts any.

    Raises:
        CheckpointError: there is no network, or it is damaged.
        ValueError: the network is for another game.
    """
    found = find(Path(path))
    config = about(found)["config"]
    if game is not None and config.env != game.name:
        raise ValueError(f"expected a network for {game.name}, got one for {config.env} in {path}")
    game = game or envs.make(config.env)
    return TrainedNetwork(found, game, config, make_network(game, config), load(found, config))


def shapes_of(env: str, config: Config) -> Any:
    """Shapes of the weights of `config` for a game."""
    return jax.eval_shape(make_network(envs.make(env), config).init, jax.random.key(0))


def _read(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path / FILE, allow_pickle=False) as file:
            return dict(file)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise CheckpointError(f"{path / FILE} is damaged: {error}") from error


def save(source: Path, folder: Path, **options: Any) -> Path:
    """Writes the network of `source`, a run or one of its networks, into `folder`; completely or not at all. `options`
    override options of play. The paths of the run and of its initial network stay private.

    Raises:
        ValueError: an option out of range, or weights that half precision cannot hold.
    """
    path = find(source)
    record = about(path)
    weights = jax.tree_util.tree_leaves_with_path(load(path, record["config"]))
    record["config"] = dataclasses.replace(record["config"], **options)
    arrays: dict[str, Any] = {jax.tree_util.keystr(where): np.asarray(x) for where, x in weights}
    limit = np.finfo(np.float16).max
    for name, x in arrays.items():
        if not (np.abs(x) <= limit).all():
            raise ValueError(f"{path}: {name} does not fit into half precision")
        arrays[name] = x.astype(np.float16)
    text = json.dumps({**record, "config": dataclasses.asdict(record["config"]) | {"out": "", "init_from": ""}})
    folder.mkdir(parents=True, exist_ok=True)
    arrays[ABOUT] = np.array(text)
    with (folder / f"{FILE}.new").open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
    return (folder / f"{FILE}.new").replace(folder / FILE)
