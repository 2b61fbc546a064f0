"""Cost of the tree search: our loop compared with mctx's, growth with simulations, and the memory of slots.

python benchmarks/search.py [loops] [flat] [orders] [memory] [--json]        (all four without an argument)

`loops`, `flat` and `orders` search a synthetic game with a nearly free network, so the search itself dominates. Both
loops give the same answers. Figures are microseconds per simulation and game, medians over rounds in which every side
runs once. `depth` is the mean number of moves that a simulation descends in the tree.
"""

from __future__ import annotations

import dataclasses
import os
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

sys.path.insert(0, str(Path(__file__).parents[1]))

import envs
from agents.config import Config
from agents.network.network import Heads, Network, make_network
from agents.runtime import cli
from agents.search.halving import Order
from agents.search.policies import make_search, make_tree_policy
from benchmarks import rounds
from envs.game import Game

ROUNDS = 3


class Drift(NamedTuple):
    """An endless game whose position is a number."""

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
        symmetries=(), show=str, action_name=str, parse_action=int,
        to_record=lambda s: {}, from_record=lambda d: None,
    )  # fmt: skip


def drift_network(num_actions: int) -> Network:
    """Priors and values that look arbitrary and cost almost nothing."""

    def apply(weights, planes):
        x = planes.reshape(-1, 1)
        return jnp.sin(x * (1 + jnp.arange(num_actions)) * 40), jnp.sin(x[:, 0] * 1000)

    heads = lambda weights, planes: Heads(*apply(weights, planes), None)
    return Network(lambda key: {}, apply, lambda weights, planes, _: (heads(weights, planes), weights), heads)


def searcher(num_actions: int, games: int, simulations: int, kind: str, loop: str, order: Order = "in_turn"):
    """The compiled search of `games` drift games, as a function without arguments."""
    game = drift_game(num_actions)
    config: Any = dataclasses.replace(
        Config(num_simulations=simulations, max_num_considered_actions=16), search=kind, search_loop=loop
    )
    search = make_search(game, drift_network(num_actions), config, explore=True, order=order)
    states = Drift(jnp.arange(games, dtype=jnp.uint32) * 77777, jnp.zeros(games, jnp.int8))
    plies = jnp.zeros(games, jnp.int32)

    @jax.jit
    def run(key):
        found = search({}, key, states, plies)
        return found.action, found.depth.mean()

    return lambda: jax.block_until_ready(run(jax.random.key(0)))


def loops() -> Iterator[rounds.Row]:
    """Our loop compared with mctx's."""
    shapes = [(256, 82, 16), (256, 82, 64), (256, 82, 256), (64, 362, 256), (256, 7, 64), (64, 2998, 32)]
    for kind in ("gumbel", "puct"):
        for games, actions, simulations in shapes:
            sides = {loop: searcher(actions, games, simulations, kind, loop) for loop in ("native", "mctx")}
            times = rounds.take_turns(sides, ROUNDS)
            cost = {loop: statistics.median(taken) / games / simulations * 1e6 for loop, taken in times.items()}
            yield {"search": kind, "games": games, "actions": actions, "simulations": simulations,
                         "ours_us": round(cost["native"], 2), "mctx_us": round(cost["mctx"], 2),
                         "ratio": rounds.ratio(times["mctx"], times["native"])}  # fmt: skip


def flat() -> Iterator[rounds.Row]:
    """Cost of our loop from few simulations to many."""
    for kind in ("gumbel", "puct"):
        for actions in (7, 82, 362):
            sides = {n: searcher(actions, 64, n, kind, "native") for n in (32, 200, 800)}
            times = rounds.take_turns({str(n): run for n, run in sides.items()}, ROUNDS)
            for n, run in sides.items():
                cost = statistics.median(times[str(n)]) / 64 / n * 1e6
                depth = float(run()[1])
                yield {"search": kind, "games": 64, "actions": actions, "simulations": n,
                             "us": round(cost, 2), "depth": round(depth, 2),
                             "us_per_level": round(cost / depth, 2)}  # fmt: skip


def orders() -> Iterator[rounds.Row]:
    """Simulations of Gumbel search in turn, compared with a phase's contenders side by side."""
    for games, actions, simulations in ((256, 82, 32), (256, 82, 128), (256, 7, 32), (1, 82, 32), (1, 82, 128)):
        names: tuple[Order, ...] = ("in_turn", "side_by_side")
        times = rounds.take_turns(
            {order: searcher(actions, games, simulations, "gumbel", "native", order) for order in names}, ROUNDS
        )
        cost = {order: statistics.median(taken) / games / simulations * 1e6 for order, taken in times.items()}
        yield {"games": games, "actions": actions, "simulations": simulations,
                     "in_turn_us": round(cost["in_turn"], 2), "side_by_side_us": round(cost["side_by_side"], 2),
                     "ratio": rounds.ratio(times["in_turn"], times["side_by_side"])}  # fmt: skip


def memory() -> Iterator[rounds.Row]:
    """Memory of an EvoPawness search, 1024 games, 64 simulations: the trees alone, and all that the compiler plans."""
    game = envs.make("evopawness")
    net = make_network(game, Config(channels=8, blocks=1))
    weights = jax.eval_shape(net.init, jax.random.key(0))
    states = jax.eval_shape(jax.vmap(lambda _: game.init()), jnp.zeros(1024))
    for tree, slots in (("dense", False), ("slots", True)):
        config = Config(num_simulations=64)
        search = make_search(game, net, config, explore=True, slots=slots)
        arguments = weights, jax.random.key(0), states, jax.ShapeDtypeStruct((1024,), jnp.int32)
        planned: Any = jax.jit(search).lower(*arguments).compile().memory_analysis()
        tree_policy = make_tree_policy(game, net, config, slots=slots)
        trees = jax.eval_shape(
            lambda w, k, s, tree_policy=tree_policy: tree_policy.init_tree(w, k, s, 65), *arguments[:3]
        )
        size = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(trees))
        yield {
            "tree": tree,
            "trees_GiB": round(size / 2**30, 3),
            "planned_GiB": round(planned.temp_size_in_bytes / 2**30, 3),
        }


PARTS = {"loops": loops, "flat": flat, "orders": orders, "memory": memory}


def main() -> None:
    rounds.help_if_asked()
    wanted = [word for word in sys.argv[1:] if word != "--json"]
    with cli.errors():
        if set(wanted) - set(PARTS):
            unknown = ", ".join(sorted(set(wanted) - set(PARTS)))
            raise ValueError(f"unknown part {unknown}; known: {', '.join(PARTS)}, and --json")
    as_json = "--json" in sys.argv
    if not as_json:
        print(f"{jax.devices()[0].device_kind}, {os.cpu_count()} cores, jax {jax.__version__}")
    for part in wanted or PARTS:
        if not as_json:
            print(f"\n{part}: {PARTS[part].__doc__}", flush=True)
        rounds.show(({"part": part} | row if as_json else row for row in PARTS[part]()), as_json)


if __name__ == "__main__":
    main()
