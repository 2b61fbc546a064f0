"""Networks for play, from a run or from a small half-precision file such as those in models/."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import math
import operator
import re
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import jax
import numpy as np

import envs
from agents.config import Config
from agents.network.network import Network, make_network
from agents.runtime import cli
from agents.storage import checkpoint
from agents.storage.checkpoint import CheckpointError
from envs.game import Game

NETWORK_FILE = "network.npz"
ABOUT = "about"
# The header of an array, as numpy writes it: its type, the order of its axes, its shape.
HEADER = re.compile(
    rb"\{'descr': '([<>|][a-zA-Z]\d{0,9})', 'fortran_order': (False|True), "
    rb"'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n"
)
LONGEST_ABOUT = 1 << 18  # bytes of the record in a file
PACKED = Path(__file__).parents[1] / "models"  # in a wheel
SHIPPED = PACKED if PACKED.is_dir() else Path(__file__).parents[2] / "models"


def locate(path: Path) -> Path:
    """`path` itself, or the shipped network NAME if `path` reads models/NAME and nothing exists there."""
    shipped = SHIPPED / path.name
    return shipped if path.parent == Path("models") and not path.exists() and shipped.is_dir() else path


def find_network(path: Path) -> Path:
    """The network that `path` means: the folder of a model, or the newest network of a run.

    Raises:
        CheckpointError: there is none.
    """
    path = locate(path)
    return path if (path / NETWORK_FILE).is_file() else checkpoint.find_checkpoint(path, "networks")


@functools.lru_cache(maxsize=64)
def shipped(game: Game, fits: Callable[[str, str], bool] = operator.eq) -> str | None:
    """The shipped network for this game, if any; as models/NAME where that path leads to it. `fits` compares the name
    of a network's game with that of `game`."""
    folders = sorted(path.parent for path in SHIPPED.glob(f"*/{NETWORK_FILE}"))
    path = next((path for path in folders if fits(about(path)["config"].env, game.name)), None)
    if path is None:
        return None
    short = Path("models") / path.name
    return str(short if locate(short).exists() and locate(short).samefile(path) else path)


def strength(path: Path) -> str:
    """The measured strength of a shipped network: the line `**Strength**: ...` of its card; empty without one."""
    card = locate(path) / "README.md"
    found = re.search(r"^\*\*Strength\*\*: (.+)$", card.read_text(encoding="utf-8"), re.M) if card.is_file() else None
    return found[1].replace("`", "") if found else ""


def shipped_games() -> list[str]:
    """Full names of the games with a shipped network."""
    return [about(path.parent)["config"].env for path in sorted(SHIPPED.glob(f"*/{NETWORK_FILE}"))]


def about(path: Path) -> dict[str, Any]:
    """The record of a network: `config` (a Config), `iteration` and the counters of the run so far."""
    if not (path / NETWORK_FILE).is_file():
        return checkpoint.about(path)
    with _opened(path) as file:
        text = _array(path, file, ABOUT, LONGEST_ABOUT)
    if text.shape or text.dtype.kind != "U":
        raise CheckpointError(f"{path / NETWORK_FILE} is damaged: its record is no text")
    return checkpoint.record(str(text), str(path / NETWORK_FILE))


def digest(path: Path) -> str:
    """16 hexadecimal digits that identify the contents of the files at `path`, see `find_network`."""
    file = path / NETWORK_FILE
    files = [file] if file.is_file() else sorted(found for found in path.rglob("*") if found.is_file())
    parts = [f"{found.relative_to(path)}".encode() + b"\0" + found.read_bytes() for found in files]
    return hashlib.blake2s(b"".join(parts), digest_size=8).hexdigest()


def load_arrays(path: Path, config: Config) -> Any:
    """Weights in float32; `path` from `find_network`, `config` from `about`."""
    if not (path / NETWORK_FILE).is_file():
        return checkpoint.load_weights(path, shapes_of(config.env, config))
    shapes = shapes_of(config.env, config)
    with _opened(path) as file:

        def leaf(where: Any, wanted: Any) -> np.ndarray:
            name = jax.tree_util.keystr(where)
            array = _array(path, file, name, 8 * wanted.size, wanted.shape)
            if array.dtype.kind != "f" or not np.isfinite(array).all():
                raise CheckpointError(
                    f"{path / NETWORK_FILE} is damaged: {name} holds something else than finite numbers"
                )
            return array.astype(wanted.dtype)

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
    found = find_network(Path(path))
    config = about(found)["config"]
    if game is not None and config.env != game.name:
        raise ValueError(f"expected a network for {game.name}, got one for {config.env} in {path}")
    game = game or envs.make(config.env)
    note_planes(found, game, config)
    return TrainedNetwork(found, game, config, make_network(game, config), load_arrays(found, config))


def note_planes(path: Path, game: Game, config: Config) -> None:
    """Says so where the file of an own game has more planes than its network knows: they may not be the first ones."""
    planes = jax.eval_shape(lambda: game.observe(game.init())).shape[-1]
    if ".py" in game.name and 0 < config.input_planes < planes:
        cli.note(
            f"note: {path} sees the first {config.input_planes} of the {planes} planes of {game.name}; planes that "
            "were added later must come last"
        )


def shapes_of(env: str, config: Config) -> Any:
    """Shapes of the weights of `config` for a game."""
    return jax.eval_shape(make_network(envs.make(env), config).init, jax.random.key(0))


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive of arrays. Any fault in it raises CheckpointError, as damage."""
    try:
        with zipfile.ZipFile(path / NETWORK_FILE) as file:
            yield file
    except CheckpointError:
        raise
    except (ValueError, EOFError, OSError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise CheckpointError(f"{path / NETWORK_FILE} is damaged: {error}") from error


def _array(path: Path, file: zipfile.ZipFile, name: str, most: int, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """One array of the archive. Its form is judged by its header, before memory is taken for its contents: a file of a
    few bytes may announce terabytes. Objects, which could run code, are never read.

    Args:
        path: the network, for messages.
        file: the archive.
        name: of the array.
        most: largest number of bytes.
        shape: the only shape that is right, if it is known.

    Raises:
        CheckpointError: there is no such array, or it has another form.
    """
    if f"{name}.npy" not in file.namelist():
        raise CheckpointError(f"{path / NETWORK_FILE} does not fit its game: {name} is missing")
    with file.open(f"{name}.npy") as stream:
        header = _header(stream)
        if header is None:
            raise CheckpointError(f"{path / NETWORK_FILE} is damaged: {name} is of an unknown format")
        its, columns_first, dtype = header
        if shape is not None and its != shape:
            raise CheckpointError(
                f"{path / NETWORK_FILE} does not fit its game: {name} has the shape {its}, not {shape}"
            )
        size = math.prod(its) * dtype.itemsize
        if size > most or dtype.hasobject:
            raise CheckpointError(f"{path / NETWORK_FILE} is damaged: {name} cannot have {size} bytes of {dtype}")
        flat = np.frombuffer(stream.read(size), dtype)
    return flat.reshape(its, order="F" if columns_first else "C")


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]] | None:
    """Shape, whether columns come first, and type of the array that begins here; None if numpy did not write this.

    numpy's own reader runs Python's parser. In Python 3.11 the parser fails with SystemError when threads of a server
    use it at the same time (python/cpython issue 106905).
    """
    if np.lib.format.read_magic(stream) != (1, 0):
        return None
    found = HEADER.fullmatch(stream.read(int.from_bytes(stream.read(2), "little")))
    if found is None:
        return None
    try:
        dtype = np.dtype(found[1].decode())
    except TypeError:  # such as floats of three bytes
        return None
    return tuple(map(int, found[3].replace(b",", b" ").split())), found[2] == b"True", dtype


def export_network(source: Path, folder: Path, **options: Any) -> Path:
    """Writes the network of `source`, a run or one of its networks, into `folder` in half precision; `options` override
    options of play. See `write_network`.

    Raises:
        ValueError: an option out of range, or weights that half precision cannot hold.
    """
    path = find_network(source)
    record = about(path)
    weights = load_arrays(path, record["config"])
    for where, x in jax.tree_util.tree_leaves_with_path(weights):
        if not (np.abs(x) <= np.finfo(np.float16).max).all():
            raise ValueError(f"{path}: {jax.tree_util.keystr(where)} does not fit into half precision")
    record["config"] = dataclasses.replace(record["config"], **options)
    return write_network(folder, record, jax.tree.map(lambda x: np.asarray(x, np.float16), weights))


def write_network(folder: Path, record: dict[str, Any], weights: Any) -> Path:
    """Writes weights and their record, see `about`, as one file in `folder`; completely or not at all if files can be
    renamed there. The paths of the run and of what it began with and learned from stay private."""
    leaves = jax.tree_util.tree_leaves_with_path(weights)
    arrays: dict[str, Any] = {jax.tree_util.keystr(where): np.asarray(x) for where, x in leaves}
    private = {"out": "", "init_from": "", "proof_file": ""}
    text = json.dumps({**record, "config": dataclasses.asdict(record["config"]) | private})
    folder.mkdir(parents=True, exist_ok=True)
    arrays[ABOUT] = np.array(text)
    written = folder / f"{NETWORK_FILE}.new"
    try:
        with written.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
        return Path(shutil.move(written, folder / NETWORK_FILE))  # copies where nothing can be renamed
    except OSError:
        with contextlib.suppress(OSError):
            written.unlink()
        raise
