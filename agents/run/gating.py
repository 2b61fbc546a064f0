"""Matches during a run: the network as it is against the one it last met, for a rating and for gating."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from agents.arena import match, openings
from agents.config import Config
from agents.players.players import Player, make_act
from agents.runtime import mesh, processes
from agents.training.iteration import Run
from envs.game import Game


@dataclasses.dataclass(frozen=True)
class Rating:
    """What a run knows of its strength."""

    elo: float = 0.0  # of the newest network that has played, the one that the run began with having 0
    score: float | None = None  # its share of the points of its last match
    updates: int = 0  # of the network when it last played
    taken: int = 0  # matches after which it took the place of the one it met


Match = Callable[[Run, Rating], tuple[Run, Rating]]


class BrokenOff(Exception):
    """A match that nobody waits for any more."""


def check_rating(game: Game, config: Config) -> None:
    """Raises ValueError for matches that could not be played."""
    if config.rating_games:
        match.check_match(game, config.rating_games, None, "--rating_games")


def make_rating(game: Game, config: Config, asked: Callable[[], bool]) -> Match:
    """`rate(run, rating) -> (run, rating)` plays `rating_games` games between `ema_weights` and `reference_weights`.

    The newest weights become the reference, with gating only when they have `gate_share` of the points, or of the
    decided games (`gate_decided`), one at least. A match won by one side throughout counts as if half a game more had
    gone the other way, so that ratings stay finite.

    Once `asked()` to stop, in whichever process, the match is broken off and is still due: run and rating stay as they
    were, so that whoever goes on plays the same match from its beginning.
    """

    def hear(points: np.ndarray) -> None:
        del points
        if asked():
            raise BrokenOff

    act = make_act(game, config, 0 if config.recipe == "value_generations" else config.num_simulations)
    newest, reference_weights = Player("newest", act), Player("rival", act)
    players, share = game.num_players, match.equivalent_score(config.gate_share, game.num_players)
    pairs = config.rating_games // players
    play = match.make_match(game, newest, reference_weights, pairs, openings.enough_plies(game, pairs), False, hear)

    def rate(run: Run, rating: Rating) -> tuple[Run, Rating]:
        key = jax.random.fold_in(jax.random.wrap_key_data(run.key), mesh.SHARED)  # never the number of an iteration
        key = jax.random.fold_in(key, int(run.iteration))
        # Every process plays the whole match by itself, and the first one's result counts.
        try:
            scores = next(play(*processes.local((run.learning.ema_weights, run.reference_weights, key)))).score
            score, won, lost = scores.mean(), (scores == 1).sum(), (scores == 0).sum()
        except BrokenOff:
            score = won = lost = math.nan
        told = processes.allgather(float(score), float(won), float(lost))
        if np.isnan(told).any():
            return run, rating
        score, won, lost = told[0].tolist()
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
    """Whether it is time for a match."""
    learned = (int(run.learning.updates) - rating.updates) * config.batch_size
    return config.rating_games > 0 and learned >= config.rating_positions


def copied(tree: Any) -> Any:
    """Other arrays with the same numbers: two names for one could not both be given back to a compiled program."""
    return jax.tree.map(lambda x: x.copy(), tree)
