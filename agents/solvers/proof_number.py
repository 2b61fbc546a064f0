"""Proof-number search: who wins, beyond doubt.

A graph of positions grows from one of them. Each node has two numbers, how much must still be decided to `prove` that
who is to move there succeeds and to `refute` it (Allis, van der Meulen and van den Herik 1994, "Proof-number search").
Where all moves must be refuted, the number is that of the hardest move and one more for each of the others (Ueda et al.
2008, "Weak proof-number search"): the sum counts positions that several moves lead to many times. Leaves begin with the
number of their mover's moves, or closer to what a network thinks of the node before them. Lanes descend in lockstep,
each to the leaf that is cheapest in numbers of which it has its own, slightly distorted view (Saito, Winands and van
den Herik 2010, "Randomized parallel proof-number search"); then the leaves become nodes, and the numbers on the lanes'
paths are set right.

Positions met before are found by 64-bit hashes: among ten million the odds that any two share one are 1 : 400,000.
Games must not be able to come back to a position, which none of ours can.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from agents.actions import legal_slots
from agents.network.inference import Evaluate
from agents.solvers.retrograde import code_of
from envs.game import Array, Game

NEVER = 1 << 22  # in place of infinity
FAR = 255  # the same in the numbers of leaves, which are bytes
DISTORTION = 0.5  # lanes see numbers up to exp(this) times as large
PRIOR_WEIGHT, VALUE_WEIGHT = 2.0, 10.0  # of a network's opinion in the numbers of leaves
LANES, ROUNDS = 256, 20  # descents at a time; times before the host is asked
EMPTY = -1


def within_reach(game: Game) -> bool:
    """Whether a search of some seconds looks at enough positions to prove something: for two players, moves cheap."""
    return game.num_players == 2 and game.moves_are_cheap


class Numbers(NamedTuple):
    prove: Array
    refute: Array


class Graph(NamedTuple):
    """Nodes [M] with room for K moves each, of which `size` are there, and a hash table of them [2 M]."""

    size: Array  # int32[]
    rounds: Array  # int32[]
    drawn: Array  # bool[], whether any game ended in a draw
    states: Any  # [M, ...]
    actions: Array  # int16[M, K], EMPTY where there is no move
    children: Array  # int32[M, K], nodes; EMPTY where the move still leads to a leaf
    leaves: Numbers  # uint8[M, K], of leaves, for who is to move in the node; FAR means never
    same: Array  # bool[M, K], the same player moves again
    numbers: Numbers  # int32[M], of nodes, for who is to move
    codes: Array  # uint32[2 M, 2]
    nodes: Array  # int32[2 M], EMPTY where there is none


class Question(NamedTuple):
    """Does the player of this seat get so much or more?"""

    seat: Array  # int32[]
    least: Array  # float32[]


@dataclasses.dataclass(frozen=True)
class Prover:
    """A search for proofs in one game, compiled."""

    begin: Callable[[Question, Any, Any], Graph]
    """(question, weights, position) -> a graph with the position as node 0 and its moves as nodes."""
    search: Callable[[Graph, Question, Any, Any], Graph]
    """(graph, question, weights, node) -> the graph after some rounds below the node, fewer once it is decided or there
    is no more room."""


def make_prover(game: Game, max_positions: int, evaluate: Evaluate | None = None) -> Prover:
    """A prover with room for that many positions; `evaluate` is a network's opinion (see `inference.make_evaluate`).

    Raises:
        ValueError: the game is not for two players, or there is no room for a round of the search.
    """
    if game.num_players != 2:
        raise ValueError(f"proofs are for games of two players; {game.name} has {game.num_players}")
    if max_positions < 2 * LANES:
        raise ValueError(f"proofs need room for at least {2 * LANES} positions, not {max_positions}")
    look = functools.partial(_look, game, evaluate)

    def begin(question, weights, state):
        """The moves of the position are nodes from the start, so that each can be asked about."""
        one = jax.tree.map(lambda x: jnp.asarray(x)[None], state)
        found = look(question, weights, one)
        empty = lambda x, fill: jnp.full((max_positions, *x.shape[1:]), fill, x.dtype)
        graph = Graph(
            size=jnp.int32(1),
            rounds=jnp.int32(0),
            drawn=found.drawn[0],
            states=jax.tree.map(lambda x: empty(x, 0).at[0].set(x[0]), one),
            actions=empty(found.actions, EMPTY).at[0].set(found.actions[0]),
            children=jnp.full((max_positions, game.max_legal), EMPTY, jnp.int32),
            leaves=jax.tree.map(lambda x: empty(x, 0).at[0].set(x[0]), found.leaves),
            same=empty(found.same, False).at[0].set(found.same[0]),
            numbers=jax.tree.map(lambda x: empty(x, 0).at[0].set(x[0]), total(*_wide(found.leaves))),
            codes=jnp.zeros((2 * max_positions, 2), jnp.uint32),
            nodes=jnp.full(2 * max_positions, EMPTY, jnp.int32),
        )
        slot, open_ = jnp.arange(game.max_legal), (found.leaves.prove[0] > 0) & (found.leaves.refute[0] > 0)
        graph = expand(graph, question, weights, jnp.zeros_like(slot), slot, open_)
        return _back_up(graph, jnp.zeros((1, 1), jnp.int32), 1)

    def expand(graph: Graph, question, weights, node, slot, wanted) -> Graph:
        """Makes nodes of leaves [B], those that are `wanted`, or links them to the nodes that are there already."""
        before = jax.tree.map(lambda x: x[node], graph.states)
        states = jax.vmap(game.move)(before, jnp.maximum(graph.actions[node, slot], 0).astype(jnp.int32))
        graph, places, new = _enter(graph, _code(game, states), wanted)
        found = look(question, weights, states)
        numbers, drawn = _settle(game, question, states, total(*_wide(found.leaves)))
        put = jnp.where(new, places, max_positions)
        write = lambda rows, row: rows.at[put].set(row, mode="drop")
        return graph._replace(
            drawn=graph.drawn | ((found.drawn | drawn) & new).any(),
            states=jax.tree.map(write, graph.states, states),
            actions=write(graph.actions, found.actions),
            leaves=jax.tree.map(write, graph.leaves, found.leaves),
            same=write(graph.same, found.same),
            numbers=jax.tree.map(write, graph.numbers, numbers),
            children=graph.children.at[jnp.where(wanted, node, max_positions), slot].set(places, mode="drop"),
        )

    def search(graph: Graph, question, weights, top) -> Graph:
        def one_round(carry):
            i, graph = carry
            path, depth, node, slot, open_ = _descend(game, graph, top)
            graph = expand(graph, question, weights, node, slot, open_)
            return i + 1, _back_up(graph._replace(rounds=graph.rounds + 1), path, depth)

        def more(carry):
            i, graph = carry
            undecided = (graph.numbers.prove[top] > 0) & (graph.numbers.refute[top] > 0)
            return (i < ROUNDS) & undecided & (graph.size < max_positions - LANES)

        return jax.lax.while_loop(more, one_round, (0, graph))[1]

    return Prover(jax.jit(begin), jax.jit(search, donate_argnums=0))


# Nodes


class Found(NamedTuple):
    """What is known of positions [B] with room for K moves before anything is searched."""

    actions: Array  # int16[B, K]
    leaves: Numbers  # uint8[B, K]
    same: Array  # bool[B, K]
    drawn: Array  # bool[B], some move ends a game in a draw


def _look(game: Game, evaluate: Evaluate | None, question: Question, weights: Any, states: Any) -> Found:
    actions = legal_slots(jax.vmap(game.mask)(states), game.max_legal)
    mover = jax.vmap(game.player)(states)
    follow = lambda s, actions: jax.vmap(lambda a: game.move(s, jnp.maximum(a, 0)))(actions)
    after = jax.vmap(follow)(states, actions)
    each = lambda function: jax.vmap(jax.vmap(function))(after)
    replies = each(game.mask).sum(-1, dtype=jnp.int32)
    over, there = replies == 0, actions != EMPTY
    result = jnp.take(each(game.rewards), question.seat, axis=-1)
    same = each(game.player) == mover[:, None]
    success = (result >= question.least) == (mover == question.seat)[:, None]
    # For who is to move in the node: success after a move needs one proof, or one for every reply of the opponent.
    prove = jnp.where(same, 1, replies).astype(jnp.float32)
    refute = jnp.where(same, replies, 1).astype(jnp.float32)
    if evaluate is not None:
        logits, values = evaluate(weights, jax.random.key(0), states)
        logits = jnp.take_along_axis(logits, jnp.maximum(actions, 0), axis=1)
        best = jnp.max(logits, axis=1, keepdims=True, where=there, initial=-1e9)
        value = jnp.take_along_axis(values, mover[:, None], axis=1)
        prove = prove + PRIOR_WEIGHT * (best - logits) + VALUE_WEIGHT * (1 - value)
        refute = refute + VALUE_WEIGHT / 4 * (1 + value)
    byte = lambda x: jnp.clip(jnp.round(x), 1, FAR - 1)
    prove = jnp.where(over, jnp.where(success, 0, FAR), byte(prove))
    refute = jnp.where(over, jnp.where(success, FAR, 0), byte(refute))
    leaves = Numbers(jnp.where(there, prove, FAR).astype(jnp.uint8), jnp.where(there, refute, 0).astype(jnp.uint8))
    return Found(actions.astype(jnp.int16), leaves, same, (there & over & (result == 0)).any(-1))


def _settle(game: Game, question: Question, states: Any, numbers: Numbers) -> tuple[Numbers, Array]:
    """The numbers of nodes [B], or the final ones where theory knows the result; bool[B], whether that is a draw."""
    if game.known_result is None:
        return numbers, jnp.zeros(numbers.prove.shape, bool)
    result = jax.vmap(game.known_result)(states)
    asked = jax.vmap(game.player)(states) == question.seat
    success = jnp.where(asked, result >= question.least, result > -question.least)
    known, unknown = Numbers(jnp.where(success, 0, NEVER), jnp.where(success, NEVER, 0)), jnp.isnan(result)
    return jax.tree.map(lambda open_, final: jnp.where(unknown, open_, final), numbers, known), result == 0


def _wide(leaves: Numbers) -> Numbers:
    return jax.tree.map(lambda x: jnp.where(x == FAR, NEVER, x.astype(jnp.int32)), leaves)


def total(prove: Array, refute: Array) -> Numbers:
    """Numbers of nodes, int32[B], from those after their moves, [B, K], for who is to move in the node: one success is
    enough, and every move must be refuted."""
    least = prove.min(-1)
    most = jnp.minimum(refute.max(-1) + (refute > 0).sum(-1) - 1, NEVER - 1)  # nobody succeeded yet, or `least` is 0
    return Numbers(least, jnp.where(least == 0, NEVER, jnp.where(least >= NEVER, 0, most)))


def after_moves(graph: Graph, node: Array) -> tuple[Array, Numbers]:
    """Where the moves of nodes [B] lead, int32[B, K], and the numbers there, for who is to move in the node."""
    children, same = graph.children[node], graph.same[node]
    there, leaves = jnp.maximum(children, 0), _wide(jax.tree.map(lambda x: x[node], graph.leaves))
    prove, refute = graph.numbers.prove[there], graph.numbers.refute[there]
    of_nodes = Numbers(jnp.where(same, prove, refute), jnp.where(same, refute, prove))
    return children, jax.tree.map(lambda leaf, node: jnp.where(children == EMPTY, leaf, node), leaves, of_nodes)


# Rounds


def _descend(game: Game, graph: Graph, top: Array) -> tuple[Array, Array, Array, Array, Array]:
    """LANES ways down from a node: path int32[D, B], its length, and the leaf each ends at, as node and slot, if it is
    open; a lane that meets what is decided since its way there was judged has none."""
    lane = jnp.arange(LANES, dtype=jnp.uint32)

    def step(carry):
        path, depth, node, slot, going, open_ = carry
        path = path.at[depth].set(jnp.where(going, node, EMPTY))
        children, numbers = after_moves(graph, node)
        noise = _noise(lane, depth, graph.rounds, game.max_legal) * (lane > 0)[:, None]
        cost = jnp.where(numbers.prove >= NEVER, jnp.inf, numbers.prove * jnp.exp(DISTORTION * noise))
        best = cost.argmin(-1).astype(jnp.int32)
        child = jnp.take_along_axis(children, best[:, None], axis=1)[:, 0]
        there = jnp.maximum(child, 0)
        decided = (graph.numbers.prove[there] == 0) | (graph.numbers.refute[there] == 0)
        stuck = jnp.isinf(cost.min(-1)) | ((child != EMPTY) & decided)
        on = going & ~stuck & (child != EMPTY)
        return path, depth + 1, jnp.where(on, child, node), jnp.where(going, best, slot), on, open_ & ~(going & stuck)

    path = jnp.full((game.max_plies + 1, LANES), EMPTY, jnp.int32)
    start = jnp.full(LANES, top, jnp.int32)
    yes = jnp.full(LANES, True)
    carry = (path, jnp.int32(0), start, jnp.zeros(LANES, jnp.int32), yes, yes)
    path, depth, node, slot, _, open_ = jax.lax.while_loop(lambda carry: carry[4].any(), step, carry)
    return path, depth, node, slot, open_


def _noise(lane: Array, depth: Array, rounds: Array, width: int) -> Array:
    """float32[B, width] in [0, 1), another one for each lane, depth and round."""
    x = lane[:, None] * jnp.uint32(0x9E3779B1) ^ jnp.arange(width, dtype=jnp.uint32) * jnp.uint32(0x85EBCA77)
    x = x ^ depth.astype(jnp.uint32) * jnp.uint32(0xC2B2AE3D) ^ rounds.astype(jnp.uint32) * jnp.uint32(0x27D4EB2F)
    x = (x ^ (x >> 15)) * jnp.uint32(0x2C1B3C6D)
    x = (x ^ (x >> 13)) * jnp.uint32(0x297A2D39)
    return (x ^ (x >> 16)).astype(jnp.float32) * jnp.float32(2.0**-32)


def _back_up(graph: Graph, path: Array, depth: Array | int) -> Graph:
    """Sets the numbers on the lanes' paths right, from their ends up."""

    def level(i, numbers):
        node = path[depth - 1 - i]
        _, after = after_moves(graph._replace(numbers=numbers), jnp.maximum(node, 0))
        put = jnp.where(node == EMPTY, len(graph.actions), node)
        return jax.tree.map(lambda old, new: old.at[put].set(new, mode="drop"), numbers, total(*after))

    return graph._replace(numbers=jax.lax.fori_loop(0, depth, level, graph.numbers))


def _code(game: Game, states: Any) -> Array:
    """Hashes of positions [B], uint32[B, 2], the same for positions that a symmetry turns into one another."""
    states = jax.vmap(game.canonical or (lambda s: s))(states)
    least, *others = (code_of(jax.vmap(t.state)(states)) for t in game.symmetries)
    for code in others:
        less = (code[:, 0] < least[:, 0]) | ((code[:, 0] == least[:, 0]) & (code[:, 1] < least[:, 1]))
        least = jnp.where(less[:, None], code, least)
    return least


def _enter(graph: Graph, code: Array, wanted: Array) -> tuple[Graph, Array, Array]:
    """Finds the positions with these hashes [B], or gives them the next numbers; nodes int32[B], and which are new.

    Open addressing: a lane walks on from the place of its hash until it finds it or an empty place. Those who want the
    same empty place leave their mark, -2 - lane, of which the least stays; the others look at that place again. Hashes
    are written at the end, since a table that is read and written in a loop is copied by XLA every time round.
    """
    size, lanes = len(graph.nodes), len(code)
    lane = jnp.arange(lanes, dtype=jnp.int32)

    def step(carry):
        nodes, at, found, looking = carry
        here = nodes[at]
        its = jnp.where((here < EMPTY)[:, None], code[jnp.maximum(-2 - here, 0)], graph.codes[at])
        hit = looking & (here != EMPTY) & (its == code).all(-1)
        free = looking & (here == EMPTY)
        nodes = nodes.at[jnp.where(free, at, size)].min(-2 - lane, mode="drop")
        mine = free & (nodes[at] == -2 - lane)
        found = jnp.where(hit, here, jnp.where(mine, -2 - lane, found))
        at = jnp.where(looking & ~hit & ~free, (at + 1) % size, at)
        return nodes, at, found, looking & ~hit & ~mine

    at = (code[:, 0] % jnp.uint32(size)).astype(jnp.int32)
    carry = (graph.nodes, at, jnp.zeros(lanes, jnp.int32), wanted)
    nodes, at, found, _ = jax.lax.while_loop(lambda carry: carry[3].any(), step, carry)
    owner = jnp.where(found < 0, -2 - found, 0)
    new = wanted & (found == -2 - lane)
    number = (graph.size + jnp.cumsum(new) - 1).astype(jnp.int32)
    put = jnp.where(new, at, size)
    nodes = nodes.at[put].set(number, mode="drop")
    codes = graph.codes.at[put].set(code, mode="drop")
    graph = graph._replace(codes=codes, nodes=nodes, size=graph.size + new.sum(dtype=jnp.int32))
    return graph, jnp.where(found < 0, number[owner], found), new


# Answers


def make_claim_prover(game: Game, max_positions: int) -> Callable[[Any, Array], Graph]:
    """`ask(position, least) -> Graph`: the graph in which it is decided whether the mover gets so much, or which is
    full. For use inside a compiled function.

    Raises:
        ValueError: the game is not for two players, or there is no room for a round of the search.
    """
    prover = make_prover(game, max_positions)

    def ask(state: Any, least: Array) -> Graph:
        question = Question(game.player(state).astype(jnp.int32), least)
        more = lambda graph: ~decided(graph.numbers)[0] & (graph.size < max_positions - LANES)
        deeper = lambda graph: prover.search(graph, question, None, jnp.int32(0))
        return jax.lax.while_loop(more, deeper, prover.begin(question, None, state))

    return ask


def decided(numbers: Numbers) -> Array:
    """bool, of the shape of the numbers."""
    return (numbers.prove == 0) | (numbers.refute == 0)


def make_proven_move(game: Game, max_positions: int) -> Callable[[Any], Array]:
    """`keep(position) -> int32[]`: a move that is proved to win, or to draw where it is proved that none wins; EMPTY
    where `room` positions do not tell, all moves lose or the game is over. For use inside a compiled function.

    Raises:
        ValueError: the game is not for two players, or there is no room for a round of the search.
    """
    asker = make_claim_prover(game, max_positions)

    def ask(state: Any, least: Array) -> tuple[Array, Array]:
        """A move that gets so much, or EMPTY; and whether there is none for sure, but perhaps one that draws."""
        graph = asker(state, least)
        proved = after_moves(graph, jnp.zeros(1, jnp.int32))[1].prove[0] == 0
        slot = proved.argmax()
        found = jnp.where(proved[slot], graph.actions[0, slot].astype(jnp.int32), EMPTY)
        return found, (graph.numbers.refute[0] == 0) & graph.drawn & (least > 0)

    def keep(state: Any) -> Array:
        def once_more(carry):
            least, _, _ = carry
            return least - 1, *ask(state, least)

        return jax.lax.while_loop(lambda carry: carry[2], once_more, (jnp.float32(1), jnp.int32(EMPTY), True))[1]

    return keep


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Results with best play of all, for who is to move: -1, 0 or 1, None where it was not found out."""

    value: float | None
    moves: dict[int, float | None]  # after each legal move
    positions: int  # nodes of all graphs
    seconds: float
    stopped: str | None  # for people, why something may be missing

    @property
    def kept(self) -> int | None:
        """A move that is proved to keep the value, None where that is not known or all is lost."""
        good = [action for action, value in self.moves.items() if value == self.value]
        return good[0] if good and self.value is not None and self.value >= 0 else None


def make_solver(game: Game, max_positions: int = 1 << 20, evaluate: Evaluate | None = None, weights: Any = None):
    """solve(position, all_moves=False, seconds=inf, tell=nothing, asked=never) -> Verdict, compiled once.

    Without `all_moves` it ends once the value is known, and of the moves it tells what it came across. The search ends
    early where the graph is full, the time over, or it is `asked` to stop. `tell` gets a line for people, many times.

    Raises:
        ValueError: the game is not for two players, or there is no room for a round of the search.
    """
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
        search = Search(game, prover, weights, state, max_positions, seconds, tell, asked)
        wins, won = search.ask(1.0, all_moves)
        less = 0.0 if search.drawn else -1.0
        value, moves = _value(wins, less), {action: _value(answer, less) for action, answer in won.items()}
        unclear = {action for action, known in moves.items() if known == 0}  # not won, but drawn or lost?
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


class Search:
    """Questions about one position, one after the other, within one limit of time."""

    def __init__(
        self,
        game: Game,
        prover: Prover,
        weights: Any,
        state: Any,
        max_positions: int,
        seconds: float,
        tell: Any,
        asked: Any,
    ):
        self.game, self.prover, self.weights, self.state, self.max_positions = (
            game,
            prover,
            weights,
            state,
            max_positions,
        )
        self.tell, self.asked = tell, asked
        self.began = time.monotonic()
        self.end = self.began + seconds
        self.positions = 0
        self.drawn = False
        self.stopped: str | None = None

    def ask(self, least: float, all_moves: bool) -> tuple[bool | None, dict[int, bool | None]]:
        """Whether the mover gets `least`, in all and after each move."""
        question = Question(jnp.int32(self.game.player(self.state)), jnp.float32(least))
        actions = np.flatnonzero(np.asarray(self.game.mask(self.state))).tolist()
        graph = self.prover.begin(question, self.weights, self.state)
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
        """Searches below a node until it is decided, or as long as there are room and time; once at least."""
        while self.stopped is None and _answer(graph.numbers, node) is None:
            size, seconds = int(graph.size), time.monotonic() - self.began
            if size > self.max_positions - LANES:
                self.stopped = f"stopped: all {self.max_positions:,} positions are used up; give more --positions"
                break
            prove, refute = int(graph.numbers.prove[node]), int(graph.numbers.refute[node])
            all_of_them, so_far = self.positions + size, f"still {prove:,} to prove, {refute:,} to refute"
            self.tell(f"{all_of_them:,} positions, {all_of_them / max(seconds, 1e-9):,.0f} a second; {so_far}")
            graph = jax.block_until_ready(self.prover.search(graph, question, self.weights, jnp.int32(node)))
            if _answer(graph.numbers, node) is None:
                if time.monotonic() > self.end:
                    self.stopped = f"stopped after {time.monotonic() - self.began:.0f} s; give more --minutes"
                elif self.asked():
                    self.stopped = "stopped when asked to"
        return graph


def _answer(numbers: Numbers, where: Any) -> bool | None:
    return True if int(numbers.prove[where]) == 0 else False if int(numbers.refute[where]) == 0 else None


@functools.partial(jax.jit, donate_argnums=0)
def _refreshed(graph: Graph) -> Graph:
    """With the numbers of node 0 set right: those of its moves may have changed since."""
    return _back_up(graph, jnp.zeros((1, 1), jnp.int32), 1)
