"""Share of solved positions in which a network's move keeps the value of the game.

python benchmarks/solved.py runs/NAME
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import envs
from agents import cli
from agents.players import Player, game_of, make_player

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
# Per game: the file of positions, the fields that are not part of the record, and the one that lists the right moves.
FILES = {
    "foq:rows=8,cols=9": ("foq_solved.jsonl.gz", {"legal"}, "winning"),
    "tictactoe": ("tictactoe_solved.jsonl.gz", {"terminal", "value"}, "optimal"),
}
SIMULATIONS = (0, 16, 32, 64, 256)


def load(game: envs.Game):
    """Positions [M, ...] and the moves that keep their value, bool[M, A]."""
    name, drop, field = FILES[game.name]
    with gzip.open(GOLDEN / name, "rt") as file:
        lines = [line for line in map(json.loads, file) if line[field]]
    right = np.zeros((len(lines), game.num_actions), bool)
    states = []
    for i, line in enumerate(lines):
        right[i, line[field]] = True
        states.append(game.from_record({k: v for k, v in line.items() if k not in drop | {field}}))
    return jax.tree.map(lambda *x: jnp.stack(x), *states), right


def share(player: Player, states, right: np.ndarray, chunk: int = 512) -> float:
    """Share of positions where the player's move is one of the right ones."""
    act = jax.jit(player.act)
    kept = 0
    for low in range(0, len(right), chunk):
        index = np.minimum(np.arange(low, low + chunk), len(right) - 1)  # one shape, so one compilation
        part = jax.tree.map(lambda x: x[index], states)
        actions = np.asarray(act(player.weights, jax.random.key(0), part, jnp.zeros(chunk, jnp.int32)))
        kept += right[index, actions][: len(right) - low].sum()
    return kept / len(right)


def main() -> None:
    with cli.errors():
        if len(sys.argv) != 2:
            raise ValueError("want one argument, the folder of a run")
        game = envs.make(game_of(sys.argv[1]) or "foq")
        if game.name not in FILES:
            raise ValueError(f"no solved positions for {game.name}; known: {', '.join(FILES)}")
        states, right = load(game)
        print(f"{game.name}: {len(right)} positions, a random legal move keeps the value in "
              f"{np.mean(right.sum(1) / np.asarray(jax.vmap(game.mask)(states)).sum(1)):.1%}")  # fmt: skip
        for n in SIMULATIONS:
            player = make_player(f"{sys.argv[1]}@{n}", game, n)
            print(f"{player.name:40s} {share(player, states, right):.1%}", flush=True)


if __name__ == "__main__":
    main()
