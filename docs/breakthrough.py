"""Breakthrough: pieces step ahead, straight or diagonally, and capture diagonally; the first one on the far row wins.

An example of moves from cell to cell. Action 6 * cell + kind moves the piece on a cell by STEPS[kind], for both players
alike; a network sees the board from the mover's side, and `to_mover_frame` turns the actions in the same way.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from envs import pictures, records
from envs.game import Array, Game, Step, Symmetry, View, forfeit_rewards, forfeit_words
from envs.pictures import Layer, Picture

SEATS = ("White", "Black")
STEPS = [(down, right) for down in (-1, 1) for right in (-1, 0, 1)]  # White's three kinds go up, Black's go down
CELL = 44  # of the picture
LESSON = (
    Step("White begins at the bottom. Click a piece, then a square ahead of it, straight or diagonally."),
    Step("A piece captures diagonally ahead. The first piece on the far row wins.", ("c2c3", "a4a3", "c3b4")),
)


class State(NamedTuple):
    board: Array  # int8[R, C]: 1 White, -1 Black, 0 empty
    to_move: Array  # int8[]
    forfeit: Array  # int8[], player who made an illegal move, -1 for none


def won(s: State) -> Array:
    """bool[2]: who has a piece on the far row, or has captured all of the other player's."""
    return jnp.stack([(s.board[0] == 1).any() | (s.board >= 0).all(), (s.board[-1] == -1).any() | (s.board <= 0).all()])


def over(s: State) -> Array:
    return won(s).any() | (s.forfeit >= 0)


def mask(s: State) -> Array:
    me = 1 - 2 * s.to_move
    wide = jnp.pad(s.board, 1, constant_values=2)  # 2: off the board
    rows, cols = s.board.shape
    legal = []
    for down, right in STEPS:
        target = wide[1 + down : 1 + down + rows, 1 + right : 1 + right + cols]
        free = (target == 0) | ((target == -me) if right else False)
        legal.append((s.board == me) & free & (me == -down))
    return jnp.stack(legal, axis=-1).ravel() & ~over(s)


def move(s: State, action: Array | int) -> State:
    cells = jnp.arange(s.board.size).reshape(s.board.shape)
    start, kind = jnp.asarray(action) // 6, jnp.asarray(action) % 6
    by = jnp.asarray([down * s.board.shape[1] + right for down, right in STEPS])[kind]
    piece = (1 - 2 * s.to_move).astype(jnp.int8)
    board = jnp.where(cells == start, 0, jnp.where(cells == start + by, piece, s.board))
    return State(board.astype(jnp.int8), 1 - s.to_move, s.forfeit)


def step(s: State, action: Array | int) -> State:
    """Position after any action: an illegal action loses at once, and a finished game does not change."""
    legal = mask(s)
    allowed = (legal & (jnp.arange(legal.size) == action)).any()
    moved = move(s, action)
    forfeit = jnp.where(legal.any() & ~allowed, s.to_move, s.forfeit)
    return State(*(jnp.where(allowed, new, old) for new, old in zip(moved, s, strict=True)))._replace(forfeit=forfeit)


def rewards(s: State) -> Array:
    loser = jnp.where(s.forfeit >= 0, s.forfeit, won(s)[0].astype(jnp.int8))
    return jnp.where(over(s), forfeit_rewards(loser, 2), 0.0)


def observe(s: State) -> Array:
    """float32[R, C, 3] for the mover, who moves up: own pieces, the opponent's, ones."""
    me = 1 - 2 * s.to_move
    planes = jnp.stack([s.board == me, s.board == -me, jnp.ones(s.board.shape, bool)], axis=-1).astype(jnp.float32)
    return jnp.where(s.to_move == 0, planes, planes[::-1])


def why_illegal(s: State, action: int) -> str:
    board, me, (down, right) = np.asarray(s.board), 1 - 2 * int(s.to_move), STEPS[action % 6]
    row, col = divmod(action // 6, board.shape[1])
    if board[row, col] != me:
        return "there is no piece of yours"
    if down == me:
        return "pieces only go ahead"
    if not (0 <= row + down < board.shape[0] and 0 <= col + right < board.shape[1]):
        return "that is off the board"
    target = board[row + down, col + right]
    return "" if target == 0 or (right and target == -me) else "that square is taken"


def why_over(s: State) -> str:
    return forfeit_words(SEATS, s.forfeit) or ("a piece has broken through, or all are captured" if over(s) else "")


def show(s: State) -> str:
    return "\n".join(" ".join(".XO"[cell] for cell in row) for row in np.asarray(s.board))


def picture(rows: int, cols: int, names: list[str]) -> Picture:
    ground = Layer(tuple(pictures.square(CELL, f'fill="{fill}"') for fill in ("#e9dcc0", "#dccba6")))
    white, black = (pictures.disc(CELL * 0.36, f'fill="{x}" stroke="#20242a"') for x in ("#fbfaf5", "#3a4048"))
    parity = np.indices((rows, cols)).sum(0).ravel() % 2

    def look(s: State):
        standing = pictures.standing_code(over(s), s.to_move, rewards(s))
        return (standing,), (parity, s.board.ravel() % 3)  # 0 empty, 1 White, 2 Black

    layers = ground, pictures.stones(SEATS, white, black)
    labels = "abcdefghi"[:cols], range(rows, 0, -1)
    return pictures.board("Breakthrough", names, *labels, CELL, pictures.standing(SEATS), layers, look)


def make(rows: int = 5, cols: int = 5) -> Game:
    """The `Game` record for a board of `rows` x `cols`."""
    if not (5 <= rows <= 9 and 3 <= cols <= 9):
        raise ValueError(f"breakthrough: expected 5 to 9 rows and 3 to 9 columns, got {rows} x {cols}")
    names = [f"{'abcdefghi'[c]}{rows - r}" for r in range(rows) for c in range(cols)]
    row, col = np.divmod(np.arange(rows * cols), cols)

    def cells(action: int) -> tuple[str, ...]:
        """The start and the target of a move; none for a code that leaves the board."""
        r, c = (int(x) for x in np.add(divmod(int(action) // 6, cols), STEPS[int(action) % 6]))
        return (names[int(action) // 6], names[r * cols + c]) if 0 <= r < rows and 0 <= c < cols else ()

    def action_name(action: int) -> str:
        return "".join(cells(action)) or f"{names[int(action) // 6]}-{int(action) % 6}"  # off the board

    codes = {action_name(action): action for action in range(6 * rows * cols)}

    def parse_action(text: str) -> int:
        if text not in codes:
            raise ValueError(
                f"no move '{text}': expected two squares, such as {action_name(6 * cols * (rows - 2) + 1)}"
            )
        return codes[text]

    def image(cell: np.ndarray, kinds: list[int]) -> np.ndarray:
        """int32[A]: every action after each cell becomes `cell` and each kind `kinds`."""
        return (6 * cell[:, None] + np.array(kinds)).ravel().astype(np.int32)

    def init(key: Array | None = None) -> State:
        board = np.zeros((rows, cols), np.int8)
        board[:2], board[-2:] = -1, 1
        return State(jnp.asarray(board), jnp.int8(0), jnp.int8(-1))

    def to_record(s: State) -> dict:
        record = {"board": np.asarray(s.board).ravel().tolist(), "to_move": 1 - 2 * int(s.to_move)}
        return records.with_forfeit(record, s.forfeit)

    def from_record(record: dict) -> State:
        records.fields("breakthrough", record, ("board", "to_move"))
        board = np.array(records.cells("breakthrough", "board", record["board"], rows * cols), np.int8)
        mover = (1 - records.turn("breakthrough", record)) // 2
        s = State(jnp.asarray(board.reshape(rows, cols)), jnp.int8(mover), jnp.int8(-1))
        if max((board == 1).sum(), (board == -1).sum()) > 2 * cols:
            raise ValueError(f"breakthrough record: board: expected at most {2 * cols} pieces of each player")
        if bool(won(s)[mover]):
            raise ValueError("breakthrough record: only the player who has just moved can have won")
        return s._replace(forfeit=jnp.int8(records.forfeit("breakthrough", record, mover, lambda: over(s))))

    straight = np.arange(rows * cols)
    same = image(straight, [0, 1, 2, 3, 4, 5])
    mirrored = lambda s: s._replace(board=s.board[:, ::-1])
    return Game(
        name="breakthrough",
        num_players=2,
        num_actions=6 * rows * cols,
        max_plies=2 * cols * (2 * rows - 5) + 1,  # every move brings a piece one row ahead, and the last one wins
        max_legal=6 * cols,  # three steps of each piece
        init=init,
        step=step,
        move=move,
        mask=mask,
        over=over,
        player=lambda s: s.to_move.astype(jnp.int32),
        rewards=rewards,
        observe=observe,
        symmetries=(
            Symmetry("identity", same, lambda planes: planes, lambda s: s),
            Symmetry(
                "mirrored", image(row * cols + cols - 1 - col, [2, 1, 0, 5, 4, 3]), lambda x: x[:, ::-1], mirrored
            ),
        ),
        show=show,
        action_name=action_name,
        parse_action=parse_action,
        to_record=to_record,
        from_record=from_record,
        to_mover_frame=np.stack([same, image((rows - 1 - row) * cols + col, [3, 4, 5, 0, 1, 2])]),
        actions_per_cell=6,
        offsets=np.array(STEPS, np.int32),
        view=View(
            about=__doc__.partition("\n")[0],
            seats=SEATS,
            picture=picture(rows, cols, names),
            cells=cells,
            label=action_name,
            legend="X White, O Black, . empty",
            lesson=LESSON,
            why_illegal=why_illegal,
            why_over=why_over,
        ),
    )
