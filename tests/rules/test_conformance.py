"""What every game must hold, run over the registry: a new game is covered as soon as it is listed.

The rules are those of `python -m envs.check`. Options that change a game's form are among the integration tests.
"""

from __future__ import annotations

import functools

import pytest

import envs
from envs import check

LARGE = ("evopawness", "go", "othello")


def is_costly(game: str, rule: str) -> bool:
    """Chess takes long to compile. Plain functions compile every operation by itself, and large games have many."""
    return (game == "chess" and rule not in check.FORM) or (game in LARGE and rule == "compiled equals plain")


CASES = [
    pytest.param(game, rule, marks=pytest.mark.nightly if is_costly(game, rule) else ())
    for game in envs.list()
    for rule in check.RULES
]


@functools.lru_cache(maxsize=1)
def bench(game: str) -> check.Bench:
    return check.Bench(envs.make(game))


@pytest.mark.parametrize(("game", "rule"), CASES)
def test_every_game_holds(game, rule):
    check.RULES[rule](bench(game))
