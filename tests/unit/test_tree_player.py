"""Thought about one game, move by move, as in the terminal, through GTP and in matches by the clock."""

from __future__ import annotations

import dataclasses
import functools
import time

import pytest

import envs
from agents.players.budget import even_step
from agents.players.spec import parse_player
from agents.players.stateful import TreePlayer


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


def test_the_clock_counts_all_steps_but_the_one_that_compiles(monkeypatch):
    """Steps of 1 s: of 1.5 s the first search uses the time after its first step, a later one the whole."""
    game, now = envs.make("tictactoe"), [0.0]
    tree_player = TreePlayer(parse_player("uct:8"), game)
    real = tree_player.analyst.run_simulations

    def slow(*arguments):
        now[0] += 1.0
        return real(*arguments)

    tree_player.analyst = dataclasses.replace(tree_player.analyst, run_simulations=slow)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    for simulations in (16, 8, 8):
        tree_player.place(game.init(), [], game.init())
        assert tree_player.think(seconds=1.5) == simulations


def test_a_win_that_is_left_out_counts_for_nothing():
    """Connect Four: both players have three in a row at the bottom and above it, which column 4 completes for X."""
    game = envs.make("connect_four")
    tree_player = TreePlayer(parse_player("models/connect_four@32"), game)
    state = functools.reduce(game.move, [0, 0, 1, 1, 2, 2], game.init())
    tree_player.place(state, [], state)
    tree_player.think(60.0, 32)
    assert tree_player.best() == (3, 1.0)
    tree_player.place(state, [], state, frozenset(range(7)) - {3})
    tree_player.think(60.0, 32)
    move, value = tree_player.best()
    assert move != 3
    assert value < 0.5
