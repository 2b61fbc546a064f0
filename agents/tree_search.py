"""The loop of a batched tree search: descend, expand, back up.

Fills the same `mctx.Tree` as `mctx.search` and takes the same arguments, so mctx's selection functions and q-transforms
work in it. It differs in cost: the backup writes only along the path of a simulation, where mctx's rewrites whole
[B, N, A] arrays at every level; the root is taken out of the descent's loop; and a finished node is visited again
instead of growing a chain of copies below it (its edge has discount 0, so that no value changes).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import mctx as untyped_mctx

from envs.game import Array

# mctx's records are made by a decorator that type checkers cannot follow.
mctx: Any = untyped_mctx

ROOT, UNVISITED, NO_PARENT = mctx.Tree.ROOT_INDEX, mctx.Tree.UNVISITED, mctx.Tree.NO_PARENT


def search(
    weights: Any,
    key: Array,
    *,
    root: Any,
    recurrent_fn: Any,
    root_action_selection_fn: Any,
    interior_action_selection_fn: Any,
    num_simulations: int,
    invalid_actions: Array,
    extra_data: Any = None,
) -> Any:
    """Runs `num_simulations` simulations from `root`, see `mctx.search`. Selection functions get no random key (None);
    `key` is consumed by `recurrent_fn`, once for each simulation."""
    select_root = jax.vmap(lambda tree: root_action_selection_fn(None, tree, ROOT))
    select_inner = jax.vmap(
        lambda tree, node, depth: interior_action_selection_fn(None, tree, node, depth), (0, 0, None)
    )

    def simulate(i: Array, tree: Any) -> Any:
        parent, action = descend(tree, select_root, select_inner)
        return backup(*expand(weights, jax.random.fold_in(key, i), tree, recurrent_fn, parent, action, i + 1))

    tree = plant(root, num_simulations, invalid_actions, extra_data)
    return jax.lax.fori_loop(0, num_simulations, simulate, tree)


def plant(root: Any, num_simulations: int, invalid_actions: Array, extra_data: Any) -> Any:
    """A tree with room for every simulation that holds the root alone."""
    batch, num_actions = root.prior_logits.shape
    nodes, edges = (batch, num_simulations + 1), (batch, num_simulations + 1, num_actions)

    def first(x: Array) -> Array:
        return jnp.zeros((batch, num_simulations + 1, *x.shape[1:]), x.dtype).at[:, ROOT].set(x)

    return mctx.Tree(
        node_visits=jnp.zeros(nodes, jnp.int32).at[:, ROOT].set(1),
        raw_values=first(root.value),
        node_values=first(root.value),
        parents=jnp.full(nodes, NO_PARENT, jnp.int32),
        action_from_parent=jnp.full(nodes, NO_PARENT, jnp.int32),
        children_index=jnp.full(edges, UNVISITED, jnp.int32),
        children_prior_logits=first(root.prior_logits),
        children_visits=jnp.zeros(edges, jnp.int32),
        children_rewards=jnp.zeros(edges, root.value.dtype),
        children_discounts=jnp.zeros(edges, root.value.dtype),
        children_values=jnp.zeros(edges, root.value.dtype),
        embeddings=jax.tree.map(first, root.embedding),
        root_invalid_actions=invalid_actions,
        extra_data=extra_data,
    )


def descend(tree: Any, select_root: Any, select_inner: Any) -> tuple[Array, Array]:
    """Follows the selection from the root to an edge that leads to no node yet, or to a finished one.

    Returns the node and action of that edge, int32[B] each.
    """
    lanes = jnp.arange(tree.node_visits.shape[0])

    def onward(parent: Array, action: Array) -> tuple[Array, Array]:
        child = tree.children_index[lanes, parent, action]
        return child, (child != UNVISITED) & (tree.children_discounts[lanes, parent, action] != 0)

    def body(carry):
        parent, action, depth = carry
        child, goes = onward(parent, action)
        node = jnp.where(goes, child, parent)
        return node, jnp.where(goes, select_inner(tree, node, depth), action), depth + 1

    start = jnp.full_like(lanes, ROOT), select_root(tree), jnp.int32(1)
    parent, action, _ = jax.lax.while_loop(lambda carry: onward(*carry[:2])[1].any(), body, start)
    return parent, action


def expand(
    weights: Any, key: Array, tree: Any, recurrent_fn: Any, parent: Array, action: Array, new: Array
) -> tuple[Any, Array]:
    """Evaluates the end of every chosen edge and stores it as node `new`, or again where it stood before.

    Returns the tree and the evaluated nodes, int32[B].
    """
    lanes = jnp.arange(parent.shape[0])
    child = tree.children_index[lanes, parent, action]
    node = jnp.where(child == UNVISITED, new, child)
    embedding = jax.tree.map(lambda x: x[lanes, parent], tree.embeddings)
    output, embedding = recurrent_fn(weights, key, action, embedding)
    at_node = lambda x, value: x.at[lanes, node].set(value)
    at_edge = lambda x, value: x.at[lanes, parent, action].set(value)
    tree = tree.replace(
        node_visits=tree.node_visits.at[lanes, node].add(1),
        raw_values=at_node(tree.raw_values, output.value),
        node_values=at_node(tree.node_values, output.value),
        parents=at_node(tree.parents, parent),
        action_from_parent=at_node(tree.action_from_parent, action),
        children_prior_logits=at_node(tree.children_prior_logits, output.prior_logits),
        children_index=at_edge(tree.children_index, node),
        children_rewards=at_edge(tree.children_rewards, output.reward),
        children_discounts=at_edge(tree.children_discounts, output.discount),
        embeddings=jax.tree.map(at_node, tree.embeddings, embedding),
    )
    return tree, node


def backup(tree: Any, node: Array) -> Any:
    """Carries the value of every lane's `node` up to the root, one level at a time for all lanes together."""
    batch = node.shape[0]
    lanes = jnp.arange(batch)

    def body(carry):
        visits, values, edge_visits, edge_values, value, node = carry
        parent, action = tree.parents[lanes, node], tree.action_from_parent[lanes, node]
        lane = jnp.where(node == ROOT, batch, lanes)  # lanes that have arrived write out of bounds: dropped
        value = tree.children_rewards[lanes, parent, action] + tree.children_discounts[lanes, parent, action] * value
        count = visits[lanes, parent]
        mean = (values[lanes, parent] * count + value) / (count + 1)
        edge_values = edge_values.at[lane, parent, action].set(values[lanes, node], mode="drop")
        edge_visits = edge_visits.at[lane, parent, action].add(1, mode="drop")
        visits = visits.at[lane, parent].add(1, mode="drop")
        values = values.at[lane, parent].set(mean, mode="drop")
        return visits, values, edge_visits, edge_values, value, jnp.where(node == ROOT, ROOT, parent)

    value = tree.node_values[lanes, node]
    start = (tree.node_visits, tree.node_values, tree.children_visits, tree.children_values, value, node)
    visits, values, edge_visits, edge_values, *_ = jax.lax.while_loop(lambda c: (c[-1] != ROOT).any(), body, start)
    return tree.replace(
        node_visits=visits, node_values=values, children_visits=edge_visits, children_values=edge_values
    )
