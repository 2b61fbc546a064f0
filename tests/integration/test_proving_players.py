"""A player of random moves with proofs before it wins what is won."""

from __future__ import annotations

import random

import numpy as np
import pytest

import envs
from agents.players.stateful import make_mover


@pytest.mark.parametrize("otherwise", ["random", pytest.param("uct:8", marks=pytest.mark.nightly)])
def test_who_proves_first_wins_what_is_won(otherwise):
    """On 4 x 4 the second of two queens wins (rules of the game, table of solved boards): so does a player of random
    moves with proofs, whatever the first one does. Where all is lost the other player's move is made."""
    game, rng = envs.make("foq:rows=4,cols=4"), random.Random(otherwise)
    mover = make_mover(f"prove:1024,{otherwise}", game, 8, 20.0)
    for _ in range(10):
        state, actions = game.init(), []
        while not game.over(state):
            legal = np.flatnonzero(game.mask(state)).tolist()
            action = mover(game.init(), actions, state) if game.player(state) == 1 else rng.choice(legal)
            assert action in legal
            state, actions = game.step(state, action), [*actions, action]
        assert game.rewards(state)[1] == 1
    assert game.mask(game.init())[mover(game.init(), [], game.init())]
