"""Tree search guided by a network: Gumbel search and PUCT.

Policies and actions are in absolute action codes. Values are for the player to move at the root unless noted.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from agents.actions import ILLEGAL, at_slots, from_slots, legal_slots
from agents.config import SearchOptions
from agents.network.inference import Evaluate, by_player, make_evaluate, where_unfinished
from agents.network.network import TPU_ROWS, Network, in_parts
from agents.runtime import keys
from agents.search import halving, mctx_reference, selection
from agents.search import tree as tree_search
from agents.search.halving import Order
from agents.search.packing import Packing, packing_of, packs_on
from agents.search.tree import ROOT, Edges, Leaf, SearchResult, Tree, edges_of, lanes_of
from agents.search.tree_updates import Form
from envs.game import Array, Game


def make_leaf(game: Game, states: Any, logits: Array, values: Array) -> Leaf:
    """The leaves for `states`, given their evaluation. Results are computed only if some game is over."""
    over = jax.vmap(game.over)(states)
    results = jax.lax.cond(over.any(), jax.vmap(game.rewards), lambda s: jnp.zeros_like(values), states)
    mover = jax.vmap(game.player)(states).astype(jnp.int8)
    return Leaf(logits, jnp.where(over[:, None], results, values), mover, over)


def immediate_wins(game: Game, states: Any) -> Array:
    """Moves that end the game with a win for the mover, bool[B, A], found by trying all legal moves."""
    legal = jax.vmap(game.mask)(states)

    def wins(s: Any, action: Array) -> Array:
        after = game.move(s, action)
        return game.over(after) & (game.rewards(after)[game.player(s)] == 1)

    try_all = jax.vmap(jax.vmap(wins, (None, 0)))
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


def make_expand(
    game: Game, evaluate: Evaluate, proofs: bool = False, num_slots: int | None = None
) -> tree_search.Expand:
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


def over_words(expand: tree_search.Expand, packing: Packing) -> tree_search.Expand:
    """`expand` for a tree that stores what it knows of a position as words."""

    def packed(weights, key, edge, words):
        leaf, states = expand(weights, key, edge, packing.unpack(words))
        return leaf, packing.pack(states)

    return packed


def over_parts(expand: tree_search.Expand) -> tree_search.Expand:
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
    if config.search_loop != "native":
        raise ValueError(f"--search_loop={config.search_loop}: trees that are kept and looked into are those of ours")
    if config.early_urge and game.hints.urge is None:
        raise ValueError(f"--early_urge: {game.name} calls no action urgent")
    if config.proofs and game.num_players != 2:
        raise ValueError(f"--proofs: proofs are for two players; {game.name} has {game.num_players}")
    kinds = config.root_symmetry, config.leaf_symmetry
    evaluate_root, evaluate = (where_unfinished(game, make_evaluate(game, net, kind)) for kind in kinds)
    num_slots = tree_slots(game, slots)
    expand = make_expand(game, evaluate, config.proofs, num_slots)
    if order == "auto":
        order = halving.order_on(jax.default_backend())
    if packed is None:
        packed = packs_on(jax.default_backend())
    packing = packing_of_nodes(game, num_slots) if packed else None
    run = functools.partial(_gumbel, order=order) if config.search == "gumbel" else _puct
    run = functools.partial(run, writes=writes)
    policy = functools.partial(_improved, config=config) if config.search == "gumbel" else visit_shares

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

        below = over_parts(expand if packing is None else over_words(expand, packing))
        states = jax.tree.map(lambda x: x[:, ROOT], tree_policy.states(roots_only(tree)))
        if config.proofs:
            tree = tree_search.mark_proven_win(tree, at_edges(immediate_wins(game, states)))
        if config.early_urge == 0:
            return run(weights, key, tree, below, draw, plies, config, explore)
        assert game.hints.urge is not None
        urge = config.early_urge * jax.vmap(game.hints.urge)(states)
        urge = at_edges(jnp.where((plies >= URGENT_FROM)[:, None] & explore, urge, 0.0))
        return run(weights, key, tree, below, draw, plies, config, explore, urge=urge)

    tree_policy = assemble_tree_policy(game, root, run_simulations, policy, num_slots, config.proofs, packing)
    return tree_policy


def packing_of_nodes(game: Game, num_slots: int | None) -> Packing:
    """The packing of what a node stores: a position, and the codes of its slots if there are slots."""
    state = jax.eval_shape(game.init)
    slots = jax.ShapeDtypeStruct((num_slots or 0,), jnp.int16)
    return packing_of(state if num_slots is None else (state, slots))


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


def roots_only(tree: Tree) -> Tree:
    """The tree with the positions of the roots alone, so that no other node's are unpacked."""
    return tree._replace(states=jax.tree.map(lambda x: x[:, : ROOT + 1], tree.states))


def root_edges(tree: Tree) -> Edges:
    return edges_of(tree, lanes_of(tree), ROOT)


def searched_values(tree: Tree, policy: Array) -> Array:
    """`selection.searched_value` of the roots for every player, float32[B, n], given their improved policy [B, K]."""
    edges, players = root_edges(tree), tree.values.shape[-1]
    if players == 2:
        return by_player(selection.searched_value(edges, policy), tree.mover[:, ROOT].astype(jnp.int32), players)
    behind = tree.values[lanes_of(tree)[:, None], jnp.maximum(tree.child[:, ROOT].astype(jnp.int32), ROOT)]
    of_player = lambda q, raw: selection.searched_value(edges._replace(edge_values=q, raw_value=raw), policy)
    return jax.vmap(of_player, (-1, -1), -1)(behind, tree.raw_values[:, ROOT])


def _gumbel(
    weights,
    key,
    tree,
    expand,
    draw,
    plies,
    config: SearchOptions,
    explore: bool | Array,
    writes: Form = "auto",
    order: Order = "in_turn",
):
    """Full Gumbel search of Danihelka et al. 2022, "Policy improvement by planning with Gumbel".

    If the tree was searched before, earlier visits inform the values. Sequential halving and the move to play count
    only visits of this search.
    """
    del plies
    search_key, noise_key = keys.split(key)  # split as in mctx, so both loops see the same noise
    start = root_edges(tree)
    noise = _where_noisy(explore, lambda: draw(jax.random.gumbel, noise_key), jnp.zeros_like(start.logits))
    considered = min(config.max_num_considered_actions, start.logits.shape[-1])
    values = functools.partial(_completed, config=config)

    def below(edges: Edges) -> Array:
        edges = selection.drop_refuted(edges)
        return selection.gumbel_inner(edges, values(edges))

    def grow(tree: Tree, at_root: Callable[[Edges], Array], steps: int, **batch: int) -> Tree:
        return tree_search.search(weights, search_key, tree, expand, at_root, below, steps, writes, **batch)

    if order == "side_by_side":
        tree = _side_by_side(tree, grow, values, noise, halving.halving_phases(considered, config.num_simulations))
    else:
        table = jnp.asarray(halving.halving_table(considered, config.num_simulations))

        def at_root(edges: Edges) -> Array:
            edges = selection.drop_refuted(edges)
            return halving.in_turn(edges, values(edges), noise, start.visits, table)

        tree = grow(tree, at_root, config.num_simulations)
    edges = selection.final_candidates(root_edges(tree))
    found, legal = values(edges), selection.legal(edges)
    visits = jnp.where(legal, edges.visits - start.visits, -1)
    finalists = legal & (visits == visits.max(-1, keepdims=True))
    action = selection.best_edge(selection.gumbel_score(edges, found, noise), finalists)
    return selection.prefer_proven(root_edges(tree), action), _improved(tree, config), tree


def _side_by_side(
    tree: Tree,
    grow: Callable[..., Tree],
    values: Callable[[Edges], Array],
    noise: Array,
    phases: tuple[halving.Phase, ...],
) -> Tree:
    """Grows the trees phase by phase; the contenders of a phase are visited side by side."""
    before, visits, done = root_edges(tree).visits, 0, 0
    for phase in phases:
        edges = selection.drop_refuted(root_edges(tree))
        most = max(width for width, _ in phase)
        chosen = halving.contenders(edges, values(edges), noise, before, visits, most)
        for width, times in phase:
            tree = grow(tree, lambda _, best=chosen[:, :width]: best, times, width=width, first=done)
            visits, done = visits + times, done + width * times
    return tree


def _completed(edges: Edges, config: SearchOptions) -> Array:
    return selection.completed_values(edges, config.gumbel_value_scale, config.rescale_values)


def _improved(tree: Tree, config: SearchOptions) -> Array:
    """The improved policy: prior and completed values combined (Danihelka et al. 2022, section 4)."""
    edges = selection.final_candidates(root_edges(tree))
    return jax.nn.softmax(jnp.where(selection.legal(edges), edges.logits + _completed(edges, config), ILLEGAL))


def _puct(
    weights,
    key,
    tree,
    expand,
    draw,
    plies,
    config: SearchOptions,
    explore: bool | Array,
    writes: Form = "auto",
    urge: Array | float = 0.0,
):
    """PUCT of Silver et al. 2018 with root noise. In the first plies of self-play, moves are drawn in proportion to
    visits. `urge` [B, K] is added to the root scores."""
    action_key, noise_key, search_key = keys.split(key, 3)

    def noisy() -> Array:
        gamma = draw(lambda key, shape: jax.random.loggamma(key, config.dirichlet_alpha, shape), noise_key)
        return with_dirichlet(tree.logits[:, ROOT], gamma, config.dirichlet_fraction)

    prior = _where_noisy(explore, noisy, tree.logits[:, ROOT])
    options = {
        "c_puct": config.c_puct, "rescale": config.rescale_values, "first_play": config.fpu_reduction
    }  # fmt: skip
    select = lambda edges: selection.puct(selection.drop_refuted(edges), **options)
    # The tree keeps the prior without noise.
    at_root = lambda edges: selection.puct(selection.drop_refuted(edges._replace(logits=prior)), **options, urge=urge)
    tree = tree_search.search(weights, search_key, tree, expand, at_root, select, config.num_simulations, writes)
    edges, policy = selection.final_candidates(root_edges(tree)), visit_shares(tree)
    early = explore & (plies < config.temperature_plies)
    logits = jnp.where(selection.legal(edges), jnp.log(jnp.maximum(policy, 1e-12)), ILLEGAL)
    drawn = keys.draw_lanes(lambda key, _, logits: jax.random.categorical(key, logits), action_key, plies.shape, logits)
    action = selection.prefer_proven(root_edges(tree), logits.argmax(-1).astype(jnp.int32))
    return jnp.where(early, drawn, action).astype(jnp.int32), policy, tree


def visit_shares(tree: Tree) -> Array:
    """Each root edge's share of the visits, float32[B, K]."""
    edges = selection.final_candidates(root_edges(tree))
    visits = jnp.where(selection.legal(edges), edges.visits, 0)
    total = visits.sum(-1, keepdims=True)
    # Proofs may have dropped every visited move, or proven an unvisited one.
    return jnp.where(total > 0, visits / jnp.maximum(total, 1), jax.nn.softmax(edges.logits))


def _where_noisy(explore: bool | Array, noisy: Callable[[], Array], plain: Array) -> Array:
    if isinstance(explore, bool):
        return noisy() if explore else plain
    return jnp.where(explore[:, None], noisy(), plain)


def with_dirichlet(logits: Array, log_gamma: Array, fraction: float) -> Array:
    """Prior logits mixed with Dirichlet noise over the legal actions, from the logs of Gamma variables."""
    legal = logits > ILLEGAL / 2
    # A softmax of logs, because at low concentration all Gamma variables may underflow to zero.
    noise = jax.nn.softmax(jnp.where(legal, log_gamma, ILLEGAL))
    mixed = (1 - fraction) * jax.nn.softmax(logits) + fraction * noise
    return jnp.where(legal, jnp.log(jnp.maximum(mixed, 1e-30)), ILLEGAL)
