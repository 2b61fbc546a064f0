"""Openings of matches: positions after random moves, all different, none of them decided already."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from agents.actions import random_action
from agents.search.tree import Edges
from agents.search.uct import make_uct
from agents.solvers import proof_number, retrograde
from envs.game import Array, Game

MOST_PLIES = 10
MOST_UNFAIR = 0.9  # of a fair opening, see `unfairness`
PRIOR_VISITS = 5  # weight of the root's mean in the value of each move, in playouts; docs/notes
LOOKS = 8  # openings examined for each fair opening wanted
IN_VAIN = 32  # samples in a row without a new opening, per known opening, after which there are no more
# Moves that the proof search of an opening may try: with two queens those of 4500 positions, 0.2 s of a core.
PROOF_MOVES = 1 << 17
PROVED, OVER = 2.0, 3.0  # unfairness of openings with a proved winner, and of finished games


class Openings(NamedTuple):
    """Where games begin."""

    states: Any  # [M, ...]
    moves: Array  # int32[M, plies], the random moves that lead there, -1 once a game is over
    code: Array  # uint32[M, 2], see `canonical_hash`
    unfair: Array  # float32[M], see `unfairness`; PROVED or OVER; 0 where fairness does not matter


def random_ply(game: Game, key: Array, states: Any) -> tuple[Any, Array]:
    """Positions after one more random move, and the moves int32[B], -1 where the game is over."""
    mask = jax.vmap(game.mask)(states)
    action = random_action(key, mask)
    return jax.vmap(game.step)(states, action), jnp.where(mask.any(-1), action, -1)


def sample_openings(game: Game, key: Array, count: int, plies: int) -> tuple[Any, Array]:
    """Positions after `plies` random moves, [count, ...], and these moves, int32[count, plies]."""
    start_key, move_key = jax.random.split(key)
    states = jax.vmap(game.init)(jax.random.split(start_key, count))
    ply = lambda states, t: random_ply(game, jax.random.fold_in(move_key, t), states)
    states, moves = jax.lax.scan(ply, states, jnp.arange(plies))
    return states, moves.T


def canonical_hash(game: Game, states: Any) -> Array:
    """Codes uint32[B, 2] of positions. Positions that play alike have the same code: transpositions, mirror images, and
    positions that differ only in squares out of reach. The code is the least of two 32-bit hashes over all symmetries
    of the mover's observation without history. Superko may distinguish positions of one code; that costs an opening.
    """
    if game.hints.canonical is not None:
        states = jax.vmap(game.hints.canonical)(states)
    planes = jax.vmap(game.observe)(states)
    bits = jax.lax.bitcast_convert_type(jnp.where(planes == 0, 0.0, planes).astype(jnp.float32), jnp.uint32)
    mover = jax.vmap(game.player)(states)
    codes = jnp.stack([retrograde.code_of((jax.vmap(turn.planes)(bits), mover)) for turn in game.symmetries])
    first = codes[..., 0].min(0)
    second = jnp.where(codes[..., 0] == first, codes[..., 1], jnp.uint32(2**32 - 1)).min(0)
    return jnp.stack([first, second], axis=-1)


def wide(code: Any) -> np.ndarray:
    """uint64[...] of uint32[..., 2], on the host."""
    return np.asarray(code[..., 0], np.uint64) << np.uint64(32) | np.asarray(code[..., 1], np.uint64)


def unfairness(edges: Edges, players: int) -> Array:
    """How nearly each position is decided, float32[M]: 0 if the mover expects half of the points, 1 for all or none of
    them. Among n players a win is 1 and a loss -1 / (n - 1).

    The expectation is the value of the best move. Each move's mean is shrunk toward the root's mean, which counts for
    `PRIOR_VISITS` visits. Otherwise, with as many moves as playouts, some move of any position has won its only one.
    """
    shrunk = (edges.visits * edges.edge_values + PRIOR_VISITS * edges.value[:, None]) / (edges.visits + PRIOR_VISITS)
    best = jnp.where(edges.visits > 0, shrunk, -1.0).max(-1)
    share = (best * (players - 1) + 1) / players
    return 2 * jnp.abs(share - 0.5)


@functools.lru_cache(maxsize=4)  # compiled once for all matches of a ladder
def make_decided(game: Game) -> Callable[[Any], Array]:
    """`decided(position) -> bool[]`: whether a short search proves that the player to move wins or loses. In games
    whose proofs take long it is always False, see `proof_number.within_reach`."""
    if not proof_number.within_reach(game):
        return lambda state: jnp.bool_(False)
    ask = proof_number.make_claim_prover(game, max(2 * proof_number.LANES, PROOF_MOVES // game.max_legal))

    def decided(state):
        def once_more(carry):
            least, _, _ = carry
            graph = ask(state, least)
            gets, less = graph.numbers.prove[0] == 0, graph.numbers.refute[0] == 0
            perhaps_drawn = less & graph.drawn & (least > 0)
            return least - 1, (gets & (least > 0)) | (less & ~perhaps_drawn), perhaps_drawn

        return jax.lax.while_loop(lambda carry: carry[2], once_more, (jnp.float32(1), jnp.bool_(False), True))[1]

    return jax.jit(decided)


def distinct(sample: Callable[[Array], Openings], key: Array) -> Iterator[Openings]:
    """Every different opening once, until samples bring no new ones."""
    known: set[int] = set()
    in_vain = 0
    for number in itertools.count():
        drawn = jax.device_get(sample(jax.random.fold_in(key, number)))
        for i, code in enumerate(wide(drawn.code).tolist()):
            in_vain += 1
            if code not in known:
                in_vain = 0
                known.add(code)
                yield jax.tree.map(lambda x, i=i: x[i], drawn)
        if in_vain > IN_VAIN * len(known):
            return


class Pool:
    """Openings by how fair they are. Each is given once; they repeat, in turn, when there are no others."""

    def __init__(self) -> None:
        self.given: list[Openings] = []
        self.fair: list[Openings] = []
        self.unfair: list[Openings] = []
        self.ended: list[Openings] = []
        self.wanted = 0

    def add(self, opening: Openings) -> None:
        ended = self.ended if opening.unfair == OVER else self.unfair
        (self.fair if opening.unfair <= MOST_UNFAIR else ended).append(opening)

    def lacks(self, count: int) -> bool:
        """Whether `count` openings more would not all be fair."""
        return len(self.given) + len(self.fair) < self.wanted + count

    def take(self, count: int) -> Openings:
        """The next `count` openings, stacked: fair ones, then the least unfair, and finished games if that is all."""
        self.unfair.sort(key=lambda opening: opening.unfair)
        filled = max(0, count - len(self.fair))
        self.given += self.fair[:count] + self.unfair[:filled]
        del self.fair[:count], self.unfair[:filled]
        pool, first = self.given or self.ended, self.wanted
        self.wanted += count
        return jax.tree.map(lambda *x: np.stack(x), *(pool[i % len(pool)] for i in range(first, self.wanted)))


def make_openings(game: Game, count: int, plies: int, fair: bool) -> Callable[[Array], Iterator[Openings]]:
    """`draw(key)` yields `count` openings of `plies` random moves, then `count` others, without end. All are different,
    up to symmetry, since deterministic players repeat the game of a repeated opening. Openings are repeated, in turn,
    only when the game has no others; finished games come only when there is nothing else.

    With `fair` an opening is skipped if MCTS with 100 random playouts expects nearly all points for one side, see
    `unfairness`, or if a short search proves the winner. If there are too few fair openings, the least unfair follow,
    proved ones last.
    """
    proved, judges = make_decided(game), fair and plies > 0

    @jax.jit
    def sample(key):
        states, moves = sample_openings(game, key, 2 * count, plies)
        unfair = jnp.where(jax.vmap(game.over)(states), OVER, 0.0)
        return Openings(states, moves, canonical_hash(game, states), unfair)

    @jax.jit
    def look(key, states, unfair):
        return jnp.maximum(unfair, unfairness(make_uct(game, 100)(key, states), game.num_players))

    def judged(key: Array) -> Iterator[Openings]:
        """Different openings with their unfairness, judged `count` at a time."""
        sample_key, look_key = jax.random.split(key)
        new = distinct(sample, sample_key)
        while some := list(itertools.islice(new, count)):
            look_key, now_key = jax.random.split(look_key)
            filled = jax.tree.map(lambda *x: np.stack(x), *(some[i % len(some)] for i in range(count)))
            unfair = np.asarray(look(now_key, filled.states, filled.unfair) if judges else filled.unfair)
            yield from (opening._replace(unfair=x) for opening, x in zip(some, unfair, strict=False))

    def draw(key: Array) -> Iterator[Openings]:
        pool, new, looked = Pool(), judged(key), 0
        while True:
            while pool.lacks(count) and looked < LOOKS * (pool.wanted + count):
                if (opening := next(new, None)) is None:
                    break
                looked += 1
                if judges and opening.unfair <= MOST_UNFAIR and proved(opening.states):
                    opening = opening._replace(unfair=np.float32(PROVED))
                pool.add(opening)
            yield pool.take(count)

    return draw


def enough_plies(game: Game, pairs: int) -> int:
    """The fewest random moves, two or more, after which `2 * pairs` samples hold `pairs` different openings, see
    `canonical_hash`. At most `MOST_PLIES`, and at most a third of the longest game."""
    most = max(2, min(MOST_PLIES, game.max_plies // 3))
    ply = jax.jit(lambda key, states: random_ply(game, key, states)[0])
    codes = jax.jit(lambda states: canonical_hash(game, states))
    start_key, move_key = jax.random.split(jax.random.key(0))
    states = jax.vmap(game.init)(jax.random.split(start_key, 2 * pairs))
    for plies in range(1, most):
        states = ply(jax.random.fold_in(move_key, plies), states)
        if plies >= 2 and len(np.unique(wide(codes(states)))) >= pairs:
            return plies
    return most
