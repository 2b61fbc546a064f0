"""A long look at one position: search until a time or a number of simulations is used up, the tree kept from move to
move, and lines of play as plain records."""

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
from agents.config import Config
from agents.network.network import Network
from agents.players.players import for_play
from agents.runtime import mesh
from agents.search import tree as tree_search
from agents.search.policies import TreePolicy, make_tree_policy
from agents.search.tree import ROOT, Tree
from agents.storage.weights import TrainedNetwork
from envs.game import Array, Game

PROVEN = {-1: "loss", 0: "draw", 1: "win"}


@dataclasses.dataclass(frozen=True)
class Analyst:
    """Searches one position in `copies` trees at once, each with noise of its own, so that a batch or several devices
    work on it together; the first tree goes without noise. The functions are compiled; `think` gives its trees up."""

    game: Game
    step: int  # simulations of one call of `think`, in every tree
    max_nodes: int  # nodes that a tree can hold
    begin: Callable[[Any, Array, Any], Tree]
    """(weights, key, state) -> trees of that position."""
    run_simulations: Callable[[Any, Array, Tree], Tree]
    """(weights, key, trees) -> the same after `step` more simulations. They need room for as many nodes."""
    advance_root: Callable[[Tree, Array], Tree]
    """(trees, action) -> what is known of the position after it; trees where it was never tried are empty."""
    policy: Callable[[Tree], Array]
    """See `search.TreePolicy`, as `values`, `codes` and `states`."""
    values: Callable[[Tree], Array]
    codes: Callable[[Tree], Array]
    states: Callable[[Tree], Any]


def make_analyst(
    game: Game, net: Network, config: Config, *, max_nodes: int = 4096, copies: int = 1, devices: Mesh | None = None
) -> Analyst:
    """An analyst with the search of `config`; `num_simulations` is the step in which it thinks. The copies are divided
    among `devices`, a mesh of `mesh.make_mesh(copies, copies)`; without it they lie on the default device.

    With Gumbel search each step is a sequential halving of its own that begins with all that is known, so the search
    can be stopped after any of them. With PUCT the steps make no difference.
    """
    config = dataclasses.replace(config, proofs=game.num_players == 2, root_symmetry="average")
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
    """An analyst whose trees grow as those of `tree_policy`, by `step` simulations at a time; the rest as above."""
    devices = devices or Mesh(np.array(jax.devices()[:1]), (mesh.GAMES,))
    if copies < 1 or copies % devices.size:
        raise ValueError(f"{copies} copies do not divide among {devices.size} devices")
    share = copies // devices.size  # of each device
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
) -> Tree:
    """Thinks until the time or the simulations (of each tree) are used up, or the room for nodes, or for counts of
    visits. One step is always made, where there is room for it, and `seconds` count from its end.

    Raises:
        ValueError: neither `seconds` nor `simulations` is given, or they are not positive.
    """
    if seconds is None and simulations is None:
        raise ValueError("analyse: give seconds, simulations or both")
    if min(x for x in (seconds, simulations) if x is not None) <= 0:
        raise ValueError("analyse: seconds and simulations must be more than 0")
    begun, done, taken = 0.0, 0, 0.0
    countable = jnp.iinfo(tree.edge_visits.dtype).max  # finished positions are visited again without new nodes
    full = lambda: int(tree.size.max()) + analyst.step > analyst.max_nodes
    while not full() and int(tree.visits[:, ROOT].max()) + analyst.step <= countable:
        if done and simulations is not None and done + analyst.step > simulations:
            break
        # A step that would probably end too late is not begun.
        if done and seconds is not None and time.monotonic() - begun + taken > seconds:
            break
        started = time.monotonic()
        tree = jax.block_until_ready(analyst.run_simulations(weights, jax.random.fold_in(key, done), tree))
        # The first step may have compiled: the clock starts behind it.
        begun, taken = (begun, time.monotonic() - started) if done else (time.monotonic(), 0.0)
        done += analyst.step
    return tree


def advance(analyst: Analyst, weights: Any, key: Array, tree: Tree, action: int) -> Tree:
    """The trees after a move: what is known of it is kept; trees that know nothing are planted anew."""
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
        step: simulations between two looks at the clock.
        most: moves in the report.
        seed: of the search.

    Raises:
        ValueError: neither `seconds` nor `simulations` is given, or they are not positive.
    """
    begin_key, search_key = jax.random.split(jax.random.key(seed))
    analyst = make_analyst(trained.game, trained.net, for_play(trained.config, trained.game, step))
    tree = analyst.begin(trained.weights, begin_key, state)
    tree = analyse(analyst, trained.weights, search_key, tree, seconds=seconds, simulations=simulations)
    return report(analyst, tree, most)


def report(analyst: Analyst, tree: Tree, most: int = 5) -> dict[str, Any]:
    """What the trees say of their position, JSON-ready.

    Returns:
        `value` for the mover (`selection.searched_value`), `values` for every player, `simulations` of all trees,
        `proven` (`win`, `draw`, `loss` for the mover, or None), and `moves`, the best first, `most` of them: `action`,
        `visits`, `value`, `prior`, `proven` and `line`, the moves that the first tree expects from it on.
    """
    host, policy, values = jax.device_get((tree, analyst.policy(tree), analyst.values(tree)))
    return look(analyst.game, host, policy, values, np.asarray(analyst.codes(tree)), most)


def look(
    game: Game, host: Tree, policy: np.ndarray, values: np.ndarray, codes: np.ndarray, most: int
) -> dict[str, Any]:
    """`report` of trees on the host with their improved policies, their searched values and the codes of their edges,
    see `search.TreePolicy`."""
    codes = np.broadcast_to(codes, host.logits.shape)[0]
    edges = np.flatnonzero(host.logits[0, ROOT] > ILLEGAL / 2)
    at_root = lambda x: x[:, ROOT][:, edges].astype(np.float64)
    visits = at_root(host.edge_visits)
    q = (at_root(host.edge_values) * visits).sum(0) / np.maximum(visits.sum(0), 1)
    mover, means = int(host.mover[0, ROOT]), values.mean(0, dtype=np.float64)
    low, high = np.full(len(edges), -np.inf), np.full(len(edges), np.inf)
    if host.lower_bound is not None:  # what one tree has proven holds in all
        low, high = at_root(host.lower_bound).max(0), at_root(host.upper_bound).min(0)
    prior = np.exp(at_root(host.logits)[0] - at_root(host.logits)[0].max(initial=-np.inf))
    best, limit = (low.max(), high.max()) if len(edges) else (-np.inf, np.inf)
    # Sequential halving ends with moves visited as often: between them its policy decides, as in a match.
    improved = policy[:, edges].astype(np.float64).mean(0)
    order = np.lexsort((-prior, -q, -improved, -visits.sum(0), high == -1))
    # What is proven comes first where nothing better can come, or seems to: see selection.prefer_proven.
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
                "visits": int(visits[:, i].sum()),
                "value": round(float(np.clip(q[i], low[i], high[i])), 4),
                "prior": round(float(prior[i] / prior.sum()), 4),
                "proven": proven(low[i], high[i]),
                "line": [name(code) for code in line(host, codes, int(edges[i]))],
            }
            for i in order
        ],
    }


def line(tree: Tree, codes: np.ndarray, edge: int) -> list[int]:
    """Codes from the root's `edge` on along the best edges of the first tree: the most visited, or where a win or a
    draw is proven and the value of that one is lower, of those that are proven; `codes` int[C, K]."""
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
