"""A game to check: its compiled functions, its random games and a sample of their positions."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.game import Game

LANES = 64  # random games
SAMPLE = 48  # positions to examine closely
BYTES = 2**30  # for the positions after every action; a game that needs more memory gets a smaller sample
STEPS = 50_000  # about as many positions after every action; a game with more actions gets a smaller sample
MOST_OBSERVED = 1000  # positions of `Bench.unfinished`
AFTER = 3  # plies after the longest possible game


class Ply(NamedTuple):
    """Numpy arrays with leading axes [ply, lane]; finished games repeat their last position."""

    state: Any
    action: Any
    legal: Any
    over: Any
    player: Any
    rewards: Any


class Facts(NamedTuple):
    """Every output of a game for one position and one action."""

    step: Any
    mask: Any
    over: Any
    player: Any
    rewards: Any
    observe: Any
    recalled: Any  # observe(observation_state(s))
    evaluate: Any


class Bench:
    """A game with its compiled functions, its random games and a sample of their positions."""

    def __init__(self, game: Game):
        self.game = game
        size = game.num_actions
        outside = [-1, -2, -size, -size - 1, size, size + 7, 2**31 - 1, -(2**31)]
        self.codes = np.array([*range(size), *outside], np.int32)
        position = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(jax.eval_shape(game.init)))
        most = min(BYTES // (2 * position), STEPS) // len(self.codes)
        self.looked_at = int(np.clip(most, 8, SAMPLE))
        self.facts_of_one = jax.jit(self.facts)
        self.facts_of_many = jax.jit(jax.vmap(self.facts))
        self.after = jax.jit(lambda states: jax.lax.map(self.after_every_code, states))

    @functools.cached_property
    def plies(self) -> Ply:
        lanes = jax.jit(jax.vmap(self.play))
        played: Ply = jax.device_get(lanes(jax.random.split(jax.random.key(0), LANES)))
        return jax.tree.map(lambda x: np.swapaxes(x, 0, 1), played)

    def play(self, key) -> Ply:
        game = self.game

        def ply(s, key):
            legal = game.mask(s)
            action = jax.random.categorical(key, jnp.where(legal, 0.0, -jnp.inf)).astype(jnp.int32)
            return game.step(s, action), Ply(s, action, legal, game.over(s), game.player(s), game.rewards(s))

        return jax.lax.scan(ply, game.init(), jax.random.split(key, game.max_plies + AFTER))[1]

    def facts(self, s, action) -> Facts:
        game = self.game
        value = jnp.float32(0) if game.hints.evaluate is None else game.hints.evaluate(s)
        recalled = game.observe(game.observation_state(s))
        return Facts(
            game.step(s, action),
            game.mask(s),
            game.over(s),
            game.player(s),
            game.rewards(s),
            game.observe(s),
            recalled,
            value,
        )

    def after_every_code(self, s):
        """(step, move, over, rewards): `move` for all codes in range, the others also for codes out of range."""
        game = self.game
        stepped = jax.vmap(game.step, (None, 0))(s, self.codes)
        moved = jax.vmap(game.move, (None, 0))(s, jnp.arange(game.num_actions))
        return stepped, moved, jax.vmap(game.over)(stepped), jax.vmap(game.rewards)(stepped)

    @functools.cached_property
    def picked(self):
        """Positions of every stage, including the first and a finished one, each with the action taken there."""
        plies, lanes = self.plies.over.shape
        last = int((~self.plies.over).sum(0).max())
        ply = np.linspace(0, min(last + 1, plies - 1), self.looked_at).astype(int)
        lane = np.arange(self.looked_at) % lanes
        return jax.tree.map(lambda x: x[ply, lane], (self.plies.state, self.plies.action))

    @functools.cached_property
    def unfinished(self) -> Ply:
        """Positions in which a game goes on, evenly over all plies: arrays [M, ...]. `rewards` are those at the end."""
        going = np.argwhere(~self.plies.over)
        ply, lane = going[np.linspace(0, len(going) - 1, MOST_OBSERVED).astype(int)].T
        played: Ply = jax.tree.map(lambda x: x[ply, lane], self.plies)
        return played._replace(rewards=self.plies.rewards[-1, lane])

    @property
    def sample(self):
        return self.picked[0]

    @property
    def actions(self):
        return self.picked[1]

    @functools.cached_property
    def after_sample(self):
        """`after_every_code` of each position of the sample."""
        return jax.device_get(self.after(self.sample))

    def position(self, ply: int, lane: int = 0):
        return jax.tree.map(lambda x: jnp.asarray(x[ply, lane]), self.plies.state)
