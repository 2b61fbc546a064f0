"""Positions with exact results from a file: proof targets that another program found.

A solver written for one game decides far more positions than the searches of proof_targets.py, and harder ones. `write`
stores them, and `--proof_file` learns from them. Before each iteration a random sample of the file enters the ring of
proof targets. It has as many rows as the proof searches of an iteration.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from agents.actions import legal_slots, to_mover_frame
from agents.config import Config
from agents.training import proof_targets
from agents.training.iteration import Run
from envs import saved
from envs.game import Game

CHUNK = 1 << 14  # positions that `write` looks at together


class ProvedRows(NamedTuple):
    """N positions, in the form of `proof_targets.ProofTargets`."""

    observation_state: Any  # [N, ...]
    actions: np.ndarray  # int16[N, K]
    right: np.ndarray  # bool[N, K]
    value: np.ndarray  # int8[N]
    weight: np.ndarray  # float32[N], how often a row is drawn, in proportion


def write(
    path: Path,
    game: Game,
    states: Any,
    values: np.ndarray,
    right: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> None:
    """Writes a file for `--proof_file`.

    Args:
        path: the file; its name should end in .npz.
        game: a game for two players.
        states: unfinished positions [N, ...].
        values: int8[N], result for the player to move under best play: -1, 0 or 1.
        right: bool[N, A], the moves that keep this result. A row without any teaches only its value; so does every row
            by default. Name all of them or none.
        weights: float32[N], how often each row is drawn, in proportion; by default all alike. Most positions that a
            solver meets are easy, and teach little.

    Raises:
        ValueError: arrays of different lengths, a value out of range, a finished position, or an illegal move that is
            right.
        OSError: the file cannot be written.
    """
    count = len(values)
    right = np.zeros((count, game.num_actions), bool) if right is None else right
    weights = np.ones(count, np.float32) if weights is None else weights
    lengths = {len(x) for x in (*jax.tree.leaves(states), values, right, weights)}
    if lengths != {count} or not count:
        raise ValueError(f"expected arrays of one length, got {', '.join(map(str, sorted(lengths)))}")
    parts = []
    for start in range(0, count, CHUNK):
        part = slice(start, start + CHUNK)
        parts.append(_rows(game, *jax.tree.map(lambda x: np.asarray(x)[part], (states, right))))
    memory, actions, marked = jax.tree.map(lambda *x: np.concatenate(x), *parts)
    illegal = marked.sum(-1) != np.asarray(right, bool).sum(-1)
    if illegal.any():
        raise ValueError(f"expected right moves that are legal, got others in row {illegal.argmax()}")
    rows = ProvedRows(memory, actions, marked, np.asarray(values), np.asarray(weights, np.float32))
    _demand_sound(rows, game)
    rows = rows._replace(value=rows.value.astype(np.int8))
    out = io.BytesIO()
    np.savez_compressed(out, allow_pickle=False, game=np.array(game.name), **_named(rows))
    saved.write(path, out.getvalue())


def _rows(game: Game, states: Any, right: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
    actions = legal_slots(jax.vmap(game.mask)(states), game.max_legal)
    marked = np.take_along_axis(right.astype(bool), np.maximum(actions, 0), axis=1) & (np.asarray(actions) >= 0)
    view = to_mover_frame(game, actions, jax.vmap(game.player)(states)).astype(jnp.int16)
    return jax.device_get((jax.vmap(game.observation_state)(states), view, marked))


def _named(rows: ProvedRows) -> dict[str, Any]:
    return {jax.tree_util.keystr(where): x for where, x in jax.tree_util.tree_leaves_with_path(rows)}


def _demand_sound(rows: ProvedRows, game: Game) -> None:
    """
    Raises:
        ValueError: no row, or a number out of range.
    """
    if not len(rows.value):
        raise ValueError("expected positions, got none")
    for text, fine in (
        ("the result -1, 0 or 1", np.isin(rows.value, (-1, 0, 1))),
        (f"moves from 0 to {game.num_actions - 1}", (rows.actions >= -1) & (rows.actions < game.num_actions)),
        ("positions with a legal move", (rows.actions >= 0).any(-1)),
        ("right moves that are legal", ~rows.right.astype(bool) | (rows.actions >= 0)),
        ("finite weights of 0 or more", (rows.weight >= 0) & np.isfinite(rows.weight)),
    ):
        wrong = ~np.asarray(fine).reshape(len(rows.value), -1).all(-1)
        if wrong.any():
            raise ValueError(f"expected {text}, got another in row {wrong.argmax()}")
    if not rows.weight.any():
        raise ValueError("expected a positive weight in some row, got none")


def read(path: Path, game: Game) -> ProvedRows:
    """The rows of a file for `game`.

    Raises:
        ValueError: it is no such file, damaged, or for another game.
        OSError: it cannot be read.
    """
    shapes = jax.eval_shape(lambda: (game.observation_state(game.init()),))[0]
    slot = lambda dtype: jax.ShapeDtypeStruct((game.max_legal,), dtype)
    one = lambda dtype: jax.ShapeDtypeStruct((), dtype)
    wanted = ProvedRows(shapes, slot(np.int16), slot(bool), one(np.int8), one(np.float32))  # type: ignore[arg-type]
    try:
        with path.open("rb") as stream, zipfile.ZipFile(stream):  # numpy also reads files of another kind
            pass
        with np.load(path, allow_pickle=False) as file:
            its = str(file["game"])
            if its != game.name:
                raise ValueError(f"expected positions of {game.name}, got {its}")
            arrays = {name: file[name] for name in _named(wanted)}
    except KeyError as error:
        raise ValueError(f"{path}: {error.args[0]}") from None
    except (EOFError, zipfile.BadZipFile, zlib.error, ValueError, RuntimeError, MemoryError) as error:
        raise ValueError(f"{path}: {error}") from None
    count = arrays[".value"].size
    for name, shape in _named(wanted).items():
        form = (count, *shape.shape), np.dtype(shape.dtype)
        if (arrays[name].shape, arrays[name].dtype) != form:
            raise ValueError(f"{path}: expected {name} of {form}, got {arrays[name].shape, arrays[name].dtype}")
    rows = jax.tree.unflatten(jax.tree.structure(wanted), arrays.values())
    try:
        _demand_sound(rows, game)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return rows


def make_feed(game: Game, config: Config, shardings: Any) -> Callable[[Run], Run]:
    """`feed(run) -> run` with as many new rows in its proof targets as an iteration of proof searches adds, the same
    ones whenever this iteration is repeated. `shardings` are those of the proof targets.

    Raises:
        ValueError: the game is not for two players, or the file is not for it.
        OSError: the file cannot be read.
    """
    proof_targets.demand_two_players(game, config)
    rows, count = read(Path(config.proof_file), game), proof_targets.rows_per_iteration(config)
    upto = np.cumsum(rows.weight, dtype=np.float64)
    insert = jax.jit(proof_targets.insert, donate_argnums=0, out_shardings=shardings)

    def feed(run: Run) -> Run:
        chance = np.random.default_rng([config.seed, int(run.iteration)])
        index = np.searchsorted(upto, chance.random((count, config.num_envs)) * upto[-1], side="right")
        drawn = jax.tree.map(lambda x: x[np.minimum(index, len(upto) - 1)], rows[:4])
        new = jax.device_put((*drawn, np.ones(index.shape, bool)), tuple(shardings[:5]))
        return run._replace(proof_targets=insert(run.proof_targets, new))

    return feed
