"""Matches in lockstep: every sampled opening is played from all seats, and results come with intervals.

In a game for n players A has one seat and B all others, so that A has 1/n of the points where both are equally strong.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as Spec

from agents import exact, mesh
from agents.players import Player, make_uct
from agents.selfplay import random_action
from envs.game import Array, Game

CONFIDENCE = 0.95
RESAMPLES = 20_000
MOST_OPENING_PLIES = 10
BATCH_PAIRS = 50  # openings between two looks at whether a match is decided
LOOK_SECONDS = 0.5  # between two looks at how far the games are, and so until Ctrl-C is heard
IN_VAIN = 3  # rounds in a row that bring hardly any other opening, after which a game is taken to have no more


class Named(Protocol):
    """Whoever plays, of ours or not."""

    @property
    def name(self) -> str: ...


class Games(NamedTuple):
    """Finished games of one match for n players, on the host; the games of opening i are at [:, i]."""

    score: np.ndarray  # float[n, openings] for player A: 1 won, 0.5 drawn, 0 lost
    plies: np.ndarray  # int[n, openings]
    code: np.ndarray  # uint64[n, openings], tells games apart
    opening: np.ndarray  # uint64[openings], tells openings apart


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
    distinct: int  # different games, those from openings that are the same in a mirror counted as from one
    openings: int  # different openings
    mean_plies: float
    score: float  # share of the points
    score_interval: tuple[float, float]
    elo: float | None  # by how much A is stronger than each of the others, see `elo`; None where the score is 0 or 1
    elo_interval: tuple[float | None, float | None]


Tell = Callable[[np.ndarray], None]
"""Hears of a match as it goes on: A's points in the games that are over, float[any], in no order."""


def nobody(points: np.ndarray) -> None:
    """Where no one wants to hear."""


class Openings(NamedTuple):
    """Where games begin."""

    states: Any  # [M, ...]
    moves: Array  # int32[M, plies], the random moves that lead there, -1 once a game is over
    code: Array  # uint32[M, 2], see `kind`
    fault: Array  # int8[M]: 2 where the game is over, 1 where it is decided, see `one_sided`, if that was looked at


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
    if game.essence is not None:
        states = jax.vmap(game.essence)(states)
    planes = jax.vmap(game.observe)(states)
    bits = jax.lax.bitcast_convert_type(jnp.where(planes == 0, 0.0, planes).astype(jnp.float32), jnp.uint32)
    mover = jax.vmap(game.player)(states)
    codes = jnp.stack([exact.code_of((jax.vmap(turn.planes)(bits), mover)) for turn in game.symmetries])
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


def make_openings(game: Game, count: int, plies: int, fair: bool) -> Callable[[Array], Iterator[Openings]]:
    """`draw(key)` gives `count` openings of `plies` random moves, then as many others, and so on without end: between
    players without chance the same opening is the same game, and a network sees through every symmetry. Once the game
    has no other, those that there are come again in turn.

    With `fair` openings that are decided are left out, unless there are only such: MCTS with 100 random play-outs finds
    a move that wins 95 in 100 of them, or none that loses fewer.
    """

    @jax.jit
    def look(key):
        states, moves = sample_openings(game, key, 2 * count, plies)
        fault = 2 * jax.vmap(game.over)(states)
        if fair and plies:
            edges = make_uct(game, 100)(jax.random.fold_in(key, plies), states)
            best = jnp.where(edges.visits > 0, edges.q, -1.0).max(-1)
            fault = jnp.maximum(fault, one_sided(best, game.num_players))
        return Openings(states, moves, kind(game, states), fault.astype(jnp.int8))

    def draw(key):
        known: set[int] = set()
        pools: tuple[list[Openings], ...] = [], [], []  # by fault
        good, rounds, in_vain = pools[0], 0, 0
        for given in itertools.count(0, count):
            while len(good) < given + count and in_vain < IN_VAIN:
                drawn, before = jax.device_get(look(jax.random.fold_in(key, rounds))), len(good)
                for i, code in enumerate(wide(drawn.code).tolist()):
                    if code not in known:
                        known.add(code)
                        pools[drawn.fault[i]].append(jax.tree.map(lambda x, i=i: x[i], drawn))
                rounds += 1
                in_vain = in_vain + 1 if 16 * (len(good) - before) < count else 0
            pool = next(pool for pool in pools if pool)
            yield jax.tree.map(lambda *x: np.stack(x), *(pool[i % len(pool)] for i in range(given, given + count)))

    return draw


def enough_plies(game: Game, pairs: int) -> int:
    """The fewest random moves, two or more, after which twice as many openings hold `pairs` different ones, see `kind`;
    at most `MOST_OPENING_PLIES`, nor than a third of the longest game."""
    most = max(2, min(MOST_OPENING_PLIES, game.max_plies // 3))
    ply = jax.jit(lambda key, states: random_ply(game, key, states)[0])
    codes = jax.jit(lambda states: kind(game, states))
    key = jax.random.key(0)
    states = jax.vmap(game.init)(jax.random.split(key, 2 * pairs))
    for plies in range(1, most):
        states = ply(jax.random.fold_in(key, plies), states)
        if plies >= 2 and len(np.unique(wide(codes(states)))) >= pairs:
            return plies
    return most


def extend(code: Array, action: Array) -> Array:
    """Two independent 32-bit hashes of a sequence of moves, one move longer."""
    factors = jnp.array([1000003, 2654435761], jnp.uint32)
    return (code * factors) ^ (action.astype(jnp.uint32)[:, None] + jnp.array([1, 0x9E3779B9], jnp.uint32))


class Group(NamedTuple):
    """Games that are played together."""

    states: Any  # [B, ...]
    code: Array  # uint32[B, 2], of the moves
    plies: Array  # int32[B]
    key: Array  # key[devices]


def make_group(game: Game, a: Player, b: Player, devices: Mesh):
    """`play(weights_a, weights_b, group, seat, most)`: the games `most` plies further, or to the end of all of them,
    divided among `devices`.

    `seat` int32[B] is A's seat. A player is asked only while some game waits for him: with lanes that are in step that
    halves the work. Returns the group, whether each game is over, bool[B], and A's rewards float32[B].
    """

    def play(weights_a, weights_b, group, seat, most):
        def ply(carry):
            states, code, plies, key = carry[0]
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
            group = Group(jax.vmap(game.step)(states, action), code, plies + going, key[None])
            return group, carry[1] + 1

        unfinished = lambda carry: (~jax.vmap(game.over)(carry[0].states)).any() & (carry[1] < most)
        group, _ = jax.lax.while_loop(unfinished, ply, (group, jnp.int32(0)))
        rewards = jax.vmap(game.rewards)(group.states)
        return group, jax.vmap(game.over)(group.states), jnp.take_along_axis(rewards, seat[:, None], axis=-1)[:, 0]

    divided, everywhere = Spec(mesh.GAMES), Spec()
    specs = (everywhere, everywhere, divided, divided, everywhere)
    return jax.shard_map(play, mesh=devices, in_specs=specs, out_specs=divided, check_vma=False)


def to_the_end(play: Callable[..., Any], group: Group, tell: Callable[[Array, Array], None]) -> tuple[Group, Array]:
    """Plays a group until all games are over, some plies at a time: `play(group, most)` goes on for that many, and
    `tell` hears which games are over and of A's rewards. Gives the group and these rewards."""
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
    tell: Tell = nobody,
) -> Games:
    """Plays `games` games, a multiple of the players, on as many devices as divide the openings; every one is played
    from all seats. With `fair` openings that are decided are left out, see `make_openings`. `tell` hears of the games
    that are over, once a ply or every half second, and what it raises ends the match.

    With `stop` they are played in batches, and after each of them `stop(evidence so far)` may end the match, which also
    ends where a batch brings no other games than those before it.
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


def make_match(game: Game, a: Player, b: Player, pairs: int, opening_plies: int, fair: bool, tell: Tell = nobody):
    """`match(weights_a, weights_b, key)` gives the games of `pairs` openings, then those of others and so on, compiled
    once, for any weights of the two players; `tell` as for `play_match`."""
    devices = mesh.make_mesh(pairs, pairs)
    draw = make_openings(game, pairs, opening_plies, fair)
    play = jax.jit(make_group(game, a, b, devices))
    everywhere, divided = jax.NamedSharding(devices, Spec()), jax.NamedSharding(devices, Spec(mesh.GAMES))
    n = game.num_players
    # Of all players together 1; rounded, since these are thirds of three.
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
                group = Group(opening.states, opening.code, plies, keys)
                group, seat = jax.device_put((group, (mover + turn) % n), divided)
                further = lambda group, most, seat=seat: play(*weights, group, seat, most)
                group, rewards = to_the_end(further, group, hear)
                earlier.append(points(rewards))
                # The same moves with the seats exchanged are another game.
                done.append((earlier[-1], np.asarray(group.plies), wide(group.code) ^ np.uint64(turn)))
            score, length, code = (np.stack(x) for x in zip(*done, strict=True))
            yield Games(score, length, code, wide(opening.code))

    return match


def evidence(played: Games) -> np.ndarray:
    """A's mean score in the games from each opening, float[M], without those that are move by move games counted
    already: between players without chance an opening that comes again tells nothing new."""
    first = np.unique(played.code, axis=1, return_index=True)[1]
    return played.score.mean(0)[np.sort(first)]


def result(a: Named, b: Named, played: Games) -> Result:
    """Counts and intervals. The unit of chance is the games from one opening: their results hang together."""
    score, n = played.score, len(played.score)
    low, high = score_interval(evidence(played), n)
    return Result(
        players=n,
        a=a.name,
        b=b.name,
        games=score.size,
        wins=int((score == 1).sum()),
        draws=int(((score > 0) & (score < 1)).sum()),
        losses=int((score == 0).sum()),
        distinct=len(np.unique(played.code)),
        openings=len(np.unique(played.opening)),
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
