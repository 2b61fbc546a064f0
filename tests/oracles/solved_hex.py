"""Writes the solved positions of Hex in tests/golden: python tests/oracles/solved_hex.py [MOHEX]

Plays random moves and asks another program for the moves that win: solve_hex.c on 5 x 5 and 6 x 6, which takes two
minutes and needs a C compiler, and on 7 x 7 the program MOHEX (github.com/cgao3/benzene-vanilla-cmake) if it is given,
which takes an hour. Neither shares code with this project. Kept are first moves, to which the answer may be the swap,
and later positions in which some moves win and some lose.
"""

from __future__ import annotations

import functools
import gzip
import json
import string
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
FIRST_MOVES = {5: 25, 7: 25}  # by size; on 7 x 7 the others are images under the half turn, on 6 x 6 it takes hours
PLIES = {5: (2, 10), 6: (10, 19), 7: (4, 15)}  # moves made before a later position, by size
POSITIONS = {5: 300, 6: 300, 7: 200}  # tried of each size


def solver(folder: Path) -> Path:
    """The compiled program."""
    program = folder / "solve_hex"
    subprocess.run(["cc", "-O2", "-o", program, HERE / "solve_hex.c", "-lm"], check=True)
    return program


def winning(program: Path, size: int, games: list[list[int]]) -> list[list[int]]:
    """The cells that win for the player to move after the moves of each game, without the swap."""
    text = "".join(" ".join(map(str, game)) + "\n" for game in games)
    done = subprocess.run([program, str(size)], input=text, capture_output=True, text=True, check=True)
    return [[int(word) for word in line.split()] for line in done.stdout.splitlines()]


def winning_by_mohex(program: str, size: int, games: list[list[int]]) -> list[list[int]]:
    """As `winning`. Its own list of winning moves leaves out inferior ones, so it solves the position after each."""
    with subprocess.Popen(
        [program, "--use-logfile=0"], text=True, bufsize=1,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None

        def ask(command: str) -> str:
            process.stdin.write(command + "\n")
            answer, _ = process.stdout.readline(), process.stdout.readline()
            assert answer.startswith("="), f"MoHex answers '{command}' with '{answer}'"
            return answer[1:].strip()

        def play(ply: int, cell: int) -> None:
            ask(f"play {'bw'[ply % 2]} {string.ascii_lowercase[cell % size]}{cell // size + 1}")

        def wins(game: list[int]) -> bool:
            """Whether the player to move wins."""
            ask("clear_board")
            for ply, cell in enumerate(game):
                play(ply, cell)
            mover = ("black", "white")[len(game) % 2]
            return ask(f"dfpn-solve-state {mover}") == mover

        ask("param_mohex max_memory 300000000")
        ask(f"boardsize {size}")
        free = lambda game: [cell for cell in range(size**2) if cell not in game]
        return [[c for c in free(game) if not wins([*game, c])] if wins(game) else [] for game in games]


def record(size: int, game: list[int], right: list[int]) -> str:
    """One line of the file."""
    board = [0] * size**2
    for ply, cell in enumerate(game):
        board[cell] = 1 - 2 * (ply % 2)
    to_move = 1 - 2 * (len(game) % 2)
    return json.dumps({"size": size, "board": board, "to_move": to_move, "winning": right}) + "\n"


def write(size: int, solve: Callable[[int, list[list[int]]], list[list[int]]]) -> None:
    """Writes the file of one size. `solve(size, games)` is as `winning`."""
    low, high = PLIES[size]
    draw = np.random.default_rng(size)
    later = [draw.permutation(size**2)[: draw.integers(low, high)].tolist() for _ in range(POSITIONS[size])]
    first = [[cell] for cell in range(FIRST_MOVES.get(size, 0))]
    found = solve(size, first + later)
    lines = [record(size, game, right or [size**2]) for game, right in zip(first, found, strict=False)]
    for game, right in zip(later, found[len(first) :], strict=True):
        if 0 < len(right) < size**2 - len(game):
            lines.append(record(size, game, right))
    file = HERE.parent / "golden" / f"hex_{size}x{size}_solved.jsonl.gz"
    file.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
    print(file, len(lines))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for size in 5, 6:
            write(size, functools.partial(winning, solver(Path(folder))))
    for mohex in sys.argv[1:2]:
        write(7, functools.partial(winning_by_mohex, mohex))


if __name__ == "__main__":
    main()
