"""Proof-number search: proves who wins a position.

The search grows a graph of positions. Each node has two numbers: how much must still be decided to `prove`, or to
`refute`, that its mover succeeds (Allis, van der Meulen and van den Herik 1994, "Proof-number search"). If all moves
must be refuted, the number is that of the hardest move plus one for each other move (Ueda et al. 2008, "Weak
proof-number search"). A sum would count a position once for every move that leads to it. A leaf starts with the number
of its mover's moves. A network, if given, adds to that number by its evaluation of the leaf's parent.

Lanes descend in lockstep, each to the leaf that is cheapest in its own, slightly distorted numbers (Saito, Winands and
van den Herik 2010, "Randomized parallel proof-number search"). Then the leaves become nodes, and the numbers on the
lanes' paths are updated. Known positions are found by 64-bit hashes. Among ten million positions the odds of any
collision are 1 : 400,000. A game must never repeat a position; no game here can.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from agents.actions import legal_slots
from agents.network.inference import Evaluate
from agents.solvers.retrograde import code_of
from envs.game import Array, Game

NEVER = 1 << 22  # replaces infinity
FAR = 255  # the same for leaves, whose numbers are bytes
DISTORTION = 0.5  # lanes see numbers enlarged by a factor of up to exp(DISTORTION)
PRIOR_WEIGHT, VALUE_WEIGHT = 2.0, 10.0  # weights of a network's evaluation in the numbers of leaves
LANES, ROUNDS = 256, 20  # parallel descents; rounds between two checks by the host
EMPTY = -1


def within_reach(game: Game) -> bool:
    """Whether a search of a few seconds can prove something: two players, and moves that are cheap to compute."""
    return game.num_players == 2 and game.hints.moves_are_cheap


class Numbers(NamedTuple):
    prove: Array
    refute: Array


class Graph(NamedTuple):
    """Nodes [M] with up to K moves each, `size` of them in use, and their hash table [2 M]."""

    size: Array  # int32[]
    rounds: Array  # int32[]
    drawn: Array  # bool[], whether the search met a drawn game
    states: Any  # [M, ...]
    actions: Array  # int16[M, K], EMPTY if there is no move
    children: Array  # int32[M, K], nodes; EMPTY while the move leads to a leaf
    leaves: Numbers  # uint8[M, K], of leaves, for the mover of the node; FAR means never
    same: Array  # bool[M, K], the same player moves again
    numbers: Numbers  # int32[M], of nodes, for their movers
    visits: Array  # int32[M], descents of lanes through each node: the work that its numbers took
    codes: Array  # uint32[2 M, 2]
    nodes: Array  # int32[2 M], EMPTY in a free entry


class Question(NamedTuple):
    """The claim to prove: `seat` obtains at least `least`."""

    seat: Array  # int32[]
    least: Array  # float32[]


@dataclasses.dataclass(frozen=True)
class Prover:
    """A compiled proof search for one game."""

    begin: Callable[[Question, Any, Any], Graph]
    """(question, weights, position) -> a graph with the position as node 0."""
    widen: Callable[[Graph, Question, Any], Graph]
    """(graph, question, weights) -> the new graph with nodes for the position's undecided moves, so that each can be
    searched by itself."""
    search: Callable[[Graph, Question, Any, Any], Graph]
    """(graph, question, weights, node) -> the graph after `ROUNDS` rounds below the node. Stops early if the node is
    decided or the graph is full."""


def make_prover(game: Game, max_positions: int, evaluate: Evaluate | None = None) -> Prover:
    """A prover for up to `max_positions` positions; `evaluate` is optional, see `inference.make_evaluate`.

    Raises:
        ValueError: the game is not for two players, or `max_positions` is too small for a round of the search.
    """
    if game.num_players != 2:
        raise ValueError(f"proofs are for games of two players; {game.name} has {game.num_players}")
    if max_positions < 2 * LANES:
        raise ValueError(f"proofs need room for at least {2 * LANES} positions, got {max_positions}")
    look = functools.partial(_evaluate_leaves, game, evaluate)

    def begin(question, weights, state):
        one = jax.tree.map(lambda x: jnp.asarray(x)[None], state)
        found = look(question, weights, one)
        empty = lambda x, fill: jnp.full((max_positions, *x.shape[1:]), fill, x.dtype)
        return Graph(
            size=jnp.int32(1),
            rounds=jnp.int32(0),
            drawn=found.drawn[0],
            states=jax.tree.map(lambda x: empty(x, 0).at[0].set(x[0]), one),
            actions=empty(found.actions, EMPTY).at[0].set(found.actions[0]),
            children=jnp.full((max_positions, game.max_legal), EMPTY, jnp.int32),
            leaves=jax.tree.map(lambda x: empty(x, 0).at[0].set(x[0]), found.leaves),
            same=empty(found.same, False).at[0].set(found.same[0]),
            numbers=jax.tree.map(lambda x: empty(x, 0).at[0].set(x[0]), total(*_wide(found.leaves))),
            visits=jnp.zeros(max_positions, jnp.int32),
            codes=jnp.zeros((2 * max_positions, 2), jnp.uint32),
            nodes=jnp.full(2 * max_positions, EMPTY, jnp.int32),
        )

    def widen(graph, question, weights):
        slot, open_ = jnp.arange(game.max_legal), (graph.leaves.prove[0] > 0) & (graph.leaves.refute[0] > 0)
        graph = expand(graph, question, weights, jnp.zeros_like(slot), slot, open_)
        return backup(graph, jnp.zeros((1, 1), jnp.int32), 1)

    def expand(graph: Graph, question, weights, node, slot, wanted) -> Graph:
        """Turns the `wanted` leaves among [B] into nodes, or links them to existing nodes."""
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
            return i + 1, backup(graph._replace(rounds=graph.rounds + 1), path, depth)

        def more(carry):
            i, graph = carry
            undecided = (graph.numbers.prove[top] > 0) & (graph.numbers.refute[top] > 0)
            return (i < ROUNDS) & undecided & (graph.size < max_positions - LANES)

        return jax.lax.while_loop(more, one_round, (0, graph))[1]

    return Prover(jax.jit(begin), jax.jit(widen, donate_argnums=0), jax.jit(search, donate_argnums=0))


# Nodes


class Found(NamedTuple):
    """What is known about positions [B] with up to K moves before any search."""

    actions: Array  # int16[B, K]
    leaves: Numbers  # uint8[B, K]
    same: Array  # bool[B, K]
    drawn: Array  # bool[B], some move ends the game in a draw


def _evaluate_leaves(game: Game, evaluate: Evaluate | None, question: Question, weights: Any, states: Any) -> Found:
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
    # For the mover of the node: success after a move needs one proof if the mover moves again, else one per reply.
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
    """The numbers of nodes [B], final if theory knows the result; and whether that result is a draw, bool[B]."""
    if game.hints.known_result is None:
        return numbers, jnp.zeros(numbers.prove.shape, bool)
    result = jax.vmap(game.hints.known_result)(states)
    asked = jax.vmap(game.player)(states) == question.seat
    success = jnp.where(asked, result >= question.least, result > -question.least)
    known, unknown = Numbers(jnp.where(success, 0, NEVER), jnp.where(success, NEVER, 0)), jnp.isnan(result)
    return jax.tree.map(lambda open_, final: jnp.where(unknown, open_, final), numbers, known), result == 0


def _wide(leaves: Numbers) -> Numbers:
    return jax.tree.map(lambda x: jnp.where(x == FAR, NEVER, x.astype(jnp.int32)), leaves)


def total(prove: Array, refute: Array) -> Numbers:
    """Numbers of nodes, int32[B], from the numbers after their moves, [B, K], all for the mover of the node. One
    successful move proves the node. Refuting it takes a refutation of every move."""
    least = prove.min(-1)
    most = jnp.minimum(refute.max(-1) + (refute > 0).sum(-1) - 1, NEVER - 1)  # no move succeeded, or `least` is 0
    return Numbers(least, jnp.where(least == 0, NEVER, jnp.where(least >= NEVER, 0, most)))


def after_moves(graph: Graph, node: Array) -> tuple[Array, Numbers]:
    """Children of nodes [B], int32[B, K], and the numbers after each move, for the mover of the node."""
    children, same = graph.children[node], graph.same[node]
    there, leaves = jnp.maximum(children, 0), _wide(jax.tree.map(lambda x: x[node], graph.leaves))
    prove, refute = graph.numbers.prove[there], graph.numbers.refute[there]
    of_nodes = Numbers(jnp.where(same, prove, refute), jnp.where(same, refute, prove))
    return children, jax.tree.map(lambda leaf, node: jnp.where(children == EMPTY, leaf, node), leaves, of_nodes)


# Rounds


def _descend(game: Game, graph: Graph, top: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Descends from a node in all lanes. Returns (path int32[D, B], depth, node, slot, whether the leaf is open). The
    leaf is given by its node and slot. A lane that runs into a decided node has no open leaf."""
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
    """Noise in [0, 1) that differs for each lane, depth and round, float32[B, width]."""
    x = lane[:, None] * jnp.uint32(0x9E3779B1) ^ jnp.arange(width, dtype=jnp.uint32) * jnp.uint32(0x85EBCA77)
    x = x ^ depth.astype(jnp.uint32) * jnp.uint32(0xC2B2AE3D) ^ rounds.astype(jnp.uint32) * jnp.uint32(0x27D4EB2F)
    x = (x ^ (x >> 15)) * jnp.uint32(0x2C1B3C6D)
    x = (x ^ (x >> 13)) * jnp.uint32(0x297A2D39)
    return (x ^ (x >> 16)).astype(jnp.float32) * jnp.float32(2.0**-32)


def backup(graph: Graph, path: Array, depth: Array | int) -> Graph:
    """Updates the numbers on the lanes' paths, from their ends up, and counts the visits."""

    def level(i, carry):
        numbers, visits = carry
        node = path[depth - 1 - i]
        _, after = after_moves(graph._replace(numbers=numbers), jnp.maximum(node, 0))
        put = jnp.where(node == EMPTY, len(graph.actions), node)
        numbers = jax.tree.map(lambda old, new: old.at[put].set(new, mode="drop"), numbers, total(*after))
        return numbers, visits.at[put].add(1, mode="drop")

    numbers, visits = jax.lax.fori_loop(0, depth, level, (graph.numbers, graph.visits))
    return graph._replace(numbers=numbers, visits=visits)


def _code(game: Game, states: Any) -> Array:
    """Hashes of positions [B], uint32[B, 2]; positions that are equal under a symmetry share one."""
    states = jax.vmap(game.hints.canonical or (lambda s: s))(states)
    least, *others = (code_of(jax.vmap(t.state)(states)) for t in game.symmetries)
    for code in others:
        less = (code[:, 0] < least[:, 0]) | ((code[:, 0] == least[:, 0]) & (code[:, 1] < least[:, 1]))
        least = jnp.where(less[:, None], code, least)
    return least


def _enter(graph: Graph, code: Array, wanted: Array) -> tuple[Graph, Array, Array]:
    """Finds the nodes of positions by hash [B], or allocates new nodes.

    Returns the graph, nodes int32[B] and which are new, bool[B]. The table uses open addressing: a lane probes from its
    hash's entry until it finds the hash or a free entry. Lanes that claim the same free entry write -2 - lane. The
    minimum wins, and the other lanes look at the entry again. Hashes are written at the end, because XLA copies a table
    in every iteration of a loop that both reads and writes it.
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


# Inside compiled functions


def make_claim_prover(game: Game, max_positions: int) -> Callable[[Any, Array], Graph]:
    """`ask(position, least) -> Graph`, for use inside a compiled function. The search ends once it is decided whether
    the mover obtains `least`, or once the graph is full.

    Raises:
        ValueError: the game is not for two players, or `max_positions` is too small for a round of the search.
    """
    prover = make_prover(game, max_positions)

    def ask(state: Any, least: Array) -> Graph:
        question = Question(game.player(state).astype(jnp.int32), least)
        more = lambda graph: ~is_decided(graph.numbers)[0] & (graph.size < max_positions - LANES)
        deeper = lambda graph: prover.search(graph, question, None, jnp.int32(0))
        return jax.lax.while_loop(more, deeper, prover.begin(question, None, state))

    return ask


def is_decided(numbers: Numbers) -> Array:
    """Whether the nodes are proved or refuted, bool of the numbers' shape."""
    return (numbers.prove == 0) | (numbers.refute == 0)


def make_proven_move(game: Game, max_positions: int) -> Callable[[Any], Array]:
    """`keep(position) -> int32[]`, for use inside a compiled function: a proven winning move, or a proven drawing move
    if no move wins. EMPTY if `max_positions` positions do not decide, all moves lose or the game is over.

    Raises:
        ValueError: the game is not for two players, or `max_positions` is too small for a round of the search.
    """
    asker = make_claim_prover(game, max_positions)

    def ask(state: Any, least: Array) -> tuple[Array, Array]:
        """A move that obtains `least`, or EMPTY; and whether no move wins but some move may draw."""
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
