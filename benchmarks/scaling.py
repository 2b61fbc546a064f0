"""How self-play and learning scale with the number of devices: python benchmarks/scaling.py

Weak scaling gives every device the same work: twice the devices play twice the games and learn from twice the rows.
Strong scaling divides the same work among more devices. An efficiency of 1 is ideal: n devices do n times the work in
the same time, or the same work in an n-th of the time. Sides take turns; figures are medians over rounds. On a CPU a
device is a core. There `core_ms`, the processor time per move or learned row, is valid even while others use the cores.

    --json    one JSON line per row
    --bytes   bytes that an iteration's programs send between devices, read from the compiled programs
    --model   a table of throughput from 1 to 256 devices, computed, not measured: see docs/notes/
"""

from __future__ import annotations

import dataclasses
import math
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import jax

sys.path.insert(0, str(Path(__file__).parents[1]))

import envs
from agents.config import Config, preset
from agents.network.network import make_network
from agents.runtime import cli, mesh
from agents.training.iteration import make_learn, make_play, run_specs, start_run, updates_per_iteration
from benchmarks import rounds
from benchmarks.hlo import MESSAGE, message_bytes

ROUNDS = 5
GAME, GAMES, PLIES, BATCH = "foq", 128, 4, 64  # on one device


def configure(games: int, batch: int) -> Config:
    """The preset of the game, with a short buffer and no rating games."""
    chosen = preset(envs.make(GAME), jax.default_backend())
    return dataclasses.replace(
        chosen, num_envs=games, batch_size=batch, plies_per_iteration=PLIES, replay_capacity=1, rating_games=0
    )


def compiled(config: Config, devices: int) -> tuple[Any, Any, Any]:
    """A fresh run, and its compiled self-play and learning."""
    game = envs.make(config.env)
    net, there = make_network(game, config), mesh.make_mesh(config.num_envs, config.batch_size, devices)
    run = mesh.laid_out(lambda: start_run(game, net, config), run_specs, there)()
    play = jax.jit(make_play(game, net, config, there), donate_argnums=0).lower(run).compile()
    learn = jax.jit(make_learn(game, net, config, there), donate_argnums=0).lower(run, 0.0).compile()
    return run, play, learn


def phases(config: Config, devices: int, work: list[float]) -> dict[str, Callable[[], Any]]:
    """Self-play and learning of one run, to be called in turn; each call continues the run. The processor time of
    every call is appended to `work`."""
    run, play, learn = compiled(config, devices)
    while not run.replay.known.any(0).all():  # until every lane has ended a game: all devices have rows
        run = learn(play(run)[0], 0.0)[0]

    def phase(program: Any, *others: Any) -> None:
        nonlocal run
        began = time.process_time()
        run = jax.block_until_ready(program(run, *others)[0])
        work.append(time.process_time() - began)

    return {"play": lambda: phase(play), "learn": lambda: phase(learn, 0.0)}


def measure() -> Iterator[rounds.Row]:
    """One device first, then weak and strong scaling on 2, 4, ... local devices."""
    counts = [2**i for i in range(1, int(math.log2(jax.local_device_count())) + 1)]
    plans = {("", 1): configure(GAMES, BATCH)}
    plans |= {("weak", n): configure(GAMES * n, BATCH * n) for n in counts}
    plans |= {("strong", n): configure(GAMES, BATCH) for n in counts}
    work: dict[str, list[float]] = defaultdict(list)
    sides = {}
    for (kind, n), config in plans.items():
        for phase, run in phases(config, n, work[f"{kind} {n}"]).items():
            sides[f"{kind} {n} {phase}"] = run
    times = rounds.take_turns(sides, ROUNDS)
    alone = {phase: times[f" 1 {phase}"] for phase in ("play", "learn")}
    for (kind, n), config in plans.items():
        here = {phase: times[f"{kind} {n} {phase}"] for phase in ("play", "learn")}
        share = n if kind == "strong" else 1
        efficiency = {p: round(rounds.ratio(alone[p], here[p]) / share, 3) for p in here}
        cores = work[f"{kind} {n}"][-2 * ROUNDS :]
        yield {
            "scaling": kind or "one", "devices": n, "games": config.num_envs, "batch": config.batch_size,
            "moves_per_second": round(config.num_envs * PLIES / median(here["play"]), 1),
            "updates_per_second": round(updates_per_iteration(config) / median(here["learn"]), 2),
            "play_efficiency": efficiency["play"], "learn_efficiency": efficiency["learn"],
            "play_core_ms": round(median(cores[::2]) / (config.num_envs * PLIES) * 1e3, 3),
            "learn_core_ms": round(median(cores[1::2]) / (updates_per_iteration(config) * config.batch_size) * 1e3, 3),
        }  # fmt: skip


def reduced(program: Any) -> tuple[int, int]:
    """Bytes that the collective operations of a compiled program return, (outside its loops, inside them)."""
    found, entry = {True: 0, False: 0}, False
    for line in program.as_text().splitlines():
        if line.endswith("{") and not line.startswith(" "):
            entry = line.startswith("ENTRY")
        operation = MESSAGE.search(line)
        if operation:
            found[entry] += message_bytes(operation[1])
    return found[True], found[False]


def sent() -> Iterator[rounds.Row]:
    """Bytes sent on two devices; the figures do not depend on the number of devices."""
    config = configure(2 * GAMES, 2 * BATCH)
    run, play, learn = compiled(config, 2)
    weights = sum(x.size for x in jax.tree.leaves(run.learning.weights))
    for name, program in (("self-play", play), ("learning", learn)):
        once, inside = reduced(program)
        yield {"program": name, "weights": weights, "bytes_once": once, "bytes_per_update": inside}


@dataclasses.dataclass(frozen=True)
class Machine:
    """The model's parameters for one kind of device."""

    name: str
    play: float  # seconds per move on one device
    learn: float  # seconds per row of a batch on one device
    games: int  # lanes on one device
    batch: int  # rows of a batch on one device
    plies: int
    ratio: float  # how often a row is learned
    weights: int
    norms: int  # number of batch-normalisation layers
    bandwidth: float  # bytes per second between neighbours
    latency: float  # seconds per message between neighbours

    def reduction(self, devices: int) -> float:
        """Seconds of an update's ring all-reduces: two rounds of the ring, each device sending an n-th at every step.
        The gradients account for all bytes; batch statistics, forward and backward, cost only latency."""
        share, messages = (devices - 1) / devices, 1 + 2 * self.norms
        return 2 * share * 4 * self.weights / self.bandwidth + messages * 2 * (devices - 1) * self.latency

    def seconds(self, devices: int, weak: bool) -> float:
        """Seconds of one iteration. Work is divided evenly, and communication does not overlap with it."""
        rows, share = self.games * self.plies, 1 if weak else 1 / devices
        updates = self.ratio * rows / self.batch  # in weak scaling both grow alike
        return rows * share * (self.play + self.ratio * self.learn) + updates * self.reduction(devices)


MACHINES = [
    # Measured on 2026-11-21 on two devices of one core each; the model connects them by 10 Gbit/s Ethernet.
    Machine("CPU core", 1.8e-3, 0.6e-3, 512, 64, 4, 3.0, 95_274, 7, 1.25e9, 50e-6),
    # Estimated by the chip's compiler (docs/notes/): 115 million cycles a ply of 1024 games and 63.1 million
    # an update of 4096 rows, at 0.94 GHz. Bandwidth and latency are assumed.
    Machine("v5e", 115.4e6 / 0.94e9 / 1024, 63.1e6 / 0.94e9 / 4096, 1024, 4096, 32, 3.0, 2_705_929, 17, 45e9, 5e-6),
]


def modelled() -> Iterator[rounds.Row]:
    for machine in MACHINES:
        moves = machine.games * machine.plies
        for devices in (2**i for i in range(9)):
            weak, strong = (machine.seconds(devices, kind) for kind in (True, False))
            alone = machine.seconds(1, True)
            yield {
                "modelled": machine.name, "devices": devices,
                "weak_moves_s": round(devices * moves / weak), "weak_efficiency": round(alone / weak, 3),
                "strong_moves_s": round(moves / strong) if devices <= machine.batch else None,
                "strong_efficiency": round(alone / strong / devices, 3) if devices <= machine.batch else None,
                "reduction_ms": round(machine.reduction(devices) * 1e3, 3),
            }  # fmt: skip


def main() -> None:
    mesh.claim_cores()
    tables = {"--bytes": sent, "--model": modelled}
    rounds.help_if_asked()
    with cli.errors():
        words = set(sys.argv[1:])
        if words - {"--json", *tables}:
            raise ValueError(
                f"unknown argument {sorted(words - {'--json', *tables})[0]}; known: --json, --bytes, --model"
            )
    chosen = [table for word, table in tables.items() if word in words] or [measure]
    if "--json" not in words:
        print(f"{jax.devices()[0].device_kind}, {os.cpu_count()} cores, jax {jax.__version__}")
    for table in chosen:
        rounds.show(table(), "--json" in words)


if __name__ == "__main__":
    main()
