"""Tree search guided by a network: Gumbel search and PUCT, on trees that are kept or used once.

Policies and actions are in absolute action codes. Values are for the player to move at the root unless noted.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from agents.actions import at_slots, from_slots
from agents.config import SearchOptions
from agents.network.inference import by_player, make_evaluate, where_unfinished
from agents.network.network import Network
from agents.runtime import keys
from agents.search import halving, mctx_reference, selection
from agents.search import tree as tree_search
from agents.search.expansion import (
    immediate_wins,
    make_expand,
    make_leaf,
    over_parts,
    over_words,
    packing_of_nodes,
    slots_of,
    tree_slots,
    with_slots,
)
from agents.search.gumbel import improved_policy, run_gumbel
from agents.search.halving import Order
from agents.search.packing import Packing, packs_on
from agents.search.puct import run_puct, visit_shares
from agents.search.tree import ROOT, Leaf, SearchResult, Tree, lanes_of, root_edges, roots_only
from agents.search.tree_updates import Form
from envs.game import Array, Game

# First ply at which an urge counts: the author of EvoPawness left openings unchanged.
URGENT_FROM = 50


@dataclasses.dataclass(frozen=True)
class TreePolicy:
    """Search trees of one game, one per position of a batch, and the search that grows them."""

    init_tree: Callable[[Any, Array, Any, int], Tree]
    """(weights, key, states [B], max_nodes) -> trees that hold only their roots."""
    run_simulations: Callable[..., tuple[Array, Array, Tree]]
    """(weights, key, trees, plies int32[B], explore) -> (edge to play int32[B], improved policy float32[B, K], trees),
    after `num_simulations` more simulations at most; `explore` is one bool, or bool[B] if trees differ."""
    policy: Callable[[Tree], Array]
    """Improved policy of searched trees, float32[B, K]."""
    values: Callable[[Tree], Array]
    """Searched values of the roots for every player, float32[B, n], see `searched_values`."""
    codes: Callable[[Tree], Array]
    """Action codes of all edges, int32, broadcastable to [B, C, K]; -1 in an empty slot."""
    states: Callable[[Tree], Any]
    """Positions of all nodes, [B, C, ...]."""


def make_tree_policy(
    game: Game,
    net: Network,
    config: SearchOptions,
    *,
    slots: bool | None = None,
    writes: Form = "auto",
    order: Order = "auto",
    packed: bool | None = None,
) -> TreePolicy:
    """The tree policy of `config`. `slots` and `writes` override the defaults of `tree_slots` and `in_form`.

    With `packed`, nodes store positions as words, see `packing`; by default they do unless JAX's default backend is a
    CPU, where packing costs more than it saves.

    `order` is that of Gumbel simulations, see `halving`; by default the one that suits JAX's default backend. Side by
    side, a phase gives each contender the visits that it would get among `max_num_considered_actions`. A position with
    fewer legal actions therefore gets fewer than `num_simulations`.

    Raises:
        ValueError: mctx's loop, which keeps no trees; proofs without two players; or an urge for a game without one.
    """
    _demand_fitting(game, config)
    kinds = config.root_symmetry, config.leaf_symmetry
    evaluate_root, evaluate = (where_unfinished(game, make_evaluate(game, net, kind)) for kind in kinds)
    num_slots = tree_slots(game, slots)
    packs = packs_on(jax.default_backend()) if packed is None else packed
    packing = packing_of_nodes(game, num_slots) if packs else None
    expand = over_parts(over_words(make_expand(game, evaluate, config.proofs, num_slots), packing))
    if config.search == "gumbel":
        order = halving.order_on(jax.default_backend()) if order == "auto" else order
        run = functools.partial(run_gumbel, order=order, writes=writes)
        policy = functools.partial(improved_policy, config=config)
    else:
        run, policy = functools.partial(run_puct, writes=writes), visit_shares

    def root(weights: Any, key: Array, states: Any, slots: Array | None) -> Leaf:
        return make_leaf(game, states, *evaluate_root(weights, key, states, slots))

    def run_simulations(
        weights: Any, key: Array, tree: Tree, plies: Array, explore: bool | Array
    ) -> tuple[Array, Array, Tree]:
        def draw(sample, key):
            """Draws for all codes, so that trees over slots see the same noise."""
            return at_edges(keys.draw_lanes(sample, key, (len(tree.visits), game.num_actions)))

        def at_edges(values):
            return values if num_slots is None else at_slots(values, tree_policy.codes(roots_only(tree))[:, ROOT])

        states = jax.tree.map(lambda x: x[:, ROOT], tree_policy.states(roots_only(tree)))
        if config.proofs:
            tree = tree_search.mark_proven_win(tree, at_edges(immediate_wins(game, states)))
        urged: dict[str, Any] = {}  # PUCT alone has urges
        if config.early_urge:
            assert game.hints.urge is not None
            urge = config.early_urge * jax.vmap(game.hints.urge)(states)
            urged["urge"] = at_edges(jnp.where(((plies >= URGENT_FROM) & explore)[:, None], urge, 0.0))
        return run(weights, key, tree, expand, draw, plies, config, explore, **urged)

    tree_policy = assemble_tree_policy(game, root, run_simulations, policy, num_slots, config.proofs, packing)
    return tree_policy


def _demand_fitting(game: Game, config: SearchOptions) -> None:
    if config.search_loop != "native":
        raise ValueError(f"--search_loop: only 'native' keeps trees, got {config.search_loop!r}")
    if config.early_urge and game.hints.urge is None:
        raise ValueError(f"--early_urge: {game.name} calls no action urgent")
    if config.proofs and game.num_players != 2:
        raise ValueError(f"--proofs: proofs are for two players; {game.name} has {game.num_players}")


def assemble_tree_policy(
    game: Game,
    root: Callable[[Any, Array, Any, Array | None], Leaf],
    run_simulations: Callable[..., tuple[Array, Array, Tree]],
    policy: Callable[[Tree], Array],
    num_slots: int | None,
    proofs: bool = False,
    packing: Packing | None = None,
) -> TreePolicy:
    """A tree policy whose trees start from `root(weights, key, states, slots)` and grow by `run_simulations`. With
    `packing`, that of `packing_of_nodes`, nodes store words."""

    stored = lambda x: x if packing is None else packing.pack(x)
    restored = lambda tree: tree.states if packing is None else packing.unpack(tree.states)

    def init_tree(weights: Any, key: Array, states: Any, max_nodes: int) -> Tree:
        slots = slots_of(game, states, num_slots)
        leaf = root(weights, key, states, slots)
        return tree_search.init_tree(leaf, stored(with_slots(states, slots)), max_nodes, proofs)

    def codes(tree: Tree) -> Array:
        return jnp.arange(game.num_actions)[None, None] if num_slots is None else restored(tree)[1].astype(jnp.int32)

    def states(tree: Tree) -> Any:
        return restored(tree) if num_slots is None else restored(tree)[0]

    def values(tree: Tree) -> Array:
        return searched_values(tree, policy(tree))

    return TreePolicy(init_tree, run_simulations, policy, values, codes, states)


def make_search(
    game: Game,
    net: Network,
    config: SearchOptions,
    *,
    explore: bool = False,
    slots: bool | None = None,
    writes: Form = "auto",
    order: Order = "auto",
    packed: bool | None = None,
):
    """The search of `config` as one pure function.

    Args:
        game: rules, for any number of players.
        net: network that gives priors and values.
        config: simulations, kind of search and its constants.
        explore: whether to play with the noise of self-play instead of the best move found.
        slots: see `make_tree_policy`.
        writes: see `make_tree_policy`.
        order: see `make_tree_policy`.
        packed: see `make_tree_policy`.

    Returns:
        `search(weights, key, states, plies) -> SearchResult` for states [B] of unfinished games. `plies` int32[B] is
        the number of moves made in each. `key` is one key, or one per lane (agents/runtime/keys.py). The result for a
        finished game is meaningless but free of NaN.

    Raises:
        ValueError: the options conflict, see `make_tree_policy` and `mctx_reference.make_search`.
    """
    if config.search_loop == "mctx":
        root, leaf = (make_evaluate(game, net, kind) for kind in (config.root_symmetry, config.leaf_symmetry))
        return mctx_reference.make_search(game, root, leaf, config, explore)
    tree_policy = make_tree_policy(game, net, config, slots=slots, writes=writes, order=order, packed=packed)
    return search_with(tree_policy, game, config.num_simulations, explore)


def search_with(tree_policy: TreePolicy, game: Game, num_simulations: int, explore: bool = False):
    """The search that grows fresh trees of `tree_policy` by `num_simulations`, as in `make_search`."""

    def search(weights: Any, key: Array, states: Any, plies: Array) -> SearchResult:
        tree = tree_policy.init_tree(weights, keys.fold_in(key, keys.APART), states, num_simulations + 1)
        tree = tree_search.aligned(tree)
        edge, policy, tree = tree_policy.run_simulations(weights, key, tree, plies, explore)
        legal, edges = jax.vmap(game.mask)(states), root_edges(tree)
        codes = jnp.broadcast_to(tree_policy.codes(roots_only(tree))[:, ROOT], edges.logits.shape)
        dense = codes.shape == legal.shape
        wide = lambda x: jnp.where(legal, x, 0) if dense else from_slots(x, legal)
        values = searched_values(tree, policy)
        return SearchResult(
            action=jnp.take_along_axis(codes, edge[:, None], axis=-1)[:, 0],
            policy=wide(policy),
            policy_kl=selection.divergence(policy, edges.logits),
            value=tree_search.for_mover(values, tree.mover[:, ROOT]),
            values=values,
            raw_value=edges.raw_value,
            visits=wide(edges.visits),
            qvalues=wide(edges.edge_values),
            # A simulation visits each node on its path once.
            depth=tree.visits[:, 1:].sum(-1) / jnp.maximum(tree.visits[:, ROOT] - 1, 1),
        )

    return search


def searched_values(tree: Tree, policy: Array) -> Array:
    """`selection.searched_value` of the roots for every player, float32[B, n], given their improved policy [B, K]."""
    edges, players = root_edges(tree), tree.values.shape[-1]
    if players == 2:
        return by_player(selection.searched_value(edges, policy), tree.mover[:, ROOT].astype(jnp.int32), players)
    behind = tree.values[lanes_of(tree)[:, None], jnp.maximum(tree.child[:, ROOT].astype(jnp.int32), ROOT)]
    of_player = lambda q, raw: selection.searched_value(edges._replace(edge_values=q, raw_value=raw), policy)
    return jax.vmap(of_player, (-1, -1), -1)(behind, tree.raw_values[:, ROOT])
