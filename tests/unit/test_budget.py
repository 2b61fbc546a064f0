"""The budget of a search, with a clock set by hand."""

from __future__ import annotations

import pytest

from agents.players import budget as budget_file
from agents.players.budget import Budget


@pytest.fixture
def clock(monkeypatch):
    """A list whose entry is the reading of the clock."""
    now = [100.0]
    monkeypatch.setattr(budget_file.time, "monotonic", lambda: now[0])
    return now


def test_simulations_are_never_exceeded():
    budget, steps = Budget(simulations=100), 0
    while budget.allows(32):
        budget.spend(32, 1.0)
        steps += 1
    assert (steps, budget.done) == (3, 96)


def test_one_step_is_always_made():
    assert Budget(seconds=0.001, simulations=1).allows(32)


def test_no_step_begins_that_would_end_too_late(clock):
    """The clock starts after the first step of 50 s, which may be compilation. Steps of 3 s fit three times in 10."""
    budget, steps = Budget(seconds=10.0), 0
    for seconds in (50.0, 3.0, 3.0, 3.0, 3.0):
        if not budget.allows(8):
            break
        clock[0] += seconds
        budget.spend(8, seconds)
        steps += 1
    assert (steps, budget.spent()) == (4, 9.0)


def test_the_clock_stands_still_while_other_programs_compile(clock):
    budget = Budget(seconds=10.0)
    for seconds, compiled in ((1.0, True), (2.0, True), (60.0, False)):
        clock[0] += seconds
        budget.spend(8, seconds, compiled)
    assert budget.spent() == 2.0 and budget.allows(8)
    assert budget.progress() == 0.2


def test_a_started_clock_counts_the_first_step(clock):
    budget = Budget(seconds=4.0)
    budget.start()
    clock[0] += 3.0
    budget.spend(8, 3.0)
    assert budget.spent() == 3.0 and not budget.allows(8)
