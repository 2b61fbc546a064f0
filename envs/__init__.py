"""Registry of games: `make("foq:rows=6,cols=7")` returns the `Game` record, one object per canonical name.

Your own file works too, if it defines `make` as the games here do: `make("path/to/my_game.py:size=5")`. With the pgx
library installed, `make("pgx:shogi")` returns a game of pgx.
"""

from __future__ import annotations

import builtins
import dataclasses
import difflib
import importlib.util
import inspect
import os
import pathlib
import sys
import traceback
import types
from typing import Any

from envs import (
    chess,
    connect_four,
    evopawness,
    foq,
    foq_multi,
    foq_single,
    go,
    gomoku,
    hex,
    othello,
    pgx_bridge,
    sum_to_100,
    tictactoe,
)
from envs.game import Game, Hints, Symmetry, View

__all__ = ["Game", "Hints", "Symmetry", "View", "list", "make"]

# To add a game, write a file with a `make` whose keyword defaults are its options, and add one line here.
_MODULES = {
    "chess": chess,
    "connect_four": connect_four,
    "evopawness": evopawness,
    "foq": foq,
    "foq_multi": foq_multi,
    "foq_single": foq_single,
    "go": go,
    "gomoku": gomoku,
    "hex": hex,
    "othello": othello,
    "sum_to_100": sum_to_100,
    "tictactoe": tictactoe,
}

_own: dict[str, Any] = {}
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


def _split(spec: str) -> tuple[str, str]:
    """Name and options of a spec. The name of an own game ends in .py and may contain colons; pgx:ID has no options."""
    if spec.startswith("pgx:"):
        return spec, ""
    at = spec.find(".py:") + 3 if ".py:" in spec else len(spec) if spec.endswith(".py") else spec.find(":")
    name, tail = (spec, "") if at < 0 else (spec[:at], spec[at + 1 :])
    return _short(name) if name.endswith(".py") else name, tail


def _short(file: str) -> str:
    """The same for all spellings of a path; relative where the file lies below the current folder."""
    path, here = os.path.abspath(file), os.path.join(os.getcwd(), "")
    return path.removeprefix(here) if path.startswith(here) else os.path.normpath(file)


def _module(name: str) -> Any:
    """The module of a game.

    Raises:
        ValueError: the name is unknown, or the file is missing, fails to run or has no `make`.
    """
    if name in _MODULES:
        return _MODULES[name]
    if name.startswith("pgx:"):
        return types.SimpleNamespace(make=lambda: pgx_bridge.from_pgx(name.removeprefix("pgx:")))
    if not name.endswith(".py"):
        if pathlib.Path(name).is_file():
            raise ValueError(f"own game: expected a file that ends in .py, got '{name}'")
        known = f"{', '.join(list())}, pgx:ID with the pgx library, or a file path/to/my_game.py"
        meant = difflib.get_close_matches(name, list(), 1)
        perhaps = (
            f"; perhaps {meant[0]} is meant" if meant else "; it is a folder" if pathlib.Path(name).is_dir() else ""
        )
        raise ValueError(f"unknown game '{name}'{perhaps}; known games: {known}")
    if name in _own:
        return _own[name]
    path = pathlib.Path(name)
    if not path.is_file():
        raise ValueError(f"own game '{name}': there is no such file")
    found = importlib.util.spec_from_file_location(f"own_game_{path.stem}", path)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module  # dataclasses look for the module of a class there
    try:
        found.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # an external file may raise anything
        del sys.modules[found.name]
        raise ValueError(f"own game '{name}' cannot be loaded: {_because(path, error)}") from error
    if not callable(getattr(module, "make", None)):
        raise ValueError(f"own game '{name}' has no function `make` that gives a Game")
    for option, default in _options(module).items():
        if default is inspect.Parameter.empty:
            raise ValueError(f"own game '{name}': expected a default for the option {option} of make, got none")
        if not isinstance(default, bool | int | float | str):
            kinds = "a bool, a number or a string"
            raise ValueError(f"own game '{name}': expected {kinds} as the default of {option}, got {default!r}")
    _own[name] = module
    return module


def make(spec: str) -> Game:
    """The game of a spec `name` or `name:option=value,...`; omitted options take their defaults.

    Raises:
        ValueError: unknown game, unknown or repeated option, or a value that the game rejects; the message lists the
            known ones.
    """
    name, tail = _split(spec)
    module = _module(name)
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
        if name in _own:
            _cache[key] = _make_own(module, name, options, defaults)
        else:
            _cache[key] = module.make(**options)
    return _cache[key]


def as_named(spec: str) -> str:
    """The spec in a saved file, if it is safe to `make`. Such a file must not choose which code runs: an own game runs
    only if the person at the command line names it. If its file is no longer there, the one that was named is taken
    for it.

    Raises:
        ValueError: nobody has named the own game in this process.
    """
    name, tail = _split(spec)
    if not name.endswith(".py"):
        return spec
    if name not in _own:
        if len(_own) != 1 or pathlib.Path(name).is_file():
            got = ", ".join(f"--env={other}" for other in _own) or "no --env"
            raise ValueError(f"expected --env={spec}, since it is for a game of your own, got {got}")
        (name,) = _own
    return f"{name}:{tail}" if tail else name


def line_of(path: pathlib.Path, error: BaseException) -> int | None:
    """The innermost line of a file on the way to an error."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if pathlib.Path(frame.filename).resolve() == path.resolve()]
    return lines[-1] if lines else None


# What to write in place of Python that asks for the value of an array while JAX compiles the rules.
_ADVICE = {
    "TracerBoolConversionError": "`if`, `while`, `and`, `or` and `not` cannot ask an array: use jnp.where, & | ~, or "
    "jax.lax.while_loop",
    "ConcretizationTypeError": "the value of an array is not known while JAX compiles: use jnp and astype in place of "
    "int() and float(), and shapes that do not depend on values",
    "TracerIntegerConversionError": "an array cannot be an index of a list or the number of rounds of a loop: use "
    "jnp.array(list)[index], or jax.lax.fori_loop",
    "TracerArrayConversionError": "NumPy cannot compute with arrays while JAX compiles: use jnp",
    "NonConcreteBooleanIndexError": "a mask as an index gives an array of unknown length: use jnp.where",
}


def in_words(error: BaseException) -> str:
    """The first line of an error's message, or what to write instead where JAX speaks of its own machinery."""
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    if "truth value of an array" in said:
        return _ADVICE["TracerBoolConversionError"]
    return _ADVICE.get(type(error).__name__, said)


def _because(path: pathlib.Path, error: BaseException) -> str:
    """An error with its kind and line, as words."""
    line = line_of(path, error)
    return f"{type(error).__name__}: {in_words(error)}" + (f", in line {line}" if line else "")


def _make_own(module: Any, name: str, options: dict[str, Any], defaults: dict[str, Any]) -> Game:
    """An own game, renamed to the spec that finds its file again."""
    try:
        game = module.make(**options)
    except (Exception, SystemExit) as error:
        see = "; docs/your_game.md says what a game has" if "Game.__init__" in str(error) else ""
        said = _because(pathlib.Path(name), error)
        raise ValueError(f"own game '{name}': `make` raised {said}{see}") from error
    if not isinstance(game, Game):
        raise ValueError(f"own game '{name}': `make` gives a {type(game).__name__}, not a Game")
    tail = ",".join(f"{k}={v}" for k, v in options.items() if v != defaults[k])
    return dataclasses.replace(game, name=f"{name}:{tail}" if tail else name)
