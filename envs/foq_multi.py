"""Flight of Queen, the multi game: n players with a queen each; stuck players drop out, and the last one left wins.

Slides, attacks and squares are those of the double game (`foq`); with two players the games are the same. A player who
is stuck on their turn drops out for good, and the turn passes to the next player still in. Their queen stays in place
and still attacks. Every state has this resolved: the player to move can move, or is the only one left.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs import foq, foq_theory, pictures
from envs.foq import player, reach, rip
from envs.game import Array, Game, Hints, Step, forfeit_rewards, forfeit_words

__all__ = [
    "State", "from_record", "init", "make", "mask", "mobility", "move", "observe", "over", "player", "reach", "rewards",
    "rip", "show", "step", "svg", "to_record",
]  # fmt: skip


ENDS = {  # a short game by the number of players, on the board of the lesson
    2: ("d2", "c4", "b2", "c5", "b1", "b5", "a2"),
    3: ("a3", "e1", "c2", "e3", "d1", "f3", "d2", "f2"),
    4: ("d2", "c4", "e5", "b1"),
}


class State(NamedTuple):
    ripped: Array  # bool[R, C], ripped squares, including those under the queens
    queens: Array  # int16[n], square of each queen
    to_move: Array  # int8[], player to move; the winner of a game played to its end
    forfeit: Array  # int8[], player who made an illegal move, -1 for none
    dropped: Array  # bool[n], players who have dropped out


# Rules


def init(rows: int = 8, cols: int = 9, starts: Sequence[tuple[int, int]] | None = None, players: int = 3) -> State:
    """Start position; `starts` are (row, col) in player order, by default one corner for each of `players`.

    Corners are taken in the order top left, bottom right, top right, bottom left. If `starts` is given, its length is
    the number of players.

    Raises:
        ValueError: sides not from 1 to 26, starting squares off the board or not distinct, too few or too many players.
    """
    return _settle(_placed(rows, cols, starts, players), 0)


def _placed(rows: int, cols: int, starts: Sequence[tuple[int, int]] | None, players: int) -> State:
    """The queens on their squares, the turn not yet settled; raises the errors of `init`."""
    if starts is None:
        if not 2 <= players <= 4:
            raise ValueError(f"foq_multi: expected 2 to 4 players in the corners, got {players}")
        starts = foq.corners(rows, cols, players)
    if not 2 <= len(starts) <= foq.LARGEST:
        raise ValueError(f"foq_multi: expected 2 to {foq.LARGEST} starting squares, got {len(starts)}")
    return State(*foq.init(rows, cols, starts), jnp.zeros(len(starts), bool))


def _settle(s: State, first: Array | int) -> State:
    """The same board with the turn at player `first`, or at the next player in order who is in and can move.

    Skipped players drop out, as long as another player is left.
    """
    n = s.queens.shape[0]
    reached = foq.reaches(s)
    free = (reached & (reached.sum(0) == 1)).any((1, 2))  # players with a target that no other queen reaches
    turn = (jnp.arange(n) - first) % n  # turns until each player would be to move
    can = jnp.where(free & ~s.dropped, turn, n).min()
    last = jnp.where(s.dropped, 0, turn).max()
    turns = jnp.minimum(can, last)
    return s._replace(to_move=((first + turns) % n).astype(jnp.int8), dropped=s.dropped | (turn < turns))


def over(s: State) -> Array:
    """bool[]: one player is left, or someone forfeited."""
    return (s.forfeit >= 0) | (s.dropped.sum() == s.dropped.size - 1)


def mask(s: State) -> Array:
    """bool[A], legal targets."""
    return foq.targets(s).ravel() & ~over(s)


def move(s: State, action: Array | int) -> State:
    """Position after a legal action."""
    return _settle(foq.slide(s, action), s.to_move + 1)


def step(s: State, action: Array | int) -> State:
    """Position after any action: an illegal action forfeits, and a finished game does not change."""
    legal, forfeit = foq.judge(s, action, mask(s))
    # Settling at the player to move changes nothing.
    return _settle(foq.slide(s, action, legal), s.to_move + legal)._replace(forfeit=forfeit)


def rewards(s: State) -> Array:
    """float32[n]: 1 for the last player left, -1/(n-1) for the others; after a forfeit -1, 1/(n-1) for the others."""
    n = s.dropped.size
    played = jnp.where(over(s), -forfeit_rewards(s.to_move, n), 0.0)
    return jnp.where(s.forfeit >= 0, forfeit_rewards(s.forfeit, n), played)


def observe(s: State) -> Array:
    """float32[R, C, n + 4]: the planes of `foq.observe`, and the squares of queens whose players have dropped out."""
    out = foq_theory.places(s.queens, s.ripped.shape) & s.dropped[:, None, None]
    return jnp.concatenate([foq.observe(s), out.any(0)[..., None].astype(jnp.float32)], axis=-1)


def mobility(s: State) -> Array:
    """float32[] in [-1, 1]: the mover's `foq.lead`; the exact result once the game is over."""
    return jnp.where(over(s), rewards(s)[s.to_move], foq.lead(s)).astype(jnp.float32)


# For people


def lesson(players: int) -> tuple[Step, ...]:
    board = f"foq_multi:rows=5,cols=6,players={players}"
    return (
        Step(
            f"Each of the {players} players has a queen, and White begins. A queen slides any distance in a straight "
            "line, like in chess. The dots show where White may go.",
            board=board,
        ),
        Step(
            "All squares that a queen crosses are ripped for good, and so are those where she stops. No queen enters "
            "or crosses a ripped square. She may not stop on a square that another queen attacks.",
            ENDS[players][:2],
            board,
        ),
        Step(
            "A player who cannot move drops out. Their queen stays, and still attacks. The last player left wins.",
            ENDS[players],
            board,
        ),
    )


def why_over(s: State) -> str:
    """Why a multi game is over."""
    stuck = [seat for seat, out in zip(foq.SEATS, s.dropped, strict=False) if out]
    return forfeit_words(foq.SEATS, s.forfeit) or (f"{' and '.join(stuck)} cannot move" if over(s) else "")


def show(s: State) -> str:
    """Text picture: A, B, C, ... queens (lower case once dropped out), # ripped, . empty, * legal targets, with the
    player to move below."""
    letters = (c.lower() if out else c for c, out in zip(string.ascii_uppercase, np.asarray(s.dropped), strict=False))
    return foq.draw_text(s, mask(s), rewards(s), "".join(letters), foq.MARKED)


def svg(s: State) -> str:
    """Picture as an SVG document."""
    n = s.queens.size
    return pictures.svg(foq.picture(*s.ripped.shape, n, foq.SEATS[:n], mask, rewards), s)


# Records


def to_record(s: State) -> dict[str, Any]:
    """JSON-ready record, with the players who dropped out; `forfeit` is present only after a forfeit."""
    return foq.to_record(s, "foq_multi") | {"dropped": np.flatnonzero(np.asarray(s.dropped)).tolist()}


def from_record(record: dict[str, Any]) -> State:
    """Position of a record; a stuck player to move drops out at once. Without `dropped` all players are in.

    Raises:
        ValueError: a field is missing, unknown or out of range, or the position cannot occur; the message says which.
    """
    base = foq.read_record(record, "foq_multi", "two or more queens", lambda n: 2 <= n <= foq.LARGEST, ["dropped"])
    n = base.queens.shape[0]
    out = foq.distinct("foq_multi", "dropped", record.get("dropped", []), n, "players")
    if len(out) == n or int(base.to_move) in out:
        raise ValueError(f"foq_multi record: player {base.to_move} is to move and cannot have dropped out")
    loaded = State(*base, jnp.asarray(np.isin(np.arange(n), out)))
    s = _settle(loaded, loaded.to_move)
    if s.forfeit >= 0 and (s.to_move != base.to_move or s.dropped.sum() == n - 1):
        raise ValueError("foq_multi record: nobody can have forfeited, as the player to move has dropped out or won")
    return s


# The `Game` record


def make(rows: int = 8, cols: int = 9, players: int = 3, planes: str = "plain") -> Game:
    """The multi game of 2 to 4 players, who start in the corners of a board of `rows` x `cols`.

    `planes` is `plain` (see `observe`) or `article`: the article's six planes, with four boards of history.

    Raises:
        ValueError: unknown planes, too few or too many players, or a board where all players but one drop out at once.
    """
    with jax.ensure_compile_time_eval():
        placed = jax.device_get(_placed(rows, cols, None, players))
    settled = jax.jit(lambda s: (_settle(s, 0), over(_settle(s, 0))))
    # Compiled ahead, it runs here and now even while something else is traced.
    begin, ended = jax.device_get(settled.lower(placed).compile()(placed))
    if ended:
        raise ValueError(
            f"foq_multi: on a board of {rows} x {cols} the game of {players} players is over before the first move"
        )
    queens = (f"{letter} {seat}'s queen" for letter, seat in zip("ABCD"[:players], foq.SEATS, strict=False))
    return foq.build(
        f"foq_multi:rows={rows},cols={cols},players={players}",
        planes,
        begin,
        num_players=players,
        init=lambda key=None: jax.tree.map(jnp.asarray, begin),
        step=step,
        move=move,
        mask=mask,
        over=over,
        player=player,
        rewards=rewards,
        observe=observe,
        hints=Hints(evaluate=mobility),
        show=show,
        to_record=to_record,
        from_record=from_record,
        about=f"Flight of Queen for {players}: a queen for each; who is stuck drops out, and the last one left wins.",
        seats=foq.SEATS[:players],
        legend=f"{', '.join(queens)}, {' '.join('abcd'[:players])} dropped out, {foq.SIGNS}",
        lesson=lesson(players),
        why_over=why_over,
    )
