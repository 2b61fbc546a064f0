"""Sides measured in turns, and rows printed as a table or as JSON lines."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import jax

Row = dict[str, Any]


def take_turns(sides: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Seconds of every side's run, each side once in every round, after a first round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(repeats + 1):
        for name, run in sides.items():
            start = time.perf_counter()
            jax.block_until_ready(run())
            if turn:
                times[name].append(time.perf_counter() - start)
    return times


def ratios(slower: list[float], quicker: list[float]) -> list[float]:
    """Round by round."""
    return [a / b for a, b in zip(slower, quicker, strict=True)]


def ratio(slower: list[float], quicker: list[float]) -> float:
    """Median of the ratios of all rounds, to three digits."""
    return float(f"{statistics.median(ratios(slower, quicker)):.3g}")


def show(rows: Iterable[Row], as_json: bool) -> None:
    """Prints every row as soon as it is there; a blank stands for a figure that was not measured."""
    for number, row in enumerate(rows):
        if as_json:
            print(json.dumps(row), flush=True)
            continue
        if number == 0:
            print("  ".join(f"{name:>16s}" for name in row))
        print("  ".join(f"{'' if value is None else value!s:>16s}" for value in row.values()), flush=True)
