"""What every game must hold, run over the registry: a new game is covered as soon as it is listed.

The rules are those of `python -m envs.check`. Options that change a game's form are among the integration tests.
"""

from __future__ import annotations

import pytest

import envs
from envs import check


@pytest.fixture(scope="module", params=envs.list())
def bench(request):
    return check.Bench(envs.make(request.param))


@pytest.mark.parametrize("name", check.RULES)
def test_every_game_holds(bench, name):
    check.RULES[name](bench)
