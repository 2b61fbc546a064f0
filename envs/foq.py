"""Flight of Queen, the double game: two queens slide and rip every square they cross; who cannot move loses.

A move slides the mover's queen over unripped squares and may not end on a square that the other queen reaches; both are
judged on the position before the move. Everything is a matrix of the board's shape, and the board array carries its own
size. Squares are numbered row by row from the top left:

      0  1  2 ...  8        named  a8 b8 c8 ... i8
      9 10 11 ... 17               a7 b7 c7 ... i7
      :            :                :            :
     63 64 65 ... 71               a1 b1 c1 ... i1

Any number of queens is understood by `State`, `reach`, `rip` and `observe`; the rules of `step` are those of two.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from envs.game import Array, Game, Symmetry, forfeit_rewards, rectangle_turns, with_history

LARGEST = len(string.ascii_lowercase)  # columns are named by letters
ARTICLE_BOARDS = 4  # boards of history in the article's observation


class State(NamedTuple):
    ripped: Array  # bool[R, C], squares that are gone, those under the queens included
    queens: Array  # int16[n], square of each queen
    to_move: Array  # int8[], player to move
    forfeit: Array  # int8[], player who made an illegal move, -1 for none


# Tables


@functools.lru_cache(maxsize=8)
def _crossed(rows: int, cols: int) -> np.ndarray:
    """uint32[S, W, S]: word w of the set of squares that a slide from q to t enters is `[q, w, t]`.

    Sets are bits in W words. Where no slide leads from q to t, the set is the one spare bit after the last square,
    which `_pack` always sets, so that such a slide counts as blocked.
    """
    size = rows * cols
    crossed = np.zeros((size, size, (size // 32 + 1) * 32), bool)
    crossed[:, :, size] = True
    for q in range(size):
        for dr, dc in ((a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b):
            row, col = q // cols + dr, q % cols + dc
            path: list[int] = []
            while 0 <= row < rows and 0 <= col < cols:
                path.append(row * cols + col)
                crossed[q, path[-1], path] = True
                crossed[q, path[-1], size] = False
                row, col = row + dr, col + dc
    words = crossed.reshape(size, size, -1, 32).astype(np.uint32) << np.arange(32, dtype=np.uint32)
    return np.ascontiguousarray(words.sum(-1, dtype=np.uint32).transpose(0, 2, 1))


def _most_targets(rows: int, cols: int) -> int:
    """Targets of a queen on the best square of an empty board: no position has more legal moves."""
    spare = np.uint32(1) << np.uint32(rows * cols % 32)
    return int((_crossed(rows, cols)[:, -1] != spare).sum(-1).max())


def _pack(board: Array) -> Array:
    """The board bool[R, C] as bits in uint32[W], with the spare bit set."""
    size = board.size
    bits = jnp.concatenate([board.ravel(), jnp.arange(size // 32 * 32 + 32 - size) == 0]).reshape(-1, 32)
    return jnp.sum(jnp.where(bits, jnp.uint32(1) << jnp.arange(32, dtype=jnp.uint32), 0), axis=-1, dtype=jnp.uint32)


# Rules


def init(rows: int = 8, cols: int = 9, starts: Sequence[tuple[int, int]] | None = None) -> State:
    """Start position; `starts` are (row, col) in player order, by default top left and bottom right.

    Raises:
        ValueError: sides not from 1 to 26, or starting squares that are off the board or not distinct.
    """
    if not (1 <= rows <= LARGEST and 1 <= cols <= LARGEST):
        raise ValueError(f"foq: a board has 1 to {LARGEST} rows and columns, not {rows} x {cols}")
    starts = [(0, 0), (rows - 1, cols - 1)] if starts is None else [(int(r), int(c)) for r, c in starts]
    if any(not (0 <= r < rows and 0 <= c < cols) for r, c in starts) or len(set(starts)) < len(starts):
        raise ValueError(f"foq: starting squares must be distinct and on the {rows} x {cols} board, not {starts}")
    queens = np.array([r * cols + c for r, c in starts], np.int16)
    ripped = np.isin(np.arange(rows * cols), queens).reshape(rows, cols)
    return State(jnp.asarray(ripped), jnp.asarray(queens), jnp.int8(0), jnp.int8(-1))


def reach(ripped: Array, square: Array | int) -> Array:
    """bool[R, C]: unripped squares to which a queen on `square` could slide."""
    crossed, words = jnp.asarray(_crossed(*ripped.shape))[square], _pack(ripped)
    hits = functools.reduce(jnp.bitwise_or, (crossed[w] & words[w] for w in range(len(words))))
    return (hits == 0).reshape(ripped.shape)


def rip(ripped: Array, start: Array | int, target: Array | int) -> Array:
    """The board after a slide from `start` to `target`, which rips every square it enters."""
    crossed = jnp.asarray(_crossed(*ripped.shape))[start, :, target]
    bits = crossed[:, None] >> jnp.arange(32, dtype=jnp.uint32) & 1
    return ripped | (bits.ravel()[: ripped.size] == 1).reshape(ripped.shape)


def attacked(s: State) -> Array:
    """bool[R, C]: squares that some queen other than the mover's reaches."""
    n = s.queens.shape[0]
    return functools.reduce(jnp.logical_or, (reach(s.ripped, s.queens[(s.to_move + i) % n]) for i in range(1, n)))


def _targets(s: State) -> Array:
    """bool[R, C]: where the mover's queen may stop, whether or not the game is over."""
    return reach(s.ripped, s.queens[s.to_move]) & ~attacked(s)


def mask(s: State) -> Array:
    """bool[A], legal targets."""
    return _targets(s).ravel() & (s.forfeit < 0)


def over(s: State) -> Array:
    """bool[]: the player to move is stuck, or someone forfeited."""
    return ~mask(s).any()


def player(s: State) -> Array:
    return s.to_move.astype(jnp.int32)


def move(s: State, action: Array | int) -> State:
    """Position after a legal action."""
    mine = jnp.arange(s.queens.shape[0]) == s.to_move
    return s._replace(
        ripped=rip(s.ripped, s.queens[s.to_move], action),
        queens=jnp.where(mine, jnp.asarray(action, jnp.int16), s.queens),
        to_move=1 - s.to_move,
    )


def step(s: State, action: Array | int) -> State:
    """Position after any action: an illegal one forfeits, and a finished game stays as it is."""
    targets = mask(s)
    legal = (targets & (jnp.arange(targets.size) == action)).any()
    moved = move(s, jnp.where(legal, action, 0))
    forfeit = jnp.where(targets.any() & ~legal, s.to_move, s.forfeit)
    return State(*(jnp.where(legal, new, old) for new, old in zip(moved, s, strict=True)))._replace(forfeit=forfeit)


def rewards(s: State) -> Array:
    """float32[2]: the stuck player, or the one who forfeited, loses."""
    return jnp.where(over(s), forfeit_rewards(jnp.where(s.forfeit < 0, s.to_move, s.forfeit), 2), 0.0)


# Observations


def observe(s: State) -> Array:
    """float32[R, C, 5], for the mover: ripped, own queen, other queen, own legal targets, squares the other reaches.

    With more queens there is one plane for each other queen, in turn order from the mover.
    """
    n = s.queens.shape[0]
    squares = jnp.arange(s.ripped.size).reshape(s.ripped.shape)
    seats = [squares == s.queens[(s.to_move + i) % n] for i in range(n)]
    return jnp.stack([s.ripped, *seats, _targets(s), attacked(s)], axis=-1).astype(jnp.float32)


def _observe_article(s: State, past: State, played: Array) -> Array:
    """float32[R, C, 6], the article's planes: four boards (-1 on ripped squares), oldest first; the mover's queen
    +1 and the others -1; squares the mover reaches minus those that others reach."""
    del played  # boards from before the start repeat the first one
    squares = jnp.arange(s.ripped.size).reshape(s.ripped.shape)
    queens = sum(jnp.where(i == s.to_move, 1, -1) * (squares == q) for i, q in enumerate(s.queens))
    reached = reach(s.ripped, s.queens[s.to_move]).astype(jnp.float32) - attacked(s)
    boards = jnp.concatenate([past.ripped[::-1], s.ripped[None]])
    return jnp.stack([*(-boards.astype(jnp.float32)), queens, reached], axis=-1).astype(jnp.float32)


def symmetries(rows: int, cols: int) -> tuple[Symmetry, ...]:
    """The symmetries of the rectangle; each turns board, queens and actions alike."""

    def symmetry(turn):
        state = lambda s: s._replace(ripped=turn.grid(s.ripped), queens=jnp.asarray(turn.squares, jnp.int16)[s.queens])
        return Symmetry(turn.name, turn.squares, turn.grid, state)

    return tuple(symmetry(turn) for turn in rectangle_turns(rows, cols))


def mobility(s: State) -> Array:
    """float32[] in [-1, 1]: the mover's reachable squares against the other queen's; the exact result once over."""
    mine = reach(s.ripped, s.queens[s.to_move]).sum()
    others = attacked(s).sum()
    share = (mine - others) / jnp.maximum(mine + others, 1)
    return jnp.where(over(s), rewards(s)[s.to_move], share * 0.99).astype(jnp.float32)


# For people


def square_name(square: int, rows: int, cols: int) -> str:
    return f"{string.ascii_lowercase[square % cols]}{rows - square // cols}"


def parse_square(text: str, rows: int, cols: int) -> int:
    """Inverse of `square_name`; ValueError when there is no such square."""
    names = {square_name(i, rows, cols): i for i in range(rows * cols)}
    if text.strip().lower() not in names:
        last = square_name(cols - 1, rows, cols)
        raise ValueError(f"no square '{text}': want a column and a row, a1 to {last}")
    return names[text.strip().lower()]


def show(s: State) -> str:
    """Text picture: A and B queens, # ripped, . empty, * legal targets, with the player to move below."""
    rows, cols = s.ripped.shape
    cells = np.where(np.asarray(s.ripped), "#", np.where(np.asarray(mask(s)).reshape(rows, cols), "*", "."))
    for name, square in zip(string.ascii_uppercase, np.asarray(s.queens), strict=False):
        cells[square // cols, square % cols] = name
    lines = [f"{rows - r:2d}  {' '.join(row)}" for r, row in enumerate(cells)]
    return "\n".join([*lines, "    " + " ".join(string.ascii_lowercase[:cols]), _status(s)])


def _status(s: State) -> str:
    if bool(over(s)):
        winner = string.ascii_uppercase[int(np.argmax(np.asarray(rewards(s))))]
        return f"{winner} wins"
    return f"{string.ascii_uppercase[int(s.to_move)]} to move"


def svg(s: State, cell: int = 48) -> str:
    """Picture as an SVG document; `cell` is the side of a square in pixels."""
    rows, cols = s.ripped.shape
    ripped, legal = np.asarray(s.ripped), np.asarray(mask(s)).reshape(rows, cols)
    left, top, width, height = cell // 2, 4, cols * cell, rows * cell
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + left + 4} {height + top + left}" '
        f'width="{width + left + 4}" height="{height + top + left}" font-family="sans-serif" text-anchor="middle">'
        f"<title>Flight of Queen, {_status(s)}</title>"
        f'<rect width="100%" height="100%" fill="#f7f3ea"/>'
    ]
    for r in range(rows):
        for c in range(cols):
            x, y = left + c * cell, top + r * cell
            fill = "#3a4048" if ripped[r, c] else ("#e9dcc0", "#d9c8a3")[(r + c) % 2]
            out.append(f'<rect x="{x}" y="{y}" width="{cell}" height="{cell}" fill="{fill}" stroke="#f7f3ea"/>')
            if legal[r, c]:
                middle = f'cx="{x + cell / 2}" cy="{y + cell / 2}"'
                out.append(f'<circle {middle} r="{cell / 8}" fill="#2f7d4f" fill-opacity="0.75"/>')
    for i, square in enumerate(np.asarray(s.queens)):
        x, y = left + square % cols * cell + cell / 2, top + square // cols * cell + cell / 2
        colour, ring = ("#f5f5f5", "#d0473c", "#4f86c6", "#c9a227")[i % 4], "#2f7d4f" if i == s.to_move else "#3a4048"
        out.append(
            f'<circle cx="{x}" cy="{y}" r="{cell * 0.4}" fill="{colour}" stroke="{ring}" stroke-width="3"/>'
            f'<text x="{x}" y="{y + cell * 0.17}" font-size="{cell * 0.5}" fill="#20242a">♛</text>'
        )
    label = f'font-size="{cell * 0.27}" fill="#6b6255"'
    for r in range(rows):
        out.append(f'<text x="{left / 2}" y="{top + (r + 0.6) * cell}" {label}>{rows - r}</text>')
    for c in range(cols):
        place = f'x="{left + (c + 0.5) * cell}" y="{top + height + left * 0.7}"'
        out.append(f"<text {place} {label}>{string.ascii_lowercase[c]}</text>")
    return "".join(out) + "</svg>"


# Records


def to_record(s: State) -> dict[str, Any]:
    """JSON-ready record; `forfeit` stands in it only when somebody did."""
    rows, cols = s.ripped.shape
    record = {
        "variant": "foq",
        "rows": rows,
        "cols": cols,
        "ripped": np.flatnonzero(np.asarray(s.ripped)).tolist(),
        "queens": np.asarray(s.queens).tolist(),
        "to_move": int(s.to_move),
    }
    return record | ({"forfeit": int(s.forfeit)} if s.forfeit >= 0 else {})


def from_record(record: dict[str, Any]) -> State:
    """Position of a record.

    Raises:
        ValueError: a field is missing, unknown or out of range, or the position cannot occur; the message says which.
    """
    if not isinstance(record, dict):
        raise ValueError("foq record: want an object with named fields")
    known = {"variant", "rows", "cols", "ripped", "queens", "to_move"}
    if not known <= set(record) <= known | {"forfeit"}:
        raise ValueError(f"foq record: want the fields {sorted(known)} and perhaps forfeit, not {sorted(record)}")
    if record["variant"] != "foq":
        raise ValueError(f"foq record: variant is '{record['variant']}', not 'foq'")
    rows, cols = (_whole(record[k], 1, LARGEST, k) for k in ("rows", "cols"))
    ripped, queens = (_squares(record[k], rows * cols, k) for k in ("ripped", "queens"))
    if len(queens) != 2 or not set(queens) <= set(ripped):
        raise ValueError("foq record: want two queens on different squares, both of them ripped")
    turn, forfeit = _whole(record["to_move"], 0, 1, "to_move"), _whole(record.get("forfeit", -1), -1, 1, "forfeit")
    if forfeit not in (-1, turn):
        raise ValueError(f"foq record: player {forfeit} cannot have forfeited at the turn of player {turn}")
    board = jnp.asarray(np.isin(np.arange(rows * cols), ripped).reshape(rows, cols))
    s = State(board, jnp.asarray(queens, jnp.int16), jnp.int8(turn), jnp.int8(forfeit))
    if forfeit >= 0 and not _targets(s).any():
        raise ValueError("foq record: nobody can have forfeited, as the game is over without it")
    return s


def _whole(value: Any, low: int, high: int, field: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ValueError(f"foq record: {field} must be a whole number from {low} to {high}, not {value!r}")
    return value


def _squares(value: Any, size: int, field: str) -> list[int]:
    if not isinstance(value, list):
        raise ValueError(f"foq record: {field} must be a list of squares")
    squares = [_whole(v, 0, size - 1, field) for v in value]
    if len(set(squares)) < len(squares):
        raise ValueError(f"foq record: {field} names a square twice")
    return squares


# The record that the engine sees


def make(rows: int = 8, cols: int = 9, planes: str = "plain") -> Game:
    """Flight of Queen with two queens in opposite corners of a board of `rows` x `cols`.

    `planes` is `plain`, see `observe`, or `article`: the six planes of the article, with four boards of history.

    Raises:
        ValueError: unknown planes, or a board so small that the first player cannot move.
    """
    if planes not in ("plain", "article"):
        raise ValueError(f"foq: unknown planes '{planes}'; known: plain, article")
    if min(rows, cols) < 2 or rows * cols < 8:
        raise ValueError(f"foq: a board of {rows} x {cols} is too small to play on; want 2 x 4 squares or more")
    init(rows, cols)  # refuses boards that are too large

    def from_own_record(record: dict[str, Any]) -> State:
        s = from_record(record)
        if s.ripped.shape != (rows, cols):
            size = " x ".join(map(str, s.ripped.shape))
            raise ValueError(f"foq record: the board is {size}, not {rows} x {cols}")
        return s

    def action_name(action: int) -> str:
        return square_name(int(action), rows, cols)

    game = Game(
        name=f"foq:rows={rows},cols={cols}" + ("" if planes == "plain" else f",planes={planes}"),
        num_players=2,
        num_actions=rows * cols,
        max_plies=rows * cols - 2,  # every move rips a square, and two are ripped from the start
        max_legal=_most_targets(rows, cols),
        init=lambda key=None: init(rows, cols),
        step=step,
        move=move,
        mask=mask,
        over=over,
        player=player,
        rewards=rewards,
        observe=observe,
        symmetries=symmetries(rows, cols),
        evaluate=mobility,
        show=show,
        svg=svg,
        action_name=action_name,
        parse_action=lambda text: parse_square(text, rows, cols),
        to_record=to_record,
        from_record=from_own_record,
    )
    return game if planes == "plain" else with_history(game, ARTICLE_BOARDS, _observe_article)
