"""Command lines made from the options themselves: whatever is given, a program begins or says in one line why not."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import sys
import types
from typing import get_type_hints

import hypothesis
import hypothesis.strategies as st
import pytest
from fuzzing import NUMBERS, TEXT, budget

import evaluate
import play
import train
from agents.arena.commands import Gate, Match
from agents.arena.ladder import Ladder
from agents.arena.solve_commands import Prove, Solved
from agents.config import COUNT, Config, Range, ranges_of
from agents.run import options as train_options
from agents.run.options import ProcessOptions
from agents.serve.options import PlayOptions as PlayOptions

PROGRAMS = {
    "train.py": (train, [], [Config, ProcessOptions]),
    "match": (evaluate, ["match", "random", "random"], [Match]),
    "gate": (evaluate, ["gate", "random", "random"], [Gate]),
    "ladder": (evaluate, ["ladder", "nowhere"], [Ladder]),
    "solved": (evaluate, ["solved", "random", "nowhere"], [Solved]),
    "prove": (evaluate, ["prove", "tictactoe"], [Prove]),
    "play.py": (play, [], [PlayOptions]),
}
NAMES = {
    name: sorted({f.name for record in records for f in dataclasses.fields(record)})
    for name, (_, _, records) in PROGRAMS.items()
}


@st.composite
def command_lines(draw: st.DrawFn) -> tuple[str, list[str]]:
    program = draw(st.sampled_from(sorted(PROGRAMS)))
    values = NUMBERS | TEXT | st.integers(-5, 300).map(str) | st.sampled_from(["True", "tictactoe", "foq", "gumbel"])
    given = draw(st.lists(st.tuples(st.sampled_from(NAMES[program]), values), max_size=3))
    words = []
    for name, value in given:
        value = value.replace("\0", "")  # no system passes it on
        words += [f"--{name}={value}"] if draw(st.booleans()) else [f"--{name}", value]
    return program, words


@pytest.fixture
def parsed_only(monkeypatch, tmp_path):
    """What comes after the options is left out; options alone write nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(train, "train", lambda config, resume: None)
    monkeypatch.setattr(train_options.processes, "connect", lambda *numbers: None)
    for name in ("run_ladder", "run_solved", "run_prove"):
        monkeypatch.setattr(evaluate, name, lambda command: None)
    monkeypatch.setattr(evaluate, "run_match", lambda command: (None, None))
    monkeypatch.setattr(evaluate.tables, "match_table", lambda results: None)
    monkeypatch.setattr(evaluate.tables, "show", lambda table: None)
    monkeypatch.setattr(play, "interface", lambda name: types.SimpleNamespace(serve=lambda options: None))
    monkeypatch.setattr(play, "write_pages", lambda options: None)
    monkeypatch.setattr(os, "_exit", lambda code: pytest.fail("left without its errors"))
    yield
    assert list(tmp_path.iterdir()) == []


def run(program: str, words: list[str]) -> tuple[int, str]:
    """Exit code and error text."""
    module, command, _ = PROGRAMS[program]
    said, before = io.StringIO(), sys.argv
    sys.argv = [module.__name__, *command, *words]
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            module.main()
    except SystemExit as stop:
        return int(stop.code or 0), said.getvalue()
    finally:
        sys.argv = before
    return 0, said.getvalue()


@budget(300)
@hypothesis.given(command_lines())
def test_any_command_line_begins_or_is_refused_in_one_line(parsed_only, line):
    hypothesis.assume(not {"-h", "--help"} & set(line[1]))
    code, said = run(*line)
    assert code in (0, 2), (line, code, said)
    assert said.count("\n") == (code == 2), (line, said)
    assert said.startswith("error: ") or code == 0, (line, said)


WHOLE = [
    (program, name)
    for program, (_, _, records) in PROGRAMS.items()
    for record in records
    for name, kind in get_type_hints(record).items()
    if kind in (int, int | None)
]
FRACTIONS = [
    (program, name)
    for program, (_, _, records) in PROGRAMS.items()
    for record in records
    for name, kind in get_type_hints(record).items()
    if kind in (float, float | None)
]


def test_every_number_has_a_range():
    """Whole numbers have two ends, and none of them is beyond what a counter, a port or a seed can hold."""
    for _, _, records in PROGRAMS.values():
        for record in records:
            for name, kind in get_type_hints(record).items():
                if kind in (int, int | None, float, float | None):
                    assert name in ranges_of(record), f"{record.__name__}.{name}"
                if kind in (int, int | None):
                    allowed = ranges_of(record)[name]
                    assert 0 <= allowed.least < allowed.most <= max(COUNT, 2**32 - 1), f"{record.__name__}.{name}"


@pytest.mark.parametrize(("program", "name"), WHOLE + FRACTIONS)
@pytest.mark.parametrize("value", ["9" * 400, "nan", "-1000000000"])
def test_numbers_without_sense_are_refused_by_name(parsed_only, program, name, value):
    code, said = run(program, [f"--{name}={value}"])
    assert (code, said.count("\n")) == (2, 1), said
    assert name in said


def test_what_a_range_says():
    assert str(Range(least=1, most=9)) == "1 to 9"
    assert str(Range(above=0)) == "more than 0"
    assert str(Range(above=0, most=5)) == "more than 0 and at most 5"
    assert float("nan") not in Range() and float("inf") not in Range(least=0)
