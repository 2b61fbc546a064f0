"""EvoPawness: pieces wound each other, promote for mana and collect runes; losing the king or all pawns loses.

Cell (y, x) of the 9x9 board has the number 9 y + x. Player 0, White, starts at the bottom and moves up. Player 1,
Black, starts at the top and moves first:

     0  1  2  3  4  5  6  7  8       .  .  .  .  k  .  .  .  .       k, K   kings, never move
     9 10 11 12 13 14 15 16 17       s  .  s  .  s  .  s  .  s       s, S   soldiers
     :  :  :  :  :  :  :  :  :       :  :  :  :  :  :  :  :  :
    36                      44       +  .  .  .  +  .  .  .  +       +      rune cells 36 (atk), 40 (hp), 44 (step)
     :  :  :  :  :  :  :  :  :       :  :  :  :  :  :  :  :  :
    63 64 65 66 67 68 69 70 71       S  .  S  .  S  .  S  .  S
    72 73 74 75 76 77 78 79 80       .  .  .  .  K  .  .  .  .

An action is `37 cell + k` for the acting piece's cell: k = 0 activates, 1 to 4 promote, 5 to 36 are the 32 shifts of a
move or attack. Action 2997 is the skip. Pieces jump over others, so a piece's moves are one set of shifts: a word of 32
bits. The friends and foes around a piece are words too, so legal shifts take a few operations on words.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs import pictures, records
from envs.game import Array, Game, Hints, Step, View, forfeit_rewards, forfeit_words, no_symmetries, with_history
from envs.pictures import PAPER, Layer, Part, Picture, Place

SIDE, CELLS, CODES = 9, 81, 37  # CODES: action codes per cell
SKIP = CELLS * CODES
OFF = CELLS  # the cell number of dead pieces
MAX_PLIES = 250
CELL = 56  # of the picture
LARGEST_CAP = 30_000  # the turn is an int16
MAX_MANA, MAX_HP, MAX_ATK, MAX_STEP = 10, 20, 8, 3

# Kinds of pieces. Code k < 5 of an action turns its piece into kind k + 2; a sleeper is a soldier not yet activated.
DEAD, SLEEPER, SOLDIER, KNIGHT, ROOK, BISHOP, QUEEN, KING = range(8)
KING_CELLS = (76, 4)
RUNE_CELLS = np.array([36, 40, 44])
RUNES = ("atk", "hp", "step")
RUNE_GAINS = {"atk": "+2 atk", "hp": "+2 hp", "step": "+1 step"}
SEATS = ("White", "Black")
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


# Rules


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


def _lost(s: State) -> Array:
    """bool[2]: sides that have lost the king or all pawns."""
    alive = s.kind != DEAD
    return ~alive[:, 5] | ~alive[:, :5].any(-1)


def over(s: State, max_plies: int | None = MAX_PLIES) -> Array:
    """bool[]: someone has lost or forfeited, or `max_plies` actions were made; None means no cap."""
    ended = _lost(s).any() | (s.forfeit >= 0)
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
    lost = _lost(s).astype(jnp.float32)
    return jnp.where(s.forfeit >= 0, forfeit_rewards(s.forfeit, 2), lost[::-1] - lost)


@functools.cache
def _targets() -> np.ndarray:
    """int32[A], the cell that a move or attack leads to; `OFF` for other actions and off the board."""
    targets = np.full((CELLS, CODES), OFF, np.int32)
    for cell in range(CELLS):
        for k, (dy, dx) in enumerate(SHIFTS, 5):
            y, x = cell // SIDE + dy, cell % SIDE + dx
            if 0 <= y < SIDE and 0 <= x < SIDE:
                targets[cell, k] = y * SIDE + x
    return np.append(targets.ravel(), OFF).astype(np.int32)


def urge(s: State) -> Array:
    """float32[A]: 0.6 for an attack and 0.5 for a promotion. With this bias the game's author kept early training games
    from ending at the length cap."""
    foes = s.cell[1 - (s.turn & 1)]
    attacked = (jnp.arange(CELLS)[:, None] == foes).any(-1)
    k = np.arange(SKIP + 1) % CODES
    promotes = (k >= 1) & (k <= 4) & (np.arange(SKIP + 1) != SKIP)
    hits = jnp.append(attacked, False)[_targets()]
    return jnp.where(promotes, 0.5, jnp.where(hits, 0.6, 0.0)).astype(jnp.float32)


# Observations


def _facts(s: State, viewer: Array, max_plies: int | None) -> tuple[Array, Array]:
    """Contents of the board, with the pieces of `viewer` as own and moving up: 12 pieces and the 3 rune cells.

    Returns:
        (cells int32[15], facts float32[28, 15]): the cell of each, `OFF` if dead, and its values in the planes there.
    """
    turned = (viewer == 1) & (s.cell != OFF)
    cell = jnp.where(turned, s.cell + (CELLS - SIDE) - 2 * SIDE * (s.cell // SIDE), s.cell)
    spend, shift = options(s)
    counts = jax.lax.population_count(spend) + jax.lax.population_count(shift)
    moves = jnp.where((jnp.arange(2)[:, None] == (s.turn & 1)) & ~over(s, max_plies), counts, 0)
    kinds = [s.kind == kind for kind in (KNIGHT, ROOK, BISHOP)]
    kinds += [(s.kind == SOLDIER) | (s.kind == SLEEPER), s.kind == QUEEN, s.kind == KING]
    mana = jnp.broadcast_to(s.mana[:, None], (2, 6))
    of_pieces = [s.hp, s.atk, s.step, s.kind != DEAD, *kinds, mana, moves]
    own = (jnp.arange(2) == viewer)[:, None]
    pairs = [jnp.where(side, x, 0).ravel() for x in of_pieces for side in (own, ~own)]
    nothing = jnp.zeros(12)
    turn = jnp.eye(3) * (s.turn % TURNS_PER_REFRESH)
    of_runes = [*jnp.zeros((22, 3)), *turn, s.runes, *jnp.zeros((2, 3))]
    facts = [
        jnp.concatenate([x.astype(jnp.float32), y.astype(jnp.float32)])
        for x, y in zip([*pairs[:22], *[nothing] * 4, *pairs[22:]], of_runes, strict=True)
    ]
    return jnp.concatenate([cell.ravel().astype(jnp.int32), RUNE_CELLS]), jnp.stack(facts)


def _planes(cells: Array, facts: Array) -> Array:
    """float32[9, 9, 28 n]: n frames, int[n, 15] and [n, 28, 15] as from `_facts`, put on the board."""
    frames, planes, _ = facts.shape

    def added(cells: Array, facts: Array) -> Array:
        board = jnp.zeros((CELLS + 1, frames, planes))
        return board.at[cells, jnp.arange(frames)[:, None]].add(facts.mT)[:CELLS].reshape(CELLS, -1)

    def multiplied(cells: Array, facts: Array) -> Array:
        """A matrix unit multiplies by zeros faster than it puts frames side by side. Exact in any precision, since all
        are small whole numbers."""
        facts = jax.lax.optimization_barrier(facts)  # else they are put side by side one by one
        repeated = jnp.einsum("fpc,pq->fcq", facts, np.tile(np.eye(planes), frames))
        blocks = (repeated * np.kron(np.eye(frames), np.ones(planes))[:, None]).reshape(-1, frames * planes)
        return (jnp.arange(CELLS)[:, None] == cells.ravel()).astype(jnp.float32) @ blocks

    return jax.lax.platform_dependent(cells, facts, tpu=multiplied, default=added).reshape(SIDE, SIDE, -1)


def observe(s: State, max_plies: int | None = MAX_PLIES) -> Array:
    """float32[9, 9, 28], for the mover, own pieces moving up; own plane before the opponent's, see the table.

    Values are counts or 0 and 1, on the cells of the pieces:

        0, 1  hp     8, 9    knight   16, 17      queen              25      cells with a rune
        2, 3  atk   10, 11   rook     18, 19      king               26, 27  legal actions of each piece
        4, 5  step  12, 13   bishop   20, 21      the owner's mana
        6, 7  any   14, 15   soldier  22, 23, 24  turn modulo 5, each on one rune cell
    """
    cells, facts = _facts(s, s.turn & 1, max_plies)
    return _planes(cells[None], facts[None])


def _observe_history(s: State, past: State, played: Array, max_plies: int | None) -> Array:
    """float32[9, 9, 28 n]: planes 28 h to 28 h + 27 show the position h plies ago, all 0 before the start."""
    frames = jax.tree.map(lambda x, y: jnp.concatenate([x[None], y]), s, past)
    cells, facts = jax.vmap(lambda frame: _facts(frame, s.turn & 1, max_plies))(frames)
    return _planes(jnp.where((jnp.arange(len(facts)) <= played)[:, None], cells, OFF), facts)


def flip_actions() -> np.ndarray:
    """int32[2998]: each action code after the rows of the board are reversed. Its own inverse."""
    shifts = {shift: 5 + j for j, shift in enumerate(SHIFTS)}
    codes = [*range(5), *(shifts[-dy, dx] for dy, dx in SHIFTS)]
    rows = [[(SIDE * (SIDE - 1 - y) + x) * CODES + k for k in codes] for y in range(SIDE) for x in range(SIDE)]
    return np.array([*np.ravel(rows), SKIP], np.int32)


MOST_POINTS = 5 * (0.3 * MAX_HP + 0.1 * (MAX_ATK + MAX_STEP)) + MAX_HP + 5 * 10


def points(s: State) -> Array:
    """float32[2], the game author's score of each side, at most `MOST_POINTS`: 0.3 of the hp and 0.1 of atk and step of
    its active pawns, the king's hp, and 10 for every dead enemy pawn."""
    active = (s.kind > SLEEPER) & (s.kind < KING)
    pawns = jnp.where(active, 0.3 * s.hp + 0.1 * (s.atk + s.step), 0.0).sum(-1)
    kings = jnp.where(s.kind == KING, s.hp, 0).sum(-1)
    return pawns + kings + 10.0 * (s.kind[::-1, :5] == DEAD).sum(-1)


def strength(s: State, max_plies: int | None = MAX_PLIES) -> Array:
    """float32[] in [-1, 1]: the mover's scaled lead in `points`; the exact result once the game is over."""
    of_both, mine = points(s), player(s)
    ahead = (of_both[mine] - of_both[1 - mine]) / MOST_POINTS
    return jnp.where(over(s, max_plies), rewards(s)[mine], 0.99 * ahead).astype(jnp.float32)


# For people

LETTERS = ".SSNRBQK"  # by kind


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


INKS = ("#a3211a", "#20242a", "#24528f")  # of hp, atk and step
KINDS = ("", "soldier, asleep", "soldier", "knight", "rook", "bishop", "queen", "king")  # by kind
# Facts about a piece beyond its numbers. None may change from turn to turn, because a change in a cell's words means
# that a move changed the cell.
TO_KNOW = {
    SLEEPER: "it neither moves nor attacks until it is woken up, for 3 mana",
    SOLDIER: "it can be promoted, for 5 mana",
    ROOK: "it can become a queen, for 10 mana",
    BISHOP: "it can become a queen, for 10 mana",
    KING: f"it attacks but never moves, and each turn brings its side 1 mana, up to {MAX_MANA}",
}


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


LEGEND = (
    "K Q R B N S White: king, queen, rook, bishop, knight, soldier, k q r b n s Black, "
    "S5/1/1 5 health, 1 attack, 1 step, z asleep, + a rune, . free"
)
WALK = (
    "a*1,4", "a*7,4", "m*1,4*1,0", "m*7,4*-1,0", "m*2,4*1,0", "m*6,4*-1,0", "m*3,4*1,0", "m*5,4*-1,0", "p*4,4*R",
)  # fmt: skip


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
    lost = np.asarray(_lost(s))
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


# Records

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
    lost = np.asarray(_lost(s))
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


# The `Game` record


def make(max_plies: int = MAX_PLIES, history: int = 5) -> Game:
    """EvoPawness, a draw after `max_plies` actions, observed through its last `history` positions.

    Raises:
        ValueError: `max_plies` not from 1 to 30000, or `history` not from 1 to 16.
    """
    if not 1 <= max_plies <= LARGEST_CAP:
        raise ValueError(f"evopawness: max_plies: expected 1 to {LARGEST_CAP}, got {max_plies}")
    if not 1 <= history <= 16:
        raise ValueError(f"evopawness: history: expected 1 to 16, got {history}")
    same = np.arange(SKIP + 1, dtype=np.int32)
    game = Game(
        name=f"evopawness:max_plies={max_plies},history={history}",
        num_players=2,
        num_actions=SKIP + 1,
        max_plies=max_plies,
        max_legal=MAX_LEGAL,
        init=init,
        step=lambda s, action: step(s, action, max_plies),
        move=move,
        mask=lambda s: mask(s, max_plies),
        over=lambda s: over(s, max_plies),
        player=player,
        rewards=rewards,
        observe=lambda s: observe(s, max_plies),
        # Mirroring the columns would exchange the atk and step runes.
        symmetries=no_symmetries(SKIP + 1),
        show=lambda s: show(s, max_plies),
        action_name=action_name,
        parse_action=parse_action,
        to_record=to_record,
        from_record=lambda record: from_record(record, max_plies),
        to_mover_frame=np.stack([same, flip_actions()]),
        actions_per_cell=CODES,
        hints=Hints(evaluate=lambda s: strength(s, max_plies), urge=urge, moves_are_cheap=False),
        view=View(
            about=(__doc__ or "").partition("\n")[0],
            seats=SEATS,
            picture=picture(max_plies),
            cells=action_cells,
            label=action_label,
            legend=LEGEND,
            lesson=lesson(max_plies),
            why_illegal=why_illegal,
            why_over=lambda s: why_over(s, max_plies),
        ),
    )
    if history == 1:
        return game
    return with_history(game, history, lambda now, past, played: _observe_history(now, past, played, max_plies))
