"""Shared by all tests: the platform, the golden data, and the exhaustive expansion of a game by layers."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # before the first import of jax
# Programs that several tests compile, in whichever process, are compiled once, and not again in the next run.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(pathlib.Path(__file__).parents[1] / ".pytest_cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

import jax
import numpy as np
import pytest

TESTS = pathlib.Path(__file__).parent
# Folders that plain `pytest` leaves out, and the markers of their tests.
MARKED = {"integration": "integration", "fuzz": "integration", "ui": "ui", "nightly": "nightly", "slow": "slow"}

# Helpers with assertions say what differed.
pytest.register_assert_rewrite(
    "envs.check", "gtp_dialogue", "notebooks", "programs", "recipes", "solved_boards", "solved_tictactoe"
)

pytest_plugins = ["shared_fixtures"]

jax.config.update("jax_num_cpu_devices", 2)  # whatever the machine: programs for several devices are tested everywhere


def pytest_configure(config):
    """Tests spend most of their time compiling, which takes a third as long without the costly passes and with XLA's
    older code generator. Every core has a worker, so no program is split for several. Only slow tests run their
    programs for long."""
    if config.option.markexpr and not config.option.markexpr.startswith("slow"):
        jax.config.update("jax_disable_most_optimizations", True)
        os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "true"  # and in the processes that they start
        flags = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items):
    """Marks the tests of a folder with its tier. A test marked `nightly` in another folder is left out there."""
    for item in items:
        for folder, tier in MARKED.items():
            if TESTS / folder in item.path.parents:
                item.add_marker(tier)


def pytest_terminal_summary(terminalreporter):
    """The lines that tests have to report, whichever process they ran in."""
    reports = terminalreporter.stats.get("passed", [])
    for line in sorted(value for report in reports for name, value in report.user_properties if name == "report"):
        terminalreporter.write_line(line)


@pytest.fixture(autouse=True, scope="module")
def compiled_programs_end_with_their_module():
    """Few are shared between modules, and all together they fill gigabytes in every process."""
    yield
    jax.clear_caches()


GOLDEN = TESTS / "golden"


@pytest.fixture(scope="session")
def golden():
    """golden(name): the lines of a golden file, as a list of dicts."""

    def load(name: str) -> list[dict[str, Any]]:
        with gzip.open(GOLDEN / name, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    return load


class Layer(NamedTuple):
    """All different positions after d moves."""

    states: Any  # numpy leaves with a leading axis [N]
    ways: np.ndarray  # int64[N], move sequences that lead to each
    legal: np.ndarray  # bool[N, A]
    parent: np.ndarray  # int64[M], a position of the layer before, for each legal move there
    child: np.ndarray  # int64[M], the position here that this move leads to


def _in_chunks(function, arguments, size):
    """function(*arguments) with the leading axis cut into pieces of one size, so that it is compiled once."""
    count = len(jax.tree.leaves(arguments)[0])
    pieces = []
    for begin in range(0, count, size):
        index = np.minimum(np.arange(begin, begin + size), count - 1)
        pieces.append(jax.device_get(function(*jax.tree.map(lambda x: x[index], arguments))))
    return jax.tree.map(lambda *x: np.concatenate(x)[:count], *pieces)


@pytest.fixture(scope="session")
def expand():
    """expand(mask, step, start, depth): the layers of positions after 0, 1, ..., at most `depth` moves."""

    def layers(mask, step, start, depth: int, chunk: int = 1024) -> list[Layer]:
        mask, step = jax.jit(jax.vmap(mask)), jax.jit(jax.vmap(step))
        states = jax.tree.map(lambda x: np.asarray(x)[None], start)
        none = np.zeros(0, np.int64)
        found = [Layer(states, np.ones(1, np.int64), _in_chunks(mask, (states,), chunk), none, none)]
        while len(found) <= depth and found[-1].legal.any():
            last = found[-1]
            parent, action = np.nonzero(last.legal)
            moved = _in_chunks(step, (jax.tree.map(lambda x: x[parent], last.states), action.astype(np.int32)), chunk)
            flat = (np.ascontiguousarray(x).reshape(len(parent), -1) for x in jax.tree.leaves(moved))
            rows = np.concatenate([x.view(np.uint8) for x in flat], axis=1)
            keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1]))).ravel()
            _, first, child = np.unique(keys, return_index=True, return_inverse=True)
            ways = np.zeros(len(first), np.int64)
            np.add.at(ways, child, last.ways[parent])
            states = jax.tree.map(lambda x: x[first], moved)
            found.append(Layer(states, ways, _in_chunks(mask, (states,), chunk), parent, child))
        return found

    return layers
