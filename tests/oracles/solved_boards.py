"""Boards whose winning first moves another program has found: the proof search must find the same."""

import numpy as np

import envs
from agents.solvers.solve import make_solver


def kept(verdict):
    """The moves that keep the value of a position, which all moves must be known for."""
    assert None not in verdict.moves.values()
    assert verdict.value == max(verdict.moves.values())
    return {action for action, value in verdict.moves.items() if value == verdict.value}


def solves(spec, winning):
    game = envs.make(spec)
    verdict = make_solver(game, 1 << 20)(game.init(), all_moves=True)
    assert verdict.value == (1 if winning else -1)
    assert kept(verdict) == (winning or set(np.flatnonzero(game.mask(game.init())).tolist()))
