"""Times alternatives in turn, and prints rows as a table or as JSON lines."""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import jax

from agents.runtime import cli

Row = dict[str, Any]


def take_turns(sides: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Seconds of every side's runs, one per round, after a warm-up round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(repeats + 1):
        for name, run in sides.items():
            start = time.perf_counter()
            jax.block_until_ready(run())
            if turn:
                times[name].append(time.perf_counter() - start)
    return times


def ratios(slower: list[float], quicker: list[float]) -> list[float]:
    """Ratio of each round."""
    return [a / b for a, b in zip(slower, quicker, strict=True)]


def ratio(slower: list[float], quicker: list[float]) -> float:
    """Median of the ratios of all rounds, to three digits."""
    return float(f"{statistics.median(ratios(slower, quicker)):.3g}")


def show(rows: Iterable[Row], as_json: bool) -> None:
    """Prints every row as soon as it is available; a blank marks a figure that was not measured. Reports user errors,
    such as the name of an unknown game, which only show when a row is made."""
    with cli.errors():
        for number, row in enumerate(rows):
            if as_json:
                print(json.dumps(row), flush=True)
                continue
            if number == 0:
                print("  ".join(f"{name:>16s}" for name in row))
            print("  ".join(f"{'' if value is None else value!s:>16s}" for value in row.values()), flush=True)


def help_if_asked() -> None:
    """Prints the text of the script and ends, with `--help` on the command line."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(sys.modules["__main__"].__doc__)
        raise SystemExit


def arguments() -> tuple[Callable[..., Any] | None, bool]:
    """`--other=FILE.py:FUNCTION`, loaded, and `--json` of the command line; without `--json`, prints the machine."""
    as_json, other = False, None
    help_if_asked()
    with cli.errors():
        for word in sys.argv[1:]:
            if word == "--json":
                as_json = True
            elif word.startswith("--other="):
                other = load(word.removeprefix("--other="))
            else:
                raise ValueError(f"unknown argument {word}; known: --other=FILE.py:FUNCTION, --json")
    if not as_json:
        print(f"{jax.devices()[0].device_kind}, {os.cpu_count()} cores, jax {jax.__version__}")
    return other, as_json


def load(where: str) -> Callable[..., Any]:
    """The function of FILE.py:FUNCTION."""
    path, colon, name = where.partition(":")
    spec = importlib.util.spec_from_file_location("other", path)
    if not colon or spec is None or spec.loader is None or not Path(path).is_file():
        raise ValueError(f"--other={where}: want FILE.py:FUNCTION")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not callable(function := getattr(module, name, None)):
        raise ValueError(f"--other={where}: there is no function {name} in {path}")
    return function
