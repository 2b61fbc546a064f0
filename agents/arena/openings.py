"""Where the games of matches begin: positions after random moves, all different, none of them decided already."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from agents.actions import random_action
from agents.search.uct import make_uct
from agents.solvers import proof_number, retrograde
from envs.game import Array, Game

MOST_PLIES = 10
IN_VAIN = 3  # rounds in a row that bring hardly any other opening, after which a game is taken to have no more
# Moves that a search for proofs may try to find out that an opening is decided: with two queens those of 4500
# positions, 0.2 s of a core.
PROOF_MOVES = 1 << 17
FINE, PROVED, DECIDED, OVER = range(4)  # what is wrong with an opening


class Openings(NamedTuple):
    """Where games begin."""

    states: Any  # [M, ...]
    moves: Array  # int32[M, plies], the random moves that lead there, -1 once a game is over
    code: Array  # uint32[M, 2], see `kind`
    fault: Array  # int8[M]: FINE, DECIDED or OVER, see `make_openings`


def random_ply(game: Game, key: Array, states: Any) -> tuple[Any, Array]:
    """Positions after one more random move, and the moves int32[B], -1 where the game is over."""
    mask = jax.vmap(game.mask)(states)
    action = random_action(key, mask)
    return jax.vmap(game.step)(states, action), jnp.where(mask.any(-1), action, -1)


def sample_openings(game: Game, key: Array, count: int, plies: int) -> tuple[Any, Array]:
    """Positions after `plies` random moves, [count, ...], and these moves, int32[count, plies]."""
    states = jax.vmap(game.init)(jax.random.split(key, count))
    ply = lambda states, t: random_ply(game, jax.random.fold_in(key, t), states)
    states, moves = jax.lax.scan(ply, states, jnp.arange(plies))
    return states, moves.T


def kind(game: Game, states: Any) -> Array:
    """Codes uint32[B, 2] of positions, alike for those that players could hardly tell apart: by other moves, in a
    mirror, or with other squares that nobody can come to. It is the least of two 32-bit hashes over all symmetries of
    what the mover sees, without history; superko may thus tell apart what is one here, which costs an opening only.
    """
    if game.canonical is not None:
        states = jax.vmap(game.canonical)(states)
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


def one_sided(best: Array, players: int) -> Array:
    """Whether a position tells little of the players, since who is to move gets nearly all points or hardly any, `best`
    being the mean result of the best move: among n a win is 1, a loss -1 / (n - 1)."""
    share = (best * (players - 1) + 1) / players
    return jnp.abs(share - 0.5) > 0.45


@functools.lru_cache(maxsize=4)  # compiled once for all matches of a ladder
def make_decided(game: Game) -> Callable[[Any], Array]:
    """`decided(position) -> bool[]`, whether a short search proves that who is to move wins, or loses; nothing is
    proved where that would take long, see `proof_number.within_reach`."""
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


def make_openings(game: Game, count: int, plies: int, fair: bool) -> Callable[[Array], Iterator[Openings]]:
    """`draw(key)` gives `count` openings of `plies` random moves, then as many others, and so on without end: between
    players without chance the same opening is the same game, and a network sees through every symmetry. Once the game
    has no other, those that there are come again in turn.

    With `fair` openings that are decided are left out: MCTS with 100 random play-outs finds a move that wins 95 in 100
    of them, or none that loses fewer; or, unless there are too few others, a short search proves who wins.
    """
    proved = make_decided(game)

    @jax.jit
    def look(key):
        states, moves = sample_openings(game, key, 2 * count, plies)
        fault = OVER * jax.vmap(game.over)(states)
        if fair and plies:
            edges = make_uct(game, 100)(jax.random.fold_in(key, plies), states)
            best = jnp.where(edges.visits > 0, edges.edge_values, -1.0).max(-1)
            fault = jnp.maximum(fault, DECIDED * one_sided(best, game.num_players))
        return Openings(states, moves, kind(game, states), fault.astype(jnp.int8))

    def candidates(key: Array, fine: list[Openings]) -> Iterator[Openings]:
        """Openings that differ from all before, as long as some of them are found to be `fine`."""
        known: set[int] = set()
        rounds = in_vain = 0
        while in_vain < IN_VAIN:
            drawn, before = jax.device_get(look(jax.random.fold_in(key, rounds))), len(fine)
            for i, code in enumerate(wide(drawn.code).tolist()):
                if code not in known:
                    known.add(code)
                    yield jax.tree.map(lambda x, i=i: x[i], drawn)
            rounds += 1
            in_vain = in_vain + 1 if 16 * (len(fine) - before) < count else 0

    def draw(key):
        pools: tuple[list[Openings], ...] = [], [], [], []  # by fault
        new = candidates(key, pools[FINE])
        for given in itertools.count(0, count):
            while len(pools[FINE]) < given + count and (opening := next(new, None)) is not None:
                shown = fair and plies and opening.fault == FINE and proved(opening.states)
                pools[PROVED if shown else opening.fault].append(opening)
            enough = len(pools[FINE]) >= given + count
            pool = pools[FINE] if enough else pools[FINE] + pools[PROVED] or pools[DECIDED] or pools[OVER]
            yield jax.tree.map(lambda *x: np.stack(x), *(pool[i % len(pool)] for i in range(given, given + count)))

    return draw


def enough_plies(game: Game, pairs: int) -> int:
    """The fewest random moves, two or more, after which twice as many openings hold `pairs` different ones, see `kind`;
    at most `MOST_PLIES`, nor than a third of the longest game."""
    most = max(2, min(MOST_PLIES, game.max_plies // 3))
    ply = jax.jit(lambda key, states: random_ply(game, key, states)[0])
    codes = jax.jit(lambda states: kind(game, states))
    key = jax.random.key(0)
    states = jax.vmap(game.init)(jax.random.split(key, 2 * pairs))
    for plies in range(1, most):
        states = ply(jax.random.fold_in(key, plies), states)
        if plies >= 2 and len(np.unique(wide(codes(states)))) >= pairs:
            return plies
    return most
