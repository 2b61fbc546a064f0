"""Matches during a run: the current network against its reference, for a rating and for gating."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from agents.arena import match, openings
from agents.config import Config, MatchOptions
from agents.players.players import make_act
from agents.players.spec import Player
from agents.runtime import mesh, processes
from agents.training.iteration import Run
from envs.game import Game


@dataclasses.dataclass(frozen=True)
class Rating:
    """Strength of a run so far."""

    elo: float = 0.0  # of the reference, relative to the initial network
    score: float | None = None  # the newest network's share of the points of the last match
    updates: int = 0  # of the newest network at the last match
    taken: int = 0  # matches after which the newest network became the reference


RatingMatch = Callable[[Run, Rating], tuple[Run, Rating]]


class BrokenOff(Exception):
    """A match was abandoned after a stop request."""


def check_rating(game: Game, config: MatchOptions) -> None:
    """Raises ValueError for matches that could not be played."""
    if config.rating_games:
        match.check_match(game, config.rating_games, None, "--rating_games")


def make_rating(game: Game, config: Config, asked: Callable[[], bool]) -> RatingMatch:
    """`rate(run, rating) -> (run, rating)` plays `rating_games` games between `ema_weights` and `reference_weights`.

    The newest weights then become the reference. With `gate` they must reach `gate_share` of the points, or with
    `gate_decided` of the decided games, of which there must be one. A one-sided match counts as if half a game more had
    gone the other way, so that ratings stay finite.

    Once `asked()` to stop, in any process, the match is abandoned and is still due. Run and rating stay as they were,
    so a resumed run plays the same match from its beginning.
    """

    def hear(points: np.ndarray) -> None:
        del points
        if asked():
            raise BrokenOff

    act = make_act(game, config, 0 if config.recipe == "value_generations" else config.num_simulations)
    newest, reference_weights = Player("newest", act), Player("reference", act)
    players, share = game.num_players, match.equivalent_score(config.gate_share, game.num_players)
    pairs = config.rating_games // players
    plies = openings.enough_plies(game, pairs)
    play = match.make_match(game, newest, reference_weights, pairs, plies, False, hear, config.devices)

    def rate(run: Run, rating: Rating) -> tuple[Run, Rating]:
        key = jax.random.fold_in(jax.random.wrap_key_data(run.key), mesh.SHARED)  # never the number of an iteration
        key = jax.random.fold_in(key, int(run.iteration))
        # Every process plays the whole match, and the result of the first process counts.
        try:
            scores = next(play(*processes.local((run.learning.ema_weights, run.reference_weights, key)))).score
            score, won, lost = scores.mean(), (scores == 1).sum(), (scores == 0).sum()
        except BrokenOff:
            score = won = lost = math.nan
        gathered = processes.allgather(float(score), float(won), float(lost))
        if np.isnan(gathered).any():
            return run, rating
        score, won, lost = gathered[0].tolist()
        decided = won / (won + lost) if won + lost else 0.0
        taken = not config.gate or (decided if config.gate_decided else score) >= share
        margin = 0.5 / config.rating_games
        gained = match.elo(min(max(score, margin), 1 - margin), players) or 0.0
        if taken:
            run = run._replace(reference_weights=copied(run.learning.ema_weights))
        elo = rating.elo + gained if taken else rating.elo
        return run, Rating(elo, score, int(run.learning.updates), rating.taken + taken)

    return rate


def due(config: Config, run: Run, rating: Rating) -> bool:
    """Whether a match is due."""
    learned = (int(run.learning.updates) - rating.updates) * config.batch_size
    return config.rating_games > 0 and learned >= config.rating_positions


def copied(tree: Any) -> Any:
    """A copy of the arrays: aliased buffers could not both be donated to a compiled program."""
    return jax.tree.map(lambda x: x.copy(), tree)
