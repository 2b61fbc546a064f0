"""Options of every game out of their range are refused by name."""

from __future__ import annotations

import importlib
import inspect

import hypothesis
import hypothesis.strategies as st
import pytest

import envs

OUTSIDE = {  # for each option its range while the others stay as they are, and what a refusal says; words have no range
    "chess": {"size": (5, 8, "got {}$")},
    "connect_four": {
        "rows": (1, 26, "rows .*got {} x 7"),
        "cols": (1, 26, "columns, got 6 x {}"),
        "connect": (2, 7, "connect={} "),
    },
    "evopawness": {"max_plies": (1, 30_000, "max_plies: .*got {}$"), "history": (1, 16, "history: .*got {}$")},
    "foq": {"rows": (2, 26, "{} x 9"), "cols": (2, 26, "8 x {}"), "planes": "planes '{}'"},
    "foq_multi": {
        "rows": (2, 26, "{} x 9"),
        "cols": (2, 26, "8 x {}"),
        "players": (2, 4, "players .*got {}$"),
        "planes": "planes '{}'",
    },
    "foq_single": {"rows": (2, 26, "{} x 8"), "cols": (2, 26, "8 x {}"), "planes": "planes '{}'"},
    "go": {
        "size": (5, 19, "lines, got {}$"),
        "komi": "option 'komi' .*'{}'",
        "ko": "ko rule '{}'",
        "history": (0, 100, "history: .*got {}$"),
    },
    "gomoku": {"size": (5, 26, "size={} "), "exact": "option 'exact' .*'{}'"},
    "hex": {"size": (2, 26, "size={} "), "swap": "option 'swap' .*'{}'"},
    "othello": {},
    "sum_to_100": {"target": (10, 10_000, "target={0} |target, {0}$"), "largest": (1, 100, "largest={} ")},
    "tictactoe": {},
}
WORDS = st.text("abxyz", min_size=1)


def test_every_option_of_every_game_is_tried():
    options = {name: inspect.signature(importlib.import_module(f"envs.{name}").make).parameters for name in envs.list()}
    assert {name: set(tried) for name, tried in OUTSIDE.items()} == {name: set(has) for name, has in options.items()}


@hypothesis.settings(
    max_examples=150, deadline=None, derandomize=True, database=None, phases=[hypothesis.Phase.generate]
)
@hypothesis.given(
    st.sampled_from([(name, option) for name, tried in OUTSIDE.items() for option in tried]),
    st.integers(1, 30) | st.integers(1, 10**12),
    st.booleans(),
    WORDS,
)
def test_options_out_of_range_are_refused(case, beyond, above, word):
    name, option = case
    values, said = [word], OUTSIDE[name][option]
    if not isinstance(said, str):
        low, high, said = said
        values = [low - 1, high + 1, high + beyond if above else low - beyond]
        with pytest.raises(ValueError, match=f"option '{option}' of game '{name}': '{word}' is not of type int"):
            envs.make(f"{name}:{option}={word}")
    for value in values:
        with pytest.raises(ValueError, match=said.format(value)):
            envs.make(f"{name}:{option}={value}")
