"""Strength of a page without a server beside Python's player, with equal processor time for a move.

python benchmarks/standalone.py [--seconds=S] [--positions=N] [--json] [GAME ...]

Both sides search the same solved positions with the shipped network, each position for S seconds (default 1) of one
core; the page's program runs in node. Columns: `evaluations` of the network in a second, eight positions at once;
`simulations` in a median search; the `positions`, the share of them where the chosen move `kept` the value of the game,
and its 95% interval. Games without solved positions have evaluations only.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import envs
from agents.arena.solved_positions import SolvedPositions, read_positions, wilson
from agents.players.spec import parse_player
from agents.players.stateful import STEP, TreePlayer
from agents.serve.standalone import kernel
from agents.serve.standalone.program import BATCH, description, javascript_program, leaf
from agents.storage import weights as models
from agents.storage.weights import TrainedNetwork
from benchmarks import rounds

ROOT = Path(__file__).parents[1]
STANDALONE = ROOT / "agents" / "serve" / "standalone"
GOLDEN = ROOT / "tests" / "golden"
WARMING = 3.0  # seconds without counting: engines and JAX compile
EVALUATING = 3.0

IN_NODE = """
const Kinds = {bool: Uint8Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array,
  int32: Int32Array, uint32: Uint32Array, float32: Float32Array};
const {about, kernel, positions, seconds, warming, evaluating} = JSON.parse(require("fs").readFileSync(0));
const given = (leaves) => leaves.map((x) => (Array.isArray(x) ? Kinds[x[0]].from(x[1]) : x));
const functions = program(newMemory, (memory) => fastMatmul(Uint8Array.from(kernel), memory));
const game = {...about, init: given(about.init), functions};
const spent = () => { const {user, system} = process.cpuUsage(); return (user + system) / 1e6; };

function search(leaves, budget) {
  const tree = new Tree(game, given(leaves)), begun = spent();
  while (spent() - begun < budget) for (const _ of tree.step(STEP)) if (spent() - begun > budget) break;
  return [tree.report().moves[0].action, tree.simulations];
}

search(about.init, warming);
const {batch, rows, columns, planes} = about.network, input = new Float32Array(batch * rows * columns * planes);
const begun = spent();
let count = 0;
for (; spent() - begun < evaluating; count += batch) functions.network(input);
const evaluations = count / (spent() - begun);
console.log(JSON.stringify({evaluations, found: positions.map((leaves) => search(leaves, seconds))}));
"""

Found = tuple[float, list[tuple[int, int]]]
"""Evaluations a second; for each position the chosen action and the simulations."""


def in_node(trained: TrainedNetwork, states: list[Any], seconds: float) -> Found:
    asked = {
        "about": description(trained.game, trained),
        "kernel": list(kernel.module()),
        "positions": [[leaf(x) for x in jax.tree.leaves(s)] for s in states],
        "seconds": seconds,
        "warming": WARMING,
        "evaluating": EVALUATING,
    }
    script = [(STANDALONE / name).read_text(encoding="utf-8") for name in ("runtime.js", "search.js")]
    node = shutil.which("node")
    if node is None:
        raise ValueError("expected node to be installed")
    with tempfile.NamedTemporaryFile("w", suffix=".js") as file:
        file.write("\n".join([*script, javascript_program(trained.game, trained), IN_NODE]))
        file.flush()
        done = subprocess.run([node, file.name], input=json.dumps(asked), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout)
    return answer["evaluations"], answer["found"]


def in_python(trained: TrainedNetwork, states: list[Any], seconds: float) -> Found:
    player = TreePlayer(parse_player(str(trained.path)), trained.game)

    def search(state: Any, budget: float) -> tuple[int, int]:
        player.place(state, [], state)
        begun, count = time.process_time(), 0
        while time.process_time() - begun < budget and (more := player.think(simulations=STEP)):
            count += more
        return player.best()[0], count

    search(trained.game.init(), WARMING)
    planes = jnp.zeros((BATCH, *trained.game.observe(trained.game.init()).shape))
    jax.block_until_ready(trained.net.apply(trained.weights, planes))
    begun, count = time.process_time(), 0
    while time.process_time() - begun < EVALUATING:
        jax.block_until_ready(trained.net.apply(trained.weights, planes))
        count += BATCH
    return count / (time.process_time() - begun), [search(s, seconds) for s in states]


def some(solved: SolvedPositions, count: int) -> tuple[list[Any], np.ndarray]:
    """At most `count` positions, evenly over the file, and which moves keep their values."""
    chosen = np.unique(np.linspace(0, len(solved.right) - 1, count).astype(int))
    return [jax.tree.map(lambda x: np.asarray(x)[i], solved.states) for i in chosen], solved.right[chosen]


def measure(names: list[str], count: int, seconds: float) -> Iterator[rounds.Row]:
    for name in names:
        path = GOLDEN / f"{name}_solved.jsonl.gz"
        game = envs.make(name)
        shipped = models.shipped(game)
        if shipped is None:
            raise ValueError(f"expected a game with a shipped network, got {name}")
        trained = models.load_network(shipped, game)
        states, right = some(read_positions(path, game), count) if path.is_file() else ([], np.zeros((0, 1), bool))
        for side, play in {"page": in_node, "python": in_python}.items():
            evaluations, found = play(trained, states, seconds)
            row: rounds.Row = {"game": name, "side": side, "evaluations": round(evaluations)}
            kept = sum(bool(good[action]) for good, (action, _) in zip(right, found, strict=True))
            low, high = wilson(kept, len(found)) if found else (None, None)
            percent = lambda x: None if x is None else round(100 * x, 1)
            yield row | {
                "simulations": round(statistics.median(n for _, n in found)) if found else None,
                "positions": len(found),
                "kept": percent(kept / len(found)) if found else None,
                "low": percent(low),
                "high": percent(high),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", nargs="*", default=["connect_four", "foq", "evopawness"])
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--positions", type=int, default=160)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rounds.show(measure(given.games, given.positions, given.seconds), given.json)


if __name__ == "__main__":
    main()
