"""Records of positions of EvoPawness, read and written on the host."""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from envs import records
from envs.evopawness.rules import (
    DEAD,
    KING,
    KING_CELLS,
    LARGEST_CAP,
    MAX_ATK,
    MAX_HP,
    MAX_MANA,
    MAX_PLIES,
    MAX_STEP,
    OFF,
    RUNE_CELLS,
    SIDE,
    SLEEPER,
    SOLDIER,
    State,
    has_lost,
    over,
)
from envs.game import Array

RUNES = ("atk", "hp", "step")
TYPES = ("", "soldier", "soldier", "knight", "rook", "bishop", "queen", "king")  # by kind
FIELDS = ("turn", "to_move", "mana", "pieces", "runes")
PIECE_FIELDS = ("player", "type", "y", "x", "hp", "atk", "step", "active")
_whole = functools.partial(records.whole, "evopawness")


def to_record(s: State) -> dict[str, Any]:
    """JSON-ready record: `turn`, `to_move`, `mana` and the living `pieces` and `runes`, sorted by player, y and x.
    `forfeit` is present only after a forfeit."""
    cell, kind, *numbers = np.asarray(s.pieces)
    pieces = []
    for side in (0, 1):
        for slot in np.argsort(cell[side], kind="stable"):
            if kind[side, slot] != DEAD:
                y, x = divmod(int(cell[side, slot]), SIDE)
                values = (side, TYPES[kind[side, slot]], y, x, *(int(n[side, slot]) for n in numbers))
                pieces.append(dict(zip(PIECE_FIELDS, (*values, bool(kind[side, slot] != SLEEPER)), strict=True)))
    record = {
        "turn": int(s.turn),
        "to_move": int(s.turn) % 2,
        "mana": np.asarray(s.mana).tolist(),
        "pieces": pieces,
        "runes": [
            {"y": int(cell) // SIDE, "x": int(cell) % SIDE, "kind": name}
            for cell, name, lies in zip(RUNE_CELLS, RUNES, np.asarray(s.runes), strict=True)
            if lies
        ],
    }
    return records.with_forfeit(record, s.forfeit)


def from_record(record: dict[str, Any], max_plies: int | None = MAX_PLIES) -> State:
    """Position of a record.

    Raises:
        ValueError: a field is missing, unknown or out of range, or the position cannot occur; the message says which.
    """
    records.fields("evopawness", record, FIELDS)
    turn = _whole("turn", record["turn"], 1, LARGEST_CAP + 1)
    if _whole("to_move", record["to_move"], 0, 1) != turn % 2:
        raise ValueError("evopawness record: to_move: expected 1, Black, in odd turns and 0, White, in even ones")
    mana = [_whole("mana", m, 0, MAX_MANA) for m in _list(record["mana"], "mana")]
    if len(mana) != 2:
        raise ValueError("evopawness record: mana: expected two numbers, White's and Black's")
    arrays = _pieces([_piece(p) for p in _list(record["pieces"], "pieces")])
    runes = _runes(record["runes"], arrays[0])
    s = State(jnp.asarray(arrays), jnp.asarray(mana, jnp.int8), runes, jnp.int16(turn), jnp.int8(-1))
    lost = np.asarray(has_lost(s))
    if lost[1 - turn % 2]:
        raise ValueError("evopawness record: only the player to move can have lost the king or all pawns, and not both")
    forfeit = records.forfeit("evopawness", record, turn % 2, lambda: over(s, max_plies))
    return s._replace(forfeit=jnp.int8(forfeit))


def _piece(value: Any) -> tuple[int, tuple[int, ...]]:
    """Player of a piece and its (cell, kind, hp, atk, step)."""
    records.fields("evopawness", value, PIECE_FIELDS, perhaps=(), what="piece")
    side, y, x = (_whole(k, value[k], 0, top) for k, top in (("player", 1), ("y", SIDE - 1), ("x", SIDE - 1)))
    hp, steps = _whole("hp", value["hp"], 1, MAX_HP), _whole("step", value["step"], 1, MAX_STEP)
    atk, active = _whole("atk", value["atk"], 1, MAX_ATK), value["active"]
    if not isinstance(active, bool):
        raise ValueError(f"evopawness record: active: expected true or false, got {active!r}")
    if value["type"] not in TYPES[SOLDIER:]:
        raise ValueError(
            f"evopawness record: type: expected one of {', '.join(TYPES[SOLDIER:])}, got {value['type']!r}"
        )
    kind, cell = TYPES.index(value["type"], SOLDIER), y * SIDE + x
    if kind != SOLDIER and not active:
        raise ValueError(f"evopawness record: only soldiers can be inactive, not a {value['type']}")
    if kind == SOLDIER and (x % 2 or y == (8, 0)[side]):
        raise ValueError("evopawness record: a soldier never leaves its column 0, 2, 4, 6 or 8 nor goes backwards")
    if not active and y != (7, 1)[side]:
        raise ValueError("evopawness record: an inactive soldier stands on its first row")
    if kind == KING and ((atk, steps) != (3, 3) or hp > 15 or cell != KING_CELLS[side]):
        raise ValueError("evopawness record: kings stay on (8, 4) and (0, 4) with atk 3, step 3 and at most hp 15")
    return side, (cell, SLEEPER if not active else kind, hp, atk, steps)


def _pieces(pieces: list[tuple[int, tuple[int, ...]]]) -> np.ndarray:
    """int8[5, 2, 6], the pieces of a `State`."""
    cells = [piece[0] for _, piece in pieces]
    if len(set(cells)) < len(cells):
        raise ValueError("evopawness record: two pieces stand on one cell")
    arrays = np.zeros((5, 2, 6), np.int8)
    arrays[0] = OFF
    for side, name in enumerate(("White", "Black")):
        own = sorted(piece for owner, piece in pieces if owner == side)
        kings, pawns = [p for p in own if p[1] == KING], [p for p in own if p[1] != KING]
        if len(kings) > 1 or len(pawns) > 5:
            raise ValueError(f"evopawness record: {name} has more than one king or five other pieces")
        for slot, piece in [*enumerate(pawns), *((5, king) for king in kings)]:
            arrays[:, side, slot] = piece
    return arrays


def _runes(value: Any, occupied: np.ndarray) -> Array:
    """bool[3]: the runes of a record."""
    places = {(int(cell) // SIDE, int(cell) % SIDE, RUNES[i]): i for i, cell in enumerate(RUNE_CELLS)}
    lie = np.zeros(3, bool)
    for rune in _list(value, "runes"):
        records.fields("evopawness", rune, ("y", "x", "kind"), perhaps=(), what="rune")
        index = places.get((_whole("y", rune["y"], 0, 8), _whole("x", rune["x"], 0, 8), str(rune["kind"])))
        if index is None or lie[index]:
            raise ValueError("evopawness record: runes lie at (4, 0) atk, (4, 4) hp and (4, 8) step, one of each")
        if RUNE_CELLS[index] in occupied:
            raise ValueError("evopawness record: a rune lies under a piece")
        lie[index] = True
    return jnp.asarray(lie)


def _list(value: Any, field: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"evopawness record: {field}: expected a list")
    return value
