"""Converts games of the pgx library to our `Game`, and our games to pgx environments.

`envs.make("pgx:shogi")` takes the rules, the observation and the pictures from pgx (Koyamada et al. 2023, "Pgx:
Hardware-accelerated parallel game simulators for reinforcement learning"), which must be installed. pgx assigns seats
at random; here player 0 always makes the first move. People can play animal shogi and shogi, which have action
codes of their own (`moves`, `views`); of the others we have games of our own.
`to_pgx(game)` converts the other way.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from envs import records
from envs.game import Array, Game, Hints, View, forfeit_rewards, no_symmetries
from envs.pgx_bridge import moves
from envs.pgx_bridge.views import KINDS, Seen

# Deterministic games of perfect information for two players: longest game in plies, most legal actions (None: the
# number of codes). pgx ends a game at these lengths; Othello counts a pass after every move. Chess: the largest known
# number of moves in a legal position. Gardner's chess: ten pieces with at most 16 moves each.
GAMES: dict[str, tuple[int, int | None]] = {
    "animal_shogi": (256, None),
    "chess": (512, 218),
    "connect_four": (42, None),
    "gardner_chess": (256, 160),
    "go_19x19": (722, None),
    "go_9x9": (162, None),
    "hex": (122, None),
    "othello": (122, None),
    "shogi": (512, 593),
    "tic_tac_toe": (9, None),
}
# The same games of ours, for people.
OURS = {
    "chess": "chess",
    "connect_four": "connect_four",
    "gardner_chess": "chess:size=5",
    "go_19x19": "go:size=19",
    "go_9x9": "go",
    "hex": "hex",
    "othello": "othello",
    "tic_tac_toe": "tictactoe",
}


class Position(NamedTuple):
    leaves: tuple[Array, ...]  # of pgx's state, without the observation, which follows from the others
    forfeit: Array  # int8[], player who made an illegal move, -1 for none


def _library() -> Any:
    try:
        return importlib.import_module("pgx")
    except ImportError:
        raise ValueError("games named pgx:... need the pgx library, which is not installed: pip install pgx") from None


def from_pgx(name: str) -> Game:
    """The pgx game with this id, such as "shogi".

    Raises:
        ValueError: pgx is not installed, or the id is not one of `GAMES`.
    """
    if name not in GAMES:
        known = ", ".join(f"pgx:{known}" for known in GAMES)
        raise ValueError(f"unknown game 'pgx:{name}'; of the pgx library there are: {known}")
    env = _library().make(name)
    max_plies, max_legal = GAMES[name]
    # The seats depend on the key alone; this takes a key that lets player 0 begin.
    first_of = jax.jit(lambda key: env.init(key).current_player)
    key = next(k for k in map(jax.random.PRNGKey, range(64)) if first_of(k) == 0)
    first = jax.device_get(jax.jit(env.init)(key))
    leaves, structure = jax.tree.flatten(first.replace(observation=None), is_leaf=lambda x: x is None)
    seen = next(i for i, leaf in enumerate(leaves) if leaf is None)
    codes = moves.codes(name) if name in KINDS else moves.numbers(len(first.legal_action_mask))
    frame = codes.to_mover_frame
    turned = not np.array_equal(*frame)
    labels = codes.labels[frame]  # int32[2, A]: pgx's code of every absolute code
    num_actions = labels.shape[1]

    def pack(state: Any, forfeit: Any) -> Position:
        return Position(tuple(leaf for i, leaf in enumerate(jax.tree.leaves(state)) if i != seen), forfeit)

    def unpack(s: Position) -> Any:
        return jax.tree.unflatten(structure, (*s.leaves[:seen], np.zeros(0), *s.leaves[seen:]))

    def init(key: Array | None = None) -> Position:
        return jax.tree.map(jnp.asarray, pack(first, np.int8(-1)))

    def over(s: Position) -> Array:
        state = unpack(s)
        return state.terminated | state.truncated | (s.forfeit >= 0)

    def mask(s: Position) -> Array:
        legal = codes.legal(unpack(s)) & ~over(s)
        return jnp.where(player(s) == 0, legal, legal[frame[1]]) if turned else legal

    def move(s: Position, a: Any) -> Position:
        label = jnp.asarray(labels)[player(s), a]  # int32: some games need it
        moved = pack(env.step(unpack(s), label), s.forfeit)
        return jax.tree.map(lambda old, new: jnp.where(over(s), old, new), s, moved)

    def step(s: Position, a: Any) -> Position:
        inside = jnp.clip(a, 0, num_actions - 1)
        legal = (inside == a) & mask(s)[inside]
        moved = jax.tree.map(lambda old, new: jnp.where(legal, new, old), s, move(s, inside))
        return moved._replace(forfeit=jnp.where(legal | over(s), s.forfeit, player(s)).astype(jnp.int8))

    def player(s: Position) -> Array:
        return unpack(s).current_player.astype(jnp.int32)

    def rewards(s: Position) -> Array:
        result = jnp.where(over(s), unpack(s).rewards, 0.0)
        return jnp.where(s.forfeit >= 0, forfeit_rewards(s.forfeit, 2), result).astype(jnp.float32)

    def show(s: Position) -> str:
        if over(s):
            return f"{name}: over, rewards {rewards(s).tolist()}"
        legal = np.flatnonzero(mask(s))
        return f"{name}: player {int(player(s))} to move, legal: {' '.join(map(str, legal))}"

    def to_record(s: Position) -> dict[str, Any]:
        return records.with_forfeit({"pgx": name, "leaves": [np.asarray(x).tolist() for x in s.leaves]}, s.forfeit)

    def from_record(record: dict[str, Any]) -> Position:
        return _from_record(record, name, init())

    people = Seen(name, max_plies, codes, unpack, mask, over, player, rewards) if name in KINDS else None
    return Game(
        name=f"pgx:{name}",
        num_players=2,
        num_actions=num_actions,
        max_plies=max_plies,
        max_legal=max_legal or num_actions,
        init=init,
        step=step,
        move=move,
        mask=mask,
        over=over,
        player=player,
        rewards=rewards,
        observe=lambda s: env.observe(unpack(s)).astype(jnp.float32),
        symmetries=no_symmetries(num_actions),
        show=people.show if people else show,
        action_name=lambda action: codes.name(int(action)),
        parse_action=codes.parse,
        to_record=to_record,
        from_record=from_record,
        to_mover_frame=frame if turned else None,
        actions_per_cell=codes.per_cell,
        offsets=codes.offsets,
        hints=Hints(moves_are_cheap=False),
        view=people.view() if people else _training_view(name, unpack),
    )


def _scalable(svg: str) -> str:
    """pgx's picture, which has a fixed size, with the view box that makes ours scalable."""
    size = {name: re.search(rf'<svg [^>]*\b{name}="([\d.]+)"', svg) for name in ("width", "height")}
    width, height = (found[1] for found in size.values() if found)
    return svg.replace("<svg ", f'<svg viewBox="0 0 {width} {height}" ', 1)


def _training_view(name: str, unpack: Callable[[Position], Any]) -> View:
    ours = OURS[name]
    return View(
        own_svg=lambda s: _scalable(unpack(s).to_svg()),
        for_training=f"expected a game for people, got pgx:{name}, which is for training only: try --env={ours}",
    )


def _from_record(record: Any, name: str, like: Position) -> Position:
    """A position from the output of `to_record`. Only the form is checked; pgx cannot detect impossible positions."""
    if not isinstance(record, dict) or record.get("pgx") != name or not isinstance(record.get("leaves"), list):
        raise ValueError(f"record: expected an object with pgx = '{name}' and leaves, a list of arrays")
    if len(record["leaves"]) != len(like.leaves):
        raise ValueError(f"leaves: expected {len(like.leaves)} arrays, got {len(record['leaves'])}")
    forfeit, leaves = record.get("forfeit", -1), []
    if not records.is_whole(forfeit, -1, 1):
        raise ValueError(f"forfeit: expected -1, 0 or 1, got {forfeit}")
    for i, (given, want) in enumerate(zip(record["leaves"], like.leaves, strict=True)):
        try:
            exact = np.asarray(given)
            if exact.dtype.kind not in {"b": "b", "f": "fi"}.get(want.dtype.kind, "i"):
                raise ValueError
            leaf = exact.astype(want.dtype)
        except (ValueError, TypeError, OverflowError):
            raise ValueError(f"leaves[{i}]: expected an array of {want.dtype}") from None
        if leaf.shape != want.shape or not np.array_equal(leaf, exact):
            raise ValueError(f"leaves[{i}]: expected {want.dtype} values of shape {list(want.shape)}")
        leaves.append(jnp.asarray(leaf))
    return Position(tuple(leaves), jnp.int8(forfeit))


@functools.cache
def to_pgx(game: Game) -> Any:
    """A two-player game of ours as a `pgx.Env`; the first player is random, as in pgx's own games. `observe` gives the
    planes of the player to move, whichever player it is asked about.

    Raises:
        ValueError: pgx is not installed, or the game is not for two players.
    """
    pgx = _library()
    if game.num_players != 2:
        raise ValueError(f"{game.name}: only a game for two players becomes a pgx environment")

    @flax.struct.dataclass
    class State(pgx.State):
        current_player: Array
        observation: Array
        rewards: Array
        terminated: Array
        truncated: Array
        legal_action_mask: Array
        _step_count: Array
        _position: Any  # our state
        _second: Array  # int32[], the pgx player who is our player 1

        @property
        def env_id(self) -> str:
            return game.name

    class Env(pgx.Env):
        def _state(self, position: Any, second: Array, count: Array) -> Any:
            rewards = game.rewards(position)
            return State(
                current_player=jnp.where(second == 1, game.player(position), 1 - game.player(position)),
                observation=jnp.zeros(self.observation_shape, jnp.float32),
                rewards=jnp.where(second == 1, rewards, rewards[::-1]),
                terminated=game.over(position),
                truncated=jnp.array(False),
                legal_action_mask=game.mask(position),
                _step_count=count,
                _position=position,
                _second=second,
            )

        def _init(self, key: Array) -> Any:
            start_key, seat_key = jax.random.split(key)
            second = jax.random.bernoulli(seat_key).astype(jnp.int32)
            return self._state(game.init(start_key), second, jnp.int32(0))

        def _step(self, state: Any, action: Array, key: Array) -> Any:
            return self._state(game.move(state._position, action), state._second, state._step_count)

        def _observe(self, state: Any, player_id: Array) -> Array:
            return game.observe(state._position)

        @property
        def id(self) -> str:
            return game.name

        @property
        def version(self) -> str:
            return "1"

        @property
        def num_players(self) -> int:
            return 2

        @property
        def num_actions(self) -> int:
            return game.num_actions

        @property
        def observation_shape(self) -> tuple[int, ...]:
            return jax.eval_shape(lambda: game.observe(game.init())).shape

    return Env()
