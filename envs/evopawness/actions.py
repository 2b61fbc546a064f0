"""Action codes of EvoPawness: their names, and their images when the board is turned."""

from __future__ import annotations

import functools

import numpy as np

from envs.evopawness.rules import CODES, SHIFTS, SIDE, SKIP


def action_name(action: int) -> str:
    """`a*y,x` activates, `p*y,x*C` promotes to C of KRBQ (K for knight), `m*y,x*dy,dx` moves or attacks, or `skip`."""
    cell, k = divmod(int(action), CODES)
    if action == SKIP:
        return "skip"
    place = f"{cell // SIDE},{cell % SIDE}"
    if k < 5:
        return f"p*{place}*{'KRBQ'[k - 1]}" if k else f"a*{place}"
    return "m*{}*{},{}".format(place, *SHIFTS[k - 5])


@functools.cache
def _codes() -> dict[str, int]:
    return {action_name(action).lower(): action for action in range(SKIP + 1)}


def parse_action(text: str) -> int:
    """Inverse of `action_name`; ValueError if there is no such action."""
    name = text.replace(" ", "").lower()
    if name not in _codes():
        raise ValueError(f"no action '{text}': expected a*y,x or p*y,x*C with C of K R B Q or m*y,x*dy,dx or skip")
    return _codes()[name]


def flip_actions() -> np.ndarray:
    """int32[2998]: each action code after the rows of the board are reversed. Its own inverse."""
    shifts = {shift: 5 + j for j, shift in enumerate(SHIFTS)}
    codes = [*range(5), *(shifts[-dy, dx] for dy, dx in SHIFTS)]
    rows = [[(SIDE * (SIDE - 1 - y) + x) * CODES + k for k in codes] for y in range(SIDE) for x in range(SIDE)]
    return np.array([*np.ravel(rows), SKIP], np.int32)
