"""Diagnosis of a run that has to stop because numbers are not finite, written to a file."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import jax
import numpy as np

import envs
from agents.config import Config
from agents.network.network import make_network
from agents.runtime import advice, processes
from agents.training import learner, proof_targets, replay
from agents.training.iteration import Run
from envs import saved
from envs.game import Array

DIAGNOSIS_FILE = "diagnosis.json"
BATCHES = 16  # drawn until one of them shows the fault


class NotFiniteError(ValueError):
    """Learning cannot continue; the message is for the user."""

    def __init__(self, file: Path | OSError, run: Run, intact: str):
        skipped = int(run.learning.skipped)
        what = f"{skipped} updates in a row had losses, gradients or weights that are not finite"
        if skipped < learner.MOST_SKIPPED:
            what = "the network answered with something that is not finite in self-play"
        details = f"{file} has the details"
        if isinstance(file, OSError):
            details = f"{DIAGNOSIS_FILE} with the details could not be written ({file.strerror})"
        causes = advice.document("docs/troubleshooting.md")
        super().__init__(f"{what}; {details}, {causes} the usual causes; {intact}")


def write_diagnosis(folder: Path, run: Run, config: Config) -> Path | OSError:
    """Writes diagnosis.json into the folder of a run; returns its path, or the error that prevented it."""
    record = {
        "iteration": int(run.iteration),
        "updates": int(run.learning.updates),
        "skipped_in_a_row": int(run.learning.skipped),
        **diagnose(run, config),
        "options": dataclasses.asdict(config),
    }
    try:
        if processes.is_main_process():
            saved.write(folder / DIAGNOSIS_FILE, json.dumps(record, indent=1) + "\n")
    except OSError as error:
        return error
    return folder / DIAGNOSIS_FILE


def diagnose(run: Run, config: Config) -> dict[str, Any]:
    """Looks through replay batches as an update would, for the first in which something is not finite.

    Returns:
        `not_finite`, the names of non-finite arrays; `norms` of weights, gradients and steps by group; `statistics` of
        the batch, the network's outputs and the losses. If all batches are fine, `not_finite` is empty and the rest
        describes the last one: the fault was in rows that are gone.
    """
    game = envs.make(config.env)
    net, optimiser = make_network(game, config), learner.make_optimiser(config)

    @jax.jit
    def look(run: Run, key: Array):
        index = replay.draw(run.replay, key, (config.batch_size,))
        rows = replay.take(game, run.replay, index, config)
        if run.proof_targets is None:
            batch = replay.batch_of(game, rows, config)
        else:
            count = proof_targets.rows_per_batch(config, config.batch_size)
            taught = proof_targets.draw(run.proof_targets, key, (count,))
            proof_rows = proof_targets.take(game, run.proof_targets, taught, config)
            batch = proof_targets.mixed(game, rows, proof_rows, config)
        weights = run.learning.weights
        of_params = lambda params: learner.loss(net, {**weights, "params": params}, batch, config)
        gradients, (losses, after) = jax.grad(of_params, has_aux=True)(weights["params"])
        steps, _ = optimiser.update(gradients, run.learning.optimiser, weights["params"])
        answers = net.train(weights, batch.planes, None)[0]
        trees = {
            "weights": weights["params"],
            "running statistics": {k: v for k, v in after.items() if k != "params"},
            "gradients": gradients,
            "steps": steps,
        }
        arrays = {f"batch.{name}": x for name, x in batch._asdict().items()}
        arrays |= {f"network.{name}": x for name, x in answers._asdict().items()}
        arrays |= {name: x for name, x in losses._asdict().items() if name not in ("gradient_norm", "skipped_updates")}
        return trees, {name: x for name, x in arrays.items() if x is not None}

    key = jax.random.fold_in(jax.random.wrap_key_data(run.key), run.iteration)
    norms, found, wrong = {}, {}, []
    for k in jax.random.split(key, BATCHES):
        trees, arrays = processes.whole(look(run, k))
        norms = {f"{name}.{group}": norm(x) for name, tree in trees.items() for group, x in tree.items()}
        found = {name: statistics(x) for name, x in arrays.items()}
        wrong = [name for name, x in norms.items() if not isinstance(x, float)]
        wrong += [name for name, x in found.items() if x["not_finite"]]
        if wrong:
            break
    return {"not_finite": wrong, "norms": norms, "statistics": found}


def norm(tree: Any) -> float | str:
    """Euclidean norm of all numbers in a tree."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _plain(math.sqrt(sum(float(np.square(x.astype(np.float64)).sum()) for x in jax.tree.leaves(tree))))


def statistics(x: np.ndarray) -> dict[str, Any]:
    """Number of non-finite values, and range and mean of the others; of planes also plane by plane."""
    x = np.asarray(x, np.float64)
    finite = x[np.isfinite(x)]
    wanted = {"minimum": np.min, "maximum": np.max, "mean": np.mean}
    found: dict[str, Any] = {"not_finite": int(x.size - finite.size)}
    found |= {name: float(of(finite)) if finite.size else None for name, of in wanted.items()}
    if x.ndim == 4:
        found["planes"] = [statistics(x[..., i].ravel()) for i in range(x.shape[-1])]
    return found


def _plain(x: float) -> float | str:
    """The number, as text if it is not finite: JSON has no other way."""
    return x if math.isfinite(x) else str(x)
