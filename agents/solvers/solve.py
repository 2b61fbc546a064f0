"""Solves positions by proof-number search, on the host: several claims in turn, limits of time and memory, progress."""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from agents.network.inference import Evaluate
from agents.solvers.proof_number import (
    EMPTY,
    LANES,
    Graph,
    Numbers,
    Prover,
    Question,
    after_moves,
    backup,
    make_prover,
)
from envs.game import Game


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Results for the mover with best play by both: -1, 0 or 1; None if undecided."""

    value: float | None
    moves: dict[int, float | None]  # after each legal move
    positions: int  # nodes in all graphs
    seconds: float
    stopped: str | None  # reason why results may be missing, for users

    @property
    def kept(self) -> int | None:
        """A move that is proved to keep the value; None if there is no proof or the position is lost."""
        good = [action for action, value in self.moves.items() if value == self.value]
        return good[0] if good and self.value is not None and self.value >= 0 else None


def make_solver(game: Game, max_positions: int = 1 << 20, evaluate: Evaluate | None = None, weights: Any = None):
    """solve(position, all_moves=False, seconds=inf, tell=nothing, asked=never) -> Verdict, compiled once.

    Without `all_moves` the search ends once the value is known, and `Verdict.moves` may be incomplete. The search ends
    early if the graph is full, the time is over, or `asked` returns True. `tell` repeatedly gets a progress line.

    Raises:
        ValueError: the game is not for two players, or `max_positions` cannot hold all moves of a position and a round
            of the search.
    """
    if max_positions < (least := game.max_legal + 1 + LANES):
        raise ValueError(f"{game.name}: proofs need room for at least {least} positions, got {max_positions}")
    prover = make_prover(game, max_positions, evaluate)

    def solve(
        state: Any,
        all_moves: bool = False,
        seconds: float = math.inf,
        tell: Callable[[str], None] = lambda _: None,
        asked: Callable[[], bool] = lambda: False,
    ) -> Verdict:
        seat = int(game.player(state))
        if bool(game.over(state)):
            return Verdict(float(game.rewards(state)[seat]), {}, 1, 0.0, None)
        search = ProofSearch(game, prover, weights, state, max_positions, seconds, tell, asked)
        wins, won = search.ask(1.0, all_moves)
        less = 0.0 if search.drawn else -1.0
        value, moves = _value(wins, less), {action: _value(answer, less) for action, answer in won.items()}
        unclear = {action for action, known in moves.items() if known == 0}  # not won: drawn or lost?
        if value == 0 or (all_moves and unclear):
            holds, held = search.ask(0.0, all_moves)
            value = _value(holds, -1.0, 0.0) if value == 0 else value
            moves |= {action: _value(held[action], -1.0, 0.0) for action in unclear}
        else:
            moves |= dict.fromkeys(unclear)
        return Verdict(value, moves, search.positions, time.monotonic() - search.began, search.stopped)

    return solve


def _value(answer: bool | None, no: float, yes: float = 1.0) -> float | None:
    return None if answer is None else yes if answer else no


@dataclasses.dataclass
class ProofSearch:
    """Answers questions about one position in turn, within one time limit."""

    game: Game
    prover: Prover
    weights: Any
    state: Any
    max_positions: int
    seconds: float
    tell: Callable[[str], None]
    asked: Callable[[], bool]
    positions: int = 0
    drawn: bool = False
    stopped: str | None = None
    began: float = dataclasses.field(default_factory=time.monotonic)

    def ask(self, least: float, all_moves: bool) -> tuple[bool | None, dict[int, bool | None]]:
        """Whether the mover obtains `least`, with best play and after each move; None if undecided."""
        question = Question(jnp.int32(self.game.player(self.state)), jnp.float32(least))
        actions = np.flatnonzero(np.asarray(self.game.mask(self.state))).tolist()
        graph = self.prover.begin(question, self.weights, self.state)
        graph = self.prover.widen(graph, question, self.weights)
        graph = self.decide(graph, question, 0)
        for slot in range(len(actions)) if all_moves else ():
            child = int(graph.children[0, slot])
            if child != EMPTY:
                graph = self.decide(graph, question, child)
        graph = _refreshed(graph)
        self.positions += int(graph.size)
        self.drawn |= bool(graph.drawn)
        _, after = after_moves(graph, jnp.zeros(1, jnp.int32))
        return _answer(graph.numbers, 0), {action: _answer(after, (0, slot)) for slot, action in enumerate(actions)}

    def decide(self, graph: Graph, question: Question, node: int) -> Graph:
        """Searches below a node until it is decided, the graph is full or the time is over."""
        while self.stopped is None and _answer(graph.numbers, node) is None:
            size, seconds = int(graph.size), time.monotonic() - self.began
            if size >= self.max_positions - LANES:
                self.stopped = f"stopped: all {self.max_positions:,} positions are used up; give more --positions"
                break
            prove, refute = int(graph.numbers.prove[node]), int(graph.numbers.refute[node])
            all_of_them, so_far = self.positions + size, f"still {prove:,} to prove, {refute:,} to refute"
            self.tell(f"{all_of_them:,} positions, {all_of_them / max(seconds, 1e-9):,.0f} a second; {so_far}")
            graph = jax.block_until_ready(self.prover.search(graph, question, self.weights, jnp.int32(node)))
            if _answer(graph.numbers, node) is None:
                if time.monotonic() > self.began + self.seconds:
                    self.stopped = f"stopped after {time.monotonic() - self.began:.0f} s; give more --minutes"
                elif self.asked():
                    self.stopped = "stopped when asked to"
        return graph


def _answer(numbers: Numbers, where: Any) -> bool | None:
    return True if int(numbers.prove[where]) == 0 else False if int(numbers.refute[where]) == 0 else None


@functools.partial(jax.jit, donate_argnums=0)
def _refreshed(graph: Graph) -> Graph:
    """Updates the numbers of node 0, because those of its moves may have changed."""
    return backup(graph, jnp.zeros((1, 1), jnp.int32), 1)
