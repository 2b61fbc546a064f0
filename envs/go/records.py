"""Records of positions of Go, on the host: a board is a list of n * n cells, 1 black, -1 white, 0 empty."""

from __future__ import annotations

import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np

from envs import records
from envs.go.observation import Observed
from envs.go.points import cells_of, neighbours_of, point_name, to_rows
from envs.go.rules import LARGEST, SMALLEST, Memory, State, chain_dtype, stone_keys


def _chain_at(board: list[int], point: int, neighbours: list[list[int]]) -> tuple[set[int], set[int]]:
    """Stones and liberties of the chain on a point."""
    stones, liberties, open_ = {point}, set(), [point]
    while open_:
        for q in neighbours[open_.pop()]:
            if board[q] == 0:
                liberties.add(q)
            elif board[q] == board[point] and q not in stones:
                stones.add(q)
                open_.append(q)
    return stones, liberties


def board_after(board: list[int], point: int, colour: int, size: int) -> list[int] | None:
    """Board after a play on an empty point, None for suicide."""
    board, neighbours = list(board), neighbours_of(size)
    board[point] = colour
    for q in neighbours[point]:
        if board[q] == -colour:
            stones, liberties = _chain_at(board, q, neighbours)
            if not liberties:
                board = [0 if p in stones else cell for p, cell in enumerate(board)]
    return board if _chain_at(board, point, neighbours)[1] else None


def _settled(board: list[int], size: int) -> tuple[np.ndarray, np.ndarray]:
    """`chain` and `atari` (as bool[n * n]) of a board; ValueError if a chain has no liberty."""
    chain, atari = np.full(size * size, size * size, chain_dtype(size)), np.zeros(size * size, bool)
    for point, cell in enumerate(board):
        if cell and chain[point] == size * size:
            stones, liberties = _chain_at(board, point, neighbours_of(size))
            if not liberties:
                raise ValueError(f"go record: the chain at {point_name(point, size)} has no liberty")
            chain[list(stones)], atari[list(stones)] = point, len(liberties) == 1
    return chain, atari


def _boards(moves: list[int], size: int) -> list[list[int]]:
    """The boards before each move of a game, and after the last move."""
    boards = [[0] * (size * size)]
    for ply, point in enumerate(moves):
        following = boards[-1] if point == size * size else board_after(boards[-1], point, 1 - 2 * (ply % 2), size)
        assert following is not None, "moves of a state are legal"
        boards.append(following)
    return boards


def _moves_between(boards: list[list[int]], size: int) -> list[int]:
    """The moves of a game, from its boards; ValueError if no legal move leads on."""
    if any(boards[0]):
        raise ValueError("go record: the first of the earlier boards must be empty")
    moves: list[int] = []
    for ply, (before, after) in enumerate(itertools.pairwise(boards)):
        colour = 1 - 2 * (ply % 2)
        added = [p for p, (old, new) in enumerate(zip(before, after, strict=True)) if old == 0 and new == colour]
        if before == after:
            moves.append(size * size)
        elif len(added) == 1 and board_after(before, added[0], colour, size) == after:
            moves.append(added[0])
        else:
            raise ValueError(f"go record: no move leads from earlier board {ply} to the one after it")
        if moves[-1] != size * size and after in boards[:ply]:
            raise ValueError(f"go record: move {ply + 1} brings back an earlier board against positional superko")
        if moves[-3:-1] == [size * size] * 2:
            raise ValueError("go record: the game goes on after two passes in a row")
    return moves


def _placing(board: list[int], turn: int) -> list[int]:
    """The fewest moves that make a board without captures: stones in order of points. The colour with too few of them
    passes first, so that no pass is the last move where a stone can be."""
    black, white = ([p for p, cell in enumerate(board) if cell == colour] for colour in (1, -1))
    rounds = max(len(black), len(white)) if turn == 1 else max(len(black) - 1, len(white))
    passing = lambda side, count: [len(board)] * (count - len(side)) + side
    moves = [0] * (2 * rounds + (turn == -1))
    moves[::2], moves[1::2] = passing(black, rounds + (turn == -1)), passing(white, rounds)
    return moves


def to_record(s: State | Observed, komi: float = 7.5, ko: str = "simple") -> dict[str, Any]:
    """JSON-ready record: `board` point by point (1 black, -1 white, 0 empty), `to_move` 1 or -1.

    With positional superko, `earlier` lists the boards before each move, the empty board first. `Observed` has none of
    the fields after `to_move`. `forfeit` is present only after a forfeit.
    """
    size, turn = s.stones.shape[-1], 1 - 2 * int(s.to_move)
    record = {"size": size, "komi": komi, "ko": ko, "board": cells_of(s.stones).tolist(), "to_move": turn}
    if isinstance(s, Observed):
        return record
    record |= {"passes": int(s.passes), "plies": int(s.plies), "ko_point": int(s.ko)}
    if s.memory is not None:
        record["earlier"] = _boards(np.asarray(s.memory.moves)[: int(s.plies)].tolist(), size)[:-1]
    return records.with_forfeit(record, s.forfeit)


def from_record(record: dict[str, Any]) -> State:
    """Position of a record, of any size and ko rule; the komi is not part of a position.

    `passes`, `plies`, `ko_point` and `earlier` may be omitted together. The stones then count as placed one by one in
    order of points, after passes by the colour that has fewer of them.

    Raises:
        ValueError: a field is missing, unknown or out of range, or the position cannot occur; the message says which.
    """
    ko = record.get("ko") if isinstance(record, dict) else None
    brief = ("size", "komi", "ko", "board", "to_move")
    full = (*brief, "passes", "plies", "ko_point", *(("earlier",) if ko == "psk" else ()))
    records.fields("go", record, brief, full)
    if ko not in ("simple", "psk"):
        raise ValueError(f"go record: ko: expected 'simple' or 'psk', got {ko!r}")
    size = records.whole("go", "size", record["size"], SMALLEST, LARGEST)
    board = records.cells("go", "board", record["board"], size * size)
    to_move = records.turn("go", record)
    chain, atari = _settled(board, size)
    rest = record if "plies" in record else record | _filled(board, record, size)
    plies, passes, point = _check_past(rest, board, size)
    turn = (1 - to_move) // 2
    forfeit = records.forfeit("go", record, turn, lambda: passes == 2 or plies == 2 * size * size)
    cells = np.array(board).reshape(size, size)
    return State(
        stones=to_rows(jnp.asarray(np.stack([cells > 0, cells < 0]))),
        chain=jnp.asarray(chain.reshape(size, size)),
        atari=to_rows(jnp.asarray(atari.reshape(size, size))),
        ko=jnp.int16(point),
        to_move=jnp.int8(turn),
        passes=jnp.int8(passes),
        plies=jnp.int16(plies),
        forfeit=jnp.int8(forfeit),
        memory=_read_memory(rest, board, size) if ko == "psk" else None,
    )


def _filled(board: list[int], record: dict[str, Any], size: int) -> dict[str, Any]:
    """The fields that a brief record omits."""
    moves = _placing(board, record["to_move"])
    passes = int(moves[-1:] == [size * size])
    return {"passes": passes, "plies": len(moves), "ko_point": -1, "earlier": _boards(moves, size)[:-1]}


def _check_past(record: dict[str, Any], board: list[int], size: int) -> tuple[int, int, int]:
    """`plies`, `passes` and `ko_point` of a record, which must fit the stones."""
    plies = records.whole("go", "plies", record["plies"], 0, 2 * size * size)
    passes = records.whole("go", "passes", record["passes"], 0, min(2, plies))
    point = records.whole("go", "ko_point", record["ko_point"], -1, size * size - 1)
    turn = record["to_move"]
    if plies % 2 != (turn == -1):
        raise ValueError(f"go record: after {plies} moves it is not the turn of {turn}")
    plays = {turn: plies // 2 - (passes == 2), -turn: (plies + 1) // 2 - (passes > 0)}
    if any(board.count(colour) > count for colour, count in plays.items()):
        raise ValueError(f"go record: {plies} moves, the last {passes} of them passes, are too few for the stones")
    if plies > passes and (turn if passes % 2 else -turn) not in board:
        raise ValueError("go record: the colour that made the last play has no stone")
    if point >= 0 and not (passes == 0 and _is_ko(board, point, turn, size)):
        raise ValueError(f"go record: the last move cannot have taken a ko at {point_name(point, size)}")
    return plies, passes, point


def _is_ko(board: list[int], point: int, turn: int, size: int) -> bool:
    """Whether one stone may just have taken one at `point`, so that `turn` could recapture exactly by playing there."""
    around = neighbours_of(size)[point]
    if board[point] or any(board[q] != -turn for q in around):
        return False
    chains = [_chain_at(board, q, neighbours_of(size)) for q in around]
    takers = [stones for stones, liberties in chains if liberties == {point}]
    return len(takers) == 1 and len(takers[0]) == 1


def _read_memory(record: dict[str, Any], board: list[int], size: int) -> Memory:
    """Memory of a record; the other fields must agree with the game given by `earlier`."""
    earlier, plies, turn = record["earlier"], record["plies"], record["to_move"]
    if not isinstance(earlier, list) or len(earlier) != plies:
        raise ValueError(f"go record: earlier must list the {plies} boards before this one")
    boards = [*(records.cells("go", "earlier board", cells, size * size) for cells in earlier), board]
    moves = _moves_between(boards, size)
    last = next((i for i, point in enumerate(reversed(moves)) if point != size * size), plies)
    if last != record["passes"]:
        raise ValueError(f"go record: after the earlier boards passes must be {last}")
    gone = [p for p, cell in enumerate(boards[-2]) if cell and not board[p]] if plies else []
    ko = gone[0] if len(gone) == 1 and _is_ko(board, gone[0], turn, size) else -1
    if ko != record["ko_point"]:
        raise ValueError(f"go record: after the earlier boards ko_point must be {ko}")
    stones = np.array(earlier, np.int8).reshape(plies, 1, 1, size, size) == np.array([1, -1]).reshape(2, 1, 1)
    later = 2 * size * size - plies
    hashes = np.where(stones, stone_keys(size), np.uint32(0)).sum((2, 3, 4), np.uint32).T
    played = np.array(moves + [size * size] * later, np.int16)
    return Memory(jnp.asarray(played), jnp.asarray(np.pad(hashes, ((0, 0), (0, later)))))
