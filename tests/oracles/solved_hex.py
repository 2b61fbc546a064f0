"""Writes the solved positions of Hex in tests/golden: python tests/oracles/solved_hex.py

Plays random moves and asks solve_hex.c, which shares no code with this project, for the moves that win. Kept are all
first moves on 5 x 5, to which the answer may be the swap, and later positions in which some moves win and some lose.
Takes two minutes; needs a C compiler.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
FIRST_MOVES = {5}  # sizes whose first moves are solved, too; on 6 x 6 that takes hours
PLIES = {5: (2, 10), 6: (10, 19)}  # moves made before a later position, by size
POSITIONS = 300  # tried of each size


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


def record(size: int, game: list[int], right: list[int]) -> str:
    """One line of the file."""
    board = [0] * size**2
    for ply, cell in enumerate(game):
        board[cell] = 1 - 2 * (ply % 2)
    to_move = 1 - 2 * (len(game) % 2)
    return json.dumps({"size": size, "board": board, "to_move": to_move, "winning": right}) + "\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = solver(Path(folder))
        for size, (low, high) in PLIES.items():
            draw = np.random.default_rng(size)
            later = [draw.permutation(size**2)[: draw.integers(low, high)].tolist() for _ in range(POSITIONS)]
            first = [[cell] for cell in range(size**2)] if size in FIRST_MOVES else []
            found = winning(program, size, first + later)
            lines = [record(size, game, right or [size**2]) for game, right in zip(first, found, strict=False)]
            for game, right in zip(later, found[len(first) :], strict=True):
                if 0 < len(right) < size**2 - len(game):
                    lines.append(record(size, game, right))
            file = HERE.parent / "golden" / f"hex_{size}x{size}_solved.jsonl.gz"
            file.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
            print(file, len(lines))


if __name__ == "__main__":
    main()
