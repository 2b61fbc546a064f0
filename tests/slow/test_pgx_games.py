"""The larger games of pgx hold the contract of our games."""

import pytest

import envs
from envs import check, pgx_bridge

QUICK = ("tic_tac_toe", "connect_four")  # these are among the integration tests


@pytest.mark.parametrize("name", [name for name in pgx_bridge.GAMES if name not in QUICK])
def test_a_game_of_pgx_holds_the_contract(name):
    bench = check.Bench(envs.make(f"pgx:{name}"))
    broken = [check.broken(rule, holds, bench) for rule, holds in check.RULES.items()]
    assert not [what for what in broken if what]
