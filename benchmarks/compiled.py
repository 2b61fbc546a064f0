"""What a TPU's compiler says of the programs of a run, without a TPU: seconds to compile, memory, estimated cycles.

python benchmarks/compiled.py GAME [OPTION=VALUE ...] [--chip=v5e:2x2] [--parts=rules,play,learn] [--json]

Needs `pip install 'jax[tpu]'`. Options are those of train.py, over the preset for a TPU. `rules` are step, mask and
observe of 4096 positions. `play` and `learn` are the two phases of an iteration on one chip. Each program gives a row,
and each of its loops another one, indented by depth: `cycles` are those of one round, with inner loops multiplied by
their `rounds`, and `products` is the share of convolutions and matrix products among them. `most expensive other` names
the operation outside these products that takes the most cycles of the round. The compiler gives no cycles for gathers:
`gathered` is the number of slices that they read, most of them single numbers or rows. A loop whose number of
rounds the compiler cannot know has no `rounds` and counts once. The innermost loop with products in `play` is one
simulation, the loop around it one ply; the loop in `learn` is one update.

These are the compiler's estimates, not measurements. Divide cycles by the clock of the chip for a bound on the time:
0.94 GHz for a v5e.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ |= {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
sys.path.insert(0, str(Path(__file__).parents[1]))

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import envs
from agents.config import preset
from agents.network.network import make_network
from agents.run.options import parse_options
from agents.runtime import cli, mesh
from agents.training.algorithms import algorithm_of
from benchmarks import rounds

POSITIONS = 4096  # of a rules program
PRODUCT = re.compile(r" (convolution|dot)\(")


class Cost(NamedTuple):
    """Estimated cycles, those of convolutions and matrix products, the most expensive other operation, and the slices
    read by gathers, which have no estimate."""

    cycles: int = 0
    products: int = 0
    other: tuple[int, str] = 0, ""
    gathered: int = 0

    def plus(self, more: Cost, times: int = 1) -> Cost:
        other = times * more.other[0], more.other[1]
        return Cost(
            self.cycles + times * more.cycles,
            self.products + times * more.products,
            max(self.other, other),
            self.gathered + times * more.gathered,
        )


@dataclasses.dataclass(frozen=True)
class Loop:
    """A loop of a program: its depth, its rounds if the compiler knows them, and the cost of one round."""

    depth: int
    rounds: int | None
    cost: Cost


class Program:
    """The text of an optimised TPU program, by computation."""

    def __init__(self, text: str):
        self.lines: dict[str, list[str]] = {}
        self.entry, name = "", ""
        for line in text.splitlines():
            head = re.match(r"(ENTRY )?%?([\w.-]+) \(.*\{$", line)
            if head:
                name = head[2]
                self.lines[name] = []
                self.entry = name if head[1] else self.entry
            elif name:
                self.lines[name].append(line)

    def cost(self, name: str, depth: int = 0) -> tuple[Cost, list[Loop]]:
        """The cost of one run of a computation, and its loops in order, outer ones first."""
        total, loops = Cost(), []
        for line in self.lines[name]:
            if " while(" in line:
                inner, below = self.cost(_called(line, "body"), depth + 1)
                count = self.rounds_of(_called(line, "condition"))
                loops += [Loop(depth, count, inner), *below]
                total = total.plus(inner, 1 if count is None else count)
            elif " conditional(" in line:  # the costliest branch
                branches = re.search(r"branch_computations=\{(.*?)\}", line)
                names = (
                    branches[1].split(", ")
                    if branches
                    else [_called(line, f"{x}_computation") for x in ("true", "false")]
                )
                inner, below = max((self.cost(x.strip("%"), depth) for x in names), key=lambda found: found[0].cycles)
                total, loops = total.plus(inner), loops + below
            elif cycles := re.search(r'"estimated_cycles":"(\d+)"', line):
                product = PRODUCT.search(line) or (" fusion(" in line and self.multiplies(_called(line, "calls")))
                each = int(cycles[1])
                total = total.plus(Cost(each, each) if product else Cost(each, 0, (each, _label(line))))
            elif " fusion(" in line:
                total = total.plus(Cost(gathered=self.gathered(_called(line, "calls"))))
        return total, loops

    def gathered(self, name: str) -> int:
        """The slices that the gathers of a fused computation read."""
        numbers = lambda text: math.prod(int(x) for x in text.split(",") if x)
        found = (re.search(r" = \w+\[([\d,]*)\]\S* gather\(.*slice_sizes=\{([\d,]*)\}", x) for x in self.lines[name])
        return sum(numbers(x[1]) // numbers(x[2]) for x in found if x)

    def rounds_of(self, condition: str) -> int | None:
        """The rounds of a loop that counts from zero to a constant; None for all others."""
        text = "\n".join(self.lines[condition])
        limits = re.findall(r" s32\[\]\S* constant\((\d+)\)", text)
        counts = re.search(r"ROOT [^\n]* compare\([^\n]*direction=LT", text)
        return int(limits[0]) if counts and len(limits) == 1 else None

    def multiplies(self, name: str) -> bool:
        """Whether a fused computation holds a convolution or a matrix product."""
        return any(
            PRODUCT.search(line) or (" fusion(" in line and self.multiplies(_called(line, "calls")))
            for line in self.lines[name]
        )


def _called(line: str, role: str) -> str:
    found = re.search(rf"{role}=%?([\w.-]+)", line)
    assert found is not None, line
    return found[1]


def _label(line: str) -> str:
    """Result and origin of an operation: its type and the last two parts of its name in JAX."""
    result, name = re.search(r" = \(?(\w+\[[\d,]*\])", line), re.search(r'op_name="([^"]*)"', line)
    return f"{result[1] if result else ''} {'/'.join(name[1].split('/')[-2:]) if name else ''}"


def describe(name: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Iterator[rounds.Row]:
    """Compiles one program and gives its rows."""
    began = time.monotonic()
    lowered = jax.jit(function).lower(*arguments)
    compiled = lowered.compile()
    seconds, memory, text = time.monotonic() - began, compiled.memory_analysis(), compiled.as_text()
    assert memory is not None and text is not None
    gib = (memory.argument_size_in_bytes + memory.temp_size_in_bytes + memory.generated_code_size_in_bytes) / 2**30
    program = Program(text)
    total, loops = program.cost(program.entry)
    yield row(name, None, total) | {"compile_s": round(seconds, 1), "GiB": round(gib, 3)}
    for loop in loops:
        if loop.cost.cycles * (loop.rounds or 1) > total.cycles / 100:  # smaller loops say nothing
            yield row(f"{'. ' * (loop.depth + 1)}loop", loop.rounds, loop.cost)


def row(program: str, count: int | None, cost: Cost) -> rounds.Row:
    share = round(cost.products / cost.cycles, 3) if cost.cycles else None
    return {
        "program": program,
        "rounds": count,
        "cycles": cost.cycles,
        "products": share,
        "gathered": cost.gathered,
        "compile_s": None,
        "GiB": None,
        "most expensive other": f"{cost.other[0]} {cost.other[1]}" if cost.other[0] else None,
    }


def programs(name: str, options: list[str], chip: str) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """The programs of one game on one chip, with the shapes of their arguments."""
    game = envs.make(name)
    config = parse_options([f"--{option}" for option in options], preset(game, "tpu"))
    one = Mesh(np.array(topologies.get_topology_desc(platform="tpu", topology_name=chip).devices[:1]), (mesh.GAMES,))
    there = NamedSharding(one, PartitionSpec())
    on_chip = lambda tree: jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=there), tree)
    states = on_chip(jax.eval_shape(jax.vmap(lambda _: game.init()), jnp.zeros(POSITIONS)))
    actions = on_chip(jax.ShapeDtypeStruct((POSITIONS,), jnp.int32))
    algorithm, net = algorithm_of(config), make_network(game, config)
    run = on_chip(jax.eval_shape(lambda: algorithm.start_run(game, net, config)))
    return {
        "step": (jax.vmap(game.step), (states, actions)),
        "mask": (jax.vmap(game.mask), (states,)),
        "observe": (jax.vmap(game.observe), (states,)),
        "play": (algorithm.make_play(game, net, config, one), (run,)),
        "learn": (algorithm.make_learn(game, net, config, one), (run, on_chip(jax.ShapeDtypeStruct((), jnp.float32)))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("options", nargs="*", help="OPTION=VALUE of train.py")
    parser.add_argument("--chip", default="v5e:2x2")
    parser.add_argument("--parts", default="rules,play,learn")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with cli.errors():
        found = programs(given.game, given.options, given.chip)
        wanted = given.parts.replace("rules", "step,mask,observe").split(",")
        rounds.show((row for name in wanted for row in describe(name, *found[name])), given.json)


if __name__ == "__main__":
    main()
