"""Matches in lockstep: every sampled opening is played from all seats, and results come with intervals.

In a game for n players A has one seat and B all others. If both are equally strong, A scores 1/n of the points.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as Spec

from agents.arena import openings
from agents.arena.openings import make_openings, wide
from agents.players.spec import Player
from agents.runtime import mesh
from envs.game import Array, Game

CONFIDENCE = 0.95
RESAMPLES = 20_000
BATCH_PAIRS = 50  # openings between two checks of whether a match is decided
LOOK_SECONDS = 0.5  # between two progress reports, and so the delay of Ctrl-C


class Named(Protocol):
    """Any player: of this engine, another program or a person."""

    @property
    def name(self) -> str: ...


class Games(NamedTuple):
    """Finished games of one match for n players, on the host; the games of opening i are at [:, i]."""

    score: np.ndarray  # float[n, openings] for player A: 1 won, 0.5 drawn, 0 lost
    plies: np.ndarray  # int[n, openings]
    code: np.ndarray  # uint64[n, openings], tells games apart, see `codes`
    opening: np.ndarray  # uint64[openings], tells openings apart


@dataclasses.dataclass(frozen=True)
class Result:
    """A match from the side of player A. Repeated games are left out of every figure but `repeated`."""

    players: int  # seats of the game; 1 over this is an even score
    a: str
    b: str
    games: int
    wins: int
    draws: int
    losses: int
    repeated: int  # games that were left out, see `once`
    openings: int  # different openings, up to symmetry
    mean_plies: float
    score: float  # share of the points
    score_interval: tuple[float, float]
    elo: float | None  # of A over each other player, see `elo`; None if the score is 0 or 1
    elo_interval: tuple[float | None, float | None]


Tell = Callable[[np.ndarray], None]
"""Called while a match is played, with A's points in the finished games, float[any], in no order."""


def nobody(points: np.ndarray) -> None:
    """The `Tell` of a match without progress reports."""


def extend(code: Array, action: Array) -> Array:
    """Two independent 32-bit hashes of a sequence of moves, extended by one move."""
    factors = jnp.array([1000003, 2654435761], jnp.uint32)
    return (code * factors) ^ (action.astype(jnp.uint32)[:, None] + jnp.array([1, 0x9E3779B9], jnp.uint32))


class Round(NamedTuple):
    """Games that are played in lockstep."""

    states: Any  # [B, ...]
    code: Array  # uint32[B, 2], of the moves
    plies: Array  # int32[B]
    illegal: Array  # bool[B, 2], whether A or B chose an illegal move
    key: Array  # key[devices]


def make_group(game: Game, a: Player, b: Player, devices: Mesh):
    """`play(weights_a, weights_b, group, seat, most)` advances the games by at most `most` plies, divided among
    `devices`, and stops early when all are over.

    `seat` int32[B] is A's seat. A player is evaluated only if it is to move in some game, which halves the work while
    the lanes alternate in step. Returns the group, whether each game is over, bool[B], and A's rewards float32[B].
    """

    def legal(state, action):
        return (game.mask(state) & (jnp.arange(game.num_actions) == action)).any()

    def play(weights_a, weights_b, group, seat, most):
        def ply(carry):
            states, code, plies, illegal, key = carry[0]
            key, key_a, key_b = jax.random.split(key[0], 3)
            going = ~jax.vmap(game.over)(states)
            of_a = jax.vmap(game.player)(states) == seat
            nothing = jnp.zeros_like(plies)
            move_a = jax.lax.cond((going & of_a).any(), lambda: a.act(weights_a, key_a, states, plies), lambda: nothing)
            move_b = jax.lax.cond(
                (going & ~of_a).any(), lambda: b.act(weights_b, key_b, states, plies), lambda: nothing
            )
            action = jnp.where(of_a, move_a, move_b)
            code = jnp.where(going[:, None], extend(code, action), code)
            wrong = going & ~jax.vmap(legal)(states, action)
            illegal |= wrong[:, None] & jnp.stack([of_a, ~of_a], axis=-1)
            group = Round(jax.vmap(game.step)(states, action), code, plies + going, illegal, key[None])
            return group, carry[1] + 1

        unfinished = lambda carry: (~jax.vmap(game.over)(carry[0].states)).any() & (carry[1] < most)
        group, _ = jax.lax.while_loop(unfinished, ply, (group, jnp.int32(0)))
        rewards = jax.vmap(game.rewards)(group.states)
        return group, jax.vmap(game.over)(group.states), jnp.take_along_axis(rewards, seat[:, None], axis=-1)[:, 0]

    divided, everywhere = Spec(mesh.GAMES), Spec()
    specs = (everywhere, everywhere, divided, divided, everywhere)
    return jax.shard_map(play, mesh=devices, in_specs=specs, out_specs=divided, check_vma=False)


def to_the_end(play: Callable[..., Any], group: Round, tell: Callable[[Array, Array], None]) -> tuple[Round, Array]:
    """Plays a group until all games are over. `play(group, most)` advances it by that many plies; then `tell` gets
    which games are over, and A's rewards. Returns the group and these rewards."""
    most = 1
    while True:
        began = time.monotonic()
        group, over, rewards = jax.block_until_ready(play(group, most))
        tell(over, rewards)
        if over.all():
            return group, rewards
        longer = LOOK_SECONDS / (time.monotonic() - began)
        most = max(1, int(most * min(2.0, longer)))


def check_match(game: Game, games: int, opening_plies: int | None, option: str = "--games") -> None:
    """Raises ValueError for a match that cannot be played; `option` sets the number of games."""
    n = game.num_players
    if games < n or games % n:
        often = "an even number" if n == 2 else f"a multiple of {n}"
        raise ValueError(f"{option}: expected {often}, since every opening is played from all seats, got {games}")
    if opening_plies is not None and opening_plies < 0:
        raise ValueError(f"--opening_plies: expected 0 or more, got {opening_plies}")


def play_games(
    game: Game,
    a: Player,
    b: Player,
    *,
    games: int,
    opening_plies: int,
    seed: int,
    fair: bool = False,
    stop: Callable[[np.ndarray], bool] | None = None,
    tell: Tell = nobody,
) -> Games:
    """Plays a match of `games` games, a multiple of the players, on as many devices as divide the openings. Every
    opening is played from all seats. With `fair`, decided openings are left out, see `make_openings`. `tell` gets the
    points of the finished games, once a ply or every half second; an exception that it raises ends the match.

    With `stop` the games are played in batches, and `stop(evidence so far)` may end the match after each batch. The
    match also ends when a batch brings no new games.

    Raises:
        ValueError: a number of games that cannot be played, or a player who chooses an illegal move.
    """
    check_match(game, games, opening_plies)
    most = games // game.num_players
    pairs = most if stop is None else min(most, BATCH_PAIRS)
    batches = make_match(game, a, b, pairs, opening_plies, fair, tell)(a.weights, b.weights, jax.random.key(seed))
    played = next(batches)
    while stop is not None and played.score.size < games and not stop(evidence(played)):
        # The last batch may hold more openings than are left.
        more = Games(*(np.concatenate(x, axis=-1)[..., :most] for x in zip(played, next(batches), strict=True)))
        if len(evidence(more)) == len(evidence(played)):
            break
        played = more
    return played


def make_match(
    game: Game,
    a: Player,
    b: Player,
    pairs: int,
    opening_plies: int,
    fair: bool,
    tell: Tell = nobody,
    wanted: int | None = None,
):
    """`match(weights_a, weights_b, key)` yields the games of `pairs` openings, then those of further openings, without
    end. It is compiled once for any weights of the two players. `tell` is as for `play_games`. At most `wanted`
    devices play, by default all; their number divides `pairs`."""
    there = range(1, min(wanted or jax.local_device_count(), jax.local_device_count()) + 1)
    devices = mesh.make_mesh(pairs, pairs, max(n for n in there if pairs % n == 0))
    draw = make_openings(game, pairs, opening_plies, fair)
    play = jax.jit(make_group(game, a, b, devices))
    everywhere, divided = jax.NamedSharding(devices, Spec()), jax.NamedSharding(devices, Spec(mesh.GAMES))
    n = game.num_players
    # They add up to 1 over the players; rounded because of thirds.
    points = lambda rewards: np.round((np.asarray(rewards) * (n - 1) + 1) / n, 6)

    def match(weights_a: Any, weights_b: Any, key: Array) -> Iterator[Games]:
        opening_key, key = jax.random.split(key)
        weights = jax.device_put((weights_a, weights_b), everywhere)
        earlier: list[np.ndarray] = []  # points of the groups that are over
        hear = lambda over, rewards: tell(np.concatenate([*earlier, points(rewards)[np.asarray(over)]]))
        for batch, opening in enumerate(draw(opening_key)):
            mover = np.asarray(jax.vmap(game.player)(opening.states))
            plies = (opening.moves >= 0).sum(1, dtype=np.int32)
            done = []
            for turn in range(n):
                group_key = jax.random.fold_in(key, n * batch + turn)
                keys = jax.vmap(jax.random.fold_in, (None, 0))(group_key, jnp.arange(devices.size))
                group = Round(opening.states, opening.code, plies, jnp.zeros((pairs, 2), bool), keys)
                group, seat = jax.device_put((group, (mover + turn) % n), divided)
                further = lambda group, most, seat=seat: play(*weights, group, seat, most)
                group, rewards = to_the_end(further, group, hear)
                for player, illegal in zip((a, b), np.asarray(group.illegal).T, strict=True):
                    if illegal.any():
                        raise ValueError(f"player '{player.name}': expected legal moves, got an illegal one")
                earlier.append(points(rewards))
                # The same moves with exchanged seats are a different game.
                done.append((earlier[-1], np.asarray(group.plies), wide(group.code) ^ np.uint64(turn)))
            score, length, moves = (np.stack(x) for x in zip(*done, strict=True))
            yield Games(score, length, codes(moves, batch, a, b), wide(opening.code))

    return match


def codes(moves: np.ndarray, batch: int, a: Named, b: Named) -> np.ndarray:
    """`Games.code` of a batch of games with these hashes of their moves, uint64[n, openings].

    Between deterministic players games with the same moves are one game. If chance decides a player's moves, they are
    as many, and each opening of a batch gets a number of its own: without the repeated ones the likeliest games would
    count too little.
    """
    if not any(getattr(player, "by_chance", False) for player in (a, b)):
        return moves
    numbers = np.arange(moves.shape[1], dtype=np.uint64) + np.uint64(batch * moves.shape[1])
    return np.broadcast_to(numbers, moves.shape)


def once(played: Games) -> Games:
    """The match without repeated games: openings whose games have the codes of those of an earlier opening."""
    first = np.sort(np.unique(played.code, axis=1, return_index=True)[1])
    return Games(*(x[..., first] for x in played))


def evidence(played: Games) -> np.ndarray:
    """A's mean score in the games from each opening, float[M], without repeated games."""
    return once(played).score.mean(0)


def result(a: Named, b: Named, played: Games) -> Result:
    """Counts and intervals. The independent unit is the set of games from one opening, whose results correlate."""
    counted = once(played)
    score, n = counted.score, len(counted.score)
    low, high = score_interval(score.mean(0), n)
    return Result(
        players=n,
        a=a.name,
        b=b.name,
        games=score.size,
        wins=int((score == 1).sum()),
        draws=int(((score > 0) & (score < 1)).sum()),
        losses=int((score == 0).sum()),
        repeated=played.score.size - score.size,
        openings=len(np.unique(counted.opening)),
        mean_plies=float(counted.plies.mean()),
        score=float(score.mean()),
        score_interval=(low, high),
        elo=elo(float(score.mean()), n),
        elo_interval=(elo(low, n), elo(high, n)),
    )


def score_interval(means: np.ndarray, players: int = 2) -> tuple[float, float]:
    """95% credible interval of the score. `means` float[openings] are A's mean scores in the n games from each opening,
    where n is the number of players. One to n winners share a game.

    The posterior over the frequencies of these values is Dirichlet. Its prior is one opening, spread evenly over the
    values, so the interval keeps a width when all openings ended alike.
    """
    steps = players * math.lcm(*range(1, players + 1))  # every mean is a multiple of 1 / steps
    values = np.arange(steps + 1) / steps
    counts = np.bincount(np.rint(means * steps).astype(int), minlength=len(values))
    means = np.random.default_rng(0).dirichlet(counts + 1 / len(values), RESAMPLES) @ values
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def elo(score: float, players: int = 2) -> float | None:
    """Elo difference at which one seat scores that share of the points against equal opponents; None at 0 and 1.

    Each player wins with a probability proportional to 10**(Elo / 400), for any number of players (Luce 1959,
    "Individual choice behavior"). For two players this is Elo's formula."""
    return float(400 * np.log10(score / (1 - score) * (players - 1))) if 0 < score < 1 else None


def equivalent_score(share: float, players: int) -> float:
    """The share of the points among `players` players that means the same Elo difference as `share` between two. Shares
    of 0 and 1 stay."""
    return share / (share + (players - 1) * (1 - share))


def opening_plies_of(game: Game, games: int, asked: int | None) -> int:
    """Random moves of the openings of a match; raises ValueError for a match that cannot be played."""
    check_match(game, games, asked)
    return openings.enough_plies(game, games // game.num_players) if asked is None else asked


def play_match(
    game: Game, a: Player, b: Player, games: int, *, opening_plies: int | None = None, seed: int = 0, fair: bool = True
) -> Result:
    """Plays a match and gives its result from the side of `a`.

    Args:
        game: rules.
        a: one player, see `players.make_player`.
        b: the other player; with more than two seats they have all the others.
        games: how many, a multiple of the number of seats: every opening is played from all of them.
        opening_plies: random moves of an opening; by default enough for every opening of the match to differ.
        seed: of openings and players.
        fair: leave out openings that are decided already.

    Raises:
        ValueError: a number of games or plies that cannot be played, or a player who chooses an illegal move.
    """
    plies = opening_plies_of(game, games, opening_plies)
    return result(a, b, play_games(game, a, b, games=games, opening_plies=plies, seed=seed, fair=fair))
