"""The rules of EvoPawness, as pure functions on positions.

Pieces jump over others, so a piece's moves are one set of shifts: a word of 32 bits. The friends and foes around a
piece are words too, so legal shifts take a few operations on words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.game import Array, forfeit_rewards

SIDE, CELLS, CODES = 9, 81, 37  # CODES: action codes per cell
SKIP = CELLS * CODES
OFF = CELLS  # the cell number of dead pieces
MAX_PLIES = 250
LARGEST_CAP = 30_000  # the turn is an int16
MAX_MANA, MAX_HP, MAX_ATK, MAX_STEP = 10, 20, 8, 3

# Kinds of pieces. Code k < 5 of an action turns its piece into kind k + 2; a sleeper is a soldier not yet activated.
DEAD, SLEEPER, SOLDIER, KNIGHT, ROOK, BISHOP, QUEEN, KING = range(8)
KING_CELLS = (76, 4)
RUNE_CELLS = np.array([36, 40, 44])
TURNS_PER_REFRESH = 5

DIRECTIONS = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))
JUMPS = ((-2, 1), (-1, 2), (1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1))
SHIFTS = tuple((r * dy, r * dx) for dy, dx in DIRECTIONS for r in (1, 2, 3)) + JUMPS  # (dy, dx) of k = 5, 6, ..., 36

# Five queens in the middle have 24 shifts each. A king attacks at most the five enemy pawns, because the enemy king is
# out of its reach. A piece that can promote does so in at most three ways, and reaches at most 12 cells.
MAX_LEGAL = 5 * 24 + 5


class State(NamedTuple):
    """68 bytes. Slots 0 to 4 of a side hold its living pawns, sorted by cell; slot 5 holds its king."""

    pieces: Array  # int8[5, 2, 6]: the properties below, in this order
    mana: Array  # int8[2], 0 to 10
    runes: Array  # bool[3], which runes lie on their cells: atk, hp, step
    turn: Array  # int16[], 1 at the start, plus 1 per ply; player 1 moves when odd
    forfeit: Array  # int8[], player who made an illegal move, -1 for none

    cell = property(lambda s: s.pieces[..., 0, :, :], doc="int8[2, 6], cell of each piece, `OFF` if dead")
    kind = property(lambda s: s.pieces[..., 1, :, :], doc="int8[2, 6], `DEAD`, ..., `KING`")
    hp = property(lambda s: s.pieces[..., 2, :, :], doc="int8[2, 6], 1 to 20, 0 if dead")
    atk = property(lambda s: s.pieces[..., 3, :, :], doc="int8[2, 6], up to 8, 0 if dead")
    step = property(lambda s: s.pieces[..., 4, :, :], doc="int8[2, 6], range of moves and attacks, 1 to 3, 0 if dead")


# Tables


def _shifts(wanted: Callable[[int, int], bool]) -> int:
    """The wanted of the 32 shifts, as bits."""
    return sum(1 << j for j, (dy, dx) in enumerate(SHIFTS) if wanted(dy, dx))


def _packed(numbers: dict[int, int]) -> int:
    """Numbers below 8 in a word: number i in bits 3 i to 3 i + 2."""
    return sum(number << 3 * i for i, number in numbers.items())


DIRECTION_OF = _packed({3 * dy + dx + 4: i for i, (dy, dx) in enumerate(DIRECTIONS)})
JUMP_OF = _packed({(abs(dy) == 2) * 4 + (dy > 0) * 2 + (dx > 0): i for i, (dy, dx) in enumerate(JUMPS)})
# By kind, the shifts by one cell in its directions. Times 2**n - 1 they are its shifts by up to n cells.
RAYS = {ROOK: 0o01010101, BISHOP: 0o10101010, QUEEN: 0o11111111}
RUNS, LEAPS = (1 << 24) - 1, 0xFF << 24
# int8[37, 5], by k: mana spent, then the piece's new hp (0: unchanged), gain of atk, gain of step, change of cell.
EFFECTS = np.array(
    [(3, 0, 0, 0, 0), (5, 5, 3, 0, 0), (5, 9, 4, 0, 0), (5, 7, 1, 1, 0), (10, 11, 2, 0, 0)]
    + [(0, 0, 0, 0, dy * SIDE + dx) for dy, dx in SHIFTS],
    np.int8,
)
QUEEN_HP_FROM_BISHOP = 9


# Moves


def init(key: Array | None = None) -> State:
    del key  # there is one start position
    columns = np.arange(0, SIDE, 2)
    cell = [*columns + 63, KING_CELLS[0]], [*columns + 9, KING_CELLS[1]]
    of_both = [[SLEEPER] * 5 + [KING]], [[5] * 5 + [15]], [[1] * 5 + [3]], [[1] * 5 + [3]]
    return State(
        pieces=jnp.asarray([cell, *(2 * x for x in of_both)], jnp.int8),
        mana=jnp.asarray([5, 5], jnp.int8),
        runes=jnp.zeros(3, bool),
        turn=jnp.int16(1),
        forfeit=jnp.int8(-1),
    )


def player(s: State) -> Array:
    return (s.turn & 1).astype(jnp.int32)


def has_lost(s: State) -> Array:
    """bool[2]: sides that have lost the king or all pawns."""
    alive = s.kind != DEAD
    return ~alive[:, 5] | ~alive[:, :5].any(-1)


def over(s: State, max_plies: int | None = MAX_PLIES) -> Array:
    """bool[]: someone has lost or forfeited, or `max_plies` actions were made; None means no cap."""
    ended = has_lost(s).any() | (s.forfeit >= 0)
    return ended if max_plies is None else ended | (s.turn > max_plies)


def _links(start: tuple[Array, Array], end: tuple[Array, Array]) -> Array:
    """uint32, the bit of the shift from one cell (y, x) to another, 0 if there is none. Computed, since a TPU looks up
    one number at a time."""
    dy, dx = end[0] - start[0], end[1] - start[1]
    far, near = jnp.maximum(abs(dy), abs(dx)), jnp.minimum(abs(dy), abs(dx))
    direction = DIRECTION_OF >> 3 * (3 * jnp.sign(dy) + jnp.sign(dx) + 4) & 7
    jump = JUMP_OF >> 3 * ((abs(dy) == 2) * 4 + (dy > 0) * 2 + (dx > 0)) & 7
    jumps, runs = (far == 2) & (near == 1), (far > 0) & (far <= 3) & ((near == 0) | (near == far))
    bit = jnp.where(jumps, 24 + jump, 3 * direction + far - 1).astype(jnp.uint32)
    return jnp.where((jumps | runs) & (start[0] < SIDE) & (end[0] < SIDE), jnp.uint32(1) << bit, 0)


def _reach(kind: Array, steps: Array, black: Array) -> Array:
    """uint32, shifts of a piece on an endless board."""
    rays = jnp.where(kind == SOLDIER, jnp.where(black, 1 << 12, 1), 0)
    for of, directions in RAYS.items():
        rays = jnp.where(kind == of, directions, rays)
    reach = rays.astype(jnp.uint32) * ((1 << steps.astype(jnp.uint32)) - 1)
    return jnp.where(kind == KNIGHT, jnp.uint32(LEAPS), jnp.where(kind == KING, jnp.uint32(RUNS), reach))


def _leaves(y: Array, x: Array) -> Array:
    """uint32, shifts from a cell that leave the board."""
    leaves = jnp.uint32(0)
    for n in (1, 2, 3):
        for room, way in ((y, (-1, 0)), (SIDE - 1 - y, (1, 0)), (x, (0, -1)), (SIDE - 1 - x, (0, 1))):
            far = _shifts(lambda dy, dx, n=n, way=way: dy * way[0] + dx * way[1] >= n)
            leaves |= jnp.where(room < n, jnp.uint32(far), 0)
    return leaves


def options(s: State) -> tuple[Array, Array]:
    """Actions of the mover's six pieces as bits, even if the game is over; the skip belongs to no piece.

    Returns:
        (spend uint32[6], shift uint32[6]): bit k of `spend` for codes k = 0 to 4, bit k - 5 of `shift` for k = 5 to 36.
    """
    black = (s.turn & 1) == 1
    mine = lambda x: jnp.where(black, x[1], x[0])
    kind, steps, mana = mine(s.kind), mine(s.step), mine(s.mana)
    cell = s.cell.astype(jnp.int32)
    places = jax.lax.div(cell, SIDE), jax.lax.rem(cell, SIDE)
    y, x = map(mine, places)
    # No two pieces share a cell, so the sum of their bits is the union.
    links = _links((y[:, None, None], x[:, None, None]), places).sum(-1, dtype=jnp.uint32)
    friends, foes = jnp.where(black, links[:, 1], links[:, 0]), jnp.where(black, links[:, 0], links[:, 1])
    shift = _reach(kind, steps, black) & ~_leaves(y, x) & jnp.where(kind == KING, foes, ~friends)
    spend = (
        jnp.where((kind == SLEEPER) & (mana >= 3), 0b00001, 0)
        | jnp.where((kind == SOLDIER) & (mana >= 5), 0b01110, 0)
        | jnp.where(((kind == ROOK) | (kind == BISHOP)) & (mana >= 10), 0b10000, 0)
    )
    return spend.astype(jnp.uint32), shift


def mask(s: State, max_plies: int | None = MAX_PLIES) -> Array:
    """bool[2998], legal actions; the skip is legal only if nothing else is."""
    spend, shift = options(s)
    skip = ~((spend | shift) != 0).any()
    # The mask is built as bits, 37 per piece from bit 37 * cell on; the skip is the first bit after all cells.
    low = jnp.append(spend | shift << 5, skip.astype(jnp.uint32)) * ~over(s, max_plies)
    high = jnp.append(shift >> 27, jnp.uint32(0)) * ~over(s, max_plies)
    first = CODES * jnp.append(jnp.where((s.turn & 1) == 1, s.cell[1], s.cell[0]).astype(jnp.int32), OFF)
    word, bit = first >> 5, (first & 31).astype(jnp.uint32)
    overflow = lambda x: x >> 1 >> (31 - bit)  # x >> (32 - bit) in two shifts, because bit may be 0
    parts = (low << bit, overflow(low) | high << bit, overflow(high))
    places = jnp.arange(96)  # whole tiles of a TPU
    at = lambda i: jnp.where(word[:, None] + i == places, parts[i][:, None], 0)
    words = (at(0) + at(1) + at(2)).sum(0, dtype=jnp.uint32)
    bits = words[:, None] >> jnp.arange(32, dtype=jnp.uint32) & 1
    return (bits == 1).ravel()[: SKIP + 1]


def step(s: State, action: Array | int, max_plies: int | None = MAX_PLIES) -> State:
    """Position after any action: an illegal action forfeits, and a finished game does not change."""
    action = jnp.asarray(action, jnp.int32)
    cell, k = action // CODES, action % CODES  # a cell out of range holds no piece
    spend, shift = options(s)
    offered = jnp.where(k < 5, spend >> jnp.minimum(k, 4), shift >> jnp.maximum(k - 5, 0)) & 1
    named = ((offered == 1) & (jnp.where((s.turn & 1) == 1, s.cell[1], s.cell[0]) == cell)).any()
    ended = over(s, max_plies)
    legal = (named | ((action == SKIP) & ~((spend | shift) != 0).any())) & ~ended
    moved = move(s, action)
    forfeit = jnp.where(ended | legal, s.forfeit, (s.turn & 1).astype(jnp.int8))
    return State(*(jnp.where(legal, new, old) for new, old in zip(moved, s, strict=True)))._replace(forfeit=forfeit)


def move(s: State, action: Array | int) -> State:
    """Position after a legal action."""
    action = jnp.asarray(action, jnp.int32)
    k = action % CODES
    cost, new_hp, more_atk, more_step, way = jnp.asarray(EFFECTS)[k]
    mine = jnp.arange(2) == (s.turn & 1)
    acts = mine[:, None] & (s.cell == action // CODES) & (s.kind != DEAD)  # all False for the skip
    target = action // CODES + way
    hit = ~mine[:, None] & (s.cell == target) & (s.kind != DEAD)
    attack = hit.any()
    found = s.runes & (target == RUNE_CELLS) & ~attack

    new_hp = jnp.where((k == 4) & (s.kind == BISHOP), QUEEN_HP_FROM_BISHOP, new_hp)
    hp = jnp.where(acts & (new_hp > 0), new_hp, s.hp) + jnp.where(acts & found[1], 2, 0)
    hp = jnp.minimum(hp, MAX_HP) - jnp.where(hit, jnp.where(acts, s.atk, 0).sum(), 0)
    atk = jnp.minimum(s.atk + jnp.where(acts, more_atk + 2 * found[0], 0), MAX_ATK)
    steps = jnp.minimum(s.step + jnp.where(acts, more_step + found[2], 0), MAX_STEP)
    kind = jnp.where(acts & (k < 5), k + 2, s.kind)
    cell = jnp.where(acts & ~attack, target, s.cell)
    killed = hit & (hp <= 0)
    fields = jnp.where(killed, OFF, cell), *(x * ~killed for x in (kind, hp, atk, steps))
    pieces = jnp.stack([x.astype(jnp.int8) for x in fields])

    turn = s.turn + jnp.int16(1)
    mana = s.mana - jnp.where(mine & acts.any(), cost, 0)
    mana = jnp.where(mine, mana, jnp.minimum(mana + 1, MAX_MANA))
    free = ~(pieces[0].reshape(12, 1) == RUNE_CELLS).any(0)
    runes = jnp.where(turn % TURNS_PER_REFRESH == 0, free, s.runes & ~found)
    return State(_in_order(pieces), mana.astype(jnp.int8), runes, turn, s.forfeit)


def _in_order(pieces: Array) -> Array:
    """The pieces with the pawns of each side sorted by cell; dead pawns, all alike, come last."""
    pawns = pieces[0, :, :5]
    earlier = pawns[:, None, :] < pawns[:, :, None]  # [side, slot, other slot]
    same = (pawns[:, None, :] == pawns[:, :, None]) & np.tri(5, k=-1, dtype=bool)
    goes_to = (earlier | same).sum(-1)[..., None] == jnp.arange(5)  # [side, slot, new slot]
    in_order = jnp.where(goes_to, pieces[:, :, :5, None], 0).sum(2, dtype=jnp.int8)
    return jnp.concatenate([in_order, pieces[:, :, 5:]], axis=2)


def rewards(s: State) -> Array:
    """float32[2]: zero for a game in progress or cut by the cap."""
    lost = has_lost(s).astype(jnp.float32)
    return jnp.where(s.forfeit >= 0, forfeit_rewards(s.forfeit, 2), lost[::-1] - lost)
