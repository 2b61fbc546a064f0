"""Proofs of whole boards and of recorded positions of Flight of Queen."""

import gzip
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from solved_boards import kept, solves

import envs
from agents.arena import solved_positions
from agents.players import players
from agents.solvers.solve import make_solver

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
MANY = 1 << 16
# Section 8 of the rules, solved by another program: all winning first moves
SOLVED = [
    ("foq:rows=3,cols=3", {1, 3}),
    ("foq:rows=4,cols=4", set()),
    pytest.param("foq:rows=5,cols=6", {2, 6, 12}, marks=pytest.mark.nightly),
    ("foq_single:rows=3,cols=3", {2, 6, 8}),
    ("foq_single:rows=4,cols=6", {5}),
]


@pytest.mark.parametrize(("spec", "winning"), SOLVED)
def test_boards_of_flight_of_queen(spec, winning):
    solves(spec, winning)


@pytest.mark.parametrize(("variant", "file"), [("foq", "foq_solved"), ("foq_single", "foq_variants_solved")])
def test_positions_of_flight_of_queen(variant, file):
    """The four with the fewest free squares on the full board."""
    game = envs.make(variant)
    lines = map(json.loads, gzip.decompress((GOLDEN / f"{file}.jsonl.gz").read_bytes()).decode().splitlines())
    free = lambda line: line["rows"] * line["cols"] - len(line["ripped"])
    solved = sorted((line for line in lines if line["variant"] == variant), key=free)[:4]
    solve = make_solver(game, 1 << 18)
    for line in solved:
        state = game.from_record({k: v for k, v in line.items() if k not in ("legal", "winning")})
        verdict = solve(state, all_moves=True)
        assert {action for action, value in verdict.moves.items() if value == 1} == set(line["winning"])
        assert verdict.value == 1


@pytest.mark.nightly
def test_a_network_changes_the_way_and_not_the_answer():
    """One that always thinks the first of all moves best and every position lost."""
    game = envs.make("foq:rows=4,cols=6")

    def evaluate(weights, key, states):
        logits = jnp.where(
            jax.vmap(game.mask)(states), -weights * jnp.arange(game.num_actions, dtype=jnp.float32), -1e9
        )
        player = jax.vmap(game.player)(states)
        return logits, jnp.where(jnp.arange(2) == player[:, None], -1.0, 1.0)

    plain = make_solver(game, MANY)(game.init(), all_moves=True)
    guided = make_solver(game, MANY, evaluate, jnp.float32(1))(game.init(), all_moves=True)
    assert guided.moves == plain.moves
    assert kept(guided) == {14}
    assert guided.positions != plain.positions


def test_a_search_that_ends_early_says_so():
    game = envs.make("foq")
    full = make_solver(game, 1024)(game.init())
    assert (full.value, set(full.moves.values())) == (None, {None})
    assert full.stopped == "stopped: all 1,024 positions are used up; give more --positions"
    assert full.positions <= 1024
    small = envs.make("tictactoe")
    exactly = make_solver(small, 516)(small.init(), seconds=20)  # at 260 positions there is just no room for more
    assert exactly.stopped == "stopped: all 516 positions are used up; give more --positions"
    late = make_solver(game, MANY)(game.init(), seconds=0)
    assert late.value is None
    assert late.stopped.startswith("stopped after ")
    assert late.stopped.endswith(" s; give more --minutes")


def test_what_is_proved_is_played():
    """Tic-tac-toe, draws included: positions from all of the game, solved elsewhere; the other moves at random."""
    game = envs.make("tictactoe")
    positions = solved_positions.read_positions(GOLDEN / "tictactoe_solved.jsonl.gz", game)
    every = lambda part: jax.tree.map(lambda x: x[::40], part)
    few = solved_positions.SolvedPositions(
        *map(every, (positions.states, positions.legal, positions.right, positions.phases))
    )
    moves = solved_positions.choose(players.make_player("prove:4096,random", game, 0), few)
    assert len(moves) > 100
    assert few.right[np.arange(len(moves)), moves].all()
