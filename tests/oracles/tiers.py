"""Which cases of a test run nightly."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest


def with_nightly(cases: Iterable[Any], costly: Container[Any]) -> list[Any]:
    """A test's cases as parameters; the `costly` ones run nightly. A tuple is a case of several values."""
    values = lambda case: case if isinstance(case, tuple) else (case,)
    return [pytest.param(*values(case), marks=pytest.mark.nightly if case in costly else ()) for case in cases]
