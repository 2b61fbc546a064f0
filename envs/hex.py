"""Hex: the first player connects the top row to the bottom row, the second the left column to the right column.

Cells are numbered row by row. Names give the column as a letter and the row counted from the top. Cell (r, c) touches
(r, c-1), (r, c+1), (r-1, c), (r+1, c), (r-1, c+1) and (r+1, c-1):

     0  1  2        a1 b1 c1
       3  4  5        a2 b2 c2
         6  7  8        a3 b3 c3

With the swap option the second player may answer the first stone, on (r, c), with the action after the last cell. The
swap removes this stone and puts a stone of the second player on (c, r).
"""

from __future__ import annotations

import dataclasses
import functools
import string
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from envs import pictures, records
from envs.game import Array, Game, Step, Symmetry, board_view, forfeit_rewards, forfeit_words, on_usual_board
from envs.pictures import PAPER, Layer, Part, Picture, Place

LARGEST = len(string.ascii_lowercase)  # columns are named by letters
SEATS = ("Red", "Blue")
COLOURS = ("#c03d33", "#3f74b5")
CELL = 36  # of the picture
MARKED = ("Red (X)", "Blue (O)")  # in text

# The six neighbours as (down, right), in a ring: consecutive neighbours touch.
RING = np.array([(0, 1), (1, 0), (1, -1), (0, -1), (-1, 0), (-1, 1)], np.int32)

EXCHANGED = np.array([0, 1, 2, 4, 3, 6, 5, 8, 7, 10, 9])  # planes after a half turn, which exchanges opposite edges


def either(conditions: list[Array]) -> Array:
    """bool[]: whether any of the conditions holds, without stacking them."""
    return functools.reduce(jnp.logical_or, conditions)


class State(NamedTuple):
    # Every stone stores the name of its group, so a move need not search the board. The name is 1 + the group's last
    # cell, S * S + 1 if the group touches the owner's first edge (top or left), S * S + 2 if it touches the other edge.
    groups: Array  # int8[S * S], int16 from S = 12: the name, negative for the second player, 0 on empty cells
    plies: Array  # int16[], moves made, including the swap; the first player moves when even
    joined: Array  # bool[], whether the last move connected its player's edges
    forfeit: Array  # int8[], player who made an illegal move, -1 for none


@dataclasses.dataclass(frozen=True)
class Rules:
    """The rules of one size, with or without the swap, as pure functions on one position."""

    size: int = 11
    swap: bool = True

    @property
    def cells(self) -> int:
        return self.size**2

    @property
    def dtype(self) -> Any:
        return np.int8 if self.cells + 2 <= np.iinfo(np.int8).max else np.int16

    def init(self, key: Array | None = None) -> State:
        del key  # there is one start position
        return State(jnp.zeros(self.cells, self.dtype), jnp.int16(0), jnp.bool_(False), jnp.int8(-1))

    def over(self, s: State) -> Array:
        return (s.forfeit >= 0) | s.joined

    def mask(self, s: State) -> Array:
        """bool[A], empty cells of an unfinished game, and the swap."""
        legal = s.groups == 0
        if self.swap:
            legal = jnp.concatenate([legal, (s.plies == 1)[None]])
        return legal & ~self.over(s)

    def player(self, s: State) -> Array:
        return (s.plies & 1).astype(jnp.int32)

    def _lone(self, cell: Any, row: Any, col: Any, second: Any) -> Array:
        """Name of a group of one stone on `cell`, which is (row, col)."""
        far = jnp.where(second, col, row)  # distance from the owner's first edge
        return jnp.where(far == 0, self.cells + 1, jnp.where(far == self.size - 1, self.cells + 2, cell + 1))

    def _swapped(self, s: State) -> Array:
        """The groups after a swap, which mirrors the only stone."""
        cells = jnp.arange(self.cells)
        row, col = cells // self.size, cells % self.size
        stone = jnp.where(s.groups != 0, col * self.size + row, 0).sum()
        return jnp.where(cells == stone, -self._lone(cells, row, col, True), 0).astype(self.dtype)

    def move(self, s: State, action: Array | int) -> State:
        """Position after a legal action."""
        action = jnp.asarray(action, jnp.int32)
        row, col, second = action // self.size, action % self.size, (s.plies & 1) == 1
        cells = jnp.arange(self.cells)
        down, right = cells // self.size - row, cells % self.size - col
        own = jnp.maximum(jnp.where(second, -s.groups, s.groups), 0)  # own names
        # Own neighbours that touch share a group, so the six reduce to three.
        pair = lambda a, b: ((down == a[0]) & (right == a[1])) | ((down == b[0]) & (right == b[1]))
        touched = [jnp.where(pair(*two), own, 0).max() for two in RING.reshape(3, 2, 2)]
        names = [self._lone(action, row, col, second).astype(self.dtype), *touched]
        name = functools.reduce(jnp.maximum, names)
        inner = (cells == action) | ((own > 0) & either([own == group for group in touched]))
        groups = jnp.where(inner, jnp.where(second, -name, name), s.groups)
        joined = either([name == self.cells + 1 for name in names]) & either([name == self.cells + 2 for name in names])
        if self.swap:
            swaps = action == self.cells
            groups, joined = jnp.where(swaps, self._swapped(s), groups), joined & ~swaps
        return State(groups, s.plies + jnp.int16(1), joined, s.forfeit)

    def step(self, s: State, action: Array | int) -> State:
        """Position after any action: an illegal action forfeits, and a finished game does not change."""
        # Of the same type as the names, this maximum takes a TPU no pass of its own.
        empty = ((jnp.arange(self.cells) == action) & (s.groups == 0)).astype(self.dtype).max() == 1
        swaps = (action == self.cells) & (s.plies == 1) & self.swap
        legal = (empty | swaps) & ~self.over(s)
        forfeit = jnp.where(~self.over(s) & ~legal, self.player(s).astype(jnp.int8), s.forfeit)
        moved = self.move(s, action)
        return State(*(jnp.where(legal, new, old) for new, old in zip(moved, s, strict=True)))._replace(forfeit=forfeit)

    def rewards(self, s: State) -> Array:
        """float32[2]: the player to move once the edges are connected, or the player who forfeited, loses."""
        loser = jnp.where(s.forfeit < 0, self.player(s), s.forfeit)
        return jnp.where(self.over(s), forfeit_rewards(loser, 2), 0.0)

    def board(self, s: State) -> Array:
        """int8[S, S]: 1 first player, -1 second, 0 empty."""
        return jnp.sign(s.groups).astype(jnp.int8).reshape(self.size, self.size)

    def observe(self, s: State) -> Array:
        """float32[S, S, 11], for the mover: own stones, the opponent's stones, ones if the mover may swap; the stones
        of both that are connected to their first edge and to their far edge; the empty cells that touch these stones
        or the edge. The last eight are 0 once two edges are joined. The board is transposed for the second player, so
        the mover always connects top and bottom."""
        groups = s.groups.reshape(self.size, self.size)
        board = jnp.where((s.plies & 1) == 1, -groups.T, groups)
        swap = jnp.broadcast_to((s.plies == 1) & ~self.over(s) & self.swap, board.shape)
        names = [sign * (self.cells + edge) for sign in (1, -1) for edge in (1, 2)]  # of what touches an edge
        edges = sum(jnp.where(board == name, 1 << i, 0) for i, name in enumerate(names))  # one bit for each
        border = np.zeros((self.size + 2, self.size + 2), np.int32)
        border[0], border[-1], border[:, 0], border[:, -1] = 1, 2, 4, 8
        wide = jnp.pad(edges, 1) | border
        around = [wide[1 + r : 1 + r + self.size, 1 + c : 1 + c + self.size] for r, c in RING.tolist()]
        near = jnp.where(board == 0, functools.reduce(jnp.bitwise_or, around), 0)
        of_edges = [(bits >> i & 1 == 1) & ~s.joined for bits in (edges, near) for i in range(4)]
        # A TPU stacks floats in fewer passes than bools.
        planes = (board > 0, board < 0, swap, *of_edges)
        return jnp.stack([plane.astype(jnp.float32) for plane in planes], axis=-1)

    def to_mover_frame(self) -> np.ndarray:
        """int32[2, A]: the second player's actions are transposed."""
        numbers = np.arange(self.cells, dtype=np.int32).reshape(self.size, self.size)
        rest = np.full(int(self.swap), self.cells, np.int32)
        return np.stack([np.concatenate([codes.ravel(), rest]) for codes in (numbers, numbers.T)])

    def symmetries(self) -> tuple[Symmetry, ...]:
        """The identity and the half turn."""
        codes = np.arange(self.cells, dtype=np.int32)
        rest = np.full(int(self.swap), self.cells, np.int32)

        def half_turn(s: State) -> State:
            groups = s.groups[::-1]
            row, col = np.indices((self.size, self.size)).reshape(2, -1)
            names = self._lone(codes, row, col, groups < 0)
            best = jnp.where(groups[:, None] == groups, names, 0).max(-1)  # the new name of each group
            return s._replace(groups=(best * jnp.sign(groups)).astype(self.dtype))

        return (
            Symmetry("identity", np.concatenate([codes, rest]), lambda x: x, lambda s: s),
            Symmetry("half turn", np.concatenate([codes[::-1], rest]), lambda x: x[::-1, ::-1, EXCHANGED], half_turn),
        )

    # For people

    def action_name(self, action: int) -> str:
        if self.swap and action == self.cells:
            return "swap"
        return f"{string.ascii_lowercase[int(action) % self.size]}{int(action) // self.size + 1}"

    def parse_action(self, text: str) -> int:
        names = {self.action_name(a): a for a in range(self.cells + self.swap)}
        if text.strip().lower() not in names:
            last = self.action_name(self.cells - 1) + (" or swap" if self.swap else "")
            raise ValueError(f"no cell '{text}': expected a column and a row, a1 to {last}")
        return names[text.strip().lower()]

    def show(self, s: State) -> str:
        """Text picture: X first player (top to bottom), O second, . empty; the player to move or the winner below."""
        cells = np.array(["O", ".", "X"])[np.asarray(self.board(s)) + 1]
        status = pictures.standing_words(MARKED, self.over(s), self.player(s), self.rewards(s))
        lines = [f"{' ' * r}{r + 1:2d}  {' '.join(row)}" for r, row in enumerate(cells)]
        return "\n".join(["   " + " ".join(string.ascii_lowercase[: self.size]), *lines, status])

    def lesson(self) -> tuple[Step, ...]:
        board = f"hex:size=5,swap={str(self.swap).lower()}"
        swap = Step(
            "The first stone is an advantage. So the second player may answer it with a swap: the stone becomes Blue, "
            "mirrored to the place that is as good for Blue, and Red moves next.",
            ("d2", "swap"),
            board,
        )
        return (
            Step(
                "Red begins. The players take turns, and each puts a stone on an empty cell. Stones never move.",
                ("c3", "d2"),
                board,
            ),
            Step(
                "Red wins with a chain of touching stones from the top edge to the bottom edge, which are red.",
                ("c1", "d3", "c2", "c4", "b3", "d2", "b4", "e1", "b5"),
                board,
            ),
            Step(
                "Blue wins with a chain from the left edge to the right edge. There is no draw: a chain of one player "
                "can only be stopped by a chain of the other.",
                ("c1", "c3", "c2", "b3", "b4", "d3", "d4", "a3", "a5", "e3"),
                board,
            ),
            *([swap] if self.swap else []),
        )

    def why_illegal(self, s: State, action: int) -> str:
        if action == self.cells:
            return "" if s.plies == 1 else "a swap can only answer the first stone"
        return f"{self.action_name(action)} is taken" if s.groups[action] else ""

    def why_over(self, s: State) -> str:
        if s.forfeit >= 0 or not self.over(s):
            return forfeit_words(SEATS, s.forfeit)
        winner = 1 - int(self.player(s))
        return f"{SEATS[winner]} has joined {('top and bottom', 'left and right')[winner]}"

    def picture(self) -> Picture:
        """Each edge is in its owner's colour."""
        n, radius, angles = self.size, CELL / 3**0.5, np.deg2rad(60 * np.arange(6) + 30)
        at = lambda r, c: ((c + 1.5 + r / 2) * CELL, (1.5 * r + 2.75) * radius)  # the middle of a cell
        corners = " ".join(f"{radius * np.cos(a):.2f},{radius * np.sin(a):.2f}" for a in angles)
        hexagon = lambda fill: f'<polygon points="{corners}" fill="{fill}" stroke="{PAPER}" stroke-width="1.5"/>'
        word = lambda word: pictures.text(CELL * 0.36, word, 'fill="#ffffff"', y=CELL * 0.12)
        columns = [((r, c), COLOURS[0], string.ascii_lowercase[c]) for r in (-1, n) for c in range(n)]
        rows = [((r, c), COLOURS[1], r + 1) for c in (-1, n) for r in range(n)]
        edges = [pictures.placed(*at(*cell), hexagon(fill) + word(name)) for cell, fill, name in columns + rows]
        stones = pictures.stones(SEATS, *(pictures.disc(CELL * 0.36, f'fill="{fill}"') for fill in COLOURS))
        places = tuple(Place(self.action_name(a), *at(*divmod(a, n))) for a in range(self.cells))

        def look(s: State) -> tuple[tuple[Any, ...], ...]:
            standing = pictures.standing_code(self.over(s), self.player(s), self.rewards(s))
            return (standing,), (0, self.board(s) % 3)

        width, height = round((1.5 * n + 2) * CELL), round((1.5 * n + 3.5) * radius)
        part = Part(places, (Layer(hexagon("#e9dcc0")), stones))
        return Picture("Hex", width, height, "".join(edges), (pictures.standing(SEATS),), (part,), look)

    # Records

    def to_record(self, s: State) -> dict[str, Any]:
        """JSON-ready record: `size`, `swap`, `board` cell by cell (1 first player, -1 second), `to_move` 1 or -1, and
        `plies` including the swap. `forfeit` is present only after a forfeit."""
        record = {
            "size": self.size,
            "swap": self.swap,
            "board": np.asarray(self.board(s)).ravel().tolist(),
            "to_move": 1 - 2 * int(self.player(s)),
            "plies": int(s.plies),
        }
        return records.with_forfeit(record, s.forfeit)

    def from_record(self, record: dict[str, Any]) -> State:
        """Position of a record; `size`, `swap` and `plies` may be omitted, since they follow from the rest.

        Raises:
            ValueError: a field is missing, unknown or out of range, or the position cannot occur; the message says
                which.
        """
        records.fields("hex", record, ("board", "to_move"), perhaps=("size", "swap", "plies", "forfeit"))
        for field, value in (("size", self.size), ("swap", self.swap)):
            if type(record.get(field, value)) is not type(value) or record.get(field, value) != value:
                raise ValueError(f"hex record: expected {value!r} for {field}, got {record[field]!r}")
        cells, turn = records.cells("hex", "board", record["board"], self.cells), records.turn("hex", record)
        board = np.array(cells).reshape(self.size, self.size)
        plies = self._plies(board, turn)
        if type(record.get("plies", plies)) is not int or record.get("plies", plies) != plies:
            raise ValueError(f"hex record: plies is {record['plies']!r}, but the stones make it {plies}")
        groups, joined = self._groups(board)
        if joined.get(turn):
            raise ValueError("hex record: the player to move has joined the edges already")
        if joined[-turn] and not self._joined_last(board, -turn):
            raise ValueError("hex record: the edges were joined before the last move, whichever it was")
        forfeit = records.forfeit("hex", record, plies % 2, lambda: joined[-turn])
        return State(jnp.asarray(groups.ravel()), jnp.int16(plies), jnp.bool_(joined[-turn]), jnp.int8(forfeit))

    def _plies(self, board: np.ndarray, turn: int) -> int:
        """Moves made; a swap removes one stone of the first player."""
        first, second = int((board == 1).sum()), int((board == -1).sum())
        if first - second == (0 if turn == 1 else 1):
            return first + second
        if self.swap and second > 0 and second - first == (1 if turn == 1 else 0):
            return first + second + 1
        raise ValueError("hex record: the numbers of stones do not fit the player to move")

    def _groups(self, board: np.ndarray) -> tuple[np.ndarray, dict[int, bool]]:
        """The names of the groups, and whether each player has connected the edges, by a plain flood fill."""
        groups, joined = np.zeros(board.shape, self.dtype), {}
        for colour in (1, -1):
            rows, cols = np.indices(board.shape)
            far = rows if colour == 1 else cols
            names = np.where(far == 0, self.cells + 1, rows * self.size + cols + 1)
            names = np.where(far == self.size - 1, self.cells + 2, names) * (board == colour)
            before = None
            while before is None or (before != names).any():
                before, wide = names, np.pad(names, 1)
                near = [wide[1 + r : 1 + r + self.size, 1 + c : 1 + c + self.size] for r, c in RING]
                names = np.maximum(names, np.max(near, axis=0)) * (board == colour)
            joined[colour] = bool((names[far == 0] == self.cells + 2).any())
            if joined[colour]:  # then the two edges are one
                names = np.where(names == self.cells + 1, self.cells + 2, names)
            groups += (names * colour).astype(self.dtype)
        return groups, joined

    def _joined_last(self, board: np.ndarray, colour: int) -> bool:
        """Whether removing some single stone disconnects the edges."""
        for r, c in np.argwhere(board == colour):
            earlier = board.copy()
            earlier[r, c] = 0
            if not self._groups(earlier)[1][colour]:
                return True
        return False


def make(size: int = 11, swap: bool = True) -> Game:
    """Hex on `size` x `size` cells; with `swap` the second player may take over the first stone.

    Raises:
        ValueError: a size not from 2 to 26.
    """
    if not 2 <= size <= LARGEST:
        raise ValueError(f"hex: size={size} is not from 2 to {LARGEST}")
    rules = Rules(size, swap)
    return Game(
        name=f"hex:size={size},swap={str(swap).lower()}",
        num_players=2,
        num_actions=size**2 + swap,
        max_plies=size**2 + swap,  # a full board connects one pair of edges
        max_legal=size**2,  # the swap is legal only when a cell is taken
        init=rules.init,
        step=rules.step,
        move=rules.move,
        mask=rules.mask,
        over=rules.over,
        player=rules.player,
        rewards=rules.rewards,
        observe=rules.observe,
        to_mover_frame=rules.to_mover_frame(),
        symmetries=rules.symmetries(),
        show=rules.show,
        action_name=rules.action_name,
        parse_action=rules.parse_action,
        to_record=rules.to_record,
        from_record=rules.from_record,
        view=board_view(
            __doc__,
            SEATS,
            rules.picture(),
            rules.action_name,
            {size * size: "Swap sides"},
            legend="X Red, O Blue, . empty",
            lesson=rules.lesson(),
            why_illegal=rules.why_illegal,
            why_over=rules.why_over,
        ),
    )


__getattr__ = on_usual_board(make)
