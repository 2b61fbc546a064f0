"""Analysis of one position within a time or simulation budget, with the tree kept from move to move. Results are plain
records with lines of play."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from agents.actions import ILLEGAL
from agents.config import SearchOptions, for_play
from agents.network.network import Network
from agents.players.budget import Budget, even_step
from agents.runtime import mesh
from agents.search import tree as tree_search
from agents.search.policies import TreePolicy, make_tree_policy
from agents.search.tree import ROOT, Tree
from agents.storage.weights import TrainedNetwork
from envs.game import Array, Game

PROVEN = {-1: "loss", 0: "draw", 1: "win"}
FEW = 0.1  # of the visits of the most visited move: with fewer, the value of a move that is not proven says little


@dataclasses.dataclass(frozen=True)
class Analyst:
    """Searches one position in `copies` trees at once, so that a batch or several devices work on it together. Every
    tree but the first has noise of its own. The functions are compiled, and `run_simulations` donates its trees."""

    game: Game
    step: int  # simulations of one call of `run_simulations`, in every tree
    max_nodes: int  # capacity of a tree
    begin: Callable[[Any, Array, Any], Tree]
    """(weights, key, state) -> trees of that position."""
    run_simulations: Callable[[Any, Array, Tree], Tree]
    """(weights, key, trees) -> the trees after `step` more simulations. They need room for `step` more nodes."""
    advance_root: Callable[[Tree, Array], Tree]
    """(trees, action) -> subtrees of the position after `action`; empty where a tree never tried it."""
    policy: Callable[[Tree], Array]
    """See `TreePolicy`, also for `values`, `codes` and `states`."""
    values: Callable[[Tree], Array]
    codes: Callable[[Tree], Array]
    states: Callable[[Tree], Any]


def make_analyst(
    game: Game,
    net: Network,
    config: SearchOptions,
    *,
    max_nodes: int = 4096,
    copies: int = 1,
    devices: Mesh | None = None,
) -> Analyst:
    """An analyst with the search of `config`; one step is `num_simulations` simulations. The copies are divided among
    `devices`, a mesh of `mesh.make_mesh(copies, copies)`. Without it they run on the default device.

    With Gumbel search each step is a sequential halving that starts from all earlier results, so the search can stop
    after any step. With PUCT the step size makes no difference."""
    config = dataclasses.replace(config, proofs=game.num_players == 2, root_symmetry="average", early_urge=0.0)
    tree_policy = make_tree_policy(game, net, config)
    return from_tree_policy(
        game, tree_policy, config.num_simulations, max_nodes=max_nodes, copies=copies, devices=devices
    )


def from_tree_policy(
    game: Game,
    tree_policy: TreePolicy,
    step: int,
    *,
    max_nodes: int = 4096,
    copies: int = 1,
    devices: Mesh | None = None,
) -> Analyst:
    """An analyst that grows the trees of `tree_policy` by `step` simulations at a time, otherwise as `make_analyst`."""
    devices = devices or Mesh(np.array(jax.devices()[:1]), (mesh.GAMES,))
    if copies < 1 or copies % devices.size:
        raise ValueError(f"{copies} copies do not divide among {devices.size} devices")
    share = copies // devices.size  # copies on each device
    everywhere, divided = PartitionSpec(), PartitionSpec(mesh.GAMES)

    def begin(weights, key, state):
        states = jax.tree.map(lambda x: jnp.broadcast_to(x, (share, *x.shape)), state)
        return tree_policy.init_tree(weights, key, states, max_nodes)

    def run_simulations(weights, key, tree):
        here = jax.lax.axis_index(mesh.GAMES)
        noisy = copies > 1 and here * share + jnp.arange(share) > 0
        plies = jnp.full(share, game.max_plies)
        return tree_policy.run_simulations(weights, jax.random.fold_in(key, here), tree, plies, noisy)[2]

    def advance_root(tree, action):
        codes = jnp.broadcast_to(tree_policy.codes(tree)[:, ROOT], (share, tree.logits.shape[-1]))
        return tree_search.advance_root(tree, (codes == action).argmax(-1))

    def compiled(function, *specs, **options):
        mapped = jax.shard_map(function, mesh=devices, in_specs=specs, out_specs=divided, check_vma=False)
        return jax.jit(mapped, **options)

    return Analyst(
        game=game,
        step=step,
        max_nodes=max_nodes,
        begin=compiled(begin, everywhere, everywhere, everywhere),
        run_simulations=compiled(run_simulations, everywhere, everywhere, divided, donate_argnums=2),
        advance_root=compiled(advance_root, divided, everywhere),
        policy=compiled(tree_policy.policy, divided),
        values=compiled(tree_policy.values, divided),
        codes=tree_policy.codes,
        states=tree_policy.states,
    )


def analyse(
    analyst: Analyst,
    weights: Any,
    key: Array,
    tree: Tree,
    *,
    seconds: float | None = None,
    simulations: int | None = None,
    compiled: bool = False,
) -> Tree:
    """Searches until the time, the simulations (of each tree), the room for nodes or the range of visit counts is used
    up, see `Budget`. One step is always made if there is room for it. With `compiled`, its time counts as well: the
    analyst has made a step before.

    Raises:
        ValueError: neither `seconds` nor `simulations` is given, or one of them is not positive.
    """
    if seconds is None and simulations is None:
        raise ValueError("analyse: give seconds, simulations or both")
    if min(x for x in (seconds, simulations) if x is not None) <= 0:
        raise ValueError("analyse: expected more than 0 seconds and simulations")
    budget = Budget(seconds, simulations)
    if compiled:
        budget.start()
    countable = jnp.iinfo(tree.edge_visits.dtype).max  # visits to finished positions add no nodes
    full = lambda: int(tree.size.max()) + analyst.step > analyst.max_nodes
    while not full() and int(tree.visits[:, ROOT].max()) + analyst.step <= countable:
        if not budget.allows(analyst.step):
            break
        started = time.monotonic()
        tree = jax.block_until_ready(analyst.run_simulations(weights, jax.random.fold_in(key, budget.done), tree))
        budget.spend(analyst.step, time.monotonic() - started)
    return tree


def advance_trees(analyst: Analyst, weights: Any, key: Array, tree: Tree, action: int) -> Tree:
    """The trees after a move. Known subtrees are kept; trees without one start afresh."""
    after = analyst.advance_root(tree, jnp.int32(action))
    known = after.size > 0
    if bool(known.all()):
        return after
    state = jax.tree.map(lambda x: x[0, ROOT], analyst.states(tree))
    anew = analyst.begin(weights, key, analyst.game.move(state, action))
    return jax.tree.map(lambda a, b: jnp.where(known.reshape(-1, *[1] * (a.ndim - 1)), a, b), after, anew)


def analyse_position(
    trained: TrainedNetwork,
    state: Any,
    *,
    seconds: float | None = None,
    simulations: int | None = None,
    step: int = 32,
    most: int = 5,
    seed: int = 0,
) -> dict[str, Any]:
    """Searches one position with a trained network as it plays, and gives the `report`.

    Args:
        trained: from `load_network`.
        state: the position.
        seconds: time of the search, counted from the end of its first step, which may have to compile.
        simulations: their number, where no time is given, or at most.
        step: most simulations between two looks at the clock.
        most: moves in the report.
        seed: of the search.

    Raises:
        ValueError: neither `seconds` nor `simulations` is given, or they are not positive.
    """
    begin_key, search_key = jax.random.split(jax.random.key(seed))
    step = even_step(simulations, step) if simulations is None or simulations > 0 else step  # `analyse` refuses it
    config = dataclasses.replace(trained.config, search_loop="native")  # the other one keeps no tree
    analyst = make_analyst(trained.game, trained.net, for_play(config, trained.game, step))
    tree = analyst.begin(trained.weights, begin_key, state)
    tree = analyse(analyst, trained.weights, search_key, tree, seconds=seconds, simulations=simulations)
    return report(analyst, tree, most)


def report(analyst: Analyst, tree: Tree, most: int = 5) -> dict[str, Any]:
    """Evaluation of the root position by the trees, JSON-ready.

    Returns:
        `value` for the mover (`selection.searched_value`), `values` for every player, `simulations` of all trees,
        `proven` (`win`, `draw`, `loss` for the mover, or None), and `moves`, the best `most` moves in order. The first
        one is the best move everywhere: in lists, as a hint and in play. Each move has `action`, `visits`, `few` (see
        `FEW`), `value`, `prior`, `proven` and `line`, the first tree's expected play from this move on.
    """
    host, policy, values = jax.device_get((tree, analyst.policy(tree), analyst.values(tree)))
    return root_summary(analyst.game, host, policy, values, np.asarray(analyst.codes(tree)), most)


def root_summary(
    game: Game, host: Tree, policy: np.ndarray, values: np.ndarray, codes: np.ndarray, most: int
) -> dict[str, Any]:
    """`report` for trees on the host: `policy` and `values` of the trees, `codes` of their edges, see `TreePolicy`."""
    codes = np.broadcast_to(codes, host.logits.shape)[0]
    edges = np.flatnonzero(host.logits[0, ROOT] > ILLEGAL / 2)
    at_root = lambda x: x[:, ROOT][:, edges].astype(np.float64)
    visits = at_root(host.edge_visits)
    counts = visits.sum(0)
    q = (at_root(host.edge_values) * visits).sum(0) / np.maximum(counts, 1)
    mover, means = int(host.mover[0, ROOT]), values.mean(0, dtype=np.float64)
    low, high = np.full(len(edges), -np.inf), np.full(len(edges), np.inf)
    if host.lower_bound is not None:  # a proof in one tree holds in all
        low, high = at_root(host.lower_bound).max(0), at_root(host.upper_bound).min(0)
    prior = np.exp(at_root(host.logits)[0] - at_root(host.logits)[0].max(initial=-np.inf))
    best, limit = (low.max(), high.max()) if len(edges) else (-np.inf, np.inf)
    few = (counts < FEW * counts.max(initial=0.0)) & (low != high)
    # The improved policy ranks the moves. Visits add up over several sequential halvings, and so rank them late: the
    # move with most of them loses to this one (benchmarks/best_move.py).
    improved = policy[:, edges].astype(np.float64).mean(0)
    order = np.lexsort((-prior, -q, -counts, -improved, few, high == -1))
    # A proven move comes first if nothing better is possible or the best estimate is lower, see prefer_proven.
    if len(order) and best > -1 and (best == limit or q[order[0]] < best):
        order = order[np.argsort(low[order] != best, kind="stable")]
    order = order[:most]
    proven = lambda low, high: PROVEN[int(low)] if low == high else None
    name = lambda code: game.action_name(int(code))
    value = np.clip(means[mover], best, limit)
    if game.num_players == 2:
        means = np.where(np.arange(2) == mover, value, -value)
    return {
        "value": round(float(value), 4),
        "values": [round(float(x), 4) for x in means],
        "simulations": int((host.visits[:, ROOT] - 1).sum()),
        "proven": proven(best, limit),
        "moves": [
            {
                "action": name(codes[ROOT, edges[i]]),
                "visits": int(counts[i]),
                "few": bool(few[i]),
                "value": round(float(np.clip(q[i], low[i], high[i])), 4),
                "prior": round(float(prior[i] / prior.sum()), 4),
                "proven": proven(low[i], high[i]),
                "line": [name(code) for code in line(host, codes, int(edges[i]))],
            }
            for i in order
        ],
    }


def line(tree: Tree, codes: np.ndarray, edge: int) -> list[int]:
    """Action codes from the root's `edge` on, along the best edges of the first tree; `codes` is int[C, K]. The best
    edge is the most visited one. A proven win or draw comes first if nothing better is possible or that edge is worth
    less."""
    node, found = ROOT, []
    while True:
        found.append(int(codes[node, edge]))
        node = int(tree.child[0, node, edge])
        if node < 0 or not tree.edge_visits[0, node].any():
            return found
        visits, q = tree.edge_visits[0, node], tree.edge_values[0, node]
        edge = int(visits.argmax())
        if tree.lower_bound is not None and tree.upper_bound is not None:
            low, high = tree.lower_bound[0, node], tree.upper_bound[0, node]
            least = low.max()
            if least > -1 and (least == high.max() or np.clip(q, low, high)[edge] < least):
                edge = int(np.where(low == least, visits, -1).argmax())
