"""Thought about one game, move by move, as in the terminal, through GTP and in matches by the clock."""

from __future__ import annotations

import random

import numpy as np
import pytest

import envs
from agents.players.stateful import TreePlayer, even_step, make_mover


@pytest.mark.parametrize(("simulations", "most", "step"), [(16, 50, 16), (120, 50, 40), (100, 32, 25), (None, 32, 32)])
def test_steps_that_make_up_what_is_asked(simulations, most, step):
    assert even_step(simulations, most) == step
    assert simulations is None or simulations % step == 0


def test_a_prime_number_is_missed_by_a_few():
    assert even_step(97, 50) == 48


@pytest.mark.parametrize(("spec", "simulations"), [("uct", 16), ("uct", 120), ("models/tictactoe", 8)])
def test_as_many_simulations_are_made_as_are_asked_for(spec, simulations):
    game = envs.make("tictactoe")
    mind = TreePlayer(spec, game, simulations)
    mind.place(game.init(), [], game.init())
    assert mind.think(60.0, simulations) == simulations
    assert sum(move["visits"] for move in mind.report(9)["moves"]) == simulations


@pytest.mark.parametrize("otherwise", ["random", "uct:8"])
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
