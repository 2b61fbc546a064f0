"""Matches in lockstep: every sampled opening is played from all seats, and results come with intervals.

In a game for n players A has one seat and B all others, so that A has 1/n of the points where both are equally strong.
"""

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
MOST_OPENING_PLIES = 10
BATCH_PAIRS = 50  # openings between two looks at whether a match is decided


class Named(Protocol):
    """Whoever plays, of ours or not."""

    @property
    def name(self) -> str: ...


class Games(NamedTuple):
    """Finished games of one match for n players, on the host; the games of opening i are at [:, i]."""

    score: np.ndarray  # float[n, openings] for player A: 1 won, 0.5 drawn, 0 lost
    plies: np.ndarray  # int[n, openings]
    code: np.ndarray  # uint64[n, openings], tells games apart


@dataclasses.dataclass(frozen=True)
class Result:
    """A match from the side of player A."""

    players: int  # seats of the game; 1 over this is an even score
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
    elo: float | None  # by how much A is stronger than each of the others, see `elo`; None where the score is 0 or 1
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


def draw_openings(game: Game, key: Array, pairs: int, plies: int, fair: bool) -> tuple[Any, Array]:
    """The same, each opening another one as far as there are so many: between players without chance the same opening
    is the same game. With `fair` also without openings that are decided already, which tell nothing of the players:
    MCTS with 100 random play-outs finds a move that wins 95 in 100 of them, or none that loses fewer.

    They are the first such of twice as many; repeated ones, then decided ones fill up what is missing.
    """
    states, code = sample_openings(game, key, 2 * pairs, plies)
    fault = repeated(code).astype(jnp.int32)
    if fair:
        edges = make_uct(game, 100)(jax.random.fold_in(key, plies), states)
        best = jnp.where(edges.visits > 0, edges.q, -1.0).max(-1)
        fault = jnp.where(jnp.abs(best) > 0.9, 2, fault)
    kept = jnp.argsort(fault, stable=True)[:pairs]
    return jax.tree.map(lambda x: x[kept], (states, code))


def openings(game: Game, key: Array, pairs: int, plies: int, fair: bool) -> tuple[Any, Array]:
    """Where the games of a match begin: at the start of the game if it is to be without random moves."""
    return draw_openings(game, key, pairs, plies, fair) if plies else sample_openings(game, key, pairs, 0)


def repeated(code: Array) -> Array:
    """Which codes uint32[M, 2] stand further ahead already, bool[M]."""
    order = jnp.lexsort((code[:, 1], code[:, 0]))
    ahead = (code[order[1:]] == code[order[:-1]]).all(-1)
    return jnp.zeros(len(code), bool).at[order[1:]].set(ahead)


def enough_plies(game: Game, pairs: int) -> int:
    """The fewest random moves, two or more, after which twice as many openings hold `pairs` different ones; at most
    `MOST_OPENING_PLIES`, nor than a third of the longest game."""
    most = max(2, min(MOST_OPENING_PLIES, game.max_plies // 3))
    others = jax.jit(lambda plies: (~repeated(sample_openings(game, jax.random.key(0), 2 * pairs, plies)[1])).sum())
    return next((plies for plies in range(2, most) if others(plies) >= pairs), most)


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


def check_match(game: Game, games: int, opening_plies: int | None, option: str = "--games") -> None:
    """Raises ValueError for a match that cannot be played; `option` is the one that told how many games."""
    n = game.num_players
    if games < n or games % n:
        often = "an even number" if n == 2 else f"a multiple of {n}"
        raise ValueError(f"{option} must be {often}, since every opening is played from all seats, not {games}")
    if opening_plies is not None and opening_plies < 0:
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
    """Plays `games` games, a multiple of the players, on as many devices as divide the openings; every one is played
    from all seats. With `fair` openings that are decided are drawn again, see `draw_openings`.

    With `stop` they are played in batches, and after each of them `stop(mean scores of the openings so far)` may end
    the match.
    """
    check_match(game, games, opening_plies)
    most = games // game.num_players
    pairs = most if stop is None else min(most, BATCH_PAIRS)
    match = make_match(game, a, b, pairs, opening_plies, fair)
    weights = a.weights, b.weights
    played = match(*weights, jax.random.key(seed))
    while stop is not None and played.score.size < games and not stop(played.score.mean(0)):
        more = match(*weights, jax.random.fold_in(jax.random.key(seed), 2**20 + played.score.size))
        # The last batch may hold more openings than are left.
        played = Games(*(np.concatenate(x, axis=1)[:, :most] for x in zip(played, more, strict=True)))
    return played


def make_match(game: Game, a: Player, b: Player, pairs: int, opening_plies: int, fair: bool):
    """`match(weights_a, weights_b, key) -> Games`, compiled once, for any weights of the two players."""
    devices = mesh.make_mesh(pairs, pairs)
    sample = jax.jit(lambda k: openings(game, k, pairs, opening_plies, fair))
    play = jax.jit(make_group(game, a, b, devices))
    everywhere, n = jax.NamedSharding(devices, Spec()), game.num_players

    def match(weights_a: Any, weights_b: Any, key: Array) -> Games:
        *weights, key = jax.device_put((weights_a, weights_b, key), everywhere)
        states, code = sample(key)
        mover = jax.vmap(game.player)(states)
        plies = jnp.full(pairs, opening_plies, jnp.int32)
        done = []
        for turn in range(n):
            group_key = jax.random.fold_in(key, opening_plies + 1 + turn)
            rewards, length, codes = play(*weights, group_key, states, code, plies, (mover + turn) % n)
            # The same moves with the seats exchanged are another game.
            wide = np.asarray(codes[:, 0], np.uint64) << np.uint64(32) | np.asarray(codes[:, 1] ^ turn, np.uint64)
            points = np.round((np.asarray(rewards) * (n - 1) + 1) / n, 6)  # of all players together 1
            done.append((points, np.asarray(length), wide))
        return Games(*(np.stack(x) for x in zip(*done, strict=True)))

    return match


def result(a: Named, b: Named, played: Games) -> Result:
    """Counts and intervals. The unit of chance is the games from one opening: their results hang together."""
    score, n = played.score, len(played.score)
    low, high = score_interval(score.mean(0), n)
    return Result(
        players=n,
        a=a.name,
        b=b.name,
        games=score.size,
        wins=int((score == 1).sum()),
        draws=int(((score > 0) & (score < 1)).sum()),
        losses=int((score == 0).sum()),
        distinct=len(np.unique(played.code)),
        mean_plies=float(played.plies.mean()),
        score=float(score.mean()),
        score_interval=(low, high),
        elo=elo(float(score.mean()), n),
        elo_interval=(elo(low, n), elo(high, n)),
    )


def score_interval(means: np.ndarray, players: int = 2) -> tuple[float, float]:
    """95 % credible interval of the score; `means` float[openings] are over the games from each opening, as many as
    players (n), and so whole numbers of 1/n**2: of each game there are n shares at most that win together.

    The posterior of the shares of these values is Dirichlet; a prior of one opening, spread evenly over them, keeps the
    interval open when every opening ended alike.
    """
    values = np.arange(players**2 + 1) / players**2
    counts = np.bincount(np.rint(means * players**2).astype(int), minlength=len(values))
    means = np.random.default_rng(0).dirichlet(counts + 1 / len(values), RESAMPLES) @ values
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def elo(score: float, players: int = 2) -> float | None:
    """Elo difference at which a seat has that share of the points against others who are all alike; None at 0 and 1.

    Everyone's chance to win is in proportion to 10**(Elo / 400), for any number of players (Luce 1959, "Individual
    choice behavior"; for two it is Elo's)."""
    return float(400 * np.log10(score / (1 - score) * (players - 1))) if 0 < score < 1 else None


def as_hard(share: float, players: int) -> float:
    """The share of the points for one seat among so many players that tells of the same difference in Elo as `share`
    does between two; 0 and 1 stay."""
    return share / (share + (players - 1) * (1 - share))
