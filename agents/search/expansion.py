"""Expansion of tree nodes: the position behind an edge, its evaluation, and results that are known without a search.

A tree keeps one edge per action code or, where few codes are legal, one per legal action: a slot.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from agents.actions import from_slots, legal_slots
from agents.network.inference import Evaluate, by_player
from agents.network.network import TPU_ROWS, in_parts
from agents.search.packing import Packing, packing_of
from agents.search.tree import Expand, Leaf
from envs.game import Array, Game


def make_leaf(game: Game, states: Any, logits: Array, values: Array) -> Leaf:
    """The leaves for `states`, given their evaluation. Results are computed only if some game is over."""
    over = jax.vmap(game.over)(states)
    results = jax.lax.cond(over.any(), jax.vmap(game.rewards), lambda s: jnp.zeros_like(values), states)
    mover = jax.vmap(game.player)(states).astype(jnp.int8)
    return Leaf(logits, jnp.where(over[:, None], results, values), mover, over)


def wins(game: Game, s: Any, action: Array) -> Array:
    """Whether a legal move ends the game with a win for the mover, bool[]."""
    after = game.move(s, action)
    return game.over(after) & (game.rewards(after)[game.player(s)] == 1)


def immediate_wins(game: Game, states: Any) -> Array:
    """Moves that end the game with a win for the mover, bool[B, A], found by trying all legal moves."""
    legal = jax.vmap(game.mask)(states)
    try_all = jax.vmap(jax.vmap(functools.partial(wins, game), (None, 0)))
    if game.max_legal == game.num_actions:
        return try_all(states, jnp.broadcast_to(jnp.arange(game.num_actions), legal.shape)) & legal
    slots = legal_slots(legal, game.max_legal)
    return from_slots(try_all(states, jnp.maximum(slots, 0)) & (slots >= 0), legal).astype(bool)


def apply_known_results(game: Game, leaf: Leaf, states: Any) -> Leaf:
    """Marks leaves as finished if the game's theory knows the result, or if a move wins at once and moves are cheap."""
    result = (
        jnp.full(leaf.over.shape, jnp.nan)
        if game.hints.known_result is None
        else jax.vmap(game.hints.known_result)(states)
    )
    if game.hints.moves_are_cheap:
        result = jnp.where(immediate_wins(game, states).any(-1), 1.0, result)
    known = ~jnp.isnan(result) & ~leaf.over
    values = by_player(result, leaf.mover, game.num_players)
    return leaf._replace(values=jnp.where(known[:, None], values, leaf.values), over=leaf.over | known)


def make_expand(game: Game, evaluate: Evaluate, proofs: bool = False, num_slots: int | None = None) -> Expand:
    """The expansion of tree nodes, with logits and values from `evaluate(weights, key, states, slots)`. With `proofs`,
    a game ends once its result is known, see `apply_known_results`.

    With `num_slots`, edges are slots, and the tree stores their action codes, int16[B, K], next to the state.
    """

    def advance(s, action):
        return jax.tree.map(functools.partial(jnp.where, game.over(s)), s, game.move(s, action))

    def expand(weights, key, action, states):
        states = jax.vmap(advance)(states, action)
        slots = slots_of(game, states, num_slots)
        leaf = make_leaf(game, states, *evaluate(weights, key, states, slots))
        leaf = apply_known_results(game, leaf, states) if proofs else leaf
        return leaf, with_slots(states, slots)

    def of_slots(weights, key, slot, states):
        states, slots = states
        action = jnp.take_along_axis(slots, slot[:, None], axis=-1)[:, 0].astype(jnp.int32)
        return expand(weights, key, jnp.maximum(action, 0), states)

    return expand if num_slots is None else of_slots


def slots_of(game: Game, states: Any, num_slots: int | None) -> Array | None:
    """The codes of the slots of each state, int32[B, K], if there are slots."""
    return None if num_slots is None else legal_slots(jax.vmap(game.mask)(states), num_slots)


def with_slots(states: Any, slots: Array | None) -> Any:
    """What a node knows of its position."""
    return states if slots is None else (states, slots.astype(jnp.int16))


def over_words(expand: Expand, packing: Packing | None) -> Expand:
    """`expand` for a tree that stores what it knows of a position as words, if there is a packing."""
    if packing is None:
        return expand

    def packed(weights, key, edge, words):
        leaf, states = expand(weights, key, edge, packing.unpack(words))
        return leaf, packing.pack(states)

    return packed


def over_parts(expand: Expand) -> Expand:
    """`expand` in chunks of positions on a TPU, so that what it computes for a chunk fits the vector memory."""

    def parts(weights, key, *lanes):
        if key.ndim:
            return in_parts(lambda lanes: expand(weights, *lanes), TPU_ROWS, (key, *lanes))
        return in_parts(lambda lanes: expand(weights, key, *lanes), TPU_ROWS, lanes)

    def chosen(weights, key, edge, states):
        if len(edge) <= TPU_ROWS:
            return expand(weights, key, edge, states)
        return jax.lax.platform_dependent(weights, key, edge, states, tpu=parts, default=expand)

    return chosen


def tree_slots(game: Game, wanted: bool | None = None) -> int | None:
    """Edges per tree node if nodes keep legal actions only; None if they keep one edge per action code.

    Slots give the same moves in a fraction of the memory. By default they are used if there are at most a quarter as
    many slots as codes. There is one slot more than legal actions: as in the dense tree, some action is always
    unvisited, which matters when values are spread over [0, 1].
    """
    slots = game.max_legal + 1
    if wanted is None:
        wanted = 4 * slots <= game.num_actions
    return slots if wanted and slots < game.num_actions else None


def packing_of_nodes(game: Game, num_slots: int | None) -> Packing:
    """The packing of what a node stores: a position, and the codes of its slots if there are slots."""
    state = jax.eval_shape(game.init)
    slots = jax.ShapeDtypeStruct((num_slots or 0,), jnp.int16)
    return packing_of(state if num_slots is None else (state, slots))
