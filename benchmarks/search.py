"""Cost of the tree search: our loop beside mctx's, flatness, the memory of slots, and the network's share.

python benchmarks/search.py [loops] [flat] [memory] [share] [--json]        (all four without an argument)

`loops` and `flat` search a drifting game whose network is next to free, so that what is left is the search itself;
both loops give the same answers. Figures are microseconds per simulation and game, medians of rounds in which every
side runs once. `depth` is the mean number of moves that a simulation goes down the tree. `share` is the time of the
network's evaluations alone over that of the whole search.
"""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

sys.path.insert(0, str(Path(__file__).parents[1]))

import envs
from agents import cli
from agents.config import Config
from agents.network import Network, make_network
from agents.search import make_evaluate, make_search
from envs.game import Game

ROUNDS = 5


class Drift(NamedTuple):
    """A game without an end whose position is a number."""

    number: Any  # uint32[]
    mover: Any  # int8[]


def drift_game(num_actions: int) -> Game:
    def move(s: Drift, a: Any) -> Drift:
        mixed = (s.number + jnp.asarray(a).astype(jnp.uint32) + 1) * jnp.uint32(2654435761)
        return Drift(mixed ^ (mixed >> 15), (1 - s.mover).astype(jnp.int8))

    return Game(
        name="drift", num_players=2, num_actions=num_actions, max_plies=10**6, max_legal=num_actions,
        init=lambda key=None: Drift(jnp.uint32(1), jnp.int8(0)), step=move, move=move,
        mask=lambda s: jnp.ones(num_actions, bool), over=lambda s: jnp.bool_(False),
        player=lambda s: s.mover.astype(jnp.int32), rewards=lambda s: jnp.zeros(2),
        observe=lambda s: (s.number.astype(jnp.float32) / 2.0**32).reshape(1, 1, 1),
        symmetries=(), show=str, svg=str, action_name=str, parse_action=int,
        to_record=lambda s: {}, from_record=lambda d: None,
    )  # fmt: skip


def drift_network(num_actions: int) -> Network:
    """Priors and values that look arbitrary and cost next to nothing."""

    def apply(weights, planes):
        x = planes.reshape(-1, 1)
        return jnp.sin(x * (1 + jnp.arange(num_actions)) * 40), jnp.sin(x[:, 0] * 1000)

    return Network(lambda key: {}, apply, lambda weights, planes: ((*apply(weights, planes), None), weights))


def searcher(num_actions: int, games: int, simulations: int, kind: str, loop: str):
    """The compiled search of that many games of drift, without arguments."""
    game = drift_game(num_actions)
    config: Any = dataclasses.replace(
        Config(num_simulations=simulations, gumbel_actions=16), search=kind, search_loop=loop
    )
    search = make_search(game, drift_network(num_actions), config, explore=True)
    states = Drift(jnp.arange(games, dtype=jnp.uint32) * 77777, jnp.zeros(games, jnp.int8))
    plies = jnp.zeros(games, jnp.int32)

    @jax.jit
    def run(key):
        found = search({}, key, states, plies)
        return found.action, found.depth.mean()

    return lambda: jax.block_until_ready(run(jax.random.key(0)))


def in_turns(sides: dict[str, Any], rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Seconds of every side, each once in every round, after a first round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(rounds + 1):
        for name, run in sides.items():
            start = time.perf_counter()
            run()
            if turn:
                times[name].append(time.perf_counter() - start)
    return times


Row = dict[str, Any]


def loops() -> Iterator[Row]:
    """Our loop beside mctx's."""
    shapes = [(256, 82, 16), (256, 82, 64), (256, 82, 256), (64, 362, 256), (256, 7, 64), (64, 2998, 32)]
    for kind in ("gumbel", "puct"):
        for games, actions, simulations in shapes:
            sides = {loop: searcher(actions, games, simulations, kind, loop) for loop in ("ours", "mctx")}
            times = in_turns(sides, 3)
            cost = {loop: statistics.median(taken) / games / simulations * 1e6 for loop, taken in times.items()}
            ratios = [b / a for a, b in zip(times["ours"], times["mctx"], strict=True)]
            yield {"search": kind, "games": games, "actions": actions, "simulations": simulations,
                         "ours_us": round(cost["ours"], 2), "mctx_us": round(cost["mctx"], 2),
                         "ratio": round(statistics.median(ratios), 1)}  # fmt: skip


def flat() -> Iterator[Row]:
    """Cost of our loop from few simulations to many."""
    for kind in ("gumbel", "puct"):
        for actions in (7, 82, 362):
            sides = {n: searcher(actions, 64, n, kind, "ours") for n in (32, 200, 800)}
            times = in_turns({str(n): run for n, run in sides.items()}, 3)
            for n, run in sides.items():
                cost = statistics.median(times[str(n)]) / 64 / n * 1e6
                depth = float(run()[1])
                yield {"search": kind, "games": 64, "actions": actions, "simulations": n,
                             "us": round(cost, 2), "depth": round(depth, 2),
                             "us_per_level": round(cost / depth, 2)}  # fmt: skip


def memory() -> Iterator[Row]:
    """Memory of one search of EvoPawness, 1024 games, 64 simulations, as the compiler plans it."""
    game = envs.make("evopawness")
    net = make_network(game, Config(channels=8, blocks=1))
    weights = jax.eval_shape(net.init, jax.random.key(0))
    states = jax.eval_shape(jax.vmap(lambda _: game.init()), jnp.zeros(1024))
    for tree in ("dense", "slots"):
        config: Any = dataclasses.replace(Config(num_simulations=64), tree=tree)
        search = make_search(game, net, config, explore=True)
        arguments = weights, jax.random.key(0), states, jax.ShapeDtypeStruct((1024,), jnp.int32)
        planned: Any = jax.jit(search).lower(*arguments).compile().memory_analysis()
        yield {"tree": tree, "GiB": round(planned.temp_size_in_bytes / 2**30, 2)}


def share() -> Iterator[Row]:
    """Time of the network in a search of self-play."""
    sizes = [("connect_four", 64, 5), ("go:size=9", 64, 5), ("go:size=9", 16, 2), ("foq", 32, 3)]
    for spec, channels, blocks in sizes:
        game = envs.make(spec)
        config = Config(channels=channels, blocks=blocks)
        net = make_network(game, config)
        weights, evaluate = net.init(jax.random.key(0)), make_evaluate(game, net)
        games = 64
        states = jax.vmap(lambda _, game=game: game.init())(jnp.zeros(games))
        for n in (32, 200):
            search = make_search(game, net, dataclasses.replace(config, num_simulations=n), explore=True)
            whole = jax.jit(search)

            @jax.jit
            def alone(weights, states, evaluate=evaluate, n=n):
                """As many evaluations, each with the result of the last one, so that none is left out."""

                def again(_, total):
                    planes = jax.tree.map(lambda x: x + (total > 1e9).astype(x.dtype), states)
                    logits, value = evaluate(weights, jax.random.key(0), planes)
                    return total + value.sum() + logits.max()

                return jax.lax.fori_loop(0, n + 1, again, jnp.float32(0))

            plies = jnp.zeros(games, jnp.int32)
            times = in_turns({
                "whole": lambda whole=whole, s=states, w=weights: jax.block_until_ready(
                    whole(w, jax.random.key(0), s, plies)
                ),
                "network": lambda alone=alone, s=states, w=weights: jax.block_until_ready(alone(w, s)),
            }, 3)  # fmt: skip
            shares = [b / a for a, b in zip(times["whole"], times["network"], strict=True)]
            yield {"game": game.name, "channels": channels, "blocks": blocks, "games": games, "simulations": n,
                         "moves_per_second": round(games / statistics.median(times["whole"]), 1),
                         "share": round(statistics.median(shares), 2)}  # fmt: skip


PARTS = {"loops": loops, "flat": flat, "memory": memory, "share": share}


def main() -> None:
    wanted = [word for word in sys.argv[1:] if word != "--json"]
    with cli.errors():
        if set(wanted) - set(PARTS):
            unknown = ", ".join(sorted(set(wanted) - set(PARTS)))
            raise ValueError(f"unknown part {unknown}; known: {', '.join(PARTS)}, and --json")
    if "--json" not in sys.argv:
        print(f"{jax.devices()[0].device_kind}, {os.cpu_count()} cores, jax {jax.__version__}")
    for part in wanted or PARTS:
        if "--json" not in sys.argv:
            print(f"\n{part}: {PARTS[part].__doc__}", flush=True)
        for number, row in enumerate(PARTS[part]()):
            if "--json" in sys.argv:
                print(json.dumps({"part": part, **row}), flush=True)
                continue
            if number == 0:
                print("  ".join(f"{name:>16s}" for name in row))
            print("  ".join(f"{value!s:>16s}" for value in row.values()), flush=True)


if __name__ == "__main__":
    main()
