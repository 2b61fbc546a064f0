"""Counts the different openings that a match gets."""

from collections.abc import Iterable

import jax
import numpy as np

import envs
from agents.arena import openings


def different(opening: openings.Openings) -> int:
    return len(np.unique(openings.wide(opening.code)))


def enough_different(name: str, seeds: Iterable[int], pairs: int = 8) -> None:
    """As many different openings as pairs, or as the game has: all of these are among a thousand."""
    game = envs.make(name)
    plies = openings.enough_plies(game, pairs)
    plain, _ = jax.jit(lambda key: openings.sample_openings(game, key, 1000, plies))(jax.random.key(0))
    going = ~np.asarray(jax.vmap(game.over)(plain))
    most = min(pairs, len(np.unique(openings.wide(openings.canonical_hash(game, plain))[going])))
    draw = openings.make_openings(game, pairs, plies, True)
    found = [different(next(draw(jax.random.key(seed)))) for seed in seeds]
    assert min(found) >= most, found
