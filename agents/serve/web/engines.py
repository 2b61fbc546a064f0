"""Players that search, compiled for batches of several widths."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from agents.config import for_play
from agents.players.ownership import Owners, make_owners
from agents.players.spec import UCT, PlayerSpec
from agents.search.policies import TreePolicy, make_tree_policy
from agents.search.tree import Tree
from agents.search.uct import uct_tree_policy
from agents.serve.options import MOST_SIMULATIONS
from agents.storage import weights as models
from envs.game import Array, Game

WIDTHS = (1, 8, 32)  # batch widths to compile; further jobs wait for a lane
MEMORY = 2**30  # bytes for the trees of one engine


class Programs(NamedTuple):
    """The compiled programs of an engine for one width of the batch."""

    init_tree: Callable[[Any, Array, Any], Tree]
    """(weights, key, states) -> trees."""
    run_simulations: Callable[[Any, Array, Tree, Array], Tree]
    """(weights, key, trees, plies) -> trees."""
    policy: Callable[[Tree], Array]
    """See `TreePolicy`, also for `values`."""
    values: Callable[[Tree], Array]


@dataclasses.dataclass(frozen=True)
class SearchEngine:
    """A player that searches, with trees that can be shown."""

    game: Game
    folder: str | None  # of a run or model; None for UCT
    path: Path | None  # of the network's file
    weights: Any
    step: int  # simulations of one call of `run_simulations`
    max_nodes: int  # capacity of a tree
    programs: Callable[[int], Programs]
    """The programs for a width, compiled when it first comes up."""
    codes: Callable[[Tree], Array]
    """See `TreePolicy`."""
    owners: Owners | None = None  # of the cells, where the network knows them


@functools.lru_cache(maxsize=8)  # prove:N,PLAYER and PLAYER share one, and so do those who come back
def make_engine(game: Game, spec: PlayerSpec, step: int) -> SearchEngine:
    """The engine of UCT or of a network, with `step` simulations a call.

    Raises:
        ValueError: no such network, or a network of another game.
    """
    if spec.kind == UCT:
        return _engine(game, None, None, uct_tree_policy(game, step), None, step)
    trained = models.load_network(spec.path, game)
    config = for_play(dataclasses.replace(trained.config, search_loop="native"), game, step)
    engine = _engine(game, spec.path, trained.path, make_tree_policy(game, trained.net, config), trained.weights, step)
    return dataclasses.replace(engine, owners=make_owners(game, trained.config))


def renewed(engine: SearchEngine) -> SearchEngine:
    """The engine with the newest network of its run; unchanged if there is none any more, or one of another size, for
    which the compiled programs do not serve."""
    with contextlib.suppress(models.CheckpointError, OSError):
        path = None if engine.folder is None else models.find_network(Path(engine.folder))
        if path is not None and path != engine.path:
            weights = jax.device_put(models.load_arrays(path, models.about(path)["config"]))
            if jax.tree.map(jnp.shape, weights) == jax.tree.map(jnp.shape, engine.weights):
                return dataclasses.replace(engine, path=path, weights=weights)
    return engine


def _engine(
    game: Game, folder: str | None, path: Path | None, tree_policy: TreePolicy, weights: Any, step: int
) -> SearchEngine:
    def init_tree(weights, key, states):
        return tree_policy.init_tree(weights, key, states, max_nodes)

    def run_simulations(weights, key, tree, plies):
        return tree_policy.run_simulations(weights, key, tree, plies, False)[2]

    def compiled(width: int) -> Programs:
        """All programs are compiled at once, since compiling one leaves other cores idle."""
        key, plies = jax.random.key(0), jnp.zeros(width, jnp.int32)
        states = jax.tree.map(lambda x: jnp.broadcast_to(x, (width, *jnp.shape(x))), game.init())
        tree = jax.eval_shape(init_tree, weights, key, states)
        parts = (
            (jax.jit(init_tree), (weights, key, states)),
            (jax.jit(run_simulations, donate_argnums=2), (weights, key, tree, plies)),
            (jax.jit(tree_policy.policy), (tree,)),
            (jax.jit(tree_policy.values), (tree,)),
        )
        with ThreadPoolExecutor(len(parts)) as pool:
            return Programs(*pool.map(lambda part: part[0].lower(*part[1]).compile(), parts))

    one = jax.tree.map(lambda x: x[None], game.init())
    tree = jax.eval_shape(lambda: tree_policy.init_tree(weights, jax.random.key(0), one, 2))
    node = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree)) / 2
    max_nodes = int(min(MOST_SIMULATIONS + step, MEMORY / WIDTHS[-1] / node)) + 1
    return SearchEngine(
        game=game,
        folder=folder,
        path=path,
        weights=jax.device_put(weights),
        step=step,
        max_nodes=max_nodes,
        programs=functools.lru_cache(compiled),
        codes=tree_policy.codes,
    )
