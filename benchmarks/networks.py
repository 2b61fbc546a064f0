"""Compares how well network bodies and normalisations learn Flight of Queen in a fixed amount of processor time.

python benchmarks/networks.py [SECONDS]

The task needs no player: it has 86,000 positions of random games. The value target is the mean result of eight random
play-outs. The policy target is a softmax over how few moves each move leaves the opponent. Every candidate trains for
the same processor time (100 s by default) with the learner's own loss and optimiser. The table gives the policy's
divergence and the value's squared error on held-out positions.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import envs
from agents.actions import legal_slots, random_action
from agents.config import Config, preset
from agents.network.network import make_network
from agents.training import learner
from agents.training.replay import Batch
from agents.training.selfplay import start_lanes
from envs.game import Game

CANDIDATES = [
    {"network": network, "normalisation": kind}
    for network in ("resnet", "strips")
    for kind in ("batch", "layer", "none")
]
CHUNK, CHUNKS, PLAY_OUTS, ROWS = 4096, 22, 8, 512


def make_data(game: Game) -> tuple[list[np.ndarray], Batch]:
    """Training rows on the host and one held-out batch."""

    def rows(key):
        states = start_lanes(game, key, Config(num_envs=CHUNK)).states

        def play_out(key):
            def ply(carry):
                s, key = carry
                key, action_key = jax.random.split(key)
                return jax.vmap(game.step)(s, random_action(action_key, jax.vmap(game.mask)(s))), key

            end, _ = jax.lax.while_loop(lambda c: (~jax.vmap(game.over)(c[0])).any(), ply, (states, key))
            return jax.vmap(lambda end, s: game.rewards(end)[game.player(s)])(end, states)

        def replies(s, action):
            return game.mask(game.move(s, jnp.maximum(action, 0))).sum()

        value = jax.lax.map(play_out, jax.random.split(key, PLAY_OUTS)).mean(0)
        slots = legal_slots(jax.vmap(game.mask)(states), game.max_legal)
        left = jax.vmap(jax.vmap(replies, (None, 0)))(states, slots)
        return Batch(jax.vmap(game.observe)(states), slots, jax.nn.softmax(jnp.where(slots < 0, -1e9, -left)), value)

    compiled = jax.jit(rows)
    parts = [jax.device_get(compiled(jax.random.key(i))) for i in range(CHUNKS)]
    return [np.concatenate(column) for column in zip(*parts[1:], strict=True)], Batch(*map(jnp.asarray, parts[0]))


def measure(game: Game, config: Config, data: list[np.ndarray], test: Batch, seconds: float) -> str:
    net = make_network(game, config)
    state = learner.start_learning(net, config, jax.random.key(0))
    optimiser = learner.make_optimiser(config)

    @jax.jit
    def update(state, batch, progress):
        of = lambda p: learner.loss(net, {**state.weights, "params": p}, batch, config)
        gradient, (_, weights) = jax.grad(of, has_aux=True)(state.weights["params"])
        change, memory = optimiser.update(gradient, state.optimiser, state.weights["params"])
        rate = learner.learning_rate(config, state.updates, progress)
        params = jax.tree.map(lambda p, c: p + rate * c, state.weights["params"], change)
        return state._replace(weights={**weights, "params": params}, optimiser=memory, updates=state.updates + 1)

    rng, begun, progress = np.random.default_rng(0), None, 0.0
    while progress < 1:
        index = rng.integers(0, len(data[0]), ROWS)
        state = update(state, Batch(*(jnp.asarray(column[index]) for column in data)), progress)
        jax.block_until_ready(state.updates)
        begun = begun or time.process_time()  # the first update compiles
        progress = (time.process_time() - begun) / seconds
    frozen = dataclasses.replace(net, train=lambda w, x, _: ((*net.apply(w, x), None), w))
    losses = jax.jit(lambda w: learner.loss(frozen, w, test, config)[1][0])(state.weights)
    size = sum(x.size for x in jax.tree.leaves(state.weights["params"]))
    divergence = float(losses.policy_loss - losses.target_entropy)
    return f"{size:10d} {int(state.updates):9d} {divergence:12.4f} {float(losses.value_loss):12.4f}"


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 100.0
    game = envs.make("foq")
    data, test = make_data(game)
    print(f"{len(data[0])} positions, {seconds:.0f} s of processor time each, {jax.devices()[0].device_kind}")
    print(f"{'body':8s} {'norm':6s} {'weights':>10s} {'updates':>9s} {'policy KL':>12s} {'value error':>12s}")
    for options in CANDIDATES:
        config = dataclasses.replace(preset(game, "cpu"), **options)
        print(f"{config.network:8s} {config.normalisation:6s}", measure(game, config, data, test, seconds), flush=True)


if __name__ == "__main__":
    main()
