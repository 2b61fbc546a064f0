"""What every game must hold, run over the registry: a new game is covered as soon as it is listed.

The rules are those of `python -m envs.check`; options that change a game's form are listed beside the defaults.
"""

from __future__ import annotations

import os
import pathlib
import pkgutil
import subprocess
import sys

import pytest

import envs
from envs import check

SPECS = [
    *envs.list(),
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


@pytest.mark.parametrize("name", check.RULES)
def test_every_game_holds(bench, name):
    check.RULES[name](bench)


def test_importing_games_starts_no_device():
    names = [f"envs.{module.name}" for module in pkgutil.iter_modules(envs.__path__)]
    assert {"envs.foq", "envs.tictactoe", "envs.game"} <= set(names)
    root = pathlib.Path(__file__).parents[1]

    def run(code):  # where no device can be started
        environment = os.environ | {"JAX_PLATFORMS": "no_such_platform"}
        return subprocess.run([sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, text=True)

    done = run(f"import envs, {', '.join(names)}")
    assert done.returncode == 0, done.stderr
    assert run("import jax.numpy as jnp; jnp.zeros(1)").returncode != 0  # the trap works
