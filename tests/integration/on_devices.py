"""The same work on one, two and eight devices, as a program of its own: a process cannot change how many it has.

python tests/integration/on_devices.py FOLDER    prints one line of JSON for test_devices.py
"""

from __future__ import annotations

import dataclasses
import functools
import json
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as Spec

import envs
from agents.config import Config
from agents.network.network import Network, make_network
from agents.run.resume import load_run, save_run
from agents.runtime import mesh
from agents.storage import checkpoint
from agents.training import iteration, learner
from agents.training.iteration import Run, make_play, run_specs, start_run
from envs.game import Game

COUNTS = (1, 2, 8)
iteration.MAX_FALSE_RESIGN_RATE = 1.0  # with so few simulations resigning is often wrong
COMMON = Config(
    num_envs=16, plies_per_iteration=4, num_simulations=8, network="mlp", channels=16, blocks=1, replay_capacity=400,
    batch_size=32, warmup_positions=0, random_opening_plies=3, resign_threshold=-0.6, temperature_plies=6,
)  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "gumbel": {"env": "foq:rows=4,cols=4", "proofs": True},
    "puct": {
        "env": "tictactoe",
        "search": "puct",
        "leaf_symmetry": "random",
        "root_symmetry": "random",
        "resign_threshold": -0.3,
    },
}


def table(game: Game, config: Config) -> Network:
    """Plays by a table, looked up by a hash of the position, so that no rounding differs: whole logits, values in
    eighths. Learns as the network of `config` does, whose weights it has and does not look at."""
    rng = np.random.default_rng(0)
    logits = jnp.asarray(rng.integers(-2, 3, (1024, game.num_actions)), jnp.float32)
    values = jnp.asarray(rng.integers(-7, 8, 1024) / 8, jnp.float32)

    def apply(weights, planes):
        bits = planes.reshape(len(planes), -1).astype(jnp.uint32)
        factors = jnp.arange(bits.shape[1], dtype=jnp.uint32) * jnp.uint32(2654435761) + 97
        place = (bits * factors).sum(-1, dtype=jnp.uint32)
        return logits[place >> 22], values[place >> 22]

    return dataclasses.replace(make_network(game, config), apply=apply)


@dataclasses.dataclass(frozen=True)
class SelfPlay:
    """One kind of self-play from the same start on some numbers of devices."""

    config: Config
    start: Run  # on the host
    play: dict[int, Any]  # compiled, by number of devices
    places: dict[int, Any]  # shardings of a run


def self_play_of(kind: str, counts: tuple[int, ...]) -> SelfPlay:
    config = dataclasses.replace(COMMON, **KINDS[kind])
    game = envs.make(config.env)
    net = table(game, config)
    start = jax.device_get(jax.jit(lambda: start_run(game, net, config))())
    meshes = {n: mesh.make_mesh(config.num_envs, config.batch_size, n) for n in counts}
    play = {n: jax.jit(make_play(game, net, config, devices)) for n, devices in meshes.items()}
    places = {n: mesh.shardings(devices, run_specs(start)) for n, devices in meshes.items()}
    return SelfPlay(config, start, play, places)


def onward(parts: SelfPlay, count: int, run: Run, iterations: int) -> Run:
    """The run after some iterations of self-play alone."""
    for _ in range(iterations):
        run = parts.play[count](run)[0]
        run = run._replace(iteration=run.iteration + 1)
    return run


def differences(a: Any, b: Any) -> list[str]:
    """Names of the leaves that are not equal bit for bit. Zeros may differ in sign: it depends on how a program is
    compiled for the number of its lanes where a sum begins."""
    positive_zeros = lambda x: x + x.dtype.type(0) if x.dtype.kind == "f" else x
    bits = lambda x: positive_zeros(np.asarray(x)).tobytes()
    pairs = zip(jax.tree.leaves_with_path(a), jax.tree.leaves(b), strict=True)
    return [jax.tree_util.keystr(path) for (path, x), y in pairs if bits(x) != bits(y)]


def compared(parts: SelfPlay) -> tuple[Run, dict[str, Any]]:
    """Six iterations: rows, targets and lanes on every number of devices."""
    ends = {}
    for count in parts.play:
        run = jax.device_put(parts.start, parts.places[count])
        ends[count] = jax.device_get(onward(parts, count, run, 6))
    rows = ends[1].replay.rows
    boards = jax.tree.leaves(rows.observation_state)[0].swapaxes(0, 1).reshape(parts.config.num_envs, -1)
    return ends[1], {
        "differences": {count: differences(ends[1], end) for count, end in ends.items()},
        "rows": int((rows.policy > 0).any(-1).sum()),
        "ended": int(rows.done.sum()),
        "given_up": int(rows.resigned.sum()),
        "different_lanes": len(np.unique(boards, axis=0)),
    }


def learners(parts: SelfPlay) -> dict[int, Any]:
    """Four updates of 32 rows each, the same rows of the same lanes wherever these lie, by number of devices."""
    config, game = parts.config, envs.make(parts.config.env)
    game = dataclasses.replace(game, symmetries=game.symmetries[:1])  # a row's symmetry follows its place in a batch
    learn = learner.make_learner(game, make_network(game, config), config, 4)
    t, lane = (np.random.default_rng(0).integers(0, n, (4, 8, 4)) for n in (12, 2))
    specs, made = run_specs(parts.start), {}
    for count in parts.play:
        wide = config.num_envs // count
        # Four rows of every two neighbouring lanes; a device counts its lanes from 0.
        index = (t * wide + np.arange(8)[:, None] * 2 % wide + lane).reshape(4, 32)
        step = jax.shard_map(
            lambda learning, ring, index: learn(learning, ring, index, jnp.float32(0))[0],
            mesh=mesh.make_mesh(config.num_envs, config.batch_size, count),
            in_specs=(Spec(), specs.replay, Spec(None, mesh.GAMES)), out_specs=Spec(), check_vma=False,
        )  # fmt: skip
        made[count] = functools.partial(
            lambda step, index, run: step(run.learning, run.replay, index), jax.jit(step), index
        )
    return made


def apart(a: Any, b: Any) -> float:
    """The largest difference of any number."""
    pairs = zip(*map(jax.tree.leaves, jax.device_get((a, b))), strict=True)
    return max(float(np.abs(x - y).max()) for x, y in pairs)


def checkpoints(parts: SelfPlay, run: Run, folder: Path) -> dict[int, Any]:
    """Saved on eight devices, restored on each number of them, where self-play and learning go on."""
    saved = jax.device_put(run, parts.places[8])
    save_run(folder, saved, parts.config)
    expected, learn = onward(parts, 8, saved, 2), learners(parts)
    found = {}
    for count in parts.play:
        devices = mesh.make_mesh(parts.config.num_envs, parts.config.batch_size, count)
        restored = load_run(checkpoint.find_checkpoint(folder, "resume"), parts.config, devices)
        learned = learn[count](restored)
        found[count] = {
            "restored": differences(run, restored),
            "lanes": [shard.data.shape[1] for shard in restored.replay.known.addressable_shards],
            "played": differences(expected, onward(parts, count, restored, 2)),
            "apart": apart(learn[8](saved), learned),
            "learned": apart(run.learning.weights, learned.weights),
        }
    return found


def main() -> None:
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", max(COUNTS))
    parts = self_play_of("gumbel", COUNTS)
    run, gumbel = compared(parts)
    _, puct = compared(self_play_of("puct", (1, 8)))
    print(json.dumps({"gumbel": gumbel, "puct": puct, "checkpoints": checkpoints(parts, run, Path(sys.argv[1]))}))


if __name__ == "__main__":
    main()
