"""Speed of the engine's self-play: moves per second, and the share of the time that the network takes.

python benchmarks/selfplay.py [--other=FILE.py:FUNCTION] [--json]

A CPU counts as one device per core, as in training. `share` is the time of the network alone over the time of
self-play: a second program makes the same number of network evaluations, with the same batch size, and nothing else.
Both run once per round; figures are medians over rounds.

With `--other` another program is compared: `FUNCTION(spec, games, simulations, channels, blocks, plies)` returns a
function without arguments, or None to skip a size. That function makes `plies` moves in each of `games` games of `spec`
(a name of `envs.list()`), with Gumbel search and a residual network of that size.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as Spec

sys.path.insert(0, str(Path(__file__).parents[1]))

import envs
from agents.config import Config
from agents.network.network import make_network
from agents.runtime import keys, mesh
from agents.search.policies import make_search
from agents.training import selfplay
from benchmarks import rounds

ROUNDS = 5
# Game, games in lockstep, channels, blocks, simulations, plies of a run.
CPU = [
    ("connect_four", 256, 64, 5, 32, 2),
    ("connect_four", 256, 64, 5, 200, 1),
    ("go:size=9", 64, 64, 5, 32, 2),
    ("go:size=9", 64, 64, 5, 200, 1),
    ("go:size=9", 64, 16, 2, 32, 8),
    ("go:size=9", 64, 16, 2, 200, 2),
    ("foq", 1024, 32, 3, 16, 1),
]
ACCELERATOR = [("go:size=9", 1024, 128, 6, 32, 32), ("go:size=9", 1024, 128, 6, 200, 8), ("foq", 1024, 128, 8, 32, 32)]

Side = Callable[[], Any]


def sides(spec: str, games: int, channels: int, blocks: int, simulations: int, plies: int) -> dict[str, Side]:
    """Self-play and its network alone, each as a function without arguments."""
    game = envs.make(spec)
    config = Config(
        channels=channels, blocks=blocks, num_simulations=simulations, num_envs=games, plies_per_iteration=plies,
        max_num_considered_actions=16, pooling=False, dtype="float32" if jax.default_backend() == "cpu" else "bfloat16",
    )  # fmt: skip
    devices = mesh.make_mesh(games, games)
    net = make_network(game, config)
    weights = net.init(jax.random.key(0))
    lanes = selfplay.start_lanes(game, jax.random.key(1), config)
    play = selfplay.make_selfplay(game, make_search(game, net, config, explore=True), config)

    def whole(weights, lanes):
        of_lanes = keys.of_lanes(jax.random.key(2), mesh.numbers(lanes.plies))
        return play(weights, of_lanes, lanes)[0]

    def alone(weights, lanes):
        planes = jax.vmap(game.observe)(lanes.states)

        def again(_, total):
            """Each evaluation depends on the last, so that the compiler drops none."""
            logits, value = net.apply(weights, planes + jnp.where(total > 1e9, 1.0, 0.0))
            return total + value.sum() + logits.max()

        return jax.lax.fori_loop(0, plies * (simulations + 1), again, jnp.float32(0))[None]

    def ready(function):
        mapped = jax.shard_map(
            function, mesh=devices, in_specs=(Spec(), Spec(mesh.GAMES)), out_specs=Spec(mesh.GAMES), check_vma=False
        )
        compiled = jax.jit(mapped)
        return lambda: compiled(weights, lanes)

    return {"ours": ready(whole), "network": ready(alone)}


def measure(other: Callable[..., Side | None] | None) -> Iterator[rounds.Row]:
    for spec, games, channels, blocks, simulations, plies in CPU if jax.default_backend() == "cpu" else ACCELERATOR:
        beside = other and other(spec, games, simulations, channels, blocks, plies)
        both = sides(spec, games, channels, blocks, simulations, plies)
        times = rounds.take_turns(both | ({"other": beside} if beside else {}), ROUNDS)
        row = {
            "game": spec, "games": games, "network": f"{channels} x {blocks}", "simulations": simulations,
            "moves_per_second": round(games * plies / median(times["ours"]), 1),
            "share": rounds.ratio(times["network"], times["ours"]), "other": None, "ratio": None,
        }  # fmt: skip
        if beside:
            row["other"] = round(games * plies / median(times["other"]), 1)
            row["ratio"] = rounds.ratio(times["other"], times["ours"])
        yield row


def main() -> None:
    mesh.claim_cores()
    other, as_json = rounds.arguments()
    rounds.show(measure(other), as_json)


if __name__ == "__main__":
    main()
