"""Games of Go as SGF, the exchange format of Go programs, through sgfmill.

Only the main line is read, without comments and variations. A handicap is given by set-up stones alone; the score gets
no compensation for it.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
from sgfmill import sgf
from sgfmill.sgf import Tree_node

from envs import go
from envs.game import Game
from envs.saved import Saved

LARGEST_FILE = 2**20  # bytes
COLOURS = "bw"  # by player
RESIGNED = re.compile(r"\s*([BW])\+R(esign)?\s*", re.IGNORECASE)  # the winner, where the other player resigned


@dataclasses.dataclass(frozen=True)
class Kifu:
    """A game of an SGF file."""

    size: int
    komi: float | None
    stones: tuple[frozenset[int], frozenset[int]]  # points set up for Black and White
    first: int  # player to move
    moves: tuple[tuple[int, int], ...]  # player and action; a player may move twice in a row
    resigned: int | None = None  # player who resigned after `moves`


def read_sgf(data: bytes) -> Kifu:
    """The first game of a file.

    Raises:
        ValueError: not SGF, an unsupported board, or stones set up in the middle of the game.
    """
    if len(data) > LARGEST_FILE:
        raise ValueError(f"SGF: a file has at most {LARGEST_FILE} bytes")
    try:
        game = sgf.Sgf_game.from_bytes(data)
        size, root = game.get_size(), game.get_root()
        if root.has_property("GM") and root.get("GM") != 1:
            raise ValueError(f"game number {root.get('GM')}; Go has number 1")
        if not go.SMALLEST <= size <= go.LARGEST:
            raise ValueError(f"a board of {size} lines; known are {go.SMALLEST} to {go.LARGEST}")
        komi = _komi(root)
        black, white, _ = root.get_setup_stones()
        moves: list[tuple[int, int]] = []
        for node in game.get_main_sequence():
            if (move := _move(node, size, node is root, len(moves) + 1)) is not None:
                moves.append(move)
        first = _first(root, moves)
        won = RESIGNED.fullmatch(root.get("RE")) if root.has_property("RE") else None
    except (ValueError, LookupError, RecursionError) as error:  # an unknown encoding, or one that is none of text
        raise ValueError(f"SGF: {error}") from None
    number = lambda points: frozenset((size - 1 - row) * size + col for row, col in points)
    resigned = None if won is None else 1 - COLOURS.index(won[1].lower())
    return Kifu(size, komi, (number(black), number(white)), first, tuple(moves), resigned)


def _komi(root: Tree_node) -> float | None:
    if not root.has_property("KM"):
        return None
    try:
        return root.get("KM")
    except ValueError:
        raise ValueError(f"the komi is not a number: {_quoted(root, 'KM')}") from None


def _first(root: Tree_node, moves: list[tuple[int, int]]) -> int:
    """Who is to move: as the file says, by the first move, or White after handicap stones."""
    if root.has_property("PL"):
        return COLOURS.index(root.get("PL"))
    if moves:
        return moves[0][0]
    return int(root.has_property("HA") and root.get("HA") > 1 and bool(root.get_setup_stones()[0]))


def _quoted(node: Tree_node, name: str) -> str:
    """A property as it stands in the file, shortened."""
    return f"{name}[{node.get_raw(name)[:20].decode('utf-8', 'replace')}]"


def _move(node: Tree_node, size: int, is_root: bool, number: int) -> tuple[int, int] | None:
    """Player and action of a node, which is the move `number`; None for a node without a move."""
    if node.has_setup_stones() and not is_root:
        raise ValueError(f"stones are set up in the middle of the game, before move {number}")
    try:
        colour, point = node.get_move()
    except ValueError:
        wrong = "B" if node.has_property("B") else "W"
        raise ValueError(f"move {number}: no point of this board: {_quoted(node, wrong)}") from None
    if colour is None:
        return None
    return COLOURS.index(colour), size * size if point is None else (size - 1 - point[0]) * size + point[1]


def set_up(game: Game, stones: tuple[frozenset[int], frozenset[int]], first: int) -> Any:
    """The position with these stones and no history, with player `first` to move.

    Raises:
        ValueError: the position cannot occur.
    """
    record = game.to_record(game.init())
    board = [(p in stones[0]) - (p in stones[1]) for p in range(record["size"] ** 2)]
    if not any(board) and first == 0:
        return game.init()
    kept = {name: record[name] for name in ("size", "komi", "ko")}
    return game.from_record(kept | {"board": board, "to_move": 1 - 2 * first})


def start_from_sgf(game: Game, data: bytes) -> Saved:
    """The game of a file. Two passes end the game, so a resignation after them is ignored.

    Raises:
        ValueError: not SGF, another board or komi, or a player who moves twice in a row.
    """
    if not game.name.startswith("go:"):
        raise ValueError("SGF is for games of Go; save with another name than .sgf")
    kifu, own = read_sgf(data), game.to_record(game.init())
    komi = own["komi"] if kifu.komi is None else kifu.komi
    if (kifu.size, komi) != (own["size"], own["komi"]):
        raise ValueError(f"this game is one of --env=go:size={kifu.size},komi={komi:g}, not of {game.name}")
    wrong = next((i for i, (player, _) in enumerate(kifu.moves) if player != (kifu.first + i) % 2), None)
    if wrong is not None:
        raise ValueError(f"SGF: at move {wrong + 1} it is not the turn of {('Black', 'White')[kifu.moves[wrong][0]]}")
    names = [game.action_name(action) for _, action in kifu.moves]
    return Saved(set_up(game, kifu.stones, kifu.first), names, None if names[-2:] == ["pass"] * 2 else kifu.resigned)


def write_sgf(game: Game, start: Any, moves: list[tuple[int, int]], result: str | None = None) -> str:
    """A game as the text of a file. `moves` are those of `Kifu`, and `result` is like `B+3.5`, if there is one.

    Raises:
        ValueError: the game is not Go.
    """
    if not game.name.startswith("go:"):
        raise ValueError("SGF is for games of Go; save with another name than .sgf")
    record = game.to_record(start)
    size, board = record["size"], record["board"]
    place = lambda p: (size - 1 - p // size, p % size)
    file = sgf.Sgf_game(size=size, encoding="UTF-8")
    root = file.get_root()
    root.set("KM", record["komi"])
    root.set("RU", "Chinese")
    root.set("AP", ("ripzero", "1"))
    if result is not None:
        root.set("RE", result)
    black, white = ({place(p) for p, cell in enumerate(board) if cell == colour} for colour in (1, -1))
    if black or white or record["to_move"] == -1:
        root.set_setup_stones(black, white)
        root.set("PL", COLOURS[record["to_move"] == -1])
    for player, action in moves:
        file.extend_main_sequence().set_move(COLOURS[player], None if action == size * size else place(action))
    return file.serialise().decode()


def of_game(game: Game, states: list[Any], actions: list[int], resigned: int | None = None) -> str:
    """The text of a game from its positions and the actions between them. The result is included once the game is over,
    also by resignation.

    Raises:
        ValueError: the game is not Go.
    """
    moves = [(int(game.player(state)), action) for state, action in zip(states, actions, strict=False)]
    result = None
    if resigned is not None:
        result = f"{COLOURS[1 - resigned].upper()}+R"
    elif game.name.startswith("go:") and not np.asarray(game.mask(states[-1])).any():
        result = score(states[-1], game.to_record(states[-1])["komi"])
    return write_sgf(game, states[0], moves, result)


def score(state: Any, komi: float) -> str:
    """The area score of a position, with all stones alive: `B+3.5`, `W+0.5` or `0`."""
    black, white = (int(x) for x in go.area(getattr(state, "now", state)))
    margin = black - white - komi
    return f"{'B' if margin > 0 else 'W'}+{abs(margin):g}" if margin else "0"
