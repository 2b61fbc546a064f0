"""Cost of proofs of Flight of Queen: positions and seconds until the winner is known, without compilation.

python benchmarks/prove.py [--minutes=M] [--json]

`search` uses only the rules, and `theory` adds envs/foq_theory.py. `network` further adds evaluations by models/foq, on
its board with the squares outside the smaller board ripped. A blank marks a proof that `M` minutes (by default 3) or a
million positions did not decide.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

sys.path.insert(0, str(Path(__file__).parents[1]))

import envs
from agents.network.inference import make_evaluate
from agents.runtime import cli, mesh
from agents.solvers.solve import make_solver
from agents.storage import weights as models
from benchmarks import rounds
from envs import foq

MODEL = Path(__file__).parents[1] / "models" / "foq"
BOARDS = [(5, 6), (5, 7), (6, 6), (6, 7)]
ROOM = 1 << 20


def measure(minutes: float) -> Iterator[rounds.Row]:
    whole = envs.make("foq")
    trained = models.load_network(MODEL, whole)
    opinion = make_evaluate(whole, trained.net), trained.weights
    for rows, cols in BOARDS:
        game = envs.make(f"foq:rows={rows},cols={cols}")
        plain = dataclasses.replace(game, hints=dataclasses.replace(game.hints, known_result=None, canonical=None))
        sides: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
            "search": (plain, game.init(), ()),
            "theory": (game, game.init(), ()),
            "network": (whole, corner(rows, cols, whole), opinion),
        }
        for side, (rules, start, guide) in sides.items():
            solve = make_solver(rules, ROOM, *guide)
            solve(start, seconds=0)  # compiles
            verdict = solve(start, seconds=60 * minutes)
            known = verdict.value is not None
            yield {
                "board": f"{rows} x {cols}", "by": side,
                "winner": {1: "first", -1: "second", None: None}[verdict.value],
                "positions": verdict.positions if known else None,
                "seconds": round(verdict.seconds, 1) if known else None,
                "tried": verdict.positions, "per_second": round(verdict.positions / verdict.seconds),
            }  # fmt: skip


def corner(rows: int, cols: int, game: envs.Game) -> foq.State:
    """The start of a smaller board as a position of `game`, with all squares outside it ripped."""
    start = game.init()
    width = start.ripped.shape[1]
    ripped = jnp.ones_like(start.ripped).at[:rows, :cols].set(False)
    queens = jnp.array([0, (rows - 1) * width + cols - 1], start.queens.dtype)
    return start._replace(ripped=ripped.at[queens // width, queens % width].set(True), queens=queens)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3.0, help="for each proof")
    parser.add_argument("--json", action="store_true", help="rows as JSON lines")
    options = parser.parse_args()
    mesh.claim_cores()
    cli.keep_compiled()
    if not options.json:
        print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}")
    rounds.show(measure(options.minutes), options.json)


if __name__ == "__main__":
    main()
