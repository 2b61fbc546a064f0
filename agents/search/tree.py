"""The loop of a batched tree search: descend, expand, back up.

A simulation writes only one new node and a few numbers along its path. Each node caches the edge that the selection
takes next (`selected_edge`), which changes only after a simulation has passed through. A descent therefore just follows
pointers. The expensive part, selecting among all edges, runs once per node on the paths. The paths of all games are
packed together, so the cost follows their mean depth, not the deepest path or the size of the tree.

A step may run several simulations in each tree, side by side. They start with different edges of the root, so the
subtrees that they read and write share nothing; only the root's own mean and visits add all of them up.

Values are vectors with an entry for every player, and a node uses its own mover's entry. No value changes sign, the
same side may move again, and any number of players is supported (max^n of Luckhardt and Irani 1986).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from agents.actions import ILLEGAL
from agents.runtime import keys
from agents.search.tree_updates import Form, Put, in_form, one_hot
from envs.game import Array

ROOT = 0


class Leaf(NamedTuple):
    """Evaluation of a newly reached position, as stored in the tree."""

    logits: Array  # float32[B, K], prior of its edges, ILLEGAL if there is no edge
    values: Array  # float32[B, n], for every player: the result if the game is over, else an estimate
    mover: Array  # int8[B]
    over: Array  # bool[B]


class Edges(NamedTuple):
    """M nodes, as a selection sees them."""

    logits: Array  # float32[M, K]
    visits: Array  # int32[M, K]
    edge_values: Array  # float32[M, K], mean value for the mover, 0 without a visit
    value: Array  # float32[M], mean value of the node for its mover
    raw_value: Array  # float32[M], the estimate when the node was reached
    total: Array  # int32[M], visits of the node
    lower_bound: Array | None  # int8[M, K], proven lower bound of the mover's result; None without proofs
    upper_bound: Array | None  # int8[M, K], proven upper bound; both are -1 if there is no edge


class Tree(NamedTuple):
    """The trees of a batch, with room for C nodes each. Nodes are in the order of creation, the root first."""

    size: Array  # int32[B], nodes in use; int32[], where the next step puts its nodes in every tree, see `aligned`
    states: Any  # [B, C, ...]
    mover: Array  # int8[B, C]
    over: Array  # bool[B, C]
    parent: Array  # int32[B, C], -1 at the root
    edge: Array  # int32[B, C], the parent's edge that leads here, -1 at the root
    raw_values: Array  # float32[B, C, n], evaluation for every player when the node was reached
    values: Array  # float32[B, C, n], mean for every player
    visits: Array  # int32[B, C]
    selected_edge: Array  # int32[B, C], edge that the selection takes next; unused at the root
    logits: Array  # float32[B, C, K]
    child: Array  # int16 or int32[B, C, K], -1 if there is none yet
    edge_visits: Array  # the same type[B, C, K]
    edge_values: Array  # float32[B, C, K], see `Edges`
    lower_bound: Array | None  # int8[B, C, K], see `Edges`
    upper_bound: Array | None  # int8[B, C, K]


class SearchResult(NamedTuple):
    """Result of a search at its roots, in absolute action codes and for the mover unless noted."""

    action: Array  # int32[B], the move to play
    policy: Array  # float32[B, A], improved policy, 0 on illegal actions
    policy_kl: Array  # float32[B], Kullback-Leibler divergence of `policy` from the network's, nats
    value: Array  # float32[B], searched value for the mover, see `selection.searched_value`
    values: Array  # float32[B, n], searched value for every player
    raw_value: Array  # float32[B], the network's own value
    visits: Array  # int32[B, A], visits of the root actions
    qvalues: Array  # float32[B, A], values of the root actions for the mover; 0 if unvisited
    depth: Array  # float32[B], mean depth of a simulation in moves


Expand = Callable[[Any, Array, Array, Any], tuple[Leaf, Any]]
"""(weights, key, edges int32[B], states [B]) -> the positions behind these edges; finished games stay as they are."""

Select = Callable[[Edges], Array]
"""The edge to take from each node, int32[M]."""


def search(
    weights: Any,
    key: Array,
    tree: Tree,
    expand: Expand,
    select_root: Select,
    select: Select,
    steps: int,
    writes: Form = "auto",
    *,
    width: int = 1,
    first: int | Array = 0,
) -> Tree:
    """Runs `steps` steps of `width` simulations in every tree.

    The simulations of a step run side by side. With `width` above 1, `select_root` gives their root edges, int32[B, W]:
    all different, or -1 for no simulation. Each simulation gives `expand` its own key, folded from `key` and its
    number; `first` is the number of the first simulation.
    """

    def written(tree: Tree, path: Path, leaf: Leaf, states: Any, *, put: Put) -> Tree:
        tree, path = expand_node(tree, path, leaf, states, put)
        if tree.lower_bound is not None:
            tree = propagate_bounds(tree, path, leaf.values, put)
        return backup(tree, path, leaf.values, select, put)

    learn = in_form(writes, written)

    def simulate(i: Array, carry: tuple[Tree, Array]) -> tuple[Tree, Array]:
        tree, nodes = carry
        path = descend(tree, select_root(edges_of(tree, lanes_of(tree), ROOT)).reshape(-1), nodes)
        before = jax.tree.map(lambda x: x[path.lanes, path.node], tree.states)
        leaf, states = expand(weights, keys.of_simulations(key, first + i * width, width), path.edge, before)
        return learn(tree, path, leaf, states), path.nodes

    batch, max_nodes = tree.visits.shape
    nodes = jnp.full((max_nodes, batch * width), ROOT, jnp.int32)  # reused, so that no simulation has to clear it
    return jax.lax.fori_loop(0, steps, simulate, (tree, nodes))[0]


def init_tree(root: Leaf, states: Any, max_nodes: int, proofs: bool = False) -> Tree:
    """Trees with room for `max_nodes` nodes that hold only their roots. With `proofs`, for two players, the trees also
    keep proven bounds of each edge."""
    batch, edges = root.logits.shape
    small = jnp.int16 if max_nodes < 2**15 else jnp.int32

    def first(x: Array, rest: Any = 0) -> Array:
        empty = jnp.full((batch, max_nodes, *x.shape[1:]), rest, x.dtype)
        return jax.lax.dynamic_update_index_in_dim(empty, x, ROOT, axis=1)

    none = jnp.full((batch, max_nodes), -1, jnp.int32)
    return Tree(
        size=jnp.ones(batch, jnp.int32),
        states=jax.tree.map(first, states),
        mover=first(root.mover),
        over=first(root.over),
        parent=none,
        edge=none,
        raw_values=first(root.values),
        values=first(root.values),
        visits=first(jnp.ones(batch, jnp.int32)),
        selected_edge=jnp.zeros((batch, max_nodes), jnp.int32),
        logits=first(root.logits),
        child=jnp.full((batch, max_nodes, edges), -1, small),
        edge_visits=jnp.zeros((batch, max_nodes, edges), small),
        edge_values=jnp.zeros((batch, max_nodes, edges)),
        lower_bound=jnp.full((batch, max_nodes, edges), -1, jnp.int8) if proofs else None,
        upper_bound=first(upper_bounds(root)) if proofs else None,
    )


def aligned(tree: Tree) -> Tree:
    """The same fresh trees, whose nodes will be at the same places in all of them: those of a step side by side, in the
    order of its simulations. So a step writes them as one block. A simulation without a new node leaves a gap, which
    has no parent. Such trees cannot be divided, and `advance_root` does not take them."""
    return tree._replace(size=jnp.int32(1))


def upper_bounds(leaf: Leaf) -> Array:
    """Upper bounds of a new node's edges for its mover, int8[B, K]: 1, or -1 if there is no edge."""
    return jnp.where(leaf.logits > ILLEGAL / 2, 1, -1).astype(jnp.int8)


def mark_proven_win(tree: Tree, edges: Array) -> Tree:
    """Marks the root edges `edges`, bool[B, K], as proven wins, but for those that a search is to leave out."""
    assert tree.lower_bound is not None
    wins = edges.astype(bool) & (tree.logits[:, ROOT] > ILLEGAL / 2)
    low = jnp.maximum(tree.lower_bound[:, ROOT], jnp.where(wins, 1, -1).astype(jnp.int8))
    return tree._replace(
        lower_bound=jax.lax.dynamic_update_index_in_dim(tree.lower_bound, low, ROOT, axis=1)
    )  # a slice update avoids a scatter


def advance_root(tree: Tree, edge: Array) -> Tree:
    """Moves the root along its `edge`, int32[B]; drops all nodes outside the new subtree and keeps the capacity.

    If the edge was never visited, the tree is empty (`size` 0) and needs a new `init_tree`.
    """
    lanes, max_nodes = lanes_of(tree)[:, None], tree.visits.shape[1]
    top = tree.child[:, ROOT][lanes[:, 0], edge].astype(jnp.int32)[:, None]
    nodes = jnp.arange(max_nodes)

    def twice_as_far(_, carry):
        """Finds nodes with the new root among their ancestors at distances below 2, 4, 8..."""
        inside, ancestor = carry
        inside |= inside[lanes, ancestor] & (ancestor > ROOT)
        return inside, jnp.where(ancestor > ROOT, ancestor[lanes, ancestor], ROOT)

    start = (nodes == top) & (top > ROOT), jnp.maximum(tree.parent, ROOT)
    inside, _ = jax.lax.fori_loop(0, max_nodes.bit_length(), twice_as_far, start)
    place, size = jnp.cumsum(inside, axis=-1) - 1, inside.sum(-1, dtype=jnp.int32)
    old = jnp.argsort(~inside, axis=-1, stable=True)  # stable, so parents stay before children
    used = nodes < size[:, None]

    def moved(x: Array, empty: Any = None) -> Array:
        x = x[lanes, old]
        return (
            x if empty is None else jnp.where(used.reshape(*used.shape, *[1] * (x.ndim - 2)), x, empty).astype(x.dtype)
        )

    child = moved(tree.child, -1).astype(jnp.int32)
    child = jnp.where(child < 0, -1, place[lanes[..., None], child])
    parent = moved(tree.parent, -1)
    return Tree(
        size=size,
        states=jax.tree.map(moved, tree.states),
        mover=moved(tree.mover),
        over=moved(tree.over),
        parent=jnp.where(used & (nodes > ROOT), place[lanes, parent], -1),
        edge=jnp.where(nodes > ROOT, moved(tree.edge, -1), -1),
        raw_values=moved(tree.raw_values),
        values=moved(tree.values),
        visits=moved(tree.visits, 0),
        selected_edge=moved(tree.selected_edge),
        logits=moved(tree.logits),
        child=child.astype(tree.child.dtype),
        edge_visits=moved(tree.edge_visits, 0),
        edge_values=moved(tree.edge_values, 0),
        lower_bound=None if tree.lower_bound is None else moved(tree.lower_bound, -1),
        upper_bound=None if tree.upper_bound is None else moved(tree.upper_bound),
    )


def lanes_of(tree: Tree) -> Array:
    return jnp.arange(tree.visits.shape[0])


def for_mover(values: Array, mover: Array) -> Array:
    """The mover's entry of each value vector: float32[M] from [M, n]."""
    return jnp.take_along_axis(values, mover[:, None].astype(jnp.int32), axis=-1)[:, 0]


def edges_of(tree: Tree, lane: Array, node: Array | int) -> Edges:
    """The edges of nodes `node` in the trees `lane`."""
    at = lambda x: x[lane, node]
    value, raw = (for_mover(at(x), at(tree.mover)) for x in (tree.values, tree.raw_values))
    visits = at(tree.edge_visits).astype(jnp.int32)
    bounds = (
        (None, None)
        if tree.lower_bound is None or tree.upper_bound is None
        else (at(tree.lower_bound), at(tree.upper_bound))
    )
    return Edges(at(tree.logits), visits, at(tree.edge_values), value, raw, at(tree.visits), *bounds)


def roots_only(tree: Tree) -> Tree:
    """The tree with the positions of the roots alone, so that no other node's are unpacked."""
    return tree._replace(states=jax.tree.map(lambda x: x[:, : ROOT + 1], tree.states))


def root_edges(tree: Tree) -> Edges:
    return edges_of(tree, lanes_of(tree), ROOT)


class Path(NamedTuple):
    """The paths of M simulations: M / B in each tree, next to each other."""

    lanes: Array  # int32[M], the tree
    active: Array  # bool[M], whether there is a simulation; without one the path stays at the root
    nodes: Array  # int32[C, M], from the root to before the last node; meaningless beyond
    length: Array  # int32[M], nodes on the path
    node: Array  # int32[M], the last node
    edge: Array  # int32[M], edge from `node` to a missing or finished node; after `expand_node`, the edge to `node`


def descend(tree: Tree, first: Array, nodes: Array) -> Path:
    """Follows the selected edges, after the root's edges `first` int32[M], until all paths have ended; -1 is no path.
    Overwrites `nodes`; only its first row, which holds the roots, is kept."""
    lanes = jnp.arange(len(first)) // (len(first) // len(tree.visits))

    def onward(path: Path) -> tuple[Array, Array]:
        child = tree.child[lanes, path.node, path.edge].astype(jnp.int32)
        return child, path.active & (child >= 0) & ~tree.over[lanes, child]

    def body(path: Path) -> Path:
        child, goes = onward(path)
        node = jnp.where(goes, child, path.node)
        # Paths descend in lockstep, so every path that continues has this depth.
        depth = path.length.max()
        return path._replace(
            nodes=jax.lax.dynamic_update_index_in_dim(path.nodes, node, depth, axis=0),
            length=path.length + goes,
            node=node,
            edge=jnp.where(goes, tree.selected_edge[lanes, node], path.edge),
        )

    root = jnp.full_like(lanes, ROOT)
    start = Path(lanes, first >= 0, nodes, jnp.ones_like(lanes), root, jnp.maximum(first, 0))
    return jax.lax.while_loop(lambda path: onward(path)[1].any(), body, start)


def expand_node(tree: Tree, path: Path, leaf: Leaf, states: Any, put: Put) -> tuple[Tree, Path]:
    """Stores the leaf of each path as a new node, or in its existing node, and extends the path to this node."""
    batch = len(tree.visits)
    child = tree.child[path.lanes, path.node, path.edge].astype(jnp.int32)
    new = (path.active & (child < 0)).reshape(batch, -1)
    if tree.size.ndim:
        place = tree.size[:, None] + jnp.cumsum(new, axis=-1) - new
        size = tree.size + new.sum(-1)
    else:
        place = jnp.broadcast_to(tree.size + jnp.arange(new.shape[1]), new.shape)
        size = tree.size + new.shape[1]
    node = jnp.where(child < 0, place.reshape(-1), child)
    lane = jnp.where(path.active, path.lanes, batch)

    def at_node(x: Array, value: Array) -> Array:
        if tree.size.ndim:
            return put(x, (lane, node), value)
        # What an existing node holds is not written again: it is a finished position, which does not change.
        block = value.reshape(*new.shape, *value.shape[1:]).astype(x.dtype)
        return jax.lax.dynamic_update_slice_in_dim(x, block, tree.size, axis=1)

    tree = tree._replace(
        size=size,
        states=jax.tree.map(at_node, tree.states, states),
        mover=at_node(tree.mover, leaf.mover),
        over=at_node(tree.over, leaf.over),
        parent=at_node(tree.parent, path.node if tree.size.ndim else jnp.where(new.reshape(-1), path.node, -1)),
        edge=at_node(tree.edge, path.edge),
        raw_values=at_node(tree.raw_values, leaf.values),
        logits=at_node(tree.logits, leaf.logits),
        child=put(tree.child, (lane, path.node, path.edge), node.astype(tree.child.dtype)),
        upper_bound=None if tree.upper_bound is None else at_node(tree.upper_bound, upper_bounds(leaf)),
    )
    return tree, path._replace(length=path.length + path.active, node=node)


def propagate_bounds(tree: Tree, path: Path, values: Array, put: Put) -> Tree:
    """Propagates results up from finished positions, as far as bounds change.

    The bounds of a node are the maxima of its edges' lower and upper bounds, for its mover. An unvisited edge may lead
    to any result. Winands et al. 2008, "Monte-Carlo tree search solver", with the bounds of Cazenave and Saffidine
    2010, "Score bounded Monte-Carlo tree search".
    """
    lanes, batch = path.lanes, len(tree.visits)
    assert tree.lower_bound is not None and tree.upper_bound is not None
    result = jnp.round(values[:, 0]).astype(jnp.int8)

    def up(carry):
        low, high, node, lower, upper, goes = carry
        parent, edge = tree.parent[lanes, node], tree.edge[lanes, node]
        lane = jnp.where(goes, lanes, batch)
        # Between nodes, bounds are the first player's.
        first = tree.mover[lanes, parent] == 0
        mine = lambda a, b: (jnp.where(first, a, -b), jnp.where(first, b, -a))
        before = low[lanes, parent].max(-1), high[lanes, parent].max(-1)
        at_least, at_most = mine(lower, upper)
        low, high = put(low, (lane, parent, edge), at_least), put(high, (lane, parent, edge), at_most)
        after = low[lanes, parent].max(-1), high[lanes, parent].max(-1)
        news = (after[0] != before[0]) | (after[1] != before[1])
        return low, high, parent, *mine(*after), goes & news & (tree.parent[lanes, parent] >= 0)

    start = (
        tree.lower_bound,
        tree.upper_bound,
        path.node,
        result,
        result,
        path.active & tree.over[lanes, path.node] & (path.node != ROOT),
    )
    low, high, *_ = jax.lax.while_loop(lambda carry: carry[-1].any(), up, start)
    return tree._replace(lower_bound=low, upper_bound=high)


def backup(tree: Tree, path: Path, values: Array, select: Select, put: Put) -> Tree:
    """Backs values up along every path, then refreshes each node's cached selection."""
    paths = len(path.lanes)
    width = paths // len(tree.visits)
    rounds = functools.partial(_in_step if put is one_hot else _packed, path)

    def count(tree: Tree, number: Array, node: Array) -> Tree:
        inside, lane = jnp.minimum(number, paths - 1), number // width
        here = path.lanes[inside]
        visits = tree.visits[here, node]
        mean = (tree.values[here, node] * visits[:, None] + values[inside]) / (visits[:, None] + 1)
        parent, edge = tree.parent[here, node], tree.edge[here, node]
        q = for_mover(mean, tree.mover[here, parent])
        return tree._replace(
            visits=put(tree.visits, (lane, node), visits + 1),
            values=put(tree.values, (lane, node), mean),
            edge_visits=put(tree.edge_visits, (lane, parent, edge), (visits + 1).astype(tree.edge_visits.dtype)),
            edge_values=put(tree.edge_values, (lane, parent, edge), q),
        )

    def choose(tree: Tree, number: Array, node: Array) -> Tree:
        edge = select(edges_of(tree, path.lanes[jnp.minimum(number, paths - 1)], node))
        return tree._replace(selected_edge=put(tree.selected_edge, (number // width, node), edge))

    # A path is updated from its end, so a node selects after its edges have changed. One loop does both, because on a
    # GPU every round of such a loop waits for the host.
    both = lambda tree, number, node: choose(count(tree, number, node), number, node)
    return rounds(path.length - 1, both, _count_at_roots(tree, path, values))


def _count_at_roots(tree: Tree, path: Path, values: Array) -> Tree:
    """Adds all simulations of a step to the mean and the visits of their root."""
    batch, before = len(tree.visits), tree.visits[:, ROOT]
    visits = before + path.active.reshape(batch, -1).sum(-1)
    found = jnp.where(path.active[:, None], values, 0).reshape(batch, -1, values.shape[-1]).sum(1)
    mean = (tree.values[:, ROOT] * before[:, None] + found) / visits[:, None]
    at_roots = functools.partial(jax.lax.dynamic_update_index_in_dim, index=ROOT, axis=1)
    return tree._replace(visits=at_roots(tree.visits, visits), values=at_roots(tree.values, mean))


PathUpdate = Callable[[Tree, Array, Array], Tree]
"""(trees, numbers of paths int32[P], nodes int32[P]) -> the trees with these nodes updated. Numbers out of bounds are
skipped."""


def _packed(path: Path, per_path: Array, body: PathUpdate, tree: Tree) -> Tree:
    """Runs `body` over the last `per_path` nodes of every path, the last one first. All these nodes form one queue, and
    each round takes as many of them as there are paths, so short paths do not wait for long paths."""
    paths, upto = len(path.lanes), jnp.cumsum(per_path)

    def turn(carry):
        k, tree = carry
        place = k * paths + jnp.arange(paths)
        number = jnp.searchsorted(upto, place, side="right", method="scan_unrolled").astype(jnp.int32)
        inside = jnp.minimum(number, paths - 1)
        return k + 1, body(tree, number, _from_the_end(path, inside, place - (upto - per_path)[inside]))

    return jax.lax.while_loop(lambda carry: carry[0] * paths < upto[-1], turn, (jnp.int32(0), tree))[1]


def _in_step(path: Path, per_path: Array, body: PathUpdate, tree: Tree) -> Tree:
    """The same as `_packed`, but each round takes one node per path, so the paths stay in order."""
    numbers = jnp.arange(len(path.lanes))

    def turn(carry):
        k, tree = carry
        here = jnp.where(k < per_path, numbers, len(numbers))
        return k + 1, body(tree, here, _from_the_end(path, numbers, k))

    return jax.lax.while_loop(lambda carry: (carry[0] < per_path).any(), turn, (jnp.int32(0), tree))[1]


def _from_the_end(path: Path, number: Array, steps: Array) -> Array:
    """The node `steps` before the end of each of the paths `number`."""
    step = path.length[number] - 1 - steps
    return jnp.where(steps == 0, path.node[number], path.nodes[jnp.maximum(step, 0), number])
