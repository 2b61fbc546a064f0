"""Search threads of the server. Sessions with the same engine are searched in lockstep, see `lanes`. Fifty people
therefore wait little longer than one.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import gc
import itertools
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp

from agents.players.players import make_player
from agents.players.spec import PlayerSpec
from agents.serve.web.engines import make_engine, renewed
from agents.serve.web.lanes import Job, LaneGroup
from agents.solvers.solve import Verdict, make_solver
from envs.game import Array, Game

MOST_WORKERS = 24  # players of games with a thread and programs of their own; the least used one makes room

log = logging.getLogger(__name__)


M_ARENA_MAX = -8  # of glibc's malloc.h


def share_few_arenas() -> None:
    """Lets the threads that begin from now on share two heaps of glibc. By default there are up to eight for each core,
    and each keeps what its own threads have freed."""
    with contextlib.suppress(AttributeError, OSError, TypeError):  # other systems have no such function
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)


def return_free_memory() -> None:
    """Returns memory that a compilation has freed to the system. glibc keeps hundreds of megabytes otherwise."""
    with contextlib.suppress(AttributeError, OSError, TypeError):  # other systems have no such function
        ctypes.CDLL(None).malloc_trim(0)


class FairLock:
    """A lock that is given in the order in which it was asked for. Programs compile one after the other: the first
    guest of a cold server moves after one compilation, not after those of all other guests. No turn begins while
    priority work is running."""

    def __init__(self):
        self._tickets, self._serving = itertools.count(), 0
        self._first = 0  # pieces of work that go first
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def first(self) -> Iterator[None]:
        with self._changed:
            self._first += 1
        try:
            yield
        finally:
            with self._changed:
                self._first -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        ticket = next(self._tickets)
        with self._changed:
            self._changed.wait_for(lambda: self._serving == ticket and not self._first)
        try:
            yield
        finally:
            with self._changed:
                self._serving += 1
                self._changed.notify_all()


class Word(enum.Enum):
    """Control messages to a worker, between its jobs."""

    RETIRE = enum.auto()  # no more jobs will come
    STOP = enum.auto()  # at once, whatever is left


class Worker:
    """The thread of one player of one game, so that its compilation delays no other player."""

    def __init__(self, game: Game, player: PlayerSpec, step: int, key: Array, turns: FairLock):
        self.game, self.player, self.step, self.turns = game, player, step, turns
        self.compiling = True  # or waiting for its turn to
        self.group: LaneGroup | None = None  # of a player that searches
        self.inbox: queue.SimpleQueue[Job | Word] = queue.SimpleQueue()
        self._turn = contextlib.ExitStack()  # the turn to compile, while this worker has it
        self._has_turn = False
        self._act: Callable[..., Array] | None = None  # of a player that does not
        self._solve: Callable[..., Verdict] | None = None  # of a player that proves first
        self._weights: Any = None
        self._key = key
        self._thread = threading.Thread(target=self._run, name=f"{game.name} {player}", daemon=True)
        self._thread.start()

    def join(self, seconds: float) -> bool:
        """Whether the thread ends within that time, once its inbox holds a word of its end."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        work = self._search if self.player.searches else self._answer
        with self._turn:
            retired = self._work_through(work)
        if retired:
            # Programs are parts of cycles, which Python would keep until it looks for garbage among all that is old.
            self.group = self._act = self._solve = self._weights = None
            gc.collect()
            return_free_memory()

    def _work_through(self, work: Callable[[list[Job]], list[Job]]) -> bool:
        """Does all jobs until a word of the end. Returns whether it was `RETIRE`."""
        jobs: list[Job] = []
        retired = False
        while jobs or not retired:
            try:
                job = self.inbox.get(block=not jobs)
            except queue.Empty:
                jobs = self._guarded(work, jobs)
                self._end_turn()
                continue
            if job is Word.STOP:
                return False
            if job is Word.RETIRE:
                retired = True
                continue
            jobs += self._guarded(self._prove, [job])
            if not jobs:
                self._end_turn()
        return True

    def _take_turn(self) -> None:
        """Waits for the turn to compile. It ends with the first step of the search, so that the programs of a player
        follow each other, and its guests do not wait for others between two of them."""
        self.compiling = True
        if not self._has_turn:
            self._turn.enter_context(self.turns.turn())
            self._has_turn = True

    def _end_turn(self) -> None:
        if self._has_turn:
            return_free_memory()
        self._turn.close()
        self._has_turn = False

    def _cold(self, work: Callable[[list[Job]], list[Job]], jobs: list[Job]) -> bool:
        """Whether some work compiles for long. Players that do not search compile quickly and wait for nobody."""
        if work == self._prove:
            return self._solve is None and self.player.proof_positions is not None
        if work == self._answer:
            return False
        return self.group is None or self.group.cold(jobs)

    def _guarded(self, work: Callable[[list[Job]], list[Job]], jobs: list[Job]) -> list[Job]:
        """Does some of the work and returns the remaining jobs."""
        try:
            if self._cold(work, jobs):
                self._take_turn()
            left = work(jobs)
        except Exception as error:  # the other players must go on
            failed = len(jobs) if self.player.searches else 1  # a batch fails together, other jobs run one by one
            self._fail(jobs[:failed], error)
            if self.group is not None:
                self.group.clear()
            return jobs[failed:]
        return left

    def _prove(self, jobs: list[Job]) -> list[Job]:
        """The jobs without a proof; the attempt may take half of their time."""
        max_nodes = self.player.proof_positions
        if max_nodes is None:
            return jobs
        if self._solve is None:
            self._solve = make_solver(self.game, max_nodes)
            self._solve(self.game.init(), seconds=0.0)  # compiles before the clock starts
        return [job for job in jobs if not self._proved(job)]

    def _proved(self, job: Job) -> bool:
        """Whether a proof gave a move, or the job was dropped."""
        assert self._solve is not None
        job.budget.start()
        verdict = self._solve(job.state, seconds=job.seconds / 2, asked=lambda: job.stopped or job.dropped)
        if verdict.kept is not None and not job.dropped:
            job.choice = verdict.kept
            job.done(job)
        return verdict.kept is not None or job.dropped

    def _search(self, jobs: list[Job]) -> list[Job]:
        """One step of all searches."""
        if self.group is None:
            self.group = LaneGroup(make_engine(self.game, self.player.base, self.step))
        if not self.group.lanes:
            self.group.engine = renewed(self.group.engine)
        known = {*self.group.lanes, *self.group.waiting}
        self.group.waiting += [job for job in jobs if job not in known]
        self.group.advance(self._next_key(), self._compiled)
        self._compiled()
        return [*self.group.lanes, *self.group.waiting]

    def _compiled(self) -> None:
        self.compiling = False

    def _answer(self, jobs: list[Job]) -> list[Job]:
        """Answers the first job, without a search."""
        if self._act is None:
            player = make_player(self.player.base, self.game, 0)
            self._act, self._weights = jax.jit(player.act), player.weights
        job = jobs[0]
        if not job.dropped:
            states = jax.tree.map(lambda x: jnp.asarray(x)[None], job.state)
            plies = jnp.full(1, job.plies, jnp.int32)
            job.choice = int(self._act(self._weights, self._next_key(), states, plies)[0])
            self.compiling = False
            job.done(job)
        return jobs[1:]

    def _fail(self, jobs: list[Job], error: Exception) -> None:
        log.error("a search failed: %s", error, exc_info=error)
        for job in jobs:
            job.error = "the engine failed" if not isinstance(error, ValueError) else str(error)
            if not job.dropped:
                job.done(job)

    def _next_key(self) -> Array:
        self._key, key = jax.random.split(self._key)
        return key


class Thinker:
    """Takes jobs from any thread. Every player of every game has a thread of its own, up to `MOST_WORKERS`; then the
    one that was asked longest ago does its last jobs and is forgotten with its programs."""

    def __init__(self, seed: int = 0):
        share_few_arenas()
        self._seed, self._born = seed, itertools.count()
        self._lock = threading.Lock()
        self.turns = FairLock()
        self._workers: dict[tuple[str, PlayerSpec, int], Worker] = {}  # the one asked last comes last

    def compiling(self, job: Job) -> bool:
        """Whether a job waits for its programs to be compiled."""
        worker = self._workers.get(job.worker)
        return worker is not None and worker.compiling

    @property
    def steps(self) -> int:
        """Steps of the batches of all players that are not forgotten."""
        return sum(group.steps for group in self._groups())

    @property
    def searches(self) -> int:
        """Lanes in use, added up over all steps: more than `steps` if searches shared a batch."""
        return sum(group.searches for group in self._groups())

    def _groups(self) -> list[LaneGroup]:
        return [worker.group for worker in list(self._workers.values()) if worker.group is not None]

    def submit(self, job: Job) -> Job:
        with self._lock:
            worker = self._workers.pop(job.worker, None)
            if worker is None:
                key = jax.random.fold_in(jax.random.key(self._seed), next(self._born))
                worker = Worker(job.game, job.player, job.step, key, self.turns)
            self._workers[job.worker] = worker
            worker.inbox.put(job)
            if len(self._workers) > MOST_WORKERS:
                self._workers.pop(next(iter(self._workers))).inbox.put(Word.RETIRE)
        return job

    def close(self, seconds: float = 2.0) -> bool:
        """Ends the threads after their current steps and discards unfinished jobs. Returns whether all have ended
        within that time: compilation cannot be stopped."""
        with self._lock:
            for worker in self._workers.values():
                worker.inbox.put(Word.STOP)
            until = time.monotonic() + seconds
            return all([worker.join(max(0.0, until - time.monotonic())) for worker in self._workers.values()])
