"""Lessons say the same as tables of perfect play."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from agents.solvers import proof_number, retrograde
from agents.training import proof_targets
from envs import saved


@pytest.mark.parametrize(
    ("spec", "opening"),
    [
        ("tictactoe", ["a3", "b3"]),
        ("foq_single:rows=4,cols=4", []),
        ("foq:rows=4,cols=4", []),
        ("connect_four:rows=4,cols=4,connect=3", ["1"]),
    ],
)
def test_lessons_agree_with_perfect_play(spec, opening):
    """Every position, for both movers: its value, and what is said of each of its moves."""
    game = envs.make(spec)
    state = saved.replay(game, game.init(), opening)[0][-1]
    graph = jax.jit(proof_number.make_claim_prover(game, 4096))(state, jnp.float32(1))
    assert proof_number.is_decided(graph.numbers)[0]
    pick = jax.jit(proof_targets.pick, static_argnums=(0, 4))
    memory, actions, right, value, there = pick(game, graph, game.player(state), jax.random.key(0), 300)
    table, rows = retrograde.solve(game), np.flatnonzero(there)
    places = retrograde.index_in_table(table, jax.tree.map(lambda x: x[rows], memory))
    assert (table.values[places] == np.asarray(value)[rows]).all()
    assert {-1, 1} == set(np.asarray(value)[rows].tolist())
    movers = jax.vmap(game.player)(memory)
    assert set(np.asarray(movers)[rows].tolist()) == {0, 1}
    of_view = np.argsort(game.to_mover_frame, axis=1) if game.to_mover_frame is not None else None
    said = {True: 0, False: 0}
    for row, place in zip(rows, places, strict=True):
        for code, good in zip(np.asarray(actions[row]), np.asarray(right[row]), strict=True):
            if code < 0:
                assert not good
                continue
            action = code if of_view is None else of_view[int(movers[row]), code]
            keeps = bool(table.best[place, action]) and int(table.values[place]) == 1
            assert bool(good) == keeps
            said[bool(good)] += 1
    assert min(said.values()) > 10
