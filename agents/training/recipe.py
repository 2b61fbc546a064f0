"""Selects the module that carries out the recipe of a run."""

from __future__ import annotations

from typing import Any

from agents.config import Config
from agents.training import iteration, value_regression


def system(config: Config) -> Any:
    """The module with `start_run`, `ring_length`, `run_specs`, `make_play` and `make_learn` for a configuration."""
    return value_regression if config.recipe == "value_generations" else iteration
