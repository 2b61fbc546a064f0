"""What the compilers of a TPU and a GPU say of the programs of a run, on a machine without either.

python benchmarks/compiled.py GAME [OPTION=VALUE ...] [--chip=v5e] [--parts=rules,play,learn,match,analysis] [--json]

`--chip=v5e` needs `pip install 'jax[tpu]'`. `--chip=h100` and `--chip=t4` need `pip install jax-cuda12-plugin
jax-cuda12-pjrt nvidia-cuda-nvcc-cu12`. A shape gives several chips, `v5e:2x4` or `h100:8`, that share the games; then
`messages` and `bytes` are the operations between them and the bytes that these return, on every chip.
Options are those of train.py, over the preset for the platform. `rules` are step, mask and observe of 4096 positions,
and all three `together`.
`play` and `learn` are the two phases of an iteration, `match` plays 128 games between two networks, and `analysis`
searches one position, both with `num_simulations`. Each program gives a row with the seconds to compile and the GiB of
memory, and each of its loops another one, indented by depth, for one round. A loop whose number of rounds the
compiler cannot know has no `rounds` and counts once.

For a TPU, `cycles` are those of one round, with inner loops multiplied by their `rounds`, and `products` is the share
of convolutions and matrix products among them. `most expensive other` names the operation outside these products that
takes the most cycles of the round. The compiler gives no cycles for gathers: `gathered` is the number of slices that
they read, most of them single numbers or rows. `scatters`, which write one by one, and `unknown`, the loops of unknown
length, are counted in the text. The innermost loop with products in `play` is one simulation, the loop
around it one ply; the loop in `learn` is one update. These are the compiler's estimates, not measurements. Divide
cycles by the clock of the chip for a bound on the time: 0.94 GHz for a v5e.

For a GPU, `kernels` are launched by one round: those of the network, those of the loop `descend` that follows the paths
of a search, and all others. A call of a library counts as one. `unknown` are the loops of unknown length in it: after
each of their rounds the host waits for the answer whether to go on. `branches` are conditionals, which wait likewise.
In `play`, the loop `search` is one step of a search, and the loop `play` one ply; steps that occur once are part of the
ply. In `learn`, the loop `learn` is one update. Times cannot be told: the compiler does not try its kernels.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ |= {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
# Without a GPU there is nothing to try kernels on.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_autotune_level=0"
sys.path.insert(0, str(Path(__file__).parents[1]))

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.experimental.layout import Format, Layout
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import envs
from agents.arena.match import Round, make_group
from agents.config import Config, demand, for_play, preset
from agents.network.network import PolicyValue, make_network
from agents.players.analysis import make_analyst
from agents.players.players import make_act
from agents.players.spec import Player
from agents.run.options import parse_options
from agents.runtime import cli, mesh
from agents.training.algorithms import algorithm_of
from benchmarks import rounds
from benchmarks.hlo import Cost, Loop, Program
from envs.game import Array, Game

POSITIONS = 4096  # of a rules program
MATCH_GAMES = 128  # in lockstep
PARTS = "rules,play,learn"
RULES = "step,mask,observe,together"
EVERY_PART = (*RULES.split(","), "play", "learn", "match", "analysis")


@dataclasses.dataclass(frozen=True)
class Gpu:
    """A GPU as its compiler wants it described, by the maker's data sheet."""

    name: str
    capability: tuple[int, int]
    processors: int
    lanes: int  # float32 units of a processor
    threads: int  # of a processor
    shared: int  # bytes, of a processor
    cache: int  # bytes, level 2
    clock: float  # GHz
    bandwidth: int  # bytes a second
    memory: int  # bytes

    def description(self) -> str:
        """The description in the text format of XLA's `GpuTargetConfigProto`."""
        major, minor = self.capability
        return f"""
            platform_name: "CUDA"  device_description_str: "{self.name}"
            dnn_version_info {{ major: 9 minor: 10 }}  runtime_version {{ major: 12 minor: 8 }}
            gpu_device_info {{
              cuda_compute_capability {{ major: {major} minor: {minor} }}
              core_count: {self.processors}  fpus_per_core: {self.lanes}  clock_rate_ghz: {self.clock}
              threads_per_block_limit: 1024  threads_per_warp: 32  threads_per_core_limit: {self.threads}
              shared_memory_per_block: 49152  shared_memory_per_core: {self.shared}
              shared_memory_per_block_optin: {self.shared - (1024 if major > 7 else 0)}
              block_dim_limit_x: 2147483647  block_dim_limit_y: 65535  block_dim_limit_z: 65535
              registers_per_core_limit: 65536  registers_per_block_limit: 65536
              memory_bandwidth: {self.bandwidth}  l2_cache_size: {self.cache}  device_memory_size: {self.memory}
            }}"""


GPUS = {
    "h100": Gpu("NVIDIA H100", (9, 0), 132, 128, 2048, 233472, 50 << 20, 1.98, 3_350_000_000_000, 80_000_000_000),
    "t4": Gpu("Tesla T4", (7, 5), 40, 64, 1024, 65536, 4 << 20, 1.59, 320_000_000_000, 16_000_000_000),
}


def chips(wanted: str) -> list[Any]:
    """The devices of `--chip`, which only compile."""
    name, _, shape = wanted.partition(":")
    try:
        if name in GPUS:
            described = {"topology": f"1x1x{shape or 1}", "target_config": GPUS[name].description()}
            return topologies.get_topology_desc(name, platform="cuda", **described).devices
        chosen = wanted if shape else f"{name}:2x2"
        there = topologies.get_topology_desc(platform="tpu", topology_name=chosen).devices
    except RuntimeError as error:  # the compiler is not installed
        raise ValueError(f"--chip={wanted}: {str(error).splitlines()[0]}") from error
    return there if shape else there[:1]


def describe(name: str, program: Any, arguments: tuple[Any, ...], devices: list[Any]) -> Iterator[rounds.Row]:
    """Compiles one program and gives its rows."""
    began = time.monotonic()
    compiled = program.lower(*arguments).compile()
    seconds, memory, text = time.monotonic() - began, compiled.memory_analysis(), compiled.as_text()
    assert memory is not None and text is not None
    gib = (memory.argument_size_in_bytes + memory.temp_size_in_bytes + memory.generated_code_size_in_bytes) / 2**30
    found, tpu = Program(text), devices[0].platform == "tpu"
    total, loops = found.cost(found.entry) if tpu else found.kernels(found.entry, PolicyValue.__name__)
    for loop in (Loop(-1, None, total, name, found.entry), *loops):
        whole, cost = loop.depth < 0, loop.cost
        if isinstance(total, Cost) and cost.cycles * (loop.rounds or 1) <= total.cycles / 100 and not whole:
            continue  # smaller loops say nothing
        row: rounds.Row = {"program": f"{'. ' * (loop.depth + 1)}{loop.function or 'loop'}", "rounds": loop.rounds}
        row |= of_tpu(cost) if isinstance(cost, Cost) else {"kernels": sum(cost[:3]), **cost._asdict()}
        if len(devices) > 1:
            row["messages"], row["bytes"] = found.messages(loop.body)
        row |= {"compile_s": round(seconds, 1) if whole else None, "GiB": round(gib, 3) if whole else None}
        if isinstance(cost, Cost):
            row["most expensive other"] = f"{cost.other[0]} {cost.other[1]}" if cost.other[0] else None
        yield row


def of_tpu(cost: Cost) -> rounds.Row:
    return {
        "cycles": cost.cycles,
        "products": round(cost.products / cost.cycles, 3) if cost.cycles else None,
        "gathered": cost.gathered,
        "scatters": cost.scatters,
        "unknown": cost.unknown,
    }


Shaped = tuple[Any, tuple[Any, ...]]
"""A program, jitted, with the shapes of its arguments."""


def placed(x: Any, sharding: NamedSharding) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding)


def everywhere(tree: Any, devices: Mesh) -> Any:
    return jax.tree.map(lambda x: placed(x, NamedSharding(devices, PartitionSpec())), tree)


def divided(tree: Any, devices: Mesh) -> Any:
    return jax.tree.map(lambda x: placed(x, NamedSharding(devices, PartitionSpec(mesh.GAMES))), tree)


def match_program(game: Game, config: Config, weights: Any, devices: Mesh) -> Shaped:
    """A match as `evaluate.py` plays it."""
    player = Player("", make_act(game, config, config.num_simulations))
    lanes = jnp.zeros(MATCH_GAMES, jnp.int32)
    keys = lambda: jax.random.split(jax.random.key(0), devices.size)
    no = jnp.zeros((MATCH_GAMES, 2), bool)
    games = lambda: Round(jax.vmap(lambda _: game.init())(lanes), no.astype(jnp.uint32), lanes, no, keys())
    group, seat = divided(jax.eval_shape(lambda: (games(), lanes)), devices)
    weights, most = everywhere((weights, jax.ShapeDtypeStruct((), jnp.int32)), devices)
    return jax.jit(make_group(game, player, player, devices)), (weights, weights, group, seat, most)


def analysis_program(game: Game, config: Config, weights: Any, devices: Mesh) -> Shaped:
    """A step of the search that `play.py` shows."""
    analyst = make_analyst(
        game, make_network(game, config), for_play(config, game, config.num_simulations), devices=devices
    )
    given = jax.eval_shape(lambda: (jax.random.key(0), game.init()))
    tree = divided(jax.eval_shape(analyst.begin, weights, *given), devices)
    return analyst.run_simulations, (*everywhere((weights, given[0]), devices), tree)


def rules_programs(game: Game, devices: Mesh) -> dict[str, Shaped]:
    """`step`, `mask` and `observe`, and one program that steps and then asks for both. The compiler chooses the layouts
    of arguments and results, as it does between parts of one program."""
    free = Format(Layout.AUTO, NamedSharding(devices, PartitionSpec()))
    states = jax.eval_shape(jax.vmap(lambda _: game.init()), jnp.zeros(POSITIONS))
    actions = jax.ShapeDtypeStruct((POSITIONS,), jnp.int32)

    def together(s: Any, action: Array) -> tuple[Any, Array, Array]:
        after = game.step(s, action)
        return after, game.mask(after), game.observe(after)

    compiled = lambda rule, *given: (jax.jit(jax.vmap(rule), in_shardings=free, out_shardings=free), given)
    return {
        "step": compiled(game.step, states, actions),
        "mask": compiled(game.mask, states),
        "observe": compiled(game.observe, states),
        "together": compiled(together, states, actions),
    }


def programs(name: str, options: list[str], devices: list[Any]) -> dict[str, Shaped]:
    """The programs of one game; the rules and the analysis on the first of the devices."""
    game = envs.make(name)
    usual = preset(game, devices[0].platform, devices=len(devices))
    config = parse_options([f"--{option}" for option in options], usual)
    one, all_ = (Mesh(np.array(some), (mesh.GAMES,)) for some in (devices[:1], devices))
    algorithm, net = algorithm_of(config), make_network(game, config)
    run = jax.eval_shape(lambda: algorithm.start_run(game, net, config))
    run = jax.tree.map(placed, run, mesh.shardings(all_, algorithm.run_specs(run)))
    progress = everywhere(jax.ShapeDtypeStruct((), jnp.float32), all_)
    phase = functools.partial(jax.jit, donate_argnums=0)  # as a run compiles them
    weights = jax.eval_shape(net.init, jax.random.key(0))
    return {
        "match": match_program(game, config, weights, all_),
        "analysis": analysis_program(game, config, weights, one),
        **rules_programs(game, one),
        "play": (phase(algorithm.make_play(game, net, config, all_)), (run,)),
        "learn": (phase(algorithm.make_learn(game, net, config, all_)), (run, progress)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("options", nargs="*", help="OPTION=VALUE of train.py")
    parser.add_argument("--chip", default="v5e")
    parser.add_argument("--parts", default=PARTS)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with cli.errors():
        wanted = given.parts.replace("rules", RULES).split(",")
        for part in wanted:
            demand(part in EVERY_PART, f"--parts: expected rules or some of {', '.join(EVERY_PART)}, got {part}")
        devices = chips(given.chip)
        found = programs(given.game, given.options, devices)
        rounds.show((row for name in wanted for row in describe(name, *found[name], devices)), given.json)


if __name__ == "__main__":
    main()
