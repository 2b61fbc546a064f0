"""The budget of one search: time, simulations or both, spent in steps of several simulations."""

from __future__ import annotations

import dataclasses
import time


def even_step(simulations: int | None, most: int) -> int:
    """Simulations of a step, at most `most`, so that whole steps make up `simulations` or slightly fewer."""
    return most if simulations is None else simulations // -(-simulations // most)


@dataclasses.dataclass
class Budget:
    """What one search may spend and has spent.

    One step is always made. The clock starts at its end, since it may include compilation, or with `start`. Then no
    step begins that would exceed the simulations, or probably the time, if it takes as long as the last one.
    """

    seconds: float | None = None
    simulations: int | None = None
    done: int = 0  # simulations made
    begun: float | None = None  # reading of the clock at the end of the first step
    took: float = 0.0  # seconds of the last step on the clock

    def start(self) -> None:
        """Starts the clock before the first step."""
        self.begun = time.monotonic()

    def allows(self, step: int) -> bool:
        """Whether `step` more simulations fit."""
        if not self.done:
            return True
        if self.simulations is not None and self.done + step > self.simulations:
            return False
        return self.seconds is None or self.spent() + self.took <= self.seconds

    def spend(self, step: int, took: float, compiled: bool = True) -> None:
        """Counts `step` simulations of `took` seconds that have just ended. The clock stands still during a step that
        had to compile."""
        self.done += step
        if self.begun is None:
            self.begun = time.monotonic()
        elif compiled:
            self.took = took
        else:
            self.begun += took

    def spent(self) -> float:
        """Seconds on the clock."""
        return 0.0 if self.begun is None else time.monotonic() - self.begun

    def progress(self) -> float:
        """Used share of the budget, 0 to 1."""
        shares = (
            0.0 if self.seconds is None else self.spent() / self.seconds,
            0.0 if self.simulations is None else self.done / max(self.simulations, 1),
        )
        return min(1.0, max(shares))
