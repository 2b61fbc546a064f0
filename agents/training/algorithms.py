"""Training algorithms by the recipe of a run. The default is `iteration`: self-play with search, then learning.

An algorithm is five functions, which are compiled and run in turn on all devices. More can be registered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from jax.sharding import Mesh

from agents.config import RECIPES, Config
from agents.network.network import Network
from agents.training import iteration, value_regression
from agents.training.iteration import Run
from envs.game import Game


class Algorithm(NamedTuple):
    """The parts of a training algorithm."""

    start_run: Callable[[Game, Network, Config], Run]
    """The run before its first iteration."""
    ring_length: Callable[[Game, Config], int]
    """Rows of the replay for each game in lockstep."""
    run_specs: Callable[[Run], Run]
    """How the arrays of a run are divided among devices, as `PartitionSpec`s."""
    make_play: Callable[[Game, Network, Config, Mesh], Callable[[Run], tuple[Run, Any, Any]]]
    """Makes `play(run) -> (run, metrics, games that ended)`, the first phase of an iteration."""
    make_learn: Callable[[Game, Network, Config, Mesh], Callable[[Run, Any], tuple[Run, Any]]]
    """Makes `learn(run, progress) -> (run, metrics)`, the second phase; `progress` in [0, 1] of the budget."""


def _of(module: Any) -> Algorithm:
    return Algorithm(*(getattr(module, name) for name in Algorithm._fields))


DEFAULT = _of(iteration)
REGISTRY: dict[str, Algorithm] = {"value_generations": _of(value_regression)}


def register_algorithm(name: str, algorithm: Algorithm, options: Mapping[str, Any] | None = None) -> None:
    """Makes `--recipe=NAME` train by another algorithm, in every program of this process.

    Args:
        name: the recipe.
        algorithm: its parts; `DEFAULT._replace(...)` changes some of the usual ones.
        options: defaults of the options that this recipe changes.

    Raises:
        ValueError: the name is taken.
    """
    if name in RECIPES:
        raise ValueError(f"expected a new name for a recipe, got '{name}'")
    RECIPES[name] = dict(options or {})
    REGISTRY[name] = algorithm


def algorithm_of(config: Config) -> Algorithm:
    """The algorithm of a recipe.

    Raises:
        ValueError: no recipe of this name is known in this process.
    """
    if config.recipe not in RECIPES:
        known = ", ".join(RECIPES)
        raise ValueError(f"--recipe={config.recipe}: expected one of {known}, or the program that registers it")
    return REGISTRY.get(config.recipe, DEFAULT)
