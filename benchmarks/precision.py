"""What bfloat16 costs the shipped networks: their activations layer by layer, and their answers, against float32.

python benchmarks/precision.py [NETWORK ...] [--layers] [--rounded_means] [--json]

The positions are those of random games, the weights are the same in both forms. `body` is the error after the last
block, `worst` the largest of any layer: the root mean square of the difference over that of the float32 activations.
`policy` is the mean Kullback-Leibler divergence over the legal moves in nats, `best move` the share of positions whose
most probable move is the same. `value` and `worst value` are the mean and the largest difference of values in [-1, 1].
With `--layers` one row for every layer instead. `variance` and `worst variance` are the median and the largest error of
a channel's variance that a TPU computes for batch normalisation in training, over all blocks with pooling.

The value and the last layers of the other heads compute in float32 in both forms. On a TPU a product of float32 numbers
rounds its factors to bfloat16; this program shows what happens on the device where it runs. A TPU also adds the cells
of a board up in bfloat16. `--rounded_means` does so here, and rounds after every cell, which is the worst case.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from agents.actions import random_action
from agents.network import pooling
from agents.network.network import PolicyValue
from agents.network.normalisation import moments_of_boards
from agents.storage.weights import TrainedNetwork, load_network
from benchmarks import rounds
from envs.game import Game

MODELS = Path(__file__).parents[1] / "models"
GAMES = 256


def positions(game: Game) -> Any:
    """One unfinished position of each of `GAMES` random games, at a random ply."""
    start_key, length_key, move_key = jax.random.split(jax.random.key(0), 3)
    states = jax.vmap(game.init)(jax.random.split(start_key, GAMES))
    length = jax.random.randint(length_key, (GAMES,), 0, game.max_plies)

    def ply(states, t):
        after = jax.vmap(game.step)(states, random_action(jax.random.fold_in(move_key, t), jax.vmap(game.mask)(states)))
        stay = (t >= length) | jax.vmap(game.over)(after)
        choose = lambda old, new: jnp.where(stay.reshape(-1, *[1] * (old.ndim - 1)), old, new)
        return jax.tree.map(choose, states, after), None

    return jax.lax.scan(ply, states, jnp.arange(game.max_plies))[0]


def rounded_mean(x: jax.Array, dtype: Any = None) -> jax.Array:
    """`board_mean` with the sum rounded to the type of `x` after every cell."""
    bits = jnp.finfo(x.dtype).nexp, jnp.finfo(x.dtype).nmant
    rounded = lambda y: jax.lax.reduce_precision(y, *bits)
    cells = jnp.moveaxis(x.reshape(len(x), -1, x.shape[-1]).astype(jnp.float32), 1, 0)
    total, _ = jax.lax.scan(lambda total, cell: (rounded(total + cell), None), jnp.zeros_like(cells[0]), cells)
    return rounded(total / len(cells)).astype(dtype or x.dtype)


def outputs(trained: TrainedNetwork, dtype: str, planes: Any) -> tuple[dict[str, Any], Any, Any]:
    """Activations by layer, logits and values, all as float32."""
    module = PolicyValue(dataclasses.replace(trained.config, dtype=dtype), trained.game, False, None)
    heads, kept = module.apply(trained.weights, planes, capture_intermediates=True, mutable=["intermediates"])
    leaves, _ = jax.tree.flatten_with_path(kept["intermediates"])
    names = ("/".join(key.key for key in path if hasattr(key, "key")).removesuffix("/__call__") for path, _ in leaves)
    layers = {name: np.asarray(x, np.float32) for name, (_, x) in zip(names, leaves, strict=True) if name != "__call__"}
    return layers, np.asarray(heads.policy, np.float32), np.asarray(heads.value, np.float32)


def size(x: np.ndarray) -> float:
    return float(np.sqrt(np.square(x, dtype=np.float64).mean()))


def variance_errors(layers: dict[str, np.ndarray]) -> np.ndarray:
    """Errors of the variances of all channels of all blocks, as shares of them, if a TPU computes them from `layers`
    rounded to bfloat16."""
    errors = []
    for name in layers:
        if not name.endswith("/Conv_0") or (shift := layers.get(name.replace("Conv_0", "Dense_0"))) is None:
            continue
        near, shift = (jnp.asarray(x, jnp.bfloat16) for x in (layers[name], shift))
        mean, square = moments_of_boards(near, shift, None)
        right = np.var(np.asarray(near, np.float64) + np.asarray(shift, np.float64)[:, None, None], (0, 1, 2))
        errors.append(abs((square - mean**2) / right - 1))
    return np.concatenate(errors) if errors else np.zeros(0)


def compare(name: str, every_layer: bool) -> Iterator[rounds.Row]:
    trained = load_network(MODELS / name if (MODELS / name).exists() else name)
    states = jax.jit(positions, static_argnums=0)(trained.game)
    planes, legal = (np.asarray(jax.jit(jax.vmap(f))(states)) for f in (trained.game.observe, trained.game.mask))
    right, logits, values = outputs(trained, "float32", planes)
    near, near_logits, near_values = outputs(trained, "bfloat16", planes)
    errors = {layer: size(near[layer] - x) / size(x) for layer, x in right.items() if size(x)}
    if every_layer:
        yield from ({"network": name, "layer": layer, "error": f"{error:.2%}"} for layer, error in errors.items())
        return
    legal_only = np.where(legal, 0.0, -1e9)
    body = [layer for layer in errors if "Block" in layer.rpartition("/")[2]] or list(errors)
    log_policy, near_policy = (np.asarray(jax.nn.log_softmax(x + legal_only)) for x in (logits, near_logits))
    divergence = (np.exp(log_policy) * (log_policy - near_policy)).sum(-1)
    best, near_best = ((x + legal_only).argmax(-1) for x in (logits, near_logits))
    variances = variance_errors(near)
    worst = max(errors, key=lambda layer: errors[layer])
    yield {
        "network": name, "body": f"{errors[body[-1]]:.2%}", "worst": f"{errors[worst]:.2%}", "worst layer": worst,
        "policy": f"{divergence.mean():.1e}", "best move": f"{(best == near_best).mean():.1%}",
        "variance": f"{np.median(variances):.2%}" if variances.size else None,
        "worst variance": f"{variances.max():.2%}" if variances.size else None,
        "value": f"{abs(values - near_values).mean():.4f}", "worst value": f"{abs(values - near_values).max():.3f}",
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=sorted(path.parent.name for path in MODELS.glob("*/*.npz")))
    parser.add_argument("--layers", action="store_true")
    parser.add_argument("--rounded_means", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.rounded_means:
        pooling.board_mean = rounded_mean
    rounds.show((row for name in given.networks for row in compare(name, given.layers)), given.json)


if __name__ == "__main__":
    main()
