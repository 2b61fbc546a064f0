"""Speed of the engine's training: moves and updates per second, phase shares, bytes, compile and restart time.

python benchmarks/train.py [--other=FILE.py:FUNCTION] [--json]

An iteration plays some plies in all games and learns once from every row, with a plain residual network and AdamW.
`play` and `learn` are shares of its time. `compile` and `restart` are the seconds until both programs are ready, with
an empty and with a warm compilation cache. `row` is the bytes of a replay row; `tree` is the bytes per game that a
device plans beyond the run itself.

With `--other` another program is compared: `FUNCTION(spec, games, simulations, channels, blocks, plies, batch)` returns
a function without arguments that does the same work, or None to skip a size.
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import jax

sys.path.insert(0, str(Path(__file__).parents[1]))

import envs
from agents.config import preset
from agents.network.network import make_network
from agents.runtime import mesh
from agents.training import iteration, replay
from benchmarks import rounds

ROUNDS = 5
# Game, games in lockstep, channels, blocks, simulations, plies of an iteration, rows of a batch.
CPU = [
    ("connect_four", 256, 32, 3, 32, 4, 128),
    ("go:size=9", 64, 32, 3, 32, 4, 64),
    ("foq", 1024, 32, 3, 16, 4, 128),
    ("evopawness", 64, 32, 3, 16, 4, 64),
]
ACCELERATOR = [("go:size=9", 1024, 128, 6, 32, 32, 4096), ("foq", 1024, 128, 8, 32, 32, 4096)]

Side = Callable[[], Any]


@dataclasses.dataclass(frozen=True)
class Trainer:
    """A repeatable iteration, phase by phase, and the cost of making it."""

    play: Side
    learn: Side
    updates: int
    row_bytes: int
    spare_bytes: int
    compile_seconds: float
    restart_seconds: float


def make_trainer(
    spec: str, games: int, channels: int, blocks: int, simulations: int, plies: int, batch: int
) -> Trainer:
    game = envs.make(spec)
    config = dataclasses.replace(
        preset(game, jax.default_backend()), num_envs=games, channels=channels, blocks=blocks, replay_ratio=1.0,
        num_simulations=simulations, plies_per_iteration=plies, batch_size=batch, rating_games=0, network="resnet",
        pooling=False, future_weight=0.0, optimiser="adamw",
    )  # fmt: skip
    devices, net = mesh.make_mesh(games, batch), make_network(game, config)
    run = mesh.laid_out(lambda: iteration.start_run(game, net, config), iteration.run_specs, devices)()

    def compiled() -> tuple[list[Any], float]:
        began = time.perf_counter()
        phases = iteration.make_play(game, net, config, devices), iteration.make_learn(game, net, config, devices)
        programs = [jax.jit(phases[0]).lower(run).compile(), jax.jit(phases[1]).lower(run, 0.5).compile()]
        return programs, time.perf_counter() - began

    _, first = compiled()
    jax.clear_caches()
    (play, learn), again = compiled()
    while not run.replay.known.any(0).all():  # until every lane has ended a game: all devices have rows
        run = play(run)[0]
    plan = play.memory_analysis()
    return Trainer(
        play=lambda: play(run), learn=lambda: learn(run, 0.5), updates=iteration.updates_per_iteration(config),
        row_bytes=replay.row_bytes(run.replay.rows), compile_seconds=first, restart_seconds=again,
        spare_bytes=plan.temp_size_in_bytes * devices.size // games if plan else 0,
    )  # fmt: skip


def measure(other: Callable[..., Side | None] | None) -> Iterator[rounds.Row]:
    for spec, games, channels, blocks, simulations, plies, batch in (
        CPU if jax.default_backend() == "cpu" else ACCELERATOR
    ):
        beside = other and other(spec, games, simulations, channels, blocks, plies, batch)
        ours = make_trainer(spec, games, channels, blocks, simulations, plies, batch)
        sides = {"play": ours.play, "learn": ours.learn} | ({"other": beside} if beside else {})
        times = rounds.take_turns(sides, ROUNDS)
        whole = [a + b for a, b in zip(times["play"], times["learn"], strict=True)]
        row = {
            "game": spec, "games": games, "network": f"{channels} x {blocks}", "simulations": simulations,
            "moves/s": round(games * plies / median(whole), 1),
            "updates/s": round(ours.updates / median(times["learn"]), 1),
            "play": rounds.ratio(times["play"], whole), "learn": rounds.ratio(times["learn"], whole),
            "row": ours.row_bytes, "tree": ours.spare_bytes, "compile": round(ours.compile_seconds, 1),
            "restart": round(ours.restart_seconds, 1), "other": None, "ratio": None,
        }  # fmt: skip
        if beside:
            row["other"] = round(games * plies / median(times["other"]), 1)
            row["ratio"] = rounds.ratio(times["other"], whole)
        yield row


def main() -> None:
    mesh.claim_cores()
    other, as_json = rounds.arguments()
    with tempfile.TemporaryDirectory() as cache:
        jax.config.update("jax_compilation_cache_dir", cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        rounds.show(measure(other), as_json)


if __name__ == "__main__":
    main()
