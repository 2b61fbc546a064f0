"""Flight of Queen, the double game: two queens slide and rip all squares they cross; a player who cannot move loses.

A move slides the mover's queen over unripped squares. It may not end on a square that the other queen reaches. Both
conditions refer to the position before the move. Board arrays have the board's shape, which is the only record of its
size. Squares are numbered row by row from the top left:

      0  1  2 ...  8        named  a8 b8 c8 ... i8
      9 10 11 ... 17               a7 b7 c7 ... i7
      :            :                :            :
     63 64 65 ... 71               a1 b1 c1 ... i1

The single and the multi game (`foq_single`, `foq_multi`) build on this file. The rules of "every form" accept any
number of queens. The rules of the double game also serve the single game, except for its result.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from envs import foq_theory, pictures, records
from envs.game import (
    Array,
    Game,
    Hints,
    Step,
    Symmetry,
    board_view,
    forfeit_rewards,
    forfeit_words,
    rectangle_turns,
    with_history,
)
from envs.pictures import PAPER, Layer, Picture

CELL = 48  # of the picture
LARGEST = len(string.ascii_lowercase)  # columns are named by letters
ARTICLE_BOARDS = 4  # boards of history in the article's observation
SEATS = ("White", "Red", "Blue", "Gold")  # colours of the queens in pictures
MARKED = ("White (A)", "Red (B)", "Blue (C)", "Gold (D)")  # in text
SIGNS = "# ripped, * legal target, . free"  # in text, beside the letters of the queens
LESSON_BOARD = "foq:rows=5,cols=5"
LESSON = (
    Step(
        "Each player has a queen, and White begins. A queen slides any distance in a straight line, like in chess. The "
        "dots show where White may go.",
        board=LESSON_BOARD,
    ),
    Step(
        "A queen may cross a square that the other queen attacks, but she may not stop there. White on b5 attacks e2, "
        "so Red may cross e2 on the way to e3 or e4, but not stop on it.",
        ("b5",),
        LESSON_BOARD,
    ),
    Step(
        "All squares that a queen crosses are ripped for good, and so are those where she stops. No queen enters or "
        "crosses a ripped square. Red has gone from e1 to e3, and White from b5 to b1.",
        ("b5", "e3", "b1"),
        LESSON_BOARD,
    ),
    Step(
        "A player who cannot move loses. Here White has lost: all squares that she still reaches are attacked by Red.",
        ("b5", "e3", "b1", "e5", "c1", "d5", "c2", "d4"),
        LESSON_BOARD,
    ),
)


class State(NamedTuple):
    ripped: Array  # bool[R, C], ripped squares, including those under the queens
    queens: Array  # int16[n], square of each queen
    to_move: Array  # int8[], player to move
    forfeit: Array  # int8[], player who made an illegal move, -1 for none


# Tables


@functools.lru_cache(maxsize=8)
def _crossed(rows: int, cols: int) -> np.ndarray:
    """uint32[S, W, S]: word w of the set of squares that a slide from q to t enters is `[q, w, t]`.

    Sets are bits in W words. If no slide leads from q to t, the set is the spare bit after the last square. `_pack`
    always sets this bit, so such a slide counts as blocked.
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
    """Targets of a queen on the best square of an empty board; no position has more legal moves."""
    spare = np.uint32(1) << np.uint32(rows * cols % 32)
    return int((_crossed(rows, cols)[:, -1] != spare).sum(-1).max())


def _pack(board: Array) -> Array:
    """The board bool[R, C] as bits in uint32[W], with the spare bit set."""
    size = board.size
    bits = jnp.concatenate([board.ravel(), jnp.arange(size // 32 * 32 + 32 - size) == 0]).reshape(-1, 32)
    return jnp.sum(jnp.where(bits, jnp.uint32(1) << jnp.arange(32, dtype=jnp.uint32), 0), axis=-1, dtype=jnp.uint32)


# Rules of every form; `s` is a state of any form


def corners(rows: int, cols: int, count: int) -> list[tuple[int, int]]:
    """Usual starting squares of up to four queens: top left, bottom right, top right, bottom left."""
    return [(0, 0), (rows - 1, cols - 1), (0, cols - 1), (rows - 1, 0)][:count]


def init(rows: int = 8, cols: int = 9, starts: Sequence[tuple[int, int]] | None = None) -> State:
    """Start position; `starts` are (row, col) in player order, by default top left and bottom right.

    Raises:
        ValueError: sides not from 1 to 26, or starting squares off the board or not distinct.
    """
    if not (1 <= rows <= LARGEST and 1 <= cols <= LARGEST):
        raise ValueError(f"foq: expected 1 to {LARGEST} rows and columns, got {rows} x {cols}")
    starts = [(int(r), int(c)) for r, c in (corners(rows, cols, 2) if starts is None else starts)]
    if any(not (0 <= r < rows and 0 <= c < cols) for r, c in starts) or len(set(starts)) < len(starts):
        raise ValueError(f"foq: expected different starting squares on the {rows} x {cols} board, got {starts}")
    queens = np.array([r * cols + c for r, c in starts], np.int16)
    ripped = np.isin(np.arange(rows * cols), queens).reshape(rows, cols)
    return State(jnp.asarray(ripped), jnp.asarray(queens), jnp.int8(0), jnp.int8(-1))


def reach(ripped: Array, square: Array | int) -> Array:
    """bool[R, C]: unripped squares to which a queen on `square` could slide."""
    words = _pack(ripped)
    # A row of numbers for each square: a TPU looks up rows, but takes parts of other arrays slowly.
    crossed = jnp.asarray(_crossed(*ripped.shape).reshape(ripped.size, -1))[square]
    parts = (crossed[w * ripped.size : (w + 1) * ripped.size] & words[w] for w in range(len(words)))
    return (functools.reduce(jnp.bitwise_or, parts) == 0).reshape(ripped.shape)


def rip(ripped: Array, start: Array | int, target: Array | int) -> Array:
    """The board after a slide from `start` to `target`, which rips every square it enters."""
    crossed = jnp.asarray(_crossed(*ripped.shape))[start, :, target]
    bits = crossed[:, None] >> jnp.arange(32, dtype=jnp.uint32) & 1
    return ripped | (bits.ravel()[: ripped.size] == 1).reshape(ripped.shape)


def own(s: Any) -> Array:
    """bool[n]: the queen that the player to move may slide; a single queen belongs to both players."""
    n = s.queens.shape[0]
    return jnp.arange(n) == (s.to_move if n > 1 else 0)


def reaches(s: Any) -> Array:
    """bool[n, R, C]: squares that each queen reaches."""
    return jnp.stack([reach(s.ripped, queen) for queen in s.queens])


def attacked(s: Any) -> Array:
    """bool[R, C]: squares that some queen other than the mover's reaches."""
    return (reaches(s) & ~own(s)[:, None, None]).any(0)


def targets(s: Any) -> Array:
    """bool[R, C]: squares where the mover's queen may stop, even if the game is over."""
    return (reaches(s) == own(s)[:, None, None]).all(0)


def slide(s: Any, action: Array | int, legal: Array | bool = True) -> Any:
    """The position after the mover's queen slides to `action` and rips its path; unchanged if not `legal`.

    `to_move` stays the same.
    """
    mine, target = own(s), jnp.where(legal, jnp.asarray(action), 0)
    torn = rip(s.ripped, jnp.where(mine, s.queens, 0).sum(), target)
    return s._replace(
        ripped=jnp.where(legal, torn, s.ripped),
        queens=jnp.where(mine & legal, target.astype(jnp.int16), s.queens),
    )


def judge(s: Any, action: Array | int, legal: Array) -> tuple[Array, Array]:
    """Whether `action`, in range or not, is among the `legal` ones, bool[A]; and `forfeit` after it."""
    allowed = (legal & (jnp.arange(legal.size) == action)).any()
    return allowed, jnp.where(legal.any() & ~allowed, s.to_move, s.forfeit)


def player(s: Any) -> Array:
    return s.to_move.astype(jnp.int32)


# Rules of the double game


def mask(s: State) -> Array:
    """bool[A], legal targets."""
    return targets(s).ravel() & (s.forfeit < 0)


def over(s: State) -> Array:
    """bool[]: the player to move is stuck, or someone forfeited."""
    return ~mask(s).any()


def move(s: State, action: Array | int) -> State:
    """Position after a legal action."""
    return slide(s, action)._replace(to_move=1 - s.to_move)


def step(s: State, action: Array | int) -> State:
    """Position after any action: an illegal action forfeits, and a finished game does not change."""
    legal, forfeit = judge(s, action, mask(s))
    return slide(s, action, legal)._replace(to_move=jnp.where(legal, 1 - s.to_move, s.to_move), forfeit=forfeit)


def rewards(s: State) -> Array:
    """float32[2]: the player who is stuck or forfeited loses."""
    return jnp.where(over(s), forfeit_rewards(jnp.where(s.forfeit < 0, s.to_move, s.forfeit), 2), 0.0)


# Observations


def observe(s: Any) -> Array:
    """float32[R, C, n + 3], for the mover: ripped, own queen, one plane per other queen in turn order, own legal
    targets, squares that others reach."""
    n = s.queens.shape[0]
    seats = foq_theory.places(s.queens[(s.to_move + jnp.arange(n)) % n], s.ripped.shape)
    return jnp.stack([s.ripped, *seats, targets(s), attacked(s)], axis=-1).astype(jnp.float32)


def _observe_article(s: Any, past: Any, played: Array) -> Array:
    """float32[R, C, 6], the article's planes: four boards (-1 on ripped squares), oldest first; the mover's queen
    +1 and the others -1; squares the mover reaches minus those that others reach."""
    del played  # boards before the start repeat the first one
    mine = own(s)[:, None, None]
    queens = jnp.where(mine, 1, -1) * foq_theory.places(s.queens, s.ripped.shape)
    reached = (reaches(s) & mine).any(0).astype(jnp.float32) - attacked(s)
    boards = jnp.concatenate([past.ripped[::-1], s.ripped[None]])
    return jnp.stack([*(-boards.astype(jnp.float32)), queens.sum(0), reached], axis=-1).astype(jnp.float32)


def symmetries(rows: int, cols: int) -> tuple[Symmetry, ...]:
    """The symmetries of the rectangle, applied alike to board, queens and actions."""

    def symmetry(turn):
        state = lambda s: s._replace(ripped=turn.grid(s.ripped), queens=jnp.asarray(turn.squares, jnp.int16)[s.queens])
        return Symmetry(turn.name, turn.squares, turn.grid, state)

    return tuple(symmetry(turn) for turn in rectangle_turns(rows, cols))


def lead(s: Any) -> Array:
    """float32[] between -1 and 1: the mover's reachable squares compared with the others'."""
    mine = (reaches(s) & own(s)[:, None, None]).sum()
    others = attacked(s).sum()
    return (mine - others) / jnp.maximum(mine + others, 1) * 0.99


def mobility(s: State) -> Array:
    """float32[] in [-1, 1]: the mover's `lead`; the exact result once the game is over."""
    return jnp.where(over(s), rewards(s)[s.to_move], lead(s)).astype(jnp.float32)


# For people


def square_name(square: int, rows: int, cols: int) -> str:
    return f"{string.ascii_lowercase[square % cols]}{rows - square // cols}"


def parse_square(text: str, rows: int, cols: int) -> int:
    """Inverse of `square_name`; ValueError if there is no such square."""
    names = {square_name(i, rows, cols): i for i in range(rows * cols)}
    if text.strip().lower() not in names:
        last = square_name(cols - 1, rows, cols)
        raise ValueError(f"no square '{text}': expected a column and a row, a1 to {last}")
    return names[text.strip().lower()]


def _path(start: int, target: int, cols: int) -> list[int]:
    """Squares that a slide enters, in order; empty if no straight line leads to `target`."""
    down, right = target // cols - start // cols, target % cols - start % cols
    far = max(abs(down), abs(right))
    if 0 not in (down, right) and abs(down) != abs(right):
        return []
    return [start + i * (down * cols + right) // far for i in range(1, far + 1)]


def why_illegal(s: Any, action: int, seats: Sequence[str]) -> str:
    """Why the mover's queen may not stop on `action`, in any form; "" if it may."""
    rows, cols = s.ripped.shape
    ripped, queens = np.asarray(s.ripped).ravel(), np.asarray(s.queens).tolist()
    name, mine = lambda square: square_name(square, rows, cols), int(np.argmax(own(s)))
    path = _path(queens[mine], action, cols)
    if ripped[action]:
        return f"{name(action)} holds a queen" if action in queens else f"{name(action)} is ripped"
    if not path:
        return f"{name(action)} is not in a straight line from {name(queens[mine])}"
    if ripped[path].any():
        return f"the way to {name(action)} is ripped at {name(path[int(np.argmax(ripped[path]))])}"
    ways = {seat: _path(queen, action, cols) for seat, queen in zip(seats, queens, strict=False)}
    attackers = [seat for i, (seat, way) in enumerate(ways.items()) if i != mine and way and not ripped[way].any()]
    return f"{name(action)} is attacked by {' and '.join(attackers)}" if attackers else ""


def why_over(s: State) -> str:
    """Why a double game is over."""
    return forfeit_words(SEATS, s.forfeit) or (f"{SEATS[int(s.to_move)]} cannot move" if over(s) else "")


def show(s: State) -> str:
    """Text picture: A and B queens, # ripped, . empty, * legal targets, with the player to move below."""
    return draw_text(s, mask(s), rewards(s), string.ascii_uppercase, MARKED)


def svg(s: State) -> str:
    """Picture as an SVG document."""
    return pictures.svg(picture(*s.ripped.shape, 2, SEATS[:2], mask, rewards), s)


def draw_text(s: Any, legal: Array, result: Array, letters: str, names: Sequence[str]) -> str:
    """Text picture of any form; `letters` has one letter per queen, `names` one name per player."""
    rows, cols = s.ripped.shape
    cells = np.where(np.asarray(s.ripped), "#", np.where(np.asarray(legal).reshape(rows, cols), "*", "."))
    for letter, square in zip(letters, np.asarray(s.queens), strict=False):
        cells[square // cols, square % cols] = letter
    lines = [f"{rows - r:2d}  {' '.join(row)}" for r, row in enumerate(cells)]
    words = pictures.standing(names[: result.size]).words
    return "\n".join([*lines, "    " + " ".join(string.ascii_lowercase[:cols]), words[int(_status(s, result))]])


def _status(s: Any, result: Array) -> Array:
    return pictures.standing_code((result != 0).any(), s.to_move, result)


@functools.cache
def picture(
    rows: int,
    cols: int,
    queens: int,
    seats: tuple[str, ...],
    mask: Callable[[Any], Array],
    rewards: Callable[[Any], Array],
) -> Picture:
    """The picture of any form. A queen is ringed if it may move, and pale if its player is out of the game."""
    owners = [f"{seat}'s queen" for seat in seats] if queens > 1 else ["the queen"]
    fills = "#e9dcc0", "#dccba6", "#3a4048"
    squares = tuple(pictures.square(CELL, f'fill="{fill}" stroke="{PAPER}"') for fill in fills)
    shapes = [_queen(i, mine, out) for i in range(queens) for out in (False, True) for mine in (False, True)]
    says = [words for owner in owners for words in (owner, owner, *[f"{owner}, out of the game"] * 2)]
    contents = Layer(("", "", *shapes), ("free", "ripped", *says))
    light = np.indices((rows, cols)).sum(0) % 2

    def look(s: Any) -> tuple[tuple[Array, ...], ...]:
        kinds = 2 + 4 * jnp.arange(s.queens.size) + 2 * jnp.asarray(getattr(s, "dropped", False)) + own(s)
        here = (foq_theory.places(s.queens, s.ripped.shape) * kinds[:, None, None]).max(0)
        square = jnp.where(s.ripped, 2, light)
        return (_status(s, rewards(s)),), (square, jnp.where(here > 0, here, s.ripped), mask(s))

    names = [square_name(i, rows, cols) for i in range(rows * cols)]
    letters, layers = string.ascii_lowercase[:cols], (Layer(squares), contents, pictures.legal(CELL / 8))
    numbers, status = range(rows, 0, -1), pictures.standing(seats)
    return pictures.board("Flight of Queen", names, letters, numbers, CELL, status, layers, look)


def _queen(number: int, moves: bool, out: bool) -> str:
    """A crown on a disc in its player's colour."""
    colour, ring = ("#f5f5f5", "#d0473c", "#4f86c6", "#c9a227")[number % 4], "#57b97e" if moves else "#20242a"
    disc = pictures.disc(CELL * 0.4, f'fill="{colour}" stroke="{ring}" stroke-width="3"')
    points = ((-24, 16), (-30, -12), (-14, 2), (-8, -20), (0, 0), (8, -20), (14, 2), (30, -12), (24, 16))
    crown = " ".join(f"{dx * CELL / 108:g},{dy * CELL / 108:g}" for dx, dy in points)
    base = pictures.rect(CELL * 0.444, CELL * 0.05, 'fill="#20242a"', y=CELL * 0.215)
    return f'<g opacity="{0.45 if out else 1}">{disc}<polygon points="{crown}" fill="#20242a"/>{base}</g>'


# Records


def to_record(s: Any, variant: str = "foq") -> dict[str, Any]:
    """JSON-ready record; `forfeit` is present only after a forfeit."""
    rows, cols = s.ripped.shape
    record = {
        "variant": variant,
        "rows": rows,
        "cols": cols,
        "ripped": np.flatnonzero(np.asarray(s.ripped)).tolist(),
        "queens": np.asarray(s.queens).tolist(),
        "to_move": int(s.to_move),
    }
    return records.with_forfeit(record, s.forfeit)


def from_record(record: dict[str, Any]) -> State:
    """Position of a record.

    Raises:
        ValueError: a field is missing, unknown or out of range, or the position cannot occur; the message says which.
    """
    return refuse_idle_forfeit(read_record(record, "foq", "two queens", lambda n: n == 2))


def read_record(
    record: Any, variant: str, wanted: str, right: Callable[[int], bool], extra: Sequence[str] = ()
) -> State:
    """Reads and checks the common part of the records of all forms.

    The number of queens must satisfy `right`, which messages call `wanted`. Fields in `extra` may be present and are
    ignored.
    """
    form = ("variant", "rows", "cols", "ripped", "queens", "to_move")
    records.fields(variant, record, form, perhaps=(*extra, "forfeit"))
    if record["variant"] != variant:
        raise ValueError(f"{variant} record: variant is '{record['variant']}', not '{variant}'")
    rows, cols = (records.whole(variant, k, record[k], 1, LARGEST) for k in ("rows", "cols"))
    ripped, queens = (distinct(variant, k, record[k], rows * cols) for k in ("ripped", "queens"))
    if not right(len(queens)) or not set(queens) <= set(ripped):
        raise ValueError(f"{variant} record: expected {wanted}, and every queen on a ripped square")
    players = max(len(queens), 2)  # a single queen has two players
    turn = records.whole(variant, "to_move", record["to_move"], 0, players - 1)
    forfeit = records.forfeit(variant, record, turn)
    board = jnp.asarray(np.isin(np.arange(rows * cols), ripped).reshape(rows, cols))
    return State(board, jnp.asarray(queens, jnp.int16), jnp.int8(turn), jnp.int8(forfeit))


def refuse_idle_forfeit(s: State, variant: str = "foq") -> State:
    """The same position; ValueError if the player who forfeited was already stuck."""
    if s.forfeit >= 0 and not targets(s).any():
        raise ValueError(f"{variant} record: nobody can have forfeited, as the game is over without it")
    return s


def distinct(variant: str, field: str, value: Any, size: int, what: str = "squares") -> list[int]:
    """Distinct whole numbers below `size`, else ValueError. Messages call them `what`."""
    if not isinstance(value, list):
        raise ValueError(f"{variant} record: {field}: expected a list of {what}")
    numbers = [records.whole(variant, field, v, 0, size - 1) for v in value]
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"{variant} record: {field} names one of the {what} twice")
    return numbers


# The `Game` record


def make(rows: int = 8, cols: int = 9, planes: str = "plain") -> Game:
    """Flight of Queen with two queens in opposite corners of a board of `rows` x `cols`.

    `planes` is `plain` (see `observe`) or `article`: the article's six planes, with four boards of history.

    Raises:
        ValueError: unknown planes, or a board so small that the first player cannot move.
    """
    if min(rows, cols) < 2 or rows * cols < 8:
        raise ValueError(f"foq: a board of {rows} x {cols} is too small to play on; expected 2 x 4 squares or more")
    return build(
        f"foq:rows={rows},cols={cols}",
        planes,
        init(rows, cols),
        num_players=2,
        init=lambda key=None: init(rows, cols),
        step=step,
        move=move,
        mask=mask,
        over=over,
        player=player,
        rewards=rewards,
        observe=observe,
        show=show,
        to_record=to_record,
        from_record=from_record,
        hints=Hints(evaluate=mobility, known_result=foq_theory.known_result, canonical=foq_theory.canonical),
        about=__doc__,
        seats=SEATS[:2],
        legend=f"A White's queen, B Red's queen, {SIGNS}",
        lesson=LESSON,
        why_over=why_over,
    )


def build(
    name: str,
    planes: str,
    start: Any,
    from_record: Callable[[dict[str, Any]], Any],
    about: str | None,
    seats: tuple[str, ...],
    legend: str,
    lesson: tuple[Step, ...],
    why_over: Callable[[Any], str],
    **rules: Any,
) -> Game:
    """The `Game` record of one form, from its own `rules` and the parts that all forms share.

    Args:
        name: spec with all options except `planes`.
        planes: `plain` or `article`.
        start: a position that gives the board and the number of queens.
        from_record: reader for any board and number of queens.
        about: text whose first line is `View.about`.
        seats: names of the players.
        legend, lesson, why_over: as in `View`.
        rules: the remaining fields of `Game`.
    """
    form, (rows, cols), queens = name.partition(":")[0], start.ripped.shape, len(start.queens)
    if planes not in ("plain", "article"):
        raise ValueError(f"{form}: unknown planes '{planes}'; known: plain, article")

    def from_own_record(record: dict[str, Any]) -> Any:
        s = from_record(record)
        if s.ripped.shape != (rows, cols):
            size = " x ".join(map(str, s.ripped.shape))
            raise ValueError(f"{form} record: expected a board of {rows} x {cols}, got {size}")
        if len(s.queens) != queens:
            raise ValueError(f"{form} record: expected {queens} queens, got {len(s.queens)}")
        return s

    action_name = lambda action: square_name(int(action), rows, cols)
    game = Game(
        name=name + ("" if planes == "plain" else f",planes={planes}"),
        num_actions=rows * cols,
        max_plies=rows * cols - queens,  # every move rips a square; the queens' squares start ripped
        max_legal=_most_targets(rows, cols),
        symmetries=symmetries(rows, cols),
        action_name=action_name,
        parse_action=lambda text: parse_square(text, rows, cols),
        from_record=from_own_record,
        view=board_view(
            about,
            seats,
            picture(rows, cols, queens, seats, rules["mask"], rules["rewards"]),
            action_name,
            legend=legend,
            lesson=lesson,
            why_illegal=lambda s, action: why_illegal(s, action, seats),
            why_over=why_over,
        ),
        **rules,
    )
    return game if planes == "plain" else with_history(game, ARTICLE_BOARDS, _observe_article)
