"""Evaluates positions with a network, directly or through symmetries, in absolute action codes and for each player."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from agents.actions import ILLEGAL, at_slots, to_absolute, to_mover_frame
from agents.network.network import CPU_ROWS, Network
from agents.runtime import keys
from envs.game import Array, Game

Evaluate = Callable[..., tuple[Array, Array]]
"""(weights, key, states, slots=None) -> masked logits in absolute codes, values float32[B, n] for every player. The
logits are float32[B, A], or float32[B, K] at the codes of `slots` int32[B, K], see `legal_slots`."""


def make_evaluate(game: Game, net: Network, symmetry: str = "none") -> Evaluate:
    """The evaluation by a network.

    `symmetry` takes the values of `Config.leaf_symmetry`; only `random` uses the key.
    """
    look = {"none": _as_it_stands, "random": _through_a_random_one, "average": _through_all}[symmetry]
    if len(game.symmetries) < 2:
        look = _as_it_stands

    def evaluate(weights, key, states, slots=None):
        logits, value = look(game, net, weights, key, jax.vmap(game.observe)(states))
        player, logits = jax.vmap(game.player)(states), logits.astype(jnp.float32)
        if slots is None:
            logits = jnp.where(jax.vmap(game.mask)(states), to_absolute(game, logits, player), ILLEGAL)
        else:  # only the slots change their frame: there may be thousands of codes
            logits = at_slots(logits, to_mover_frame(game, slots, player), ILLEGAL)
        return logits, by_player(value.astype(jnp.float32), player, game.num_players)

    return evaluate


def where_unfinished(game: Game, evaluate: Evaluate) -> Evaluate:
    """`evaluate` for states of which some may be finished. Outputs for finished states are undefined.

    A CPU evaluates only the unfinished states, in equal chunks of at most `CPU_ROWS`. An accelerator evaluates all of
    them, because it needs one batch of a fixed size.
    """

    def unfinished(weights, key, states, slots, over):
        chunks = -(-len(over) // CPU_ROWS)
        size = -(-len(over) // chunks)
        order, count = jnp.argsort(over, stable=True), (~over).sum()
        logits, values = jax.eval_shape(evaluate, weights, key, states, slots)

        def chunk(carry):
            done, found = carry
            rows = jax.lax.dynamic_slice(order, (done,), (size,))
            own_key = key[rows] if key.ndim else jax.random.fold_in(key, done)
            answers = evaluate(weights, own_key, *jax.tree.map(lambda x: x[rows], (states, slots)))
            return done + size, jax.tree.map(lambda x, y: x.at[rows].set(y), found, answers)

        start = jnp.full(logits.shape, ILLEGAL), jnp.zeros(values.shape)
        return jax.lax.while_loop(lambda carry: carry[0] < count, chunk, (jnp.int32(0), start))[1]

    def chosen(weights, key, states, slots=None):
        over = jax.vmap(game.over)(states)
        if len(over) <= CPU_ROWS:  # a single chunk
            return evaluate(weights, key, states, slots)
        all_of_them = lambda weights, key, states, slots, over: evaluate(weights, key, states, slots)
        return jax.lax.platform_dependent(weights, key, states, slots, over, cpu=unfinished, default=all_of_them)

    return chosen


def _as_it_stands(game: Game, net: Network, weights, key, planes):
    return net.apply(weights, planes)


def _through_a_random_one(game: Game, net: Network, weights, key, planes):
    """Transforms each position by its own random symmetry and maps the logits back."""
    pick = lambda key, shape: jax.random.randint(key, shape, 0, len(game.symmetries))
    which = keys.draw_lanes(pick, key, (len(planes),))
    turned = planes
    for i, symmetry in enumerate(game.symmetries[1:], 1):
        turned = jnp.where((which == i)[:, None, None, None], jax.vmap(symmetry.planes)(planes), turned)
    logits, value = net.apply(weights, turned)
    images = jnp.asarray(np.stack([symmetry.actions for symmetry in game.symmetries]))
    return jnp.take_along_axis(logits, images[which], axis=-1), value


def _through_all(game: Game, net: Network, weights, key, planes):
    """Averages logits and values over all symmetries."""
    turned = jnp.concatenate([jax.vmap(symmetry.planes)(planes) for symmetry in game.symmetries])
    logits, value = net.apply(weights, turned)
    logits = logits.reshape(len(game.symmetries), -1, game.num_actions)
    back = [row[:, symmetry.actions] for row, symmetry in zip(logits, game.symmetries, strict=True)]
    return jnp.stack(back).mean(0), value.reshape(len(game.symmetries), len(planes), *value.shape[1:]).mean(0)


def by_player(value: Array, player: Array, num_players: int) -> Array:
    """A network's values by player, float32[B, n]. For two players `value` [B] is the mover's. Otherwise `value` [B, n]
    is in seat order, starting with the mover."""
    players = jnp.arange(num_players)
    if num_players == 2:
        return jnp.where(players == player[:, None], value[:, None], -value[:, None])
    return jnp.take_along_axis(value, (players - player[:, None]) % num_players, axis=-1)
