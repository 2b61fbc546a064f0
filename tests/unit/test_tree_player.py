"""Thought about one game, move by move, as in the terminal, through GTP and in matches by the clock."""

from __future__ import annotations

import pytest

import envs
from agents.players.spec import parse_player
from agents.players.stateful import TreePlayer, even_step


@pytest.mark.parametrize(("simulations", "most", "step"), [(16, 50, 16), (120, 50, 40), (100, 32, 25), (None, 32, 32)])
def test_steps_that_make_up_what_is_asked(simulations, most, step):
    assert even_step(simulations, most) == step
    assert simulations is None or simulations % step == 0


def test_a_prime_number_is_missed_by_a_few():
    assert even_step(97, 50) == 48


@pytest.mark.parametrize(("spec", "simulations"), [("uct:16", 16), ("uct:120", 120), ("models/tictactoe@8", 8)])
def test_as_many_simulations_are_made_as_are_asked_for(spec, simulations):
    game = envs.make("tictactoe")
    tree_player = TreePlayer(parse_player(spec), game)
    tree_player.place(game.init(), [], game.init())
    assert tree_player.think(60.0, simulations) == simulations
    assert sum(move["visits"] for move in tree_player.report(9)["moves"]) == simulations
