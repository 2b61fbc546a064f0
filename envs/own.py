"""Builds a `Game` from rules alone: what people see, records and illegal actions follow from them."""

from __future__ import annotations

import dataclasses
import functools
import string
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs import records
from envs.game import (
    Array,
    Game,
    Hints,
    State,
    Symmetry,
    Turn,
    View,
    forfeit_rewards,
    forfeit_words,
    no_symmetries,
    rectangle_turns,
)
from envs.pictures import cell_names, standing_words

SIGNS = {0: ".", 1: "X", -1: "O", 2: "O"}  # of whole numbers on a board


class OwnState(NamedTuple):
    position: State  # of the rules
    forfeit: Array  # int8[], player who made an illegal move, -1 for none


def own_game(
    about: str | None,
    init: Callable[[], State],
    mask: Callable[[State], Array],
    move: Callable[[State, Array], State],
    rewards: Callable[[State], Array],
    observe: Callable[[State], Array],
    *,
    max_plies: int,
    over: Callable[[State], Array] = lambda s: jnp.array(False),
    player: Callable[[State], Array] | None = None,
    num_players: int = 2,
    max_legal: int | None = None,
    symmetric: bool = False,
    names: Sequence[str] | None = None,
    seats: tuple[str, ...] = (),
    hints: Hints | None = None,
    view: View | None = None,
    **more: Any,
) -> Game:
    """The game of these rules: pure `jnp` functions of one position, which is a NamedTuple of arrays.

    Args:
        about: text whose first line is "Title: the rules in one sentence", usually the docstring of the file.
        init: the first position.
        mask: legal actions, bool[A]. The game is over where there are none.
        move: the position after a legal action.
        rewards: for each player, [num_players], of a game that is over: from -1 to 1, their sum is zero.
        observe: planes [R, C, P], or one plane [R, C], as the player to move sees the board.
        max_plies: no game is longer.
        over: whether the game is over although `mask` has actions, bool[].
        player: the player to move, from 0; by default the field `to_move`.
        num_players: two or more.
        max_legal: most legal actions of a position; by default the number of actions.
        symmetric: whether the rules stay the same when the board is turned or reflected. Actions are then its cells,
            row by row, and perhaps a pass after them. The fields with the shape of the board turn with it.
        names: of the actions. By default a1, b1, ... from the lower left corner if actions are the cells, with `pass`
            for one more, otherwise their numbers.
        seats: names of the players.
        hints: as in `Game`, for positions of these rules.
        view: likewise; by default the planes of the board, whose cells are the actions.
        more: other fields of `Game`, such as `to_mover_frame`.

    Records hold the fields of a position. Whether a game can lead to it is not checked.

    Raises:
        ValueError: the functions give other shapes than these.
    """
    start, num_actions, rows, cols = _sizes(init, mask, observe)
    on_cells = num_actions - rows * cols in (0, 1)
    if player is None and "to_move" not in start._fields:
        raise ValueError(f"player: expected a field to_move or the option player, got {', '.join(start._fields)}")
    if symmetric and not on_cells:
        raise ValueError(f"symmetric: expected {rows * cols} actions, one for each cell, got {num_actions}")
    rules = Rules(mask, move, rewards, observe, over, player or _to_move, num_players, num_actions)
    usual = [*cell_names(rows, cols), "pass"][:num_actions] if on_cells else map(str, range(num_actions))
    words = tuple(names or usual)
    if len(set(words)) != num_actions:
        raise ValueError(f"names: expected {num_actions} different ones, got {len(set(words))}")
    people = seats or tuple(string.ascii_uppercase[:num_players])

    def show(s: OwnState) -> str:
        """Every field but the player to move, then who that is, or who has won."""
        held = zip(start._fields, s.position, strict=True)
        shown = [_shown(field, np.asarray(x), (rows, cols)) for field, x in held if field != "to_move"]
        return "\n".join([*shown, standing_words(people, rules.is_over(s), rules.mover(s), rules.results(s))])

    def parse_action(text: str) -> int:
        if text not in words:
            raise ValueError(f"no move '{text}': expected {words[0]} to {words[-1]}")
        return words.index(text)

    default = View(
        about=(about or "").partition("\n")[0],
        seats=seats,
        cells=(lambda a: (words[a],) if int(a) < rows * cols else ()) if on_cells and names is None else None,
        legend=_legend(start),
        why_over=lambda s: forfeit_words(people, s.forfeit),
    )
    return Game(
        name="own game",
        num_players=num_players,
        num_actions=num_actions,
        max_plies=max_plies,
        max_legal=max_legal or num_actions,
        init=lambda key=None: OwnState(_arrays(init()), jnp.int8(-1)),
        step=rules.step,
        move=rules.moved,
        mask=rules.legal,
        over=rules.is_over,
        player=rules.mover,
        rewards=rules.results,
        observe=rules.seen,
        symmetries=_turns(rows, cols, num_actions) if symmetric else no_symmetries(num_actions),
        show=show,
        action_name=lambda action: words[int(action)],
        parse_action=parse_action,
        to_record=to_record,
        from_record=functools.partial(from_record, rules, start),
        hints=_hints_of(hints) if hints else Hints(),
        view=view.of(lambda s: s.position) if view else default,
        **more,
    )


@dataclasses.dataclass(frozen=True)
class Rules:
    """The rules of an own game, as `own_game` takes them, and the functions of an `OwnState` that follow from them."""

    mask: Callable[[State], Array]
    move: Callable[[State, Array], State]
    rewards: Callable[[State], Array]
    observe: Callable[[State], Array]
    over: Callable[[State], Array]
    player: Callable[[State], Array]
    num_players: int
    num_actions: int

    def mover(self, s: OwnState) -> Array:
        return jnp.asarray(self.player(s.position)).astype(jnp.int32)

    def legal(self, s: OwnState) -> Array:
        return self.mask(s.position) & ~self.over(s.position) & (s.forfeit < 0)

    def is_over(self, s: OwnState) -> Array:
        return ~self.legal(s).any()

    def moved(self, s: OwnState, action: Array | int) -> OwnState:
        after = self.move(s.position, jnp.asarray(action).astype(jnp.int32))
        return s._replace(position=jax.tree.map(_as_before, s.position, after))

    def step(self, s: OwnState, action: Array | int) -> OwnState:
        code, legal = jnp.clip(jnp.asarray(action).astype(jnp.int32), 0, self.num_actions - 1), self.legal(s)
        allowed = (code == action) & legal[code]
        after = jax.tree.map(lambda new, old: jnp.where(allowed, new, old), self.moved(s, code), s)
        forfeit = jnp.where(legal.any() & ~allowed, self.mover(s), s.forfeit)
        return after._replace(forfeit=forfeit.astype(jnp.int8))

    def results(self, s: OwnState) -> Array:
        ended = jnp.where(self.is_over(s), jnp.asarray(self.rewards(s.position)).astype(jnp.float32), 0.0)
        return jnp.where(s.forfeit < 0, ended, forfeit_rewards(s.forfeit, self.num_players))

    def seen(self, s: OwnState) -> Array:
        planes = jnp.asarray(self.observe(s.position)).astype(jnp.float32)
        return planes[..., None] if planes.ndim == 2 else planes


def _to_move(s: Any) -> Array:
    return s.to_move


def _sizes(init: Callable[..., Any], mask: Callable[..., Any], observe: Callable[..., Any]) -> Any:
    """The shapes and dtypes of a position, the number of actions, and of rows and columns."""
    wrong = lambda name, wanted, got: ValueError(f"{name}: expected {wanted}, got {got}")
    start = jax.eval_shape(lambda: _arrays(init()))
    if not hasattr(start, "_fields") or not all(hasattr(x, "shape") for x in start):
        raise wrong("init", "a NamedTuple of arrays", type(start).__name__)
    legal, planes = jax.eval_shape(mask, start), jax.eval_shape(observe, start)
    if legal.ndim != 1:
        raise wrong("mask", "bool[A]; ravel() makes one row of a board", f"{legal.dtype}{list(legal.shape)}")
    if planes.ndim not in (2, 3):
        raise wrong("observe", "planes [R, C, P] or [R, C]", f"{planes.dtype}{list(planes.shape)}")
    return start, legal.shape[0], *planes.shape[:2]


def _arrays(position: State) -> State:
    """The position with fields of fixed dtypes: a Python number becomes an array."""
    return jax.tree.map(lambda x: jax.lax.convert_element_type(x, jnp.asarray(x).dtype), position)


def _as_before(old: Array, new: Any) -> Array:
    """The new value of a field in its dtype, if that is of the same kind, as int32 is for int8."""
    new = jnp.asarray(new)
    return new.astype(old.dtype) if np.can_cast(new.dtype, old.dtype, "same_kind") else new


def _hints_of(hints: Hints) -> Hints:
    """Hints for positions, as hints for an `OwnState`."""
    of_rules = hints.canonical
    canonical = of_rules and (lambda s: s._replace(position=of_rules(s.position)))
    return dataclasses.replace(hints.of(lambda s: s.position), canonical=canonical)


def _turns(rows: int, cols: int, num_actions: int) -> tuple[Symmetry, ...]:
    """The symmetries of the board for actions that are its cells and perhaps a pass."""
    beyond = np.arange(rows * cols, num_actions, dtype=np.int32)

    def symmetry(turn: Turn) -> Symmetry:
        one = lambda x: turn.grid(x) if x.shape[:2] == (rows, cols) else x
        state = lambda s: s._replace(position=jax.tree.map(one, s.position))
        return Symmetry(turn.name, np.concatenate([turn.squares, beyond]), turn.grid, state)

    return tuple(map(symmetry, rectangle_turns(rows, cols)))


def to_record(s: OwnState) -> dict[str, Any]:
    held = {field: np.asarray(x).tolist() for field, x in s.position._asdict().items()}
    return records.with_forfeit(held, s.forfeit)


def from_record(rules: Rules, start: Any, record: dict[str, Any]) -> OwnState:
    """`start` has the shapes and dtypes of the fields."""
    game = "own game"
    records.fields(game, record, start._fields)
    held = {field: _read(game, field, record[field], like) for field, like in start._asdict().items()}
    s = OwnState(type(start)(**held), jnp.int8(-1))
    forfeit = records.forfeit(game, record, int(rules.mover(s)), lambda: rules.is_over(s))
    return s._replace(forfeit=jnp.int8(forfeit))


def _read(game: str, field: str, value: Any, like: jax.ShapeDtypeStruct) -> Array:
    """A field of a record as an array of this dtype and shape; ValueError if it is something else."""
    wanted = f"{game} record: {field}: expected {like.dtype}{list(like.shape)}"
    try:
        found = np.asarray(value)
    except ValueError:
        raise ValueError(f"{wanted}, got lists of different lengths") from None
    if found.shape != like.shape:
        raise ValueError(f"{wanted}, got the shape {list(found.shape)}")
    kinds = {"b": "b", "i": "iu", "u": "iu", "f": "iuf"}[np.dtype(like.dtype).kind]
    if found.size and (found.dtype.kind not in kinds or (found != found.astype(like.dtype)).any()):
        raise ValueError(f"{wanted}, got {value!r}")
    return jnp.asarray(found.astype(like.dtype))


def _shown(field: str, value: np.ndarray, board: tuple[int, int]) -> str:
    """A field as text: a grid of signs if it has two axes, with the names of rows and columns if it is the board;
    otherwise its name and value."""
    if value.ndim != 2:
        return f"{field} {value.tolist()}"
    sign = {True: "#", False: "."} if value.dtype == bool else SIGNS
    lines = [[sign.get(x, str(x)) for x in row] for row in value.tolist()]
    if value.shape == board and board[1] <= 26:
        lines = [[str(len(lines) - r), *line] for r, line in enumerate(lines)]
        lines.append(["", *string.ascii_lowercase[: board[1]]])
    width = max(len(cell) for line in lines for cell in line)
    return "\n".join(" ".join(cell.rjust(width) for cell in line) for line in lines)


def _legend(start: Any) -> str:
    """The signs of `_shown` for the boards of a position."""
    signs = {"b": "# filled, . empty", "i": "X 1, O -1 or 2, . 0", "u": "X 1, O 2, . 0"}
    kinds = [np.dtype(x.dtype).kind for x in start if x.ndim == 2]
    return "; ".join(dict.fromkeys(signs[kind] for kind in kinds if kind in signs))
