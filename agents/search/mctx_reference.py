"""Search with mctx's own policies: the reference for the native search, for two players and dense trees."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import mctx as untyped_mctx

from agents.actions import ILLEGAL
from agents.config import SearchOptions
from agents.network.inference import Evaluate, by_player
from agents.runtime import keys
from agents.search import selection
from agents.search.tree import Edges, SearchResult
from envs.game import Array, Game

# Type checkers cannot follow the decorator that makes mctx's records.
mctx: Any = untyped_mctx


def make_recurrent(game: Game, evaluate: Evaluate):
    """mctx's recurrent function over `evaluate(weights, key, states) -> (masked logits, values by player)`.

    A finished node has value 0 and discount 0, and a finished parent gives reward 0. The discount is -1 if the turn
    passes to the other side and +1 if the same side moves again.
    """

    def advance(s, action):
        done = game.over(s)
        moved = jax.tree.map(functools.partial(jnp.where, done), s, game.move(s, action))
        mover, ends = game.player(s), game.over(moved)
        reward = jnp.where(ends & ~done, game.rewards(moved)[mover], 0.0)
        return moved, reward, jnp.where(ends, 0.0, jnp.where(game.player(moved) == mover, 1.0, -1.0))

    def recurrent(weights, key, action, states):
        states, reward, discount = jax.vmap(advance)(states, action)
        logits, values = evaluate(weights, key, states)
        value = jnp.where(discount == 0, 0.0, of_mover(game, states, values))
        return mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=logits, value=value), states

    return recurrent


def of_mover(game: Game, states: Any, values: Array) -> Array:
    return jnp.take_along_axis(values, jax.vmap(game.player)(states)[:, None], axis=-1)[:, 0]


def make_search(game: Game, evaluate_root: Evaluate, evaluate: Evaluate, config: SearchOptions, explore: bool):
    """See `agents.search.make_search`."""
    if game.num_players != 2:
        raise ValueError(f"--search_loop=mctx: expected a game for two players, {game.name} has {game.num_players}")
    if config.proofs:
        raise ValueError("--search_loop=mctx: it has no --proofs")
    if config.search == "puct" and not config.rescale_values:
        raise ValueError("--search_loop=mctx: its PUCT has no --no_rescale_values")
    recurrent = make_recurrent(game, evaluate)

    def search(weights: Any, key: Array, states: Any, plies: Array):
        key = key if key.ndim == 0 else key[0]  # mctx draws for the whole batch at once
        logits, values = evaluate_root(weights, jax.random.fold_in(key, keys.APART), states)
        legal = jax.vmap(game.mask)(states)
        value = jnp.where(legal.any(-1), of_mover(game, states, values), 0.0)
        root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=states)
        invalid = (~legal).astype(jnp.float32)  # mctx marks illegal actions; masks are inverted only here
        if config.search == "gumbel":
            output = mctx.gumbel_muzero_policy(
                weights, key, root, recurrent, config.num_simulations, invalid,
                qtransform=functools.partial(
                    mctx.qtransform_completed_by_mix_value, value_scale=config.gumbel_value_scale,
                    maxvisit_init=selection.VISIT_OFFSET, rescale_values=config.rescale_values,
                ),
                max_num_considered_actions=min(config.max_num_considered_actions, game.num_actions),
                gumbel_scale=1.0 if explore else 0.0,
            )  # fmt: skip
            action = output.action
        else:
            action_key, search_key = jax.random.split(key)
            output = mctx.muzero_policy(
                weights, search_key, root, recurrent, config.num_simulations, invalid,
                dirichlet_fraction=config.dirichlet_fraction if explore else 0.0,
                dirichlet_alpha=config.dirichlet_alpha, pb_c_init=config.c_puct, temperature=1.0,
            )  # fmt: skip
            shares = jnp.where(legal, jnp.log(jnp.maximum(output.action_weights, 1e-12)), ILLEGAL)
            early = explore & (plies < config.temperature_plies)
            action = jnp.where(early, jax.random.categorical(action_key, shares), shares.argmax(-1)).astype(jnp.int32)
        tree, summary = output.search_tree, output.search_tree.summary()
        policy, visits = jnp.where(legal, output.action_weights, 0), jnp.where(legal, tree.children_visits[:, 0], 0)
        edges = Edges(logits, visits, summary.qvalues, summary.value, value, tree.node_visits[:, 0], None, None)
        searched = selection.searched_value(edges, policy)
        return SearchResult(
            action=action,
            policy=policy,
            policy_kl=selection.divergence(policy, logits),
            value=searched,
            values=by_player(searched, jax.vmap(game.player)(states), 2),
            raw_value=value,
            visits=visits,
            qvalues=jnp.where(legal, summary.qvalues, 0),
            depth=tree.node_visits[:, 1:].sum(-1) / config.num_simulations,
        )

    return search
