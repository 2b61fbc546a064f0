"""Writes positions of Flight of Queen with exact results for `--proof_file` of train.py:

    python tests/oracles/proved_foq.py foq_single solved.npz --minutes=20

Games of the shipped network, with a share of random moves, lead to positions with many free squares. solve_foq.c, which
needs a C compiler, searches from each of them, and returns positions met on the way. Those that took many visits are
drawn more often, and so are those with many free squares. The solved positions of tests/golden, and the positions after
their moves, are left out, so that they still measure what a network has learned.
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro

import envs
from agents import config
from agents.arena.solved_positions import read_positions
from agents.config import Range
from agents.network.inference import make_evaluate
from agents.runtime import cli
from agents.storage.weights import load_network
from agents.training import proof_file
from envs.game import Game

GAMES = 500  # played together
PATIENCE = 20  # rounds of games without a new position
SOLVER = Path(__file__).with_name("solve_foq.c")
GOLDEN = Path(__file__).parents[1] / "golden"
SOLVED = {"foq": GOLDEN / "foq_solved.jsonl.gz", "foq_single": GOLDEN / "foq_variants_solved.jsonl.gz"}
RANDOM_SHARES = 0.0, 0.05, 0.1, 0.2, 0.5, 1.0  # of the moves of a game
ROWS = 24  # of each power of two of the visits that a position took


@dataclasses.dataclass(frozen=True)
class Command(config.Options):
    """Writes positions of Flight of Queen with exact results for --proof_file."""

    env: tyro.conf.Positional[str]
    """foq_single or foq, on the usual board."""
    out: tyro.conf.Positional[Path]
    """File to write, such as solved.npz."""
    minutes: Annotated[float, Range(above=0)] = 10.0
    """Time of the searches."""
    free: tuple[int, int] = (34, 58)
    """Least and most free squares of the positions where searches begin."""
    visits: Annotated[int, Range(least=1)] = 400_000
    """Most visits of a search; at 0.3 to 1.3 million a second."""
    processes: Annotated[int, Range(least=1)] = 1
    """Searches at the same time, each with a table of 100 MB."""
    seed: int = 0
    """Seed of the games."""


def positions(game: Game, network: str, free: tuple[int, int], seed: int) -> Iterator[tuple[int, int, int]]:
    """Different positions of games: the ripped squares as bits, the mover's queen and the other one.

    Raises:
        ValueError: games lead to no further position.
    """
    trained, chance = load_network(network, game), np.random.default_rng(seed)
    evaluate, seen, vain = make_evaluate(game, trained.net), set(), 0

    @jax.jit
    def ply(states: Any, key: Any, share: Any) -> Any:
        first, second, third = jax.random.split(key, 3)
        logits, _ = evaluate(trained.weights, key, states)
        legal, over = jax.vmap(game.mask)(states), jax.vmap(game.over)(states)
        own = jax.random.categorical(first, logits)
        other = jax.random.categorical(second, jnp.where(legal, 0.0, -1e9))
        after = jax.vmap(game.move)(states, jnp.where(jax.random.uniform(third, own.shape) < share, other, own))
        return jax.tree.map(lambda x, y: jnp.where(over.reshape(-1, *[1] * (x.ndim - 1)), x, y), states, after)

    while vain < PATIENCE:
        share, wanted = chance.choice(RANDOM_SHARES, GAMES), chance.integers(free[0], free[1] + 1, GAMES)
        states = jax.tree.map(lambda x: jnp.broadcast_to(x, (GAMES, *x.shape)), game.init())
        waiting, vain = np.ones(GAMES, bool), vain + 1
        for _ in range(game.max_plies):
            left = game.num_actions - np.asarray(states.ripped).reshape(GAMES, -1).sum(-1)
            over = np.asarray(jax.vmap(game.over)(states))
            for i in np.flatnonzero(waiting & (left <= wanted)):
                waiting[i], position = False, as_numbers(states, i)
                if left[i] >= free[0] and not over[i] and position not in seen:
                    seen.add(position)
                    vain = 0
                    yield position
            if not waiting.any():
                break
            states = ply(states, jax.random.key(chance.integers(2**31)), share)
    raise ValueError(f"expected more positions with {free[0]} to {free[1]} free squares, got {len(seen)}")


def as_numbers(states: Any, i: int) -> tuple[int, int, int]:
    ripped = sum(1 << int(square) for square in np.flatnonzero(states.ripped[i]))
    queens, mover = np.asarray(states.queens[i]).tolist(), int(states.to_move[i])
    return (ripped, queens[0], 0) if len(queens) == 1 else (ripped, queens[mover], queens[1 - mover])


def held_out(game: Game, file: Path) -> set[tuple[int, int, int]]:
    """The solved positions of a file and those after one of their moves, in all orientations, in the form of
    `positions`."""
    solved = read_positions(file, game)
    rows, moves = np.nonzero(solved.legal)
    after = jax.vmap(game.move)(jax.tree.map(lambda x: jnp.asarray(x)[rows], solved.states), jnp.asarray(moves))
    found = set()
    for states in (solved.states, after):
        for symmetry in game.symmetries:
            turned = jax.device_get(jax.vmap(symmetry.state)(states))
            found |= {as_numbers(turned, i) for i in range(len(turned.to_move))}
    return found


def bits(numbers: list[int], squares: int) -> np.ndarray:
    """bool[N, S]"""
    packed = b"".join(number.to_bytes(16, "little") for number in numbers)
    return np.unpackbits(np.frombuffer(packed, np.uint8).reshape(-1, 16), 1, squares, "little").astype(bool)


def place(line: list[str]) -> tuple[int, int, int]:
    """The position of a line that the solver printed."""
    return int(line[0], 16), int(line[1]), int(line[2])


def write(path: Path, game: Game, lines: list[list[str]]) -> None:
    """Writes the rows that the solver printed."""
    start, count = game.init(), len(lines)
    places = [place(line) for line in lines]
    queens = np.array([position[1:] for position in places], np.int16)[:, : len(start.queens)]
    values, visits = (np.array([int(line[i]) for line in lines]) for i in (3, 4))
    ripped = bits([position[0] for position in places], game.num_actions)
    right = bits([0 if line[5] == "-" else int(line[5], 16) for line in lines], game.num_actions)
    states = start._replace(
        ripped=ripped.reshape(count, *start.ripped.shape),
        queens=queens,
        to_move=np.zeros(count, np.int8),
        forfeit=np.full(count, -1, np.int8),
    )
    free = (~ripped).sum(-1)
    hard = np.clip(1.4 ** (np.log2(visits + 1) - 7), 1, 20)
    proof_file.write(path, game, states, values, right, hard * np.clip((free - 32) / 2, 0.3, 6))


def main() -> None:
    with cli.errors():
        command = cli.parse_command(Command, sys.argv[1:])
        game = envs.make(command.env)
        name = game.name.partition(":")[0]
        if name not in SOLVED or game.name != envs.make(name).name:
            raise ValueError(f"expected foq or foq_single on the usual board, got {game.name}")
        if not command.out.parent.is_dir():
            raise ValueError(f"expected a folder for {command.out.name}, got {command.out.parent}")
        queens = len(game.init().queens)
        starts, measured = positions(game, f"models/{name}", command.free, command.seed), held_out(game, SOLVED[name])
        ends = time.monotonic() + 60 * command.minutes
        lines: list[list[str]] = []
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(command.processes) as together:
            program = Path(folder) / "solve_foq"
            subprocess.run(["cc", "-O3", "-march=native", "-o", program, SOLVER], check=True)

            def search(batch: list[tuple[int, int, int]]) -> list[list[str]]:
                text = "".join(f"{ripped:x} {mine} {other}\n" for ripped, mine, other in batch)
                given = [program, str(queens), str(command.visits), str(ROWS)]
                done = subprocess.run(given, input=text, capture_output=True, text=True, check=True)
                return [line.split() for line in done.stdout.splitlines()]

            try:
                while time.monotonic() < ends:
                    batches = [[next(starts) for _ in range(50)] for _ in range(command.processes)]
                    for found in together.map(search, batches):
                        lines += [line for line in found if place(line) not in measured]
                    print(f"{len(lines)} positions, {max(0, ends - time.monotonic()) / 60:.0f} min left", flush=True)
            finally:  # also of a time cut short
                if lines:
                    write(command.out, game, lines)


if __name__ == "__main__":
    main()
