"""What every game must hold, run over options that change a game's form."""

from __future__ import annotations

import pytest
from tiers import with_nightly

import envs
from envs import check

SPECS = [
    "foq:rows=5,cols=5",
    "foq:rows=4,cols=6,planes=article",
    "foq_multi:rows=4,cols=6,players=4,planes=article",
    "connect_four:rows=3,cols=9,connect=4",
    "hex:size=4,swap=false",
    "go:size=5,ko=psk",
]


@pytest.fixture(scope="module", params=SPECS)
def bench(request):
    return check.Bench(envs.make(request.param))


@pytest.mark.parametrize("name", with_nightly(check.RULES, costly=["compiled equals plain"]))
def test_every_game_holds(bench, name):
    check.RULES[name](bench)
