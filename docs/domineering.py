"""Domineering: player 0 places dominoes upright, player 1 lays them flat; a player without room loses."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from envs import pictures, records
from envs.game import Array, Game, Step, board_view, forfeit_rewards, forfeit_words, no_symmetries
from envs.pictures import Layer, Part, Picture

SEATS = ("Upright", "Flat")
LESSON = (
    Step("Upright begins. Each player in turn places a domino on two free squares; click its upper or left end."),
    Step("Upright places dominoes upright, and Flat lays them flat. A player without room loses.", ("a2",)),
)


class State(NamedTuple):
    filled: Array  # bool[R, C]
    to_move: Array  # int8[]
    forfeit: Array  # int8[], player who made an illegal move, -1 for none


def places(filled: Array, player: Array | int) -> Array:
    """bool[R, C]: squares that can be the upper (or left) end of the player's domino."""
    free = jnp.pad(~filled, ((0, 1), (0, 1)))
    below, right = free[1:, :-1], free[:-1, 1:]
    return free[:-1, :-1] & jnp.where(player == 0, below, right)


def mask(s: State) -> Array:
    return places(s.filled, s.to_move).ravel() & (s.forfeit < 0)


def over(s: State) -> Array:
    return ~mask(s).any()


def move(s: State, action: Array | int) -> State:
    rows, cols = s.filled.shape
    first = (jnp.arange(rows * cols) == action).reshape(rows, cols)
    shifted = jnp.where(s.to_move == 0, jnp.roll(first, 1, axis=0), jnp.roll(first, 1, axis=1))
    return s._replace(filled=s.filled | first | shifted, to_move=1 - s.to_move)


def step(s: State, action: Array | int) -> State:
    """Position after any action: an illegal action loses at once, and a finished game does not change."""
    legal = mask(s)
    allowed = (legal & (jnp.arange(legal.size) == action)).any()
    moved = move(s, action)
    forfeit = jnp.where(legal.any() & ~allowed, s.to_move, s.forfeit)
    return State(*(jnp.where(allowed, new, old) for new, old in zip(moved, s, strict=True)))._replace(forfeit=forfeit)


def rewards(s: State) -> Array:
    return jnp.where(over(s), forfeit_rewards(jnp.where(s.forfeit < 0, s.to_move, s.forfeit), 2), 0.0)


def observe(s: State) -> Array:
    """float32[R, C, 4] for the mover: filled, own places, the opponent's places, and the mover's number."""
    me = jnp.broadcast_to(s.to_move, s.filled.shape)
    planes = [s.filled, places(s.filled, s.to_move), places(s.filled, 1 - s.to_move), me]
    return jnp.stack([p.astype(jnp.float32) for p in planes], axis=-1)


def why_illegal(s: State, action: int) -> str:
    if mask(s)[action]:
        return ""
    return "that square is filled" if s.filled.ravel()[action] else f"no room for a domino of {SEATS[int(s.to_move)]}"


def why_over(s: State) -> str:
    return forfeit_words(SEATS, s.forfeit) or (f"{SEATS[int(s.to_move)]} cannot move" if over(s) else "")


def show(s: State) -> str:
    return "\n".join(" ".join("#" if x else "." for x in row) for row in np.asarray(s.filled))


def picture(rows: int, cols: int, names: list[str]) -> Picture:
    squares = tuple(pictures.square(38, f'fill="{fill}"') for fill in ("#e9dcc0", "#3a4048"))
    return Picture(
        title="Domineering",
        width=40 * cols,
        height=40 * rows,
        frame="",
        status=(pictures.standing(SEATS),),
        parts=(Part(pictures.grid(names, cols, 40, 0, 0), (Layer(squares, ("free", "filled")),)),),
        look=lambda s: ((pictures.standing_code(over(s), s.to_move, rewards(s)),), (s.filled,)),
    )


def make(rows: int = 4, cols: int = 4) -> Game:
    """The `Game` record for a board of `rows` x `cols`."""
    if not (2 <= rows <= 9 and 2 <= cols <= 9):
        raise ValueError(f"domineering: expected 2 to 9 rows and columns, got {rows} x {cols}")
    names = [f"{'abcdefghi'[c]}{rows - r}" for r in range(rows) for c in range(cols)]

    def action_name(action: int) -> str:
        return names[int(action)]

    def parse_action(text: str) -> int:
        if text not in names:
            raise ValueError(f"no square '{text}': expected a1 to {names[cols - 1][0]}{rows}")
        return names.index(text)

    def to_record(s: State) -> dict:
        record = {"filled": np.flatnonzero(np.asarray(s.filled)).tolist(), "to_move": int(s.to_move)}
        return record | ({"forfeit": int(s.forfeit)} if s.forfeit >= 0 else {})

    def from_record(record: dict) -> State:
        if not isinstance(record, dict) or not {"filled", "to_move"} <= set(record):
            raise ValueError("domineering record: expected an object with filled and to_move")
        records.fields("domineering", record, ("filled", "to_move"))
        squares = record["filled"]
        if not isinstance(squares, list) or len(set(map(str, squares))) < len(squares):
            raise ValueError("domineering record: filled: expected a list of different squares")
        for square in squares:
            records.whole("domineering", "a square", square, 0, rows * cols - 1)
        mover = records.whole("domineering", "to_move", record["to_move"], 0, 1)
        # The other player has made as many moves, or one more; each fills two squares.
        if len(squares) % 2 or (len(squares) // 2) % 2 != mover:
            raise ValueError("domineering record: the number of filled squares does not fit the player to move")
        filled = jnp.zeros(rows * cols, bool).at[jnp.array(squares, jnp.int32)].set(True)
        state = State(filled.reshape(rows, cols), jnp.int8(mover), jnp.int8(-1))
        forfeit = records.forfeit("domineering", record, mover, lambda: over(state))
        return state._replace(forfeit=jnp.int8(forfeit))

    return Game(
        name="domineering",
        num_players=2,
        num_actions=rows * cols,
        max_plies=rows * cols // 2,  # every move fills two squares
        max_legal=max((rows - 1) * cols, rows * (cols - 1)),
        init=lambda key=None: State(jnp.zeros((rows, cols), bool), jnp.int8(0), jnp.int8(-1)),
        step=step,
        move=move,
        mask=mask,
        over=over,
        player=lambda s: s.to_move.astype(jnp.int32),
        rewards=rewards,
        observe=observe,
        symmetries=no_symmetries(rows * cols),
        show=show,
        action_name=action_name,
        parse_action=parse_action,
        to_record=to_record,
        from_record=from_record,
        view=board_view(
            __doc__,
            SEATS,
            picture(rows, cols, names),
            action_name,
            legend="# filled, . free",
            lesson=LESSON,
            why_illegal=why_illegal,
            why_over=why_over,
        ),
    )
