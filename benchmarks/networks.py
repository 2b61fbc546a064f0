"""How well network bodies learn the same games in the same processor time.

python benchmarks/networks.py [--games foq go_9x9] [--bodies ...] [--seeds 0 1 2] [--seconds=60] [--iterations=16]
                              [--json]

A network of models/ plays --iterations times 4096 moves as in its own self-play, with 16 simulations. Every body learns
these games with the learner, losses and options of training, for --seconds of processor time without compiling. Games
of a quarter of the lanes are held out. The table gives the divergence from the searched policy there, in nats, and the
squared error of the value against the game's result.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from agents.config import Config, demand, preset
from agents.network.network import Heads, make_network
from agents.runtime import cli, mesh
from agents.storage.weights import load_network
from agents.training import iteration, learner, replay
from benchmarks import (
    equivariant_strips,  # noqa: F401, registers a network
    rounds,
)
from envs.game import Game

ROOT = Path(__file__).parents[1]
EQUIVARIANT = {"network": "equivariant", "augment": False}
BODIES: dict[str, dict[str, Any]] = {
    "3 x 3": {"slides": False},
    "slides": {"slides": True},
    "strips": {"network": "strips"},
    "equivariant 3 x 3": {**EQUIVARIANT, "slides": False},
    "equivariant slides": {**EQUIVARIANT, "slides": True},
    "equivariant strips": {**EQUIVARIANT, "network": "equivariant_strips"},
    "3 x 3, not augmented": {"slides": False, "augment": False},
    "slides, layer normalisation": {"slides": True, "normalisation": "layer"},
    "slides, no normalisation": {"slides": True, "normalisation": "none"},
}
LANES, PLIES, SIMULATIONS = 256, 16, 16
HELD_OUT = LANES // 4  # lanes
PART = 512  # held-out rows at a time
ALIKE = {"num_envs": LANES, "plies_per_iteration": PLIES, "rating_games": 0, "gate": False, "proof_share": 0.0}


def games_of(name: str, iterations: int) -> tuple[Game, replay.Replay]:
    """The replay of games that the network of models/ plays against itself."""
    trained = load_network(ROOT / "models" / name)
    usual = preset(trained.game, "cpu")
    own = {"num_simulations": SIMULATIONS, "future_weight": usual.future_weight}
    config = dataclasses.replace(trained.config, **ALIKE, **own, value_lambda=1.0)
    run = iteration.start_run(trained.game, trained.net, config)
    run = run._replace(learning=run.learning._replace(ema_weights=trained.weights))
    play = jax.jit(iteration.make_play(trained.game, trained.net, config, mesh.make_mesh(LANES, LANES, 1)))
    for number in range(iterations):
        run = play(run)[0]._replace(iteration=jnp.int32(number + 1))
    known, enough = np.asarray(run.replay.known), LANES * PLIES  # rows of ended games, and what learning begins with
    demand(
        known[:, HELD_OUT:].sum() >= enough and known[:, :HELD_OUT].sum() >= PART,
        f"--iterations: expected more than {iterations} for {name}, since too few of its games have ended",
    )
    return trained.game, run.replay


class Lesson:
    """One body that learns the games. Compiled once for all seeds."""

    def __init__(self, game: Game, games: replay.Replay, config: Config):
        self.game, self.games, self.config = game, games, config
        self.net = net = make_network(game, config)
        self.shown = jnp.arange(LANES) >= HELD_OUT
        self.learn = jax.jit(iteration.make_learn(game, net, config, mesh.make_mesh(LANES, config.batch_size, 1)))
        frozen = dataclasses.replace(net, train=lambda w, x, *_: (Heads(*net.apply(w, x), None), w))
        plain = dataclasses.replace(config, augment=False, future_weight=0.0)

        @jax.jit
        def losses(weights: Any, index: Any) -> Any:
            found = learner.loss(frozen, weights, replay.sample(game, games, index, plain), plain)[1][0]
            return jnp.stack([found.policy_loss - found.target_entropy, found.value_loss])

        self.losses = losses

    def row(self, seed: int, seconds: float) -> rounds.Row:
        """Learns for that processor time, and measures the network on the games held out."""
        run = iteration.start_run(self.game, self.net, dataclasses.replace(self.config, seed=seed))
        run = run._replace(replay=self.games._replace(known=self.games.known & self.shown))
        jax.block_until_ready(
            self.learn(self.learn(run, jnp.float32(0))[0], jnp.float32(0))
        )  # compiles for both layouts
        begun, progress = time.process_time(), 0.0
        while progress < 1:
            run = jax.block_until_ready(self.learn(run, jnp.float32(progress))[0])
            progress = (time.process_time() - begun) / seconds
        index = np.flatnonzero(self.games.known & ~self.shown)
        parts = [index[low : low + PART] for low in range(0, len(index) - PART + 1, PART)]
        divergence, error = np.mean([self.losses(run.learning.ema_weights, part) for part in parts], axis=0)
        return {
            "weights": sum(x.size for x in jax.tree.leaves(run.learning.weights["params"])),
            "updates": int(run.learning.updates),
            "policy KL": round(float(divergence), 4),
            "value error": round(float(error), 4),
        }


def table(given: argparse.Namespace) -> Iterator[rounds.Row]:
    for name in given.games:
        game, games = games_of(name, given.iterations)
        for body in given.bodies:
            config = dataclasses.replace(preset(game, "cpu"), **ALIKE, replay_ratio=0.5, **BODIES[body])
            lesson = Lesson(game, games, config)
            for seed in given.seeds:
                found = lesson.row(seed, given.seconds)
                yield {"game": name, "rows": int(games.known.sum()), "body": body, "seed": seed, **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="+", default=["foq", "go_9x9"], help="folders of models/")
    parser.add_argument("--bodies", nargs="+", choices=BODIES, default=list(BODIES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--iterations", type=int, default=16)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with cli.errors():
        rounds.show(table(given), given.json)


if __name__ == "__main__":
    main()
