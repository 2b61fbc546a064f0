"""Search threads of the server: sessions with the same engine are searched in lockstep.

A search is a job. Jobs of one engine share a batch of trees, one lane each, and advance by a small step at a time.
Between steps, jobs join, leave, report and are stopped. Fifty people therefore wait little longer than one.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import enum
import functools
import gc
import itertools
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from agents.config import for_play
from agents.players.analysis import root_summary
from agents.players.budget import Budget
from agents.players.ownership import Owners, describe_owners, make_owners
from agents.players.players import make_player
from agents.players.spec import UCT, PlayerSpec
from agents.search.policies import TreePolicy, make_tree_policy
from agents.search.tree import Tree
from agents.search.uct import uct_tree_policy
from agents.serve.options import MOST_SIMULATIONS
from agents.solvers.solve import Verdict, make_solver
from agents.storage import weights as models
from envs.game import Array, Game

WIDTHS = (1, 8, 32)  # batch widths to compile; further jobs wait for a lane
STEP = 32  # simulations between clock checks, or the whole budget if smaller, see `Job.step`
UCT_STEP = 10  # fewer, since playouts of long games take long
MEMORY = 2**30  # bytes for the trees of one engine
MOST_WORKERS = 24  # players of games with a thread and programs of their own; the least used one makes room
REPORT_EVERY = 0.25  # seconds between two reports of a running job

log = logging.getLogger(__name__)


class Programs(NamedTuple):
    """The compiled programs of an engine for one width of the batch."""

    init_tree: Callable[[Any, Array, Any], Tree]
    """(weights, key, states) -> trees."""
    run_simulations: Callable[[Any, Array, Tree, Array], Tree]
    """(weights, key, trees, plies) -> trees."""
    policy: Callable[[Tree], Array]
    """See `TreePolicy`, also for `values`."""
    values: Callable[[Tree], Array]


@dataclasses.dataclass(frozen=True)
class SearchEngine:
    """A player that searches, with trees that can be shown."""

    game: Game
    folder: str | None  # of a run or model; None for UCT
    path: Path | None  # of the network's file
    weights: Any
    step: int  # simulations of one call of `run_simulations`
    max_nodes: int  # capacity of a tree
    programs: Callable[[int], Programs]
    """The programs for a width, compiled when it first comes up."""
    codes: Callable[[Tree], Array]
    """See `TreePolicy`."""
    owners: Owners | None = None  # of the cells, where the network knows them


@functools.lru_cache(maxsize=8)  # prove:N,PLAYER and PLAYER share one, and so do those who come back
def make_engine(game: Game, spec: PlayerSpec, step: int) -> SearchEngine:
    """The engine of UCT or of a network, with `step` simulations a call.

    Raises:
        ValueError: no such network, or a network of another game.
    """
    if spec.kind == UCT:
        return _engine(game, None, None, uct_tree_policy(game, step), None, step)
    trained = models.load_network(spec.path, game)
    config = for_play(dataclasses.replace(trained.config, search_loop="native"), game, step)
    engine = _engine(game, spec.path, trained.path, make_tree_policy(game, trained.net, config), trained.weights, step)
    return dataclasses.replace(engine, owners=make_owners(game, trained.config))


def renewed(engine: SearchEngine) -> SearchEngine:
    """The engine with the newest network of its run; unchanged if there is none any more, or one of another size, for
    which the compiled programs do not serve."""
    with contextlib.suppress(models.CheckpointError, OSError):
        path = None if engine.folder is None else models.find_network(Path(engine.folder))
        if path is not None and path != engine.path:
            weights = jax.device_put(models.load_arrays(path, models.about(path)["config"]))
            if jax.tree.map(jnp.shape, weights) == jax.tree.map(jnp.shape, engine.weights):
                return dataclasses.replace(engine, path=path, weights=weights)
    return engine


def _engine(
    game: Game, folder: str | None, path: Path | None, tree_policy: TreePolicy, weights: Any, step: int
) -> SearchEngine:
    def init_tree(weights, key, states):
        return tree_policy.init_tree(weights, key, states, max_nodes)

    def run_simulations(weights, key, tree, plies):
        return tree_policy.run_simulations(weights, key, tree, plies, False)[2]

    def compiled(width: int) -> Programs:
        """All programs are compiled at once, since compiling one leaves other cores idle."""
        key, plies = jax.random.key(0), jnp.zeros(width, jnp.int32)
        states = jax.tree.map(lambda x: jnp.broadcast_to(x, (width, *jnp.shape(x))), game.init())
        tree = jax.eval_shape(init_tree, weights, key, states)
        parts = (
            (jax.jit(init_tree), (weights, key, states)),
            (jax.jit(run_simulations, donate_argnums=2), (weights, key, tree, plies)),
            (jax.jit(tree_policy.policy), (tree,)),
            (jax.jit(tree_policy.values), (tree,)),
        )
        with ThreadPoolExecutor(len(parts)) as pool:
            return Programs(*pool.map(lambda part: part[0].lower(*part[1]).compile(), parts))

    one = jax.tree.map(lambda x: x[None], game.init())
    tree = jax.eval_shape(lambda: tree_policy.init_tree(weights, jax.random.key(0), one, 2))
    node = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree)) / 2
    max_nodes = int(min(MOST_SIMULATIONS + step, MEMORY / WIDTHS[-1] / node)) + 1
    return SearchEngine(
        game=game,
        folder=folder,
        path=path,
        weights=jax.device_put(weights),
        step=step,
        max_nodes=max_nodes,
        programs=functools.lru_cache(compiled),
        codes=tree_policy.codes,
    )


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
        """Simulations between clock checks, at most the whole budget."""
        return min(self.simulations, UCT_STEP if self.player.kind == UCT else STEP)

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
