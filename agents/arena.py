"""Matches in lockstep: every sampled opening is played twice, from both seats, and results come with intervals."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as Spec

from agents import mesh
from agents.players import Player, make_uct
from agents.selfplay import random_action
from envs.game import Array, Game

CONFIDENCE = 0.95
RESAMPLES = 20_000
BATCH_PAIRS = 50  # openings between two looks at whether a match is decided


class Named(Protocol):
    """Whoever plays, of ours or not."""

    @property
    def name(self) -> str: ...


class Games(NamedTuple):
    """Finished games of one match, on the host. The two games of opening i are at i in `first` and `second`."""

    score: np.ndarray  # float[2, pairs] for player A: 1 won, 0.5 drawn, 0 lost
    plies: np.ndarray  # int[2, pairs]
    code: np.ndarray  # uint64[2, pairs], tells games apart


@dataclasses.dataclass(frozen=True)
class Result:
    """A match from the side of player A."""

    a: str
    b: str
    games: int
    wins: int
    draws: int
    losses: int
    distinct: int  # different games, openings included
    mean_plies: float
    score: float  # share of the points
    score_interval: tuple[float, float]
    elo: float | None  # difference in Elo points; None where the score is 0 or 1
    elo_interval: tuple[float | None, float | None]


def sample_openings(game: Game, key: Array, pairs: int, plies: int) -> tuple[Any, Array]:
    """Positions after `plies` random moves, [pairs, ...], and codes of the moves, uint32[pairs, 2]."""
    states = jax.vmap(game.init)(jax.random.split(key, pairs))

    def ply(t, carry):
        states, code = carry
        mask = jax.vmap(game.mask)(states)
        action = random_action(jax.random.fold_in(key, t), mask)
        return jax.vmap(game.step)(states, action), jnp.where(mask.any(-1)[:, None], extend(code, action), code)

    return jax.lax.fori_loop(0, plies, ply, (states, jnp.zeros((pairs, 2), jnp.uint32)))


def fair_openings(game: Game, key: Array, pairs: int, plies: int) -> tuple[Any, Array]:
    """The same, without openings that are decided already: MCTS with 100 random play-outs finds a move that wins 95 in
    100 of them, or none that loses fewer. Such an opening tells nothing of the players.

    They are the first `pairs` fair ones of twice as many; decided ones fill up what is missing.
    """
    states, code = sample_openings(game, key, 2 * pairs, plies)
    edges = make_uct(game, 100)(jax.random.fold_in(key, plies), states)
    best = jnp.where(edges.visits > 0, edges.q, -1.0).max(-1)
    kept = jnp.argsort(jnp.abs(best) > 0.9, stable=True)[:pairs]
    return jax.tree.map(lambda x: x[kept], (states, code))


def extend(code: Array, action: Array) -> Array:
    """Two independent 32-bit hashes of a sequence of moves, one move longer."""
    factors = jnp.array([1000003, 2654435761], jnp.uint32)
    return (code * factors) ^ (action.astype(jnp.uint32)[:, None] + jnp.array([1, 0x9E3779B9], jnp.uint32))


def make_group(game: Game, a: Player, b: Player, devices: Mesh):
    """`play(weights_a, weights_b, key, states, code, plies, seat)` to the end of all games, divided among `devices`.

    `seat` int32[B] is A's seat. A player is asked only while some game waits for him: with lanes that are in step that
    halves the work. Returns A's rewards float32[B], plies int32[B] and codes uint32[B, 2].
    """

    def play(weights_a, weights_b, key, states, code, plies, seat):
        key = jax.random.fold_in(key, jax.lax.axis_index(mesh.GAMES))

        def ply(carry):
            states, code, plies, key = carry
            key, key_a, key_b = jax.random.split(key, 3)
            going = ~jax.vmap(game.over)(states)
            of_a = jax.vmap(game.player)(states) == seat
            nothing = jnp.zeros_like(plies)
            move_a = jax.lax.cond((going & of_a).any(), lambda: a.act(weights_a, key_a, states, plies), lambda: nothing)
            move_b = jax.lax.cond(
                (going & ~of_a).any(), lambda: b.act(weights_b, key_b, states, plies), lambda: nothing
            )
            action = jnp.where(of_a, move_a, move_b)
            code = jnp.where(going[:, None], extend(code, action), code)
            return jax.vmap(game.step)(states, action), code, plies + going, key

        unfinished = lambda carry: (~jax.vmap(game.over)(carry[0])).any()
        states, code, plies, _ = jax.lax.while_loop(unfinished, ply, (states, code, plies, key))
        return jnp.take_along_axis(jax.vmap(game.rewards)(states), seat[:, None], axis=-1)[:, 0], plies, code

    divided, everywhere = Spec(mesh.GAMES), Spec()
    specs = (everywhere, everywhere, everywhere, divided, divided, divided, divided)
    return jax.shard_map(play, mesh=devices, in_specs=specs, out_specs=divided, check_vma=False)


def check_match(game: Game, games: int, opening_plies: int) -> None:
    """Raises ValueError for a match that cannot be played."""
    if game.num_players != 2:
        raise ValueError(f"{game.name}: a match is between two players; this game has {game.num_players}")
    if games < 2 or games % 2:
        raise ValueError(f"--games must be an even number from 2, since every opening is played twice, not {games}")
    if opening_plies < 0:
        raise ValueError(f"--opening_plies must not be negative, not {opening_plies}")


def play_match(
    game: Game,
    a: Player,
    b: Player,
    *,
    games: int,
    opening_plies: int,
    seed: int,
    fair: bool = False,
    stop: Callable[[np.ndarray], bool] | None = None,
) -> Games:
    """Plays `games` games, an even number, on as many devices as divide the pairs; A moves first in half of them. With
    `fair` openings that are decided are drawn again, see `fair_openings`.

    With `stop` they are played in batches, and after each of them `stop(scores of the pairs so far)` may end the match.
    """
    check_match(game, games, opening_plies)
    pairs = games // 2 if stop is None else min(games // 2, BATCH_PAIRS)
    match = make_match(game, a, b, pairs, opening_plies, fair)
    weights = a.weights, b.weights
    played = match(*weights, jax.random.key(seed))
    while stop is not None and played.score.size < games and not stop(played.score.mean(0)):
        more = match(*weights, jax.random.fold_in(jax.random.key(seed), 2**20 + played.score.size))
        # The last batch may hold more openings than are left.
        played = Games(*(np.concatenate(x, axis=1)[:, : games // 2] for x in zip(played, more, strict=True)))
    return played


def make_match(game: Game, a: Player, b: Player, pairs: int, opening_plies: int, fair: bool):
    """`match(weights_a, weights_b, key) -> Games`, compiled once, for any weights of the two players."""
    devices = mesh.make_mesh(pairs, pairs)
    draw = fair_openings if fair and opening_plies else sample_openings
    sample = jax.jit(lambda k: draw(game, k, pairs, opening_plies))
    play = jax.jit(make_group(game, a, b, devices))
    everywhere = jax.NamedSharding(devices, Spec())

    def match(weights_a: Any, weights_b: Any, key: Array) -> Games:
        *weights, key = jax.device_put((weights_a, weights_b, key), everywhere)
        states, code = sample(key)
        mover = jax.vmap(game.player)(states)
        plies = jnp.full(pairs, opening_plies, jnp.int32)
        done = []
        for half in range(2):
            seat = mover if half == 0 else 1 - mover
            group_key = jax.random.fold_in(key, opening_plies + 1 + half)
            rewards, length, codes = play(*weights, group_key, states, code, plies, seat)
            # The same moves with the seats exchanged are another game.
            wide = np.asarray(codes[:, 0], np.uint64) << np.uint64(32) | np.asarray(codes[:, 1] ^ half, np.uint64)
            done.append((np.asarray(rewards) / 2 + 0.5, np.asarray(length), wide))
        return Games(*(np.stack(x) for x in zip(*done, strict=True)))

    return match


def result(a: Named, b: Named, played: Games) -> Result:
    """Counts and intervals. The unit of chance is the pair of games from one opening: their results hang together."""
    low, high = score_interval(played.score.mean(0))
    score = played.score
    return Result(
        a=a.name,
        b=b.name,
        games=score.size,
        wins=int((score == 1).sum()),
        draws=int((score == 0.5).sum()),
        losses=int((score == 0).sum()),
        distinct=len(np.unique(played.code)),
        mean_plies=float(played.plies.mean()),
        score=float(score.mean()),
        score_interval=(low, high),
        elo=elo(float(score.mean())),
        elo_interval=(elo(low), elo(high)),
    )


def score_interval(pairs: np.ndarray) -> tuple[float, float]:
    """95 % credible interval of the mean score of pairs, each in {0, 1/4, ..., 1}.

    The posterior of the five shares is Dirichlet; a prior of one fifth of a pair each, one pair in all, keeps the
    interval open when every pair ended alike.
    """
    values = np.arange(5) / 4
    counts = np.array([(np.isclose(pairs, v)).sum() for v in values])
    means = np.random.default_rng(0).dirichlet(counts + 0.2, RESAMPLES) @ values
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def elo(score: float) -> float | None:
    """Elo difference at which `score` is expected; None at 0 and 1."""
    return float(400 * np.log10(score / (1 - score))) if 0 < score < 1 else None
