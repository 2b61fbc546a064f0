"""Errors of three value estimates on solved positions.

python benchmarks/searched_value.py [--games connect_four foq foq_single] [--simulations 16 64] [--json]

The estimates are the network's value, the mean over the root's visits, and the searched value that self-play stores.
Every network of models/ searches as in its own self-play, with noise. Each position of tests/golden is joined by the
position after a value-preserving move, so wins and losses are equally frequent. The table shows the mean squared error,
and how often the sign is right in decided positions.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import envs
from agents.search import policies as search
from agents.search import tree as tree_search
from agents.storage import weights as models
from benchmarks import rounds
from envs.game import Game

ROOT = Path(__file__).parents[1]
FILES = {"connect_four": "connect_four_solved", "foq": "foq_solved", "foq_single": "foq_variants_solved"}
KINDS = ("network", "visits", "searched")
CHUNK = 128  # positions in one batch


def positions(name: str, game: Game) -> tuple[Any, np.ndarray]:
    """Unfinished positions [M, ...] and their values for the player to move, float[M]."""
    states, values = [], []
    move, over = jax.jit(game.move), jax.jit(game.over)
    with gzip.open(ROOT / "tests" / "golden" / f"{FILES[name]}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            if record.get("variant", name) != name:
                continue
            right = record["winning"] if "winning" in record else record["optimal"]
            fields = ("variant", "rows", "cols", "ripped", "queens", "to_move", "moves")
            state = game.from_record({field: record[field] for field in fields if field in record})
            value = float(record.get("value", 1))  # every Flight of Queen position in the files has a winning move
            after = move(state, right[0])
            states += [state] if over(after) else [state, after]
            values += [value] if over(after) else [value, -value]
    return jax.tree.map(lambda *x: np.stack(x), *jax.device_get(states)), np.array(values)


def estimates(name: str, game: Game, simulations: int, states: Any) -> dict[str, np.ndarray]:
    """Each estimate for the player to move, float[M]."""
    trained = models.load_network(ROOT / "models" / name, game)
    config, weights = dataclasses.replace(trained.config, num_simulations=simulations), trained.weights
    tree_policy = search.make_tree_policy(game, trained.net, config)

    @jax.jit
    def look(key: Any, states: Any):
        tree = tree_policy.init_tree(weights, key, states, simulations + 1)
        tree = tree_policy.run_simulations(
            weights, jax.random.fold_in(key, 1), tree, jnp.zeros(CHUNK, jnp.int32), True
        )[2]
        of_mover = lambda values: tree_search.for_mover(values, tree.mover[:, tree_search.ROOT])
        root = tree.raw_values[:, tree_search.ROOT], tree.values[:, tree_search.ROOT], tree_policy.values(tree)
        return dict(zip(KINDS, map(of_mover, root), strict=True))

    count, parts = len(jax.tree.leaves(states)[0]), []
    for low in range(0, count, CHUNK):
        index = np.minimum(np.arange(low, low + CHUNK), count - 1)
        parts.append(jax.device_get(look(jax.random.key(low), jax.tree.map(lambda x, i=index: x[i], states))))
    return {kind: np.concatenate([part[kind] for part in parts])[:count] for kind in KINDS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="+", choices=FILES, default=list(FILES))
    parser.add_argument("--simulations", nargs="+", type=int, default=[16, 64])
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rounds.show(table(arguments.games, arguments.simulations), as_json=arguments.json)


def table(games: list[str], simulations: list[int]) -> Iterator[rounds.Row]:
    for name in games:
        game = envs.make(name)
        states, values = positions(name, game)
        won = values != 0
        for number in simulations:
            found = estimates(name, game, number, states)
            errors = {f"{kind} error": round(float(np.square(x - values).mean()), 3) for kind, x in found.items()}
            signs = {f"{kind} sign": round(float((np.sign(x) == values)[won].mean()), 3) for kind, x in found.items()}
            yield {"game": name, "simulations": number, "positions": len(values), **errors, **signs}


if __name__ == "__main__":
    main()
