"""Small models with known answers, and a search of many positions at once, for the tests of search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from agents.actions import random_action
from agents.config import Config
from agents.network.network import Heads, Network
from agents.search.policies import make_search
from envs.game import Array, Game

KINDS = ["gumbel", "puct"]
# Enough to see every reply to every reply from a late position; values outweigh a prior that knows nothing.
DEEP = Config(
    num_simulations=400, max_num_considered_actions=16, gumbel_value_scale=1.0, rescale_values=False, c_puct=4.0
)
PLIES = 4


class Order(NamedTuple):
    """Four binary choices, made by the players in a given order; then a table says what they get."""

    choices: Array  # int8[4]
    plies: Array  # int8[]
    order: Array  # int8[4], who chooses at each ply
    table: Array  # float32[16], what the first player gets for each sequence of choices


def _over(s: Order) -> Array:
    return s.plies >= PLIES


def _rewards(s: Order) -> Array:
    result = s.table[jnp.sum(s.choices * jnp.array([8, 4, 2, 1]))]
    return jnp.where(_over(s), result, 0.0) * jnp.array([1.0, -1.0])


def _move(s: Order, action: Any) -> Order:
    here = (jnp.arange(PLIES) == s.plies) & ~_over(s)
    choices = jnp.where(here, action, s.choices).astype(jnp.int8)
    return s._replace(choices=choices, plies=jnp.minimum(s.plies + 1, PLIES).astype(jnp.int8))


def order_game() -> Game:
    """The game of `Order`; three action codes, of which the last is never legal."""
    zeros = jnp.zeros(PLIES, jnp.int8)
    return Game(
        name="order", num_players=2, num_actions=3, max_plies=PLIES, max_legal=2,
        init=lambda key=None: Order(zeros, jnp.int8(0), zeros, jnp.zeros(16)),
        step=_move, move=_move, over=_over, rewards=_rewards,
        mask=lambda s: jnp.array([True, True, False]) & ~_over(s),
        player=lambda s: s.order[jnp.minimum(s.plies, PLIES - 1)].astype(jnp.int32),
        observe=lambda s: s.choices.reshape(1, PLIES, 1).astype(jnp.float32),
        symmetries=(), show=str, action_name=str, parse_action=int,
        to_record=lambda s: {}, from_record=lambda d: None,
    )  # fmt: skip


def order_values(order: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Result under best play, for the player who moves first, of each of the two first choices."""

    def result(chosen: list[int]) -> float:
        if len(chosen) == PLIES:
            return table[int("".join(map(str, chosen)), 2)]
        best = min if order[len(chosen)] else max
        return best(result([*chosen, c]) for c in (0, 1))

    return np.array([result([c]) for c in (0, 1)]) * (-1 if order[0] else 1)


def bandit_game(worth: Array) -> Game:
    """One move, and the game ends with what that arm is worth, float32[K], to who made it. The state is the arm."""
    arms = len(worth)
    return Game(
        name="bandit", num_players=2, num_actions=arms, max_plies=1, max_legal=arms,
        init=lambda key=None: jnp.int32(-1), step=lambda s, a: jnp.int32(a), move=lambda s, a: jnp.int32(a),
        over=lambda s: s >= 0, rewards=lambda s: jnp.where(s >= 0, worth[s], 0.0) * jnp.array([1.0, -1.0]),
        mask=lambda s: jnp.broadcast_to(s < 0, (arms,)), player=lambda s: jnp.int32(0),
        observe=lambda s: jnp.zeros((1, 1, 1)), symmetries=(), show=str, action_name=str, parse_action=int,
        to_record=lambda s: {}, from_record=lambda d: None,
    )  # fmt: skip


class Three(NamedTuple):
    """Three players make one binary choice each, in turn; then a table says what everybody gets."""

    choices: Array  # int8[3]
    plies: Array  # int8[]
    table: Array  # float32[8, 3]


def three_game() -> Game:
    over = lambda s: s.plies >= 3

    def move(s: Three, action: Any) -> Three:
        here = (jnp.arange(3) == s.plies) & ~over(s)
        choices = jnp.where(here, action, s.choices).astype(jnp.int8)
        return s._replace(choices=choices, plies=jnp.minimum(s.plies + 1, 3).astype(jnp.int8))

    return Game(
        name="three", num_players=3, num_actions=2, max_plies=3, max_legal=2,
        init=lambda key=None: Three(jnp.zeros(3, jnp.int8), jnp.int8(0), jnp.zeros((8, 3))),
        step=move, move=move, over=over,
        rewards=lambda s: jnp.where(over(s), s.table[jnp.sum(s.choices * jnp.array([4, 2, 1]))], 0.0),
        mask=lambda s: jnp.ones(2, bool) & ~over(s), player=lambda s: jnp.minimum(s.plies, 2).astype(jnp.int32),
        observe=lambda s: s.choices.reshape(1, 3, 1).astype(jnp.float32),
        symmetries=(), show=str, action_name=str, parse_action=int,
        to_record=lambda s: {}, from_record=lambda d: None,
    )  # fmt: skip


def three_values(table: np.ndarray) -> np.ndarray:
    """What everybody gets after each first choice, when each player does the best for himself; no two results of a
    player are equal."""

    def best(options: list[np.ndarray], player: int) -> np.ndarray:
        return max(options, key=lambda values: values[player])

    last = [best([table[2 * i], table[2 * i + 1]], 2) for i in range(4)]
    return np.stack([best([last[2 * i], last[2 * i + 1]], 1) for i in range(2)])


def network_of(apply: Callable[[Any, Array], Any]) -> Network:
    """A network without weights that answers with `apply`, (weights, planes) -> (logits, value)."""

    def heads(weights, planes):
        logits, value = apply(weights, planes)
        return Heads(logits, value, None)

    return Network(lambda key: {}, apply, lambda weights, planes: (heads(weights, planes), weights), heads)


def blank_network(num_actions: int) -> Network:
    """Knows nothing: uniform policy, value 0. What search finds with it, it finds by the rules alone."""

    def apply(weights, planes):
        return jnp.zeros((len(planes), num_actions)), jnp.zeros(len(planes))

    return network_of(apply)


def noisy_network(num_actions: int, seed: int = 0, players: int = 2, exact: bool = False) -> Network:
    """Arbitrary but fixed logits and values, different in every position. With `exact`, weights are sixteenths: sums
    over planes of whole numbers are exact, so a batch of another size, added up in another order, gets the same."""
    rng = np.random.default_rng(seed)
    heads = rng.normal(size=(1024, num_actions + (1 if players == 2 else players)))
    heads = jnp.asarray(np.round(16 * heads) / 16 if exact else heads, jnp.float32)

    def apply(weights, planes):
        flat = planes.reshape(len(planes), -1)
        flat = flat[:, :: -(-flat.shape[1] // len(heads))]  # some of them, where there are many
        hidden = jnp.sin(flat @ heads[: flat.shape[1]] * 3)
        values = jnp.tanh(hidden[:, num_actions:])
        return 2 * hidden[:, :num_actions], values[:, 0] if players == 2 else values

    return network_of(apply)


def choose(game, net, config, states, explore=False, seed=0, **forced):
    """What the search finds in each of the positions, without noise unless asked for."""
    count = len(jax.tree.leaves(states)[0])
    search = jax.jit(make_search(game, net, config, explore=explore, **forced))
    return jax.device_get(search({}, jax.random.key(seed), states, jnp.full(count, 99, jnp.int32)))


def stack(states):
    """Single positions as a batch."""
    return jax.tree.map(lambda *x: jnp.asarray(np.stack(x)), *jax.device_get(states))


def random_positions(game, count, spread):
    """Positions after a random number of random plies, some of them finished."""
    wait = jnp.arange(count) * spread // count

    @jax.jit
    def run():
        states = jax.vmap(lambda _: game.init())(wait)

        def ply(t, states):
            action = random_action(jax.random.fold_in(jax.random.key(3), t), jax.vmap(game.mask)(states))
            moved = jax.vmap(game.step)(states, action)
            pick = lambda new, old: jnp.where((t < wait).reshape(-1, *[1] * (old.ndim - 1)), new, old)
            return jax.tree.map(pick, moved, states)

        return jax.lax.fori_loop(0, spread, ply, states)

    return run()
