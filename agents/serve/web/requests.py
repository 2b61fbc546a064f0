"""What a browser may ask for: refusals, and the numbers in its requests."""

from __future__ import annotations

import math
from typing import Any


class Refused(Exception):
    """A request that is not possible, with an HTTP status; the message gives the reason."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


def is_whole(value: Any) -> bool:
    """Whether a JSON value is a whole number; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def finite(text: str) -> float:
    """A JSON number; NaN and infinities are refused."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no number of JSON")
    return number
