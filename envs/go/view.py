"""How people see Go: pictures, text boards, reasons and lessons."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs import pictures
from envs.game import Array, Step, forfeit_words
from envs.go.points import LETTERS, cells_of, point_name, to_board
from envs.go.records import board_after
from envs.go.rules import State, area, over, repeating
from envs.pictures import Layer, Part, Picture

SEATS = ("Black", "White")
CELL = 36  # of the picture


def _stars(size: int) -> set[int]:
    """The star points of a board."""
    edge = 2 if size < 12 else 3
    lines = {edge, size - 1 - edge} | ({size // 2} if size % 2 and size > 12 else set())
    points = {r * size + c for r in lines for c in lines} if size > 6 else set()
    return points | ({size * size // 2} if size % 2 else set())


def show(s: State, komi: float = 7.5) -> str:
    """Text picture: X Black, O White, . empty, + marked points, with the player to move or the result below."""
    size = s.chain.shape[0]
    cells = np.where(np.isin(np.arange(size * size), list(_stars(size))), "+", ".")
    cells = np.select([cells_of(s.stones) > 0, cells_of(s.stones) < 0], ["X", "O"], cells).reshape(size, size)
    status = pictures.words(_status(("Black (X)", "White (O)"), size, komi), _status_codes(s))
    lines = [f"{size - r:2d}  {' '.join(row)}" for r, row in enumerate(cells)]
    return "\n".join([*lines, "    " + " ".join(LETTERS[:size]), status])


def lesson(komi: float, ko: str) -> tuple[Step, ...]:
    board = f"go:size=5,komi={komi},ko={ko},history=1"
    siege = ("C4", "C3", "B3", "E1", "D3", "E2")
    again = {"simple": "at once", "psk": "while that would repeat an earlier position"}[ko]
    return (
        Step(
            "Black begins. The players take turns, and each puts a stone on an empty crossing, or passes. Stones never "
            "move.",
            ("C3", "D4"),
            board,
        ),
        Step(
            "The empty crossings next to a stone, along the lines, are its liberties. Neighbouring stones of one "
            "colour share theirs. The white stone on C3 has one left: C2.",
            siege,
            board,
        ),
        Step(
            "Black has played C2: stones without a liberty are taken off the board. White may not play C3 now, as that "
            "stone would have no liberty and takes nothing.",
            (*siege, "C2"),
            board,
        ),
        Step(
            f"Black has just taken a stone on the marked point. White may not take back {again}: otherwise this could "
            "go on forever.",
            ("B4", "C4", "A3", "D3", "B2", "C2", "E5", "B3", "C3"),
            board,
        ),
        Step(
            "Two passes in a row end the game. Each player counts their stones and the empty points that only they "
            f"enclose. White gets {komi:g} points more for moving second. The larger sum wins.",
            ("C3", "D3", "C2", "D2", "C4", "D4", "C1", "D1", "C5", "D5", "pass", "pass"),
            board,
        ),
    )


def why_illegal(s: State, action: int) -> str:
    size = s.chain.shape[0]
    cells, name = cells_of(s.stones).tolist(), point_name(action, size)
    if action == size * size:
        return ""
    if cells[action]:
        return f"there is a stone on {name} already"
    if action == s.ko:
        return f"{name} cannot be taken back at once (ko)"
    if board_after(cells, action, 1 - 2 * int(s.to_move), size) is None:
        return f"{name} is suicide: the stone would have no liberty"
    if s.memory is not None and jax.jit(repeating)(s).ravel()[action]:
        return f"{name} repeats an earlier position (superko)"
    return ""


def why_over(s: State, komi: float) -> str:
    if s.forfeit >= 0 or not over(s):
        return forfeit_words(SEATS, s.forfeit)
    black, white = area(s)
    low, high = sorted((float(black), float(white) + komi))
    ended = "both passed" if s.passes >= 2 else f"the game ends after {int(s.plies)} moves"
    return f"{ended}: {high:g} to {low:g} with komi {komi:g}"


def _status(seats: Sequence[str], size: int, komi: float) -> tuple[Layer, ...]:
    """Who is to move or has won; then the ko and a pass that may end the game, or the areas."""
    margins = [black_lead - komi for black_lead in range(-size * size, size * size + 1)]
    results = [f"{seats[int(margin < 0)]} wins by {abs(margin):g}" if margin else "draw" for margin in margins]
    forfeits = [f"{seat} wins, as the other made an illegal move" for seat in seats[::-1]]
    kos = (f", but not at {point_name(point, size)} (ko)" for point in range(size * size))
    return (
        Layer(words=(*(f"{seat} to move" for seat in seats), *forfeits, *results)),
        Layer(words=tuple(kos)),
        Layer(words=("", ", who may pass too and end the game")),
        Layer(words=": area {}"),
        Layer(words=f" to {{}}, komi {komi:g}"),
    )


def _status_codes(s: State) -> tuple[Array, ...]:
    (black, white), going, forfeit = area(s), ~over(s), s.forfeit >= 0
    standing = jnp.where(forfeit, 2 + s.forfeit, jnp.where(going, s.to_move, 4 + s.chain.size + black - white))
    counted = lambda points: jnp.where(going | forfeit, -1, points)
    return standing, jnp.where(going, s.ko, -1), going & (s.passes > 0), counted(black), counted(white)


@functools.cache
def picture(size: int, komi: float) -> Picture:
    edge, last, middle = CELL * 1.2, CELL * (size + 0.2), CELL * (size + 1.4) / 2
    full = 2 * middle
    ways = "".join(f"M{x:g} {edge:g}V{last:g}M{edge:g} {x:g}H{last:g}" for x in edge + CELL * np.arange(size))
    names = [point_name(point, size) for point in range(size * size)]
    points = pictures.grid(names, size, CELL, edge - CELL / 2, edge - CELL / 2)
    stars = (pictures.disc(CELL * 0.1, 'fill="#5b4526"', points[i].x, points[i].y) for i in sorted(_stars(size)))
    labels = functools.partial(pictures.texts, CELL * 0.33, paint='fill="#4f3b1f"')
    frame = [
        '<defs><radialGradient id="black" cx="0.35" cy="0.3" r="0.8"><stop offset="0" stop-color="#6a6f78"/>'
        '<stop offset="0.6" stop-color="#20242a"/></radialGradient><radialGradient id="white" cx="0.35" cy="0.3" '
        'r="0.9"><stop offset="0" stop-color="#ffffff"/><stop offset="1" stop-color="#cfc9bd"/></radialGradient></defs>'
        f'<rect width="100%" height="100%" rx="{CELL * 0.2:g}" fill="#e3bd7a"/><path d="{ways}" stroke="#5b4526"/>'
        + pictures.square(last - edge, 'fill="none" stroke="#5b4526" stroke-width="2"', middle, middle),
        *stars,
        *(labels(LETTERS[:size], x=edge, y=y + CELL * 0.12, right=CELL) for y in (edge / 3, full - edge / 3)),
        *(labels(range(size, 0, -1), x=x, y=edge + CELL * 0.12, down=CELL) for x in (edge / 3, full - edge / 3)),
    ]
    shadow = pictures.disc(CELL * 0.46, 'fill="#000" opacity="0.25"', y=CELL * 0.04)
    stones = (shadow + pictures.disc(CELL * 0.46, f'fill="url(#{colour})"') for colour in ("black", "white"))
    ko = pictures.square(CELL * 0.4, 'fill="none" stroke="#b3352b" stroke-width="2"')
    contents = Layer(("", *stones, ko), ("empty", *SEATS, "empty, not to be taken back at once (ko)"))
    part = Part(points, (Layer(pictures.square(CELL)), contents))

    def look(s: State) -> tuple[tuple[Any, ...], ...]:
        black, white = to_board(s.stones).reshape(2, -1)
        return _status_codes(s), (0, black + 2 * white + 3 * (np.arange(size * size) == s.ko))

    return Picture("Go", full, full, "".join(frame), _status(SEATS, size, komi), (part,), look)
