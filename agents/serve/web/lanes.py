"""Searches that run in lockstep: jobs of one engine share a batch of trees, one lane each.

A batch advances by a small step at a time. Between steps, jobs join, leave, report and are stopped.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from agents.players.analysis import root_summary
from agents.players.budget import Budget
from agents.players.ownership import describe_owners
from agents.players.spec import UCT, PlayerSpec
from agents.search.tree import Tree
from agents.serve.web.engines import WIDTHS, SearchEngine
from envs.game import Array, Game

STEP = 32  # most simulations between clock checks, see `step_of`
UCT_STEP = 10  # fewer, since playouts of long games take long
LEFT_OUT = 1 / 8  # most of the simulations that whole steps may leave out
REPORT_EVERY = 0.25  # seconds between two reports of a running job


def step_of(simulations: int, most: int = STEP) -> int:
    """Simulations of a step: `most`, or halved until whole steps nearly make up `simulations`. Few sizes, since each
    has to be compiled."""
    step = min(simulations, most)
    while step > 1 and simulations % step > LEFT_OUT * simulations:
        step //= 2
    return step


@dataclasses.dataclass(eq=False)
class Job:
    """A search of one position. The thinker fills in the results and calls `done` once, in its own thread."""

    game: Game
    player: PlayerSpec  # its number, if it searches, is in `simulations`
    state: Any
    plies: int
    simulations: int
    seconds: float
    done: Callable[[Job], None] = lambda job: None
    reports: bool = False  # during the search, not only at the end
    owners: bool = False  # expected at the end of the game are reported, if the network knows them
    stopped: bool = False  # the answer is wanted now
    dropped: bool = False  # the answer is no longer wanted
    reported: float = 0.0
    choice: int = -1  # action code
    report: dict[str, Any] | None = None  # see `analysis.report` and `describe_owners`
    error: str = ""

    def __post_init__(self):
        self.budget = Budget(self.seconds, self.simulations)

    @property
    def step(self) -> int:
        """Simulations between clock checks."""
        return step_of(self.simulations, UCT_STEP if self.player.kind == UCT else STEP)

    @property
    def worker(self) -> tuple[str, PlayerSpec, int]:
        """Key of its worker: game, player and step."""
        return self.game.name, self.player, self.step if self.player.searches else 0


class LaneGroup:
    """Jobs of one engine, one in each lane of a batch of trees."""

    def __init__(self, engine: SearchEngine):
        self.engine = engine
        self.waiting: list[Job] = []
        self.lanes: list[Job] = []
        self.tree: Tree | None = None
        self.widths: set[int] = set()  # batch widths whose programs are compiled
        self.knows_owners = False  # their program is compiled
        self.steps = 0  # steps of the batch
        self.searches = 0  # lanes in use, added up over the steps

    def clear(self) -> None:
        """Forgets all jobs."""
        self.lanes, self.waiting, self.tree = [], [], None

    def cold(self, jobs: list[Job]) -> bool:
        """Whether the next step of these jobs compiles."""
        if self._owners_cold(jobs):
            return True
        staying = sum(not job.dropped for job in self.lanes)
        coming = min(sum(not job.dropped and job not in self.lanes for job in jobs), WIDTHS[-1] - staying)
        return not {fitting(count, self.widths) for count in (coming, staying + coming) if count} <= self.widths

    def _owners_cold(self, jobs: list[Job]) -> bool:
        return self.engine.owners is not None and not self.knows_owners and any(job.owners for job in jobs)

    def advance(self, key: Array, on_compiled: Callable[[], None] = lambda: None) -> None:
        """Removes and admits jobs, then runs one step of all. Calls `on_compiled` before any job gets its answer."""
        engine, started = self.engine, time.monotonic()
        compiled = not self.cold(self.waiting)
        staying = [i for i, job in enumerate(self.lanes) if not job.dropped]
        self.waiting = [job for job in self.waiting if not job.dropped]
        coming = self.waiting[: WIDTHS[-1] - len(staying)]
        if coming or len(staying) < len(self.lanes):
            self._regroup(staying, coming, key)
        if self.tree is None or not self.lanes:
            self.tree = None
            return
        if any(self._ready(job) for job in self.lanes):
            self._settle()
            return
        width = len(self.tree.size)
        plies = np.zeros(width, np.int32)
        plies[: len(self.lanes)] = [job.plies for job in self.lanes]
        if compiled:
            started = time.monotonic()
        if self._owners_cold(self.lanes):
            assert self.engine.owners is not None
            self.engine.owners(engine.weights, [[]], self.lanes[0].state)
            self.knows_owners = True
        self.tree = engine.programs(width).run_simulations(
            engine.weights, jax.random.fold_in(key, 1), self.tree, jnp.asarray(plies)
        )
        jax.block_until_ready(self.tree)
        on_compiled()
        for job in self.lanes:
            job.budget.spend(engine.step, time.monotonic() - started, compiled)
        self.widths.add(width)
        self.steps, self.searches = self.steps + 1, self.searches + len(self.lanes)
        self._settle()

    def _regroup(self, staying: list[int], coming: list[Job], key: Array) -> None:
        """Joins the trees of staying jobs with new trees for coming jobs; spare lanes repeat the first."""
        self.waiting = self.waiting[len(coming) :]
        parts = [] if self.tree is None else [jax.tree.map(lambda x: x[staying], jax.device_get(self.tree))]
        self.lanes = [self.lanes[i] for i in staying] + coming
        if not self.lanes:
            return
        if coming:
            states = [job.state for job in coming]
            width = fitting(len(coming), self.widths)
            states += states[:1] * (width - len(coming))
            stacked = jax.tree.map(lambda *x: np.stack([np.asarray(v) for v in x]), *states)
            fresh = self.engine.programs(width).init_tree(self.engine.weights, key, stacked)
            self.widths.add(width)
            if not staying:
                self.tree = fresh
                return
            parts.append(jax.tree.map(lambda x: x[: len(coming)], jax.device_get(fresh)))
        spare = fitting(len(self.lanes), self.widths) - len(self.lanes)
        parts.append(jax.tree.map(lambda x: x[:1].repeat(spare, 0), parts[0]))
        self.tree = jax.tree.map(lambda *x: jnp.asarray(np.concatenate(x)), *parts)

    def _settle(self) -> None:
        """Ends the jobs that are ready, and writes the reports that are due."""
        seen, now, engine = None, time.monotonic(), self.engine
        for i, job in enumerate(self.lanes):
            ended = self._ready(job)
            if ended or (job.reports and now - job.reported > REPORT_EVERY):
                job.reported = now
                if seen is None:
                    assert self.tree is not None
                    programs = engine.programs(len(self.tree.size))
                    seen = jax.device_get((self.tree, programs.policy(self.tree), programs.values(self.tree)))
                lane, policy, values = jax.tree.map(lambda x: x[i : i + 1], seen)
                codes = np.asarray(engine.codes(lane))
                job.report = root_summary(engine.game, lane, policy, values, codes, most=engine.game.num_actions)
                job.choice = engine.game.parse_action(job.report["moves"][0]["action"])  # the best of every list
                if job.owners and engine.owners is not None:
                    line = job.report["moves"][0]["line"]
                    job.report |= describe_owners(engine.game, engine.owners, engine.weights, job.state, line)
            if ended:
                job.done(job)
                job.dropped = True

    def _ready(self, job: Job) -> bool:
        full = 1 + job.budget.done + self.engine.step > self.engine.max_nodes
        return job.stopped or full or not job.budget.allows(self.engine.step)


def fitting(jobs: int, compiled: set[int]) -> int:
    """The batch width for a number of jobs: a compiled one of at most four times the size, so that a busy server does
    not compile for every number of guests, else the smallest."""
    smallest = next(width for width in WIDTHS if width >= jobs)
    return min((width for width in compiled if smallest <= width <= 4 * smallest), default=smallest)
