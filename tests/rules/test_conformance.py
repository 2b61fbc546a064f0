"""What every game must hold, run over the registry: a new game is covered as soon as it is listed.

The rules are those of `python -m envs.check`. Options that change a game's form are among the integration tests.
"""

from __future__ import annotations

import functools

import pytest
from tiers import with_nightly

import envs
from envs import check

CASES = [(game, rule) for game in envs.list() for rule in check.RULES]
# Chess takes long to compile. Plain functions compile every operation by itself, and large games have many.
COSTLY = [("chess", rule) for rule in check.RULES if rule not in check.FORM]
COSTLY += [(game, "compiled equals plain") for game in ("evopawness", "go", "othello")]


@functools.lru_cache(maxsize=1)
def bench(game: str) -> check.Bench:
    return check.Bench(envs.make(game))


@pytest.mark.parametrize(("game", "rule"), with_nightly(CASES, COSTLY))
def test_every_game_holds(game, rule):
    check.RULES[rule](bench(game))
