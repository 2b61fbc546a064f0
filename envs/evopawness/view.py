"""How people see EvoPawness: pictures, text boards, reasons and lessons."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs import pictures
from envs.evopawness.records import RUNES, TYPES
from envs.evopawness.rules import (
    BISHOP,
    CELLS,
    CODES,
    DEAD,
    EFFECTS,
    KING,
    MAX_MANA,
    MAX_PLIES,
    QUEEN_HP_FROM_BISHOP,
    ROOK,
    RUNE_CELLS,
    SHIFTS,
    SIDE,
    SKIP,
    SLEEPER,
    SOLDIER,
    State,
    has_lost,
    options,
    over,
    player,
    rewards,
)
from envs.game import Array, Step, forfeit_words
from envs.pictures import PAPER, Layer, Part, Picture, Place

CELL = 56  # of the picture
SEATS = ("White", "Black")
LETTERS = ".SSNRBQK"  # by kind
KINDS = ("", "soldier, asleep", "soldier", "knight", "rook", "bishop", "queen", "king")  # by kind
INKS = ("#a3211a", "#20242a", "#24528f")  # of hp, atk and step
RUNE_GAINS = {"atk": "+2 atk", "hp": "+2 hp", "step": "+1 step"}
# Facts about a piece beyond its numbers. None may change from turn to turn, because a change in a cell's words means
# that a move changed the cell.
TO_KNOW = {
    SLEEPER: "it neither moves nor attacks until it is woken up, for 3 mana",
    SOLDIER: "it can be promoted, for 5 mana",
    ROOK: "it can become a queen, for 10 mana",
    BISHOP: "it can become a queen, for 10 mana",
    KING: f"it attacks but never moves, and each turn brings its side 1 mana, up to {MAX_MANA}",
}
LEGEND = (
    "K Q R B N S White: king, queen, rook, bishop, knight, soldier, k q r b n s Black, "
    "S5/1/1 5 health, 1 attack, 1 step, z asleep, + a rune, . free"
)
WALK = (
    "a*1,4", "a*7,4", "m*1,4*1,0", "m*7,4*-1,0", "m*2,4*1,0", "m*6,4*-1,0", "m*3,4*1,0", "m*5,4*-1,0", "p*4,4*R",
)  # fmt: skip
STATUS = (pictures.standing(SEATS), Layer(words=", turn {}"))


def _status(s: State, max_plies: int | None) -> tuple[Array, Array]:
    ended = over(s, max_plies)
    return pictures.standing_code(ended, player(s), rewards(s)), jnp.where(ended, -1, s.turn)


def show(s: State, max_plies: int | None = MAX_PLIES) -> str:
    """Text picture: White's pieces in capitals with hp/atk/step, z for a soldier not yet activated, + for runes."""
    cells = ["."] * CELLS
    for cell, name, lies in zip(RUNE_CELLS, RUNES, np.asarray(s.runes), strict=True):
        cells[cell] = f"+{name}" if lies else "."
    for side, slot in np.argwhere(np.asarray(s.kind) != DEAD):
        kind, *numbers = (int(np.asarray(x)[side, slot]) for x in (s.kind, s.hp, s.atk, s.step))
        letter = LETTERS[kind].lower() if side else LETTERS[kind]
        cells[int(s.cell[side, slot])] = letter + "/".join(map(str, numbers)) + "z" * (kind == SLEEPER)
    rows = [f"{y}  " + " ".join(f"{c:7}" for c in cells[y * SIDE : y * SIDE + SIDE]).rstrip() for y in range(SIDE)]
    columns = "   " + " ".join(f"{x:<7}" for x in range(SIDE)).rstrip()
    status = pictures.words(STATUS, _status(s, max_plies))
    mana = "mana: White {}, Black {}".format(*np.asarray(s.mana))
    return "\n".join([columns, *rows, f"{status}; {mana}"])


def cell_name(cell: int) -> str:
    return f"{cell // SIDE},{cell % SIDE}"


def action_cells(action: int) -> tuple[str, ...]:
    """Cells to select for an action: the piece, and the target of a move or attack."""
    cell, k = divmod(int(action), CODES)
    if action == SKIP:
        return ()
    if k < 5:
        return (cell_name(cell),)
    (y, x), (dy, dx) = divmod(cell, SIDE), SHIFTS[k - 5]
    return cell_name(cell), f"{y + dy},{x + dx}"


def action_label(action: int) -> str:
    """An action in words, with its cost and gains."""
    k = int(action) % CODES
    if action == SKIP:
        return "Skip"
    if k >= 5:
        return "{} to {}".format(*action_cells(action))
    cost, hp, atk, steps, _ = (int(x) for x in EFFECTS[k])
    if k == 0:
        return f"Wake up ({cost} mana)"
    gains = f"{hp} hp, +{atk} atk" + (f", +{steps} step" if steps else "")
    gains = gains if k < 4 else f"11 hp from a rook, {QUEEN_HP_FROM_BISHOP} from a bishop, +{atk} atk"
    return f"Promote to {KINDS[k + 2]} ({cost} mana: {gains})"


def lesson(max_plies: int) -> tuple[Step, ...]:
    board = "evopawness:history=1"
    return (
        Step(
            "Black begins. Each side has a king and five soldiers, all asleep. The numbers below a piece are its "
            "health in red, its attack in black, and its step in blue, which is how far it can go.",
            board=board,
        ),
        Step(
            "Each of your turns brings 1 mana, up to 10. Black has spent 3 mana to wake a soldier: click it, then the "
            "button.",
            WALK[:1],
            board,
        ),
        Step(
            "An awake soldier goes straight ahead, as far as its step allows. Click it, then a lit square. Pieces jump "
            "over others. Kings never move. Black's and White's soldiers have met here.",
            WALK[:6],
            board,
        ),
        Step(
            "Every five turns runes appear in the middle row. The piece that moves onto one gains 2 attack, 2 health "
            "or 1 step. Black's soldier has just taken health.",
            WALK[:7],
            board,
        ),
        Step(
            "A piece attacks an enemy where it could move to, a king within 3 cells. The attacker stays, and the enemy "
            "loses as much health as the attack says: White has just attacked. A piece without health is removed.",
            WALK[:8],
            board,
        ),
        Step(
            "For 5 mana a soldier becomes a knight, a rook or a bishop, for 10 more a rook or bishop becomes a queen. "
            "They go like in chess, but only as far as their step. Black's soldier is a rook now.",
            WALK,
            board,
        ),
        Step(
            "Whoever loses the king, or all other pieces, loses the game. After "
            f"{max_plies} turns without a winner it is a draw.",
            WALK,
            board,
        ),
    )


def why_illegal(s: State, action: int) -> str:
    cell, k = divmod(action, CODES)
    spend, shift = (np.asarray(x).astype(np.int64) for x in jax.jit(options)(s))
    if action == SKIP:
        return "you can only skip if nothing else is possible" if (spend | shift).any() else ""
    me, owners, slots = int(player(s)), *np.nonzero((np.asarray(s.cell) == cell) & (np.asarray(s.kind) != DEAD))
    if not len(owners):
        return f"{cell_name(cell)} is empty"
    owner, slot = int(owners[0]), int(slots[0])
    kind, mana = int(s.kind[owner, slot]), int(s.mana[me])
    piece = f"the {TYPES[kind]} on {cell_name(cell)}"
    if owner != me:
        return f"{piece} belongs to {SEATS[owner]}"
    if (spend[slot] | shift[slot] << 5) >> k & 1:
        return ""
    if kind == SLEEPER:
        return f"{piece} is asleep" + (f": waking it up costs 3 mana, you have {mana}" if mana < 3 else "")
    if not spend[slot] | shift[slot]:
        return f"{piece} has no enemy in reach" if kind == KING else f"{piece} cannot move, nor change with {mana} mana"
    return _why_not_so(s, owner, slot, k, piece)


def _why_not_so(s: State, owner: int, slot: int, k: int, piece: str) -> str:
    """Why a piece that can do something cannot do `k`, an illegal code of an action within its cell."""
    kind, cost, mana = int(s.kind[owner, slot]), int(EFFECTS[k, 0]), int(s.mana[owner])
    if k == 0:
        return f"{piece} is awake already"
    if k < 5:
        able = kind in ((ROOK, BISHOP) if k == 4 else (SOLDIER,))
        return f"that costs {cost} mana, you have {mana}" if able else f"{piece} cannot become a {KINDS[k + 2]}"
    y, x = np.add(divmod(int(s.cell[owner, slot]), SIDE), SHIFTS[k - 5])
    if not (0 <= y < SIDE and 0 <= x < SIDE):
        return "that is off the board"
    if (np.asarray(s.cell)[owner] == y * SIDE + x).any():
        return f"{y},{x} is taken by a piece of your own"
    return (
        f"{y},{x} has nothing to attack, and kings never move"
        if kind == KING
        else f"{y},{x} is out of reach of {piece}"
    )


def why_over(s: State, max_plies: int | None) -> str:
    if s.forfeit >= 0 or not over(s, max_plies):
        return forfeit_words(SEATS, s.forfeit)
    lost = np.asarray(has_lost(s))
    if not lost.any():
        return f"nobody has won in {max_plies} turns"
    loser = int(lost.argmax())
    return f"{SEATS[loser]} has lost " + ("the king" if s.kind[loser, 5] == DEAD else "all pieces but the king")


def _layers() -> tuple[Layer, ...]:
    """The square, an empty cell or a rune, the piece, its hp, atk and step, and what else is to be known of it."""
    squares = (pictures.square(CELL, f'fill="{x}" stroke="{PAPER}"') for x in ("#e9dcc0", "#dccba6", "#d8d2ec"))
    rune = lambda sign, paint="": pictures.text(CELL * 0.5, sign, f'fill="#5f44aa"{paint}')
    named = [rune("◆") + pictures.text(CELL * 0.25, name, 'fill="#5f44aa"', y=CELL * 0.36) for name in RUNES]
    away = [f"empty; every five turns a rune comes here, {RUNE_GAINS[x]} for the piece that takes it" for x in RUNES]
    lying = [f"rune, {RUNE_GAINS[x]} for the piece that moves here" for x in RUNES]
    bold = lambda ink: f'font-weight="bold" fill="{ink}"'
    number = lambda x, ink, says: Layer(pictures.text(CELL * 0.31, "{}", bold(ink), CELL * x, CELL * 0.44), says)
    pieces = [(owner, kind) for owner in (0, 1) for kind in range(SLEEPER, KING + 1)]
    return (
        Layer(tuple(squares)),
        Layer(("", *[rune("◇", ' opacity="0.4"')] * 3, *named), ("empty", *away, *lying)),
        Layer(tuple(_shape(*piece) for piece in pieces), tuple(f"{SEATS[i]} {KINDS[kind]}" for i, kind in pieces)),
        *map(number, (-0.26, 0.1, 0.36), INKS, (", {} hp", ", {} atk", ", step {}")),
        Layer(words=tuple(f"; {TO_KNOW[kind]}" if kind in TO_KNOW else "" for kind in range(KING + 1))),
    )


def _shape(owner: int, kind: int) -> str:
    """Glyph on a disc, pale until activated."""
    fill, ink = (("#fbfaf5", "#20242a"), ("#3a4048", "#f7f3ea"))[owner]
    stroke, opacity = ("#655c50", 0.5) if kind == SLEEPER else ("#20242a", 1)
    disc = pictures.disc(CELL * 0.31, f'fill="{fill}" stroke="{stroke}" stroke-width="1.5"', y=-CELL * 0.14)
    glyph = pictures.text(CELL * 0.46, f"{'.♟♟♞♜♝♛♚'[kind]}\ufe0e", f'fill="{ink}"', y=CELL * 0.02)
    return f'<g opacity="{opacity}">{disc}{glyph}</g>'


def _note(seat: str, note: str, mana: int) -> str:
    paint = f'class="label" fill="{pictures.LABEL}" font-weight="{"bold" if note else "normal"}"'
    return pictures.text(CELL * 0.27, f"{seat}{note} · mana {'●' * mana}{'○' * (MAX_MANA - mana)}", paint)


@functools.cache
def picture(max_plies: int | None) -> Picture:
    """Pieces with their hp in red, atk in black and step in blue, and the mana of both players."""
    edge, side = CELL / 2, SIDE * CELL
    width, height, middle = side + edge + 4, side + 3 * edge, edge + side / 2
    frame = pictures.coordinates(range(SIDE), range(SIDE), CELL, edge, edge, edge, CELL * 0.25)
    for word, ink, x in zip(("hp", "atk", "step"), INKS, (1.62, 1.1, 0.42), strict=True):
        paint = f'class="key" font-weight="bold" fill="{ink}"'
        frame += pictures.text(CELL * 0.27, word, paint, width - CELL * x, edge * 0.65)
    notes = [_note(seat, note, n) for seat in SEATS for note in ("", " to move", " wins") for n in range(MAX_MANA + 1)]
    on_rune = RUNE_CELLS[:, None] == np.arange(CELLS)
    ground = np.where(on_rune.any(0), 2, np.arange(CELLS) % 2)

    def look(s: State) -> tuple[tuple[Any, ...], ...]:
        here = s.cell.ravel()[:, None] == np.arange(CELLS)
        at = lambda values: jnp.where(here, values.ravel()[:, None], -1).max(0)
        runes = (on_rune * (np.arange(1, 4) + 3 * s.runes)[:, None]).sum(0)
        pieces = np.array([[0], [KING]]) + s.kind - SLEEPER
        cells = ground, jnp.where(here.any(0), -1, runes), *map(at, (pieces, s.hp, s.atk, s.step, s.kind))
        to_move = ~over(s, max_plies) & (np.arange(2) == player(s))
        note = np.array([0, 3]) + jnp.where(rewards(s) > 0, 2, to_move)
        return _status(s, max_plies), cells, (note * (MAX_MANA + 1) + s.mana,)

    cells = Part(pictures.grid([cell_name(cell) for cell in range(CELLS)], SIDE, CELL, edge, edge), _layers())
    white, black = Place("", middle, height - edge * 0.35), Place("", middle - CELL * 0.8, edge * 0.65)
    mana = Part((white, black), (Layer(tuple(notes)),))
    return Picture("EvoPawness", width, height, frame, STATUS, (cells, mana), look)
