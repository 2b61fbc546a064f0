"""The list of rules, and the comparisons that they share.

A rule is a function named after its requirement. It raises AssertionError if the game of a bench breaks it. Where it
cannot judge a game, it returns the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from envs.check.bench import Bench

Rule = Callable[[Bench], str | None]
RULES: dict[str, Rule] = {}
FORM: dict[str, Rule] = {}  # rules that need no game to be played: quick enough before every run


def rule(function: Rule) -> Rule:
    """Adds a function to `RULES` under its name in words."""
    RULES[function.__name__.replace("_", " ")] = function
    return function


def form(function: Rule) -> Rule:
    """Adds a function to `FORM` too."""
    FORM[function.__name__.replace("_", " ")] = function
    return rule(function)


def refused(function: Callable[[Any], Any], argument: Any) -> None:
    """Requires a ValueError with a reason."""
    name = getattr(function, "__name__", "it")
    try:
        got = function(argument)
    except ValueError as error:
        assert str(error), f"{name}({argument!r}): expected a ValueError with a reason, got one without"
    except Exception as error:
        said = f"{name}({argument!r}): expected ValueError, got {type(error).__name__}: {error}"
        raise AssertionError(said).with_traceback(error.__traceback__) from None
    else:
        raise AssertionError(f"{name}({argument!r}): expected ValueError, got {got!r}")


def same(got: Any, want: Any, what: str = "", tolerance: float = 0.0) -> None:
    """Requires equal structure, dtype, shape and entries, floats up to a relative and absolute `tolerance`. `what`
    names the values in the message."""
    assert jax.tree.structure(got) == jax.tree.structure(want), f"{what or 'state'}: expected the same fields"
    for (path, w), g in zip(jax.tree.leaves_with_path(want), jax.tree.leaves(got), strict=True):
        name = ", ".join(part for part in (what, jax.tree_util.keystr(path).strip(".")) if part) or "value"
        g, w = np.asarray(g), np.asarray(w)
        shapes = f"{w.dtype}{list(w.shape)}", f"{g.dtype}{list(g.shape)}"
        assert shapes[0] == shapes[1], f"{name}: expected {shapes[0]}, got {shapes[1]}"
        unlike = np.argwhere(~np.isclose(g, w, tolerance, tolerance, equal_nan=True))
        if len(unlike):
            at = tuple(unlike[0].tolist())
            raise AssertionError(f"{name}{f' at {list(at)}' if at else ''}: expected {w[at]}, got {g[at]}")


def close(got: Any, want: Any, what: str = "") -> None:
    """Like `same`, but floats may differ in the last digits."""
    same(got, want, what, 1e-6)


def at(tree, index):
    return jax.tree.map(lambda x: x[index], tree)
