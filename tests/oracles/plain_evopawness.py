"""A plain program of EvoPawness on records: legal actions by piece, the turned position, the planes."""

from __future__ import annotations

import numpy as np

DIRECTIONS = {"N": (-1, 0), "NE": (-1, 1), "E": (0, 1), "SE": (1, 1), "S": (1, 0), "SW": (1, -1), "W": (0, -1)}
DIRECTIONS |= {"NW": (-1, -1)}
JUMPS = [(-2, 1), (-1, 2), (1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1)]
RAYS = {"rook": "N E S W", "bishop": "NE SE SW NW", "queen": "N NE E SE S SW W NW", "king": "N NE E SE S SW W NW"}


def reach(piece: dict) -> list[tuple[int, int]]:
    if piece["type"] == "knight":
        return JUMPS
    rays = "SN"[piece["player"] == 0] if piece["type"] == "soldier" else RAYS[piece["type"]]
    length = 3 if piece["type"] == "king" else piece["step"] if piece["active"] else 0
    return [(r * DIRECTIONS[d][0], r * DIRECTIONS[d][1]) for d in rays.split() for r in range(1, length + 1)]


def is_over(record: dict) -> bool:
    kings = {p["player"] for p in record["pieces"] if p["type"] == "king"}
    pawns = {p["player"] for p in record["pieces"] if p["type"] != "king"}
    return len(kings) < 2 or len(pawns) < 2


def names_of(record: dict, piece: dict) -> list[str]:
    """Legal actions of one piece, if it is its side's turn and the game goes on."""
    if piece["player"] != record["to_move"] or is_over(record):
        return []
    mana, place = record["mana"][piece["player"]], f"{piece['y']},{piece['x']}"
    names = []
    if piece["type"] == "soldier" and not piece["active"] and mana >= 3:
        names.append(f"a*{place}")
    if piece["type"] == "soldier" and piece["active"] and mana >= 5:
        names += [f"p*{place}*{letter}" for letter in "KRB"]
    if piece["type"] in ("rook", "bishop") and mana == 10:
        names.append(f"p*{place}*Q")
    owners = {(p["y"], p["x"]): p["player"] for p in record["pieces"]}
    for dy, dx in reach(piece):
        y, x = piece["y"] + dy, piece["x"] + dx
        takers = (1 - piece["player"],) if piece["type"] == "king" else (1 - piece["player"], None)
        if 0 <= y < 9 and 0 <= x < 9 and owners.get((y, x)) in takers:
            names.append(f"m*{place}*{dy},{dx}")
    return names


def legal_names(record: dict) -> list[str]:
    names = [name for piece in record["pieces"] for name in names_of(record, piece)]
    return names or ([] if is_over(record) else ["skip"])


def turned(record: dict) -> dict:
    """The same position with the sides exchanged, five turns later."""
    pieces = [p | {"player": 1 - p["player"], "y": 8 - p["y"]} for p in record["pieces"]]
    return record | {
        "turn": record["turn"] + 5,
        "to_move": 1 - record["to_move"],
        "mana": record["mana"][::-1],
        "pieces": sorted(pieces, key=lambda p: (p["player"], p["y"], p["x"])),
    }


KINDS = ["knight", "rook", "bishop", "soldier", "queen", "king"]  # in the order of the planes


def planes_of(records: list[dict]) -> np.ndarray:
    """[140, 9, 9] of up to five positions, newest first, for the player to move in the first one."""
    planes = np.zeros((5, 28, 9, 9), np.float32)
    mover = records[0]["to_move"]
    for h, record in enumerate(records[:5]):
        for p in record["pieces"]:
            other, y = p["player"] != mover, 8 - p["y"] if mover else p["y"]
            here = planes[h, other::2, y, p["x"]]  # planes 0, 2, ..., 26 or 1, 3, ..., 27 of the cell
            here[:4] = p["hp"], p["atk"], p["step"], 1
            here[4 + KINDS.index(p["type"])] = 1
            here[10] = record["mana"][p["player"]]
            here[13] = len(names_of(record, p))
        planes[h, [22, 23, 24], 4, [0, 4, 8]] = record["turn"] % 5
        for rune in record["runes"]:
            planes[h, 25, rune["y"], rune["x"]] = 1
    return planes.reshape(140, 9, 9)
