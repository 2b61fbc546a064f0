"""The engine's interface to a game: one record of pure functions, and the transforms that wrap it.

Rules work on one unbatched position; callers `vmap`. A state is a NamedTuple of small arrays with what the rules need.
Observation, legal mask and rewards are derived from the state and never stored.
"""

from __future__ import annotations

import dataclasses
import functools
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from envs import pictures
from envs.pictures import Picture

Array: TypeAlias = jax.Array
State: TypeAlias = Any  # a game's own NamedTuple of arrays


@dataclasses.dataclass(frozen=True)
class Symmetry:
    """One symmetry of the rules, as three mutually consistent maps.

    `step(state(s), actions[a])` equals `state(step(s, a))` and `observe(state(s))` equals `planes(observe(s))`.
    """

    name: str
    actions: np.ndarray  # int32[A], image of every action code
    planes: Callable[[Array], Array]  # float32[R, C, P] -> the same shape
    state: Callable[[State], State]


@dataclasses.dataclass(frozen=True)
class Hints:
    """What a game knows beyond its rules, for search, proofs and learning. A game without hints is learned as well."""

    evaluate: Callable[[State], Array] | None = None  # float32[], hand-made value in [-1, 1] for the mover
    urge: Callable[[State], Array] | None = None  # float32[A], moves to try first early on, see Config.early_urge
    owners: Callable[[State], Array] | None = None  # int8[A], owner of each cell once the game is over, n for nobody
    known_result: Callable[[State], Array] | None = None  # float32[], mover's result if theory knows it, else NaN
    canonical: Callable[[State], State] | None = None  # reduced to what decides the mover's result, see below
    moves_are_cheap: bool = True  # trying all moves is cheap compared with a network: proofs look ahead

    # Proofs merge positions with equal `canonical`, so positions with different results for the player to move must
    # differ in it. `canonical` may exchange the players only in a game without draws, and it preserves the symmetries.

    def of(self, inner: Callable[[State], State]) -> Hints:
        """The same hints for a game whose states contain the present ones, without `canonical`."""
        through = lambda hint: hint and (lambda s: hint(inner(s)))
        return dataclasses.replace(
            self,
            evaluate=through(self.evaluate),
            urge=through(self.urge),
            owners=through(self.owners),
            known_result=through(self.known_result),
            canonical=None,
        )


@dataclasses.dataclass(frozen=True)
class Step:
    """A step of the lesson that teaches a game: a short paragraph beside the picture of a position."""

    text: str  # plain English, at most 300 characters
    moves: tuple[str, ...] = ()  # names of the moves that lead to the position
    board: str = ""  # spec of the game in which they are made, perhaps on a smaller board; "" for the game itself


@dataclasses.dataclass(frozen=True)
class View:
    """How people see a game, learn it and choose their moves.

    A page plays a game through the cells of its picture (envs/pictures.py) and `cells`. An action is a button if it
    has no cells, the same cells as another action, or one cell and its own label. A game without `cells` has only
    buttons. Lists of moves omit a bracketed end of a label.
    """

    about: str = ""  # "Title: the rules in one sentence", for people
    seats: tuple[str, ...] = ()  # names of the players; by default A, B, C, ...
    picture: Picture | None = None  # by default the planes of `observe`, see `Game.drawing`
    own_svg: Callable[[State], str] | None = None  # picture of a game whose library draws it, instead of `picture`
    cells: Callable[[int], tuple[str, ...]] | None = None  # cells to select in turn for an action
    label: Callable[[int], str] | None = None  # text on the button of an action, by default its name
    legend: str = ""  # meaning of the signs in `Game.show`: "X Black, O White, . empty"
    cased: bool = False  # in `Game.show` letters are pieces, capitals of the first player, small ones of the second
    lesson: tuple[Step, ...] = ()  # how to play, in this order
    for_training: str = ""  # why people cannot play the game; "" if they can
    # On the host, for people. Why an action is illegal in a game in progress ("c3 is taken"), and why a game is over
    # ("White cannot move"); "" where there is nothing to say.
    why_illegal: Callable[[State, int], str] = lambda s, action: ""
    why_over: Callable[[State], str] = lambda s: ""

    def of(self, inner: Callable[[State], State]) -> View:
        """The same view of a game whose states contain the present ones."""
        svg, why_illegal, why_over = self.own_svg, self.why_illegal, self.why_over
        return dataclasses.replace(
            self,
            picture=self.picture and self.picture.of(inner),
            own_svg=svg and (lambda s: svg(inner(s))),
            why_illegal=lambda s, action: why_illegal(inner(s), action),
            why_over=lambda s: why_over(inner(s)),
        )


def board_view(
    doc: str | None,
    seats: tuple[str, ...],
    picture: Picture,
    names: Callable[[int], str],
    buttons: Mapping[int, str] | None = None,
    **more: Any,
) -> View:
    """The view of a game whose actions are the cells of its board.

    Args:
        doc: text whose first line is `View.about`, usually the game's docstring.
        seats: names of the players.
        picture: the picture, whose cells have the names of the actions.
        names: name of an action, `Game.action_name`.
        buttons: labels of the actions that are no cells, such as a pass.
        more: the remaining fields of `View`, such as `lesson`.
    """
    labels = buttons or {}
    return View(
        about=(doc or "").partition("\n")[0],
        seats=seats,
        picture=picture,
        cells=lambda action: () if int(action) in labels else (names(action),),
        label=lambda action: labels.get(int(action)) or names(action),
        **more,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Game:
    """A game of perfect information without chance: its rules as pure functions on one position, hints and a view.

    A finished game is a fixed point of `step`. An illegal action, in range or not, ends an unfinished game: the mover
    gets -1 and every other player +1/(n-1). Masks are True for legal everywhere.
    """

    name: str  # full spec: envs.make(game.name) is game
    num_players: int
    num_actions: int
    max_plies: int  # no game is longer; a game cut by a cap is a draw unless the rules define a result
    max_legal: int  # proven bound on the number of legal actions in any position
    init: Callable[..., State]  # init(key=None) -> start position
    step: Callable[[State, Any], State]  # position after an action, which may be illegal
    move: Callable[[State, Any], State]  # the same for an action known to be legal, without computing a mask
    mask: Callable[[State], Array]  # bool[A]; all False exactly when the game is over
    over: Callable[[State], Array]  # bool[]
    player: Callable[[State], Array]  # int32[], player to move
    rewards: Callable[[State], Array]  # float32[num_players]; zero until the end, sums to zero
    observe: Callable[[State], Array]  # float32[R, C, P], seen by the player to move
    symmetries: tuple[Symmetry, ...]  # the identity first
    show: Callable[[State], str]
    action_name: Callable[[int], str]
    parse_action: Callable[[str], int]  # inverse of action_name; ValueError with the reason
    to_record: Callable[[State], dict[str, Any]]  # JSON-ready
    from_record: Callable[[dict[str, Any]], State]  # ValueError with the reason for an impossible position
    to_mover_frame: np.ndarray | None = None  # int32[num_players, A]: absolute code -> code in the mover's frame
    actions_per_cell: int = 1  # k if codes are k * cell + kind, cells row by row as in `observe`, perhaps with a pass
    offsets: np.ndarray | None = None  # int32[k, 2], rows and columns by which each kind goes, in the mover's frame
    observation_state: Callable[[State], State] = lambda s: s  # smallest state with the same `observe`
    hints: Hints = Hints()
    view: View = View()

    @functools.cached_property
    def drawing(self) -> Picture:
        """The picture as data."""
        return self.view.picture or pictures.planes(titles(self)[0], self)

    def svg(self, s: State) -> str:
        """Picture of a position as an SVG document."""
        return self.view.own_svg(s) if self.view.own_svg else pictures.svg(self.drawing, s)


def forfeit_rewards(forfeit: Array, num_players: int) -> Array:
    """Rewards, float32[num_players], after player `forfeit` ended the game by an illegal action."""
    return jnp.where(jnp.arange(num_players) == forfeit, -1.0, 1.0 / (num_players - 1))


def forfeit_words(seats: Sequence[str], forfeit: Array) -> str:
    """The reason for the end of a game, `View.why_over`, if player `forfeit` made an illegal action; else ""."""
    return f"{seats[int(forfeit)]} made an illegal move" if forfeit >= 0 else ""


def no_symmetries(num_actions: int) -> tuple[Symmetry, ...]:
    """The symmetries of a game that has none: the identity."""
    return (Symmetry("identity", np.arange(num_actions, dtype=np.int32), lambda planes: planes, lambda s: s),)


class Turn(NamedTuple):
    """A symmetry of a rectangle: `grid` acts on the two leading axes of an array, `squares` on row-major squares."""

    name: str
    squares: np.ndarray  # int32[R * C], image of every square
    grid: Callable[[Array], Array]


def rectangle_turns(rows: int, cols: int) -> tuple[Turn, ...]:
    """The 4 symmetries of a rectangle, or the 8 of a square; the identity first."""
    numbers = np.arange(rows * cols, dtype=np.int32).reshape(rows, cols)
    turns = []
    for transpose in (False, True) if rows == cols else (False,):
        for flip_rows, flip_cols in ((False, False), (True, False), (False, True), (True, True)):

            def grid(x, transpose=transpose, flip_rows=flip_rows, flip_cols=flip_cols):
                x = x[:: -1 if flip_rows else 1, :: -1 if flip_cols else 1]
                return x.swapaxes(0, 1) if transpose else x

            parts = [("rows", flip_rows), ("columns", flip_cols), ("transpose", transpose)]
            name = "+".join(word for word, used in parts if used) or "identity"
            # grid() moves square grid(numbers)[i] to place i, so the inverse permutation gives the images.
            squares = np.argsort(grid(numbers).ravel()).astype(np.int32)
            turns.append(Turn(name, squares, grid))
    return tuple(turns)


class HistoryState(NamedTuple):
    """A position with its predecessors."""

    now: State
    past: State  # what is kept of them, with a leading axis [length - 1], newest first; missing ones repeat the oldest
    played: Array  # int8[], number of real entries in `past`


# Functions of a game that work on one position, for `on_usual_board`.
FUNCTIONS = ("init", "mask", "step", "move", "over", "player", "rewards", "observe", "show", "to_record", "from_record")


def on_usual_board(make: Callable[[], Game]) -> Callable[[str], Callable[..., Any]]:
    """The `__getattr__` of a module whose rules depend on the size of the board. It gives the functions of `make()`, so
    that `from envs.hex import step` is a pure function as in the other modules."""
    game = functools.cache(make)

    def find(name: str) -> Callable[..., Any]:
        if name in FUNCTIONS:
            return getattr(game(), name)
        raise AttributeError(f"module '{make.__module__}' has no attribute '{name}'")

    return find


def with_history(
    game: Game,
    length: int,
    stack: Callable[[State, State, Array], Array],
    keep: Callable[[State], State] | None = None,
) -> Game:
    """The same game, observed through its last `length` positions.

    Args:
        game: rules to wrap.
        length: number of positions, including the present one.
        stack: (now, past, played) -> float32[R, C, P], see `HistoryState`.
        keep: the part of an earlier position that `stack` needs; by default `game.observation_state`.

    Records gain `past`, a list of earlier positions as records, newest first; absent means empty.
    """
    assert length >= 2
    keep = keep or game.observation_state

    def begin(now: State) -> HistoryState:
        past = jax.tree.map(lambda x: jnp.repeat(x[None], length - 1, axis=0), keep(now))
        return HistoryState(now, past, jnp.int8(0))

    def push(s: HistoryState, now: State) -> HistoryState:
        """`now` before the earlier positions."""
        shift = lambda new, old: jnp.concatenate([new[None], old[:-1]])
        past = jax.tree.map(shift, keep(s.now), s.past)
        return HistoryState(now, past, jnp.minimum(s.played + 1, length - 1))

    def step(s: HistoryState, action: Array | int) -> HistoryState:
        """A game that was already over stays unchanged."""
        after = push(s, game.step(s.now, action))
        return jax.tree.map(functools.partial(jnp.where, game.over(s.now)), s, after)

    def turn(symmetry: Symmetry) -> Symmetry:
        state = lambda s: HistoryState(symmetry.state(s.now), jax.vmap(symmetry.state)(s.past), s.played)
        return dataclasses.replace(symmetry, state=state)

    def canonical(s: HistoryState) -> HistoryState:
        now = s.now if game.hints.canonical is None else game.hints.canonical(s.now)
        return HistoryState(now, jax.tree.map(jnp.zeros_like, s.past), jnp.zeros_like(s.played))

    def to_record(s: HistoryState) -> dict[str, Any]:
        earlier = (jax.tree.map(lambda x: x[i], s.past) for i in range(int(s.played)))
        return game.to_record(s.now) | {"past": [game.to_record(p) for p in earlier]}

    def from_record(record: dict[str, Any]) -> HistoryState:
        if not isinstance(record, dict):
            raise ValueError("record: expected an object with named fields")
        past = record.get("past", [])
        if not isinstance(past, list) or len(past) > length - 1:
            raise ValueError(f"past: expected a list of at most {length - 1} positions, newest first")
        now = game.from_record({k: v for k, v in record.items() if k != "past"})
        earlier = [keep(game.from_record(p)) for p in past]
        frames = earlier + [earlier[-1] if earlier else keep(now)] * (length - 1 - len(earlier))
        return HistoryState(now, jax.tree.map(lambda *x: jnp.stack(x), *frames), jnp.int8(len(past)))

    now = lambda s: s.now
    return dataclasses.replace(
        game,
        init=lambda key=None: begin(game.init(key)),
        step=step,
        move=lambda s, a: push(s, game.move(s.now, a)),
        mask=lambda s: game.mask(s.now),
        over=lambda s: game.over(s.now),
        player=lambda s: game.player(s.now),
        rewards=lambda s: game.rewards(s.now),
        observe=lambda s: stack(s.now, s.past, s.played),
        observation_state=lambda s: s._replace(now=game.observation_state(s.now)),
        symmetries=tuple(turn(t) for t in game.symmetries),
        show=lambda s: game.show(s.now),
        hints=dataclasses.replace(game.hints.of(now), canonical=canonical),
        view=game.view.of(now),
        to_record=to_record,
        from_record=from_record,
    )


def titles(game: Game) -> tuple[str, str]:
    """Title and rules of a game, for people."""
    title, colon, rules = game.view.about.partition(": ")
    return (title, rules[:1].upper() + rules[1:]) if colon else (game.view.about or game.name.partition(":")[0], "")


def seats(game: Game) -> tuple[str, ...]:
    """Names of the players."""
    return game.view.seats or tuple(string.ascii_uppercase[: game.num_players])


@functools.lru_cache(maxsize=64)
def first_player(game: Game) -> int:
    """The player who makes the first move."""
    return int(jax.jit(lambda: game.player(game.init()))())
