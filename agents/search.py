"""Tree search guided by a network: Gumbel and PUCT over mctx's parts.

Policies, actions and values here are in absolute action codes and for the player to move at the root.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from agents import tree_search
from agents.config import Config
from agents.network import Network
from agents.slots import at_slots, from_slots, legal_slots
from agents.tree_search import mctx
from envs.game import Array, Game

# Stands in for minus infinity in logits: finite, so that a softmax over nothing but illegal actions is no NaN.
ILLEGAL = -1e9


class SearchResult(NamedTuple):
    action: Array  # int32[B], the move to play
    policy: Array  # float32[B, A], improved policy, 0 on illegal actions
    value: Array  # float32[B], searched value for the mover
    raw_value: Array  # float32[B], the network's own value
    visits: Array  # int32[B, A], visits of the root's actions
    qvalues: Array  # float32[B, A], their values for the mover; 0 where unvisited
    depth: Array  # float32[B], mean number of moves that a simulation went down the tree


Evaluate = Callable[[Any, Any], tuple[Array, Array]]


def make_evaluate(game: Game, net: Network) -> Evaluate:
    """(weights, states) -> masked logits float32[B, A] in absolute codes, value float32[B]; 0 for finished games."""

    def evaluate(weights, states):
        logits, value = net.apply(weights, jax.vmap(game.observe)(states))
        logits = to_absolute(game, logits, jax.vmap(game.player)(states))
        mask = jax.vmap(game.mask)(states)
        return jnp.where(mask, logits, ILLEGAL), jnp.where(mask.any(-1), value, 0.0)

    return evaluate


def to_absolute(game: Game, logits: Array, player: Array) -> Array:
    """Logits float32[B, A] of the mover's frame in absolute action codes."""
    if game.to_view is None:
        return logits
    return jnp.take_along_axis(logits, jnp.asarray(game.to_view)[player], axis=-1)


def make_recurrent(game: Game, evaluate: Callable[[Any, Array, Any], tuple[Array, Array]]):
    """mctx's recurrent function: `evaluate(weights, key, states)` gives logits and value of the position after a move.

    A finished node has value 0 and discount 0, a finished parent gives reward 0; the discount is -1 when the turn
    passes to the other side and +1 when the same side moves again.
    """

    def advance(s, action):
        done = game.over(s)
        moved = jax.tree.map(functools.partial(jnp.where, done), s, game.move(s, action))
        mover, ends = game.player(s), game.over(moved)
        reward = jnp.where(ends & ~done, game.rewards(moved)[mover], 0.0)
        return moved, reward, jnp.where(ends, 0.0, jnp.where(game.player(moved) == mover, 1.0, -1.0))

    def recurrent(weights, key, action, states):
        states, reward, discount = jax.vmap(advance)(states, action)
        logits, value = evaluate(weights, key, states)
        return mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=logits, value=value), states

    return recurrent


def make_search(game: Game, net: Network, config: Config, *, explore: bool):
    """The search of `config` as one pure function.

    Args:
        game: rules; two players.
        net: network that gives priors and values.
        config: simulations, kind of search and its constants.
        explore: with the noise of self-play, or the best move found.

    Returns:
        `search(weights, key, states, plies) -> SearchResult` for states [B] of unfinished games; `plies` int32[B] is
        the number of moves made in each. A finished game gets a meaningless result, without NaN.
    """
    if game.num_players != 2:
        raise ValueError(f"{game.name}: the search is for two players, not {game.num_players}")
    evaluate = make_evaluate(game, net)
    recurrent = make_recurrent(game, lambda weights, key, states: evaluate(weights, states))
    policy = _gumbel if config.search == "gumbel" else _puct
    num_slots = tree_slots(game, config)

    def search(weights: Any, key: Array, states: Any, plies: Array) -> SearchResult:
        logits, value = evaluate(weights, states)
        legal = jax.vmap(game.mask)(states)
        noise = lambda key: jax.random.gumbel(key, logits.shape)  # dense, so that both trees see the same
        if num_slots is None:
            root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=states)
            action, improved, tree = policy(weights, key, root, recurrent, legal, noise, plies, config, explore)
            wide = lambda x: jnp.where(legal, x, 0)
        else:
            slots = legal_slots(legal, num_slots)
            embedding = states, slots.astype(jnp.int16)
            root = mctx.RootFnOutput(prior_logits=at_slots(logits, slots, ILLEGAL), value=value, embedding=embedding)
            below, drawn = over_slots(game, recurrent, num_slots), lambda key: at_slots(noise(key), slots)
            slot, improved, tree = policy(weights, key, root, below, slots >= 0, drawn, plies, config, explore)
            action = jnp.take_along_axis(slots, slot[:, None], axis=-1)[:, 0]
            wide = lambda x: from_slots(x, legal)
        summary = tree.summary()
        return SearchResult(
            action=action,
            policy=wide(improved),
            value=summary.value,
            raw_value=value,
            visits=wide(tree.children_visits[:, tree_search.ROOT]),
            qvalues=wide(summary.qvalues),
            # A simulation visits every node on its way once.
            depth=tree.node_visits[:, 1:].sum(-1) / config.num_simulations,
        )

    return search


def tree_slots(game: Game, config: Config) -> int | None:
    """Edges of a tree node where it keeps legal actions only; None where it keeps one for every action code.

    One more than there can be legal actions: as in the dense tree there is always an action without a visit, which
    counts when values are spread over [0, 1].
    """
    slots = game.max_legal + 1
    if config.tree == "dense" or slots >= game.num_actions:
        return None
    worth_it = 4 * slots <= game.num_actions and config.search_loop == "ours"
    return slots if config.tree == "slots" or worth_it else None


def over_slots(game: Game, recurrent: Any, num_slots: int) -> Any:
    """A recurrent function whose actions are slots; the embedding holds the codes in them, int16[B, K]."""

    def packed(weights, key, slot, embedding):
        states, slots = embedding
        action = jnp.take_along_axis(slots, slot[:, None], axis=-1)[:, 0].astype(jnp.int32)
        output, states = recurrent(weights, key, jnp.maximum(action, 0), states)
        slots = legal_slots(jax.vmap(game.mask)(states), num_slots)
        logits = at_slots(output.prior_logits, slots, ILLEGAL)
        return output.replace(prior_logits=logits), (states, slots.astype(jnp.int16))

    return packed


def _invalid(legal: Array) -> Array:
    """mctx marks illegal actions with 1; this is the one place where masks are inverted."""
    return (~legal).astype(jnp.float32)


def _gumbel(weights, key, root, recurrent, legal, gumbel, plies, config: Config, explore: bool):
    """Full Gumbel search of Danihelka et al. 2022, "Policy improvement by planning with Gumbel"."""
    del plies
    qtransform = functools.partial(
        mctx.qtransform_completed_by_mix_value,
        value_scale=config.value_scale,
        maxvisit_init=config.visit_offset,
        rescale_values=config.rescale_values,
    )
    scale = 1.0 if explore else 0.0
    considered = min(config.gumbel_actions, root.prior_logits.shape[-1])
    if config.search_loop == "mctx":
        output = mctx.gumbel_muzero_policy(
            weights, key, root, recurrent, config.num_simulations, _invalid(legal),
            qtransform=qtransform, max_num_considered_actions=considered, gumbel_scale=scale,
        )  # fmt: skip
        return output.action, output.action_weights, output.search_tree

    search_key, noise_key = jax.random.split(key)  # as mctx splits it: both loops see the same noise
    noise = scale * gumbel(noise_key)
    tree = tree_search.search(
        weights, search_key, root=root, recurrent_fn=recurrent,
        root_action_selection_fn=functools.partial(
            mctx.gumbel_muzero_root_action_selection, num_simulations=config.num_simulations,
            max_num_considered_actions=considered, qtransform=qtransform,
        ),
        interior_action_selection_fn=functools.partial(
            mctx.gumbel_muzero_interior_action_selection, qtransform=qtransform
        ),
        num_simulations=config.num_simulations, invalid_actions=_invalid(legal),
        extra_data=mctx.GumbelMuZeroExtraData(root_gumbel=noise),
    )  # fmt: skip
    completed = jax.vmap(qtransform, (0, None))(tree, tree_search.ROOT)
    visits = tree.children_visits[:, tree_search.ROOT]
    finalist = legal & (visits == jnp.where(legal, visits, 0).max(-1, keepdims=True))
    score = jnp.where(finalist, noise + root.prior_logits + completed, -jnp.inf)
    improved = jax.nn.softmax(jnp.where(legal, root.prior_logits + completed, ILLEGAL))
    return score.argmax(-1).astype(jnp.int32), improved, tree


def _puct(weights, key, root, recurrent, legal, gumbel, plies, config: Config, explore: bool):
    """PUCT of Silver et al. 2018 with root noise; moves in proportion to visits in the first plies of self-play."""
    del gumbel
    action_key, noise_key, search_key = jax.random.split(key, 3)
    fraction = config.dirichlet_fraction if explore else 0.0
    greedy = 1e-3  # temperature at which the most visited action is certain
    temperature = jnp.where(plies < config.temperature_plies, 1.0, greedy) if explore else jnp.full(plies.shape, greedy)
    if config.search_loop == "mctx":
        output = mctx.muzero_policy(
            weights, key, root, recurrent, config.num_simulations, _invalid(legal), dirichlet_fraction=fraction,
            dirichlet_alpha=config.dirichlet_alpha, pb_c_init=config.c_puct, temperature=1.0,
        )  # fmt: skip
        tree, policy = output.search_tree, output.action_weights
    else:
        prior = _with_dirichlet(noise_key, root.prior_logits, legal, fraction, config.dirichlet_alpha)
        select = functools.partial(_select_puct, c_puct=config.c_puct)
        tree = tree_search.search(
            weights, search_key, root=root.replace(prior_logits=prior), recurrent_fn=recurrent,
            root_action_selection_fn=lambda _, tree, node: select(tree, node),
            interior_action_selection_fn=lambda _, tree, node, depth: select(tree, node),
            num_simulations=config.num_simulations, invalid_actions=_invalid(legal),
        )  # fmt: skip
        policy = tree.summary().visit_probs
    logits = jnp.where(legal, jnp.log(jnp.maximum(policy, 1e-12)), ILLEGAL)
    action = jax.random.categorical(action_key, logits / temperature[:, None])
    return action.astype(jnp.int32), policy, tree


def _with_dirichlet(key: Array, logits: Array, legal: Array, fraction: float, alpha: float) -> Array:
    """Logits of the prior with a share of Dirichlet noise over the legal actions."""
    gamma = jnp.where(legal, jnp.exp(jax.random.loggamma(key, alpha, logits.shape)), 0.0)
    noise = gamma / jnp.maximum(gamma.sum(-1, keepdims=True), 1e-30)
    mixed = (1 - fraction) * jax.nn.softmax(logits) + fraction * noise
    return jnp.where(legal, jnp.log(jnp.maximum(mixed, 1e-30)), ILLEGAL)


def _select_puct(tree: Any, node: Array, *, c_puct: float, c_base: float = 19652.0) -> Array:
    """Legal action of a node of an unbatched tree: Q scaled to [0, 1] among its siblings, plus the PUCT bonus.

    Silver et al. 2018, "A general reinforcement learning algorithm", with MuZero's scaling of Q.
    """
    logits, visits, total = tree.children_prior_logits[node], tree.children_visits[node], tree.node_visits[node]
    factor = c_puct + jnp.log((total + c_base + 1) / c_base)
    bonus = jnp.sqrt(total) * factor * jax.nn.softmax(logits) / (visits + 1)
    score = mctx.qtransform_by_parent_and_siblings(tree, node) + bonus
    return jnp.where(logits > ILLEGAL / 2, score, -jnp.inf).argmax(-1).astype(jnp.int32)
