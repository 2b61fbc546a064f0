"""The list of rules, and the comparisons that they share.

A rule is a function named after its requirement. It raises AssertionError if the game of a bench breaks it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from envs.check.bench import Bench

Rule = Callable[[Bench], None]
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


def same(got, want, message=""):
    """Requires equal structure, dtype, shape and entries."""
    assert jax.tree.structure(got) == jax.tree.structure(want), message
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        g, w = np.asarray(g), np.asarray(w)
        assert (g.dtype, g.shape) == (w.dtype, w.shape), message
        np.testing.assert_array_equal(g, w, message)


def close(got, want):
    """Like `same`, but floats may differ in the last digits."""
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape)
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-6, atol=1e-6)


def at(tree, index):
    return jax.tree.map(lambda x: x[index], tree)
