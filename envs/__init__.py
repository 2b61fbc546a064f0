"""Registry of games: `make("foq:rows=6,cols=7")` gives the `Game` record, one object for each canonical name."""

from __future__ import annotations

import builtins
import inspect
from typing import Any

from envs import foq, tictactoe
from envs.game import Game, Symmetry

__all__ = ["Game", "Symmetry", "list", "make"]

# Adding a game: one file with a `make` whose keyword defaults are its options, and one line here.
_MODULES = {"foq": foq, "tictactoe": tictactoe}

_cache: dict[tuple[str, tuple[tuple[str, Any], ...]], Game] = {}


def list() -> builtins.list[str]:
    """Names of all games."""
    return sorted(_MODULES)


def _options(module: Any) -> dict[str, Any]:
    return {name: p.default for name, p in inspect.signature(module.make).parameters.items()}


def _parse_value(text: str, default: Any) -> Any:
    if isinstance(default, bool):
        return {"true": True, "false": False}[text.lower()]
    return type(default)(text)


def make(spec: str) -> Game:
    """The game of a spec `name` or `name:option=value,...`; options left out take their defaults.

    Raises:
        ValueError: unknown game, unknown or repeated option, or a value that the game refuses; the message lists what
            is known.
    """
    name, _, tail = spec.partition(":")
    if name not in _MODULES:
        raise ValueError(f"unknown game '{name}'; known games: {', '.join(list())}")
    module = _MODULES[name]
    defaults = _options(module)
    options = dict(defaults)
    given: set[str] = set()
    for item in tail.split(",") if tail else ():
        option, equals, text = item.partition("=")
        if option not in defaults or not equals:
            known = ", ".join(f"{k}={v}" for k, v in defaults.items()) or "none"
            raise ValueError(f"unknown option '{item}' of game '{name}'; known options: {known}")
        if option in given:
            raise ValueError(f"option '{option}' of game '{name}' is given twice")
        given.add(option)
        try:
            options[option] = _parse_value(text, defaults[option])
        except (ValueError, KeyError):
            kind = type(defaults[option]).__name__
            raise ValueError(f"option '{option}' of game '{name}': '{text}' is not of type {kind}") from None
    key = (name, tuple(options.items()))
    if key not in _cache:
        _cache[key] = module.make(**options)
    return _cache[key]
