"""Analysis of one position: budgets, reports, lines of play."""

import dataclasses
import json
import time
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from toys import blank_network

import envs
from agents.actions import ILLEGAL
from agents.config import Config
from agents.players.analysis import advance_trees, analyse, analyse_position, line, make_analyst, report, root_summary
from agents.runtime import mesh
from agents.search.tree import ROOT
from agents.storage.weights import load_network

CONFIG = Config(num_simulations=32, max_num_considered_actions=16)
KINDS = ["gumbel", "puct"]


def tictactoe(picture: str):
    cells = [{"X": 1, "O": -1, ".": 0}[c] for c in picture.replace(" ", "")]
    return envs.make("tictactoe").from_record({"board": cells, "to_move": 1 if sum(cells) == 0 else -1})


def test_a_move_that_nobody_tried_is_planted_anew():
    game = envs.make("tictactoe")
    analyst = make_analyst(
        game, blank_network(9), dataclasses.replace(CONFIG, num_simulations=4), max_nodes=50, copies=2
    )
    trees = analyst.run_simulations({}, jax.random.key(0), analyst.begin({}, jax.random.key(1), game.init()))
    untried = int(np.flatnonzero(np.asarray(trees.edge_visits[:, ROOT]).sum(0) == 0)[0])
    after = advance_trees(analyst, {}, jax.random.key(2), trees, untried)
    assert after.size.tolist() == [1, 1]
    np.testing.assert_array_equal(after.states.board[0, ROOT], game.step(game.init(), untried).board)


def test_budgets():
    game = envs.make("tictactoe")
    analyst = make_analyst(game, blank_network(9), CONFIG, max_nodes=10_000)
    begin = lambda: analyst.begin({}, jax.random.key(1), game.init())
    run = lambda **budget: analyse(analyst, {}, jax.random.key(0), begin(), **budget)
    assert int(run(simulations=100).visits[0, ROOT]) == 1 + 96  # whole steps of 32
    assert int(run(simulations=1).visits[0, ROOT]) == 1 + 32  # one at least
    started = time.monotonic()
    long = run(seconds=0.5)
    assert 0.05 < time.monotonic() - started < 3
    assert int(long.visits[0, ROOT]) > 1 + 32
    small = make_analyst(game, blank_network(9), CONFIG, max_nodes=70)
    full = analyse(small, {}, jax.random.key(0), small.begin({}, jax.random.key(1), game.init()), seconds=60)
    assert int(full.size[0]) <= 70
    for bad in ({}, {"seconds": 0.0}, {"simulations": -1}):
        with pytest.raises(ValueError, match="analyse"):
            run(**bad)


def test_an_analysis_of_one_position_makes_as_many_simulations_as_asked():
    trained = load_network("models/tictactoe")
    for asked, made in ((1, 1), (10, 10), (97, 96)):  # the last in four steps of 24
        assert analyse_position(trained, trained.game.init(), simulations=asked)["simulations"] == made
    by_mctx = dataclasses.replace(trained, config=dataclasses.replace(trained.config, search_loop="mctx"))
    assert analyse_position(by_mctx, trained.game.init(), simulations=10)["simulations"] == 10
    for bad in ({}, {"simulations": 0}, {"simulations": -1}, {"seconds": 0.0}):
        with pytest.raises(ValueError, match="analyse"):
            analyse_position(trained, trained.game.init(), **bad)


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_names_wins_draws_and_losses(kind):
    game = envs.make("tictactoe")
    analyst = make_analyst(game, blank_network(9), dataclasses.replace(CONFIG, search=kind), max_nodes=2000, copies=2)
    said = {}
    for picture in ("XX. OO. ...", "XXO OOX X..", "X.O ... X.O"):
        trees = analyst.begin({}, jax.random.key(1), tictactoe(picture))
        said[picture] = report(analyst, analyse(analyst, {}, jax.random.key(0), trees, simulations=320), most=3)
    win = said["XX. OO. ..."]
    assert (win["proven"], win["value"], win["simulations"]) == ("win", 1.0, 640)
    assert win["moves"][0]["action"] == game.action_name(2)
    assert win["moves"][0]["proven"] == "win"
    assert win["moves"][0]["line"] == [game.action_name(2)]
    draw = said["XXO OOX X.."]
    assert (draw["proven"], draw["value"], len(draw["moves"])) == ("draw", 0.0, 2)
    assert [len(move["line"]) for move in draw["moves"]] == [2, 2]
    block = said["X.O ... X.O"]
    assert block["moves"][0]["action"] == game.action_name(3)  # wins, where all else loses to cell 5
    assert block["proven"] == "win"
    assert json.loads(json.dumps(said)) == said
    trees = analyst.begin({}, jax.random.key(1), tictactoe("X.X .O. X.O"))
    lost = report(analyst, analyse(analyst, {}, jax.random.key(0), trees, simulations=640))
    assert (lost["proven"], lost["value"]) == ("loss", -1.0)
    assert [move["proven"] for move in lost["moves"]] == ["loss"] * 4
    assert sum(move["prior"] for move in lost["moves"]) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("values", "visits", "searched", "first", "value"),
    [
        ((0.3, 0.4), (50, 60), 0.35, "b3", 0.35),  # more than the draw that is sure
        ((0.3, -0.1), (50, 60), -0.05, "a3", 0.0),  # less
        ((0.3, 0.4), (60, 50), 0.3, "a3", 0.3),  # hardly looked at
    ],
)
def test_a_sure_draw_is_not_taken_for_a_better_chance(values, visits, searched, first, value):
    """Of three moves the first is a proven draw and the third a proven loss, whatever their mean values were."""
    edges = lambda *three, rest=0.0: np.array([[[*three, *[rest] * 6]]], np.float32)
    tree = SimpleNamespace(
        logits=edges(0, 0, 0, rest=ILLEGAL), edge_visits=edges(*visits, 70), edge_values=edges(*values, 0.5),
        lower_bound=edges(0, -1, -1, rest=-1), upper_bound=edges(0, 1, -1, rest=-1),
        child=edges(-1, -1, -1).astype(int),
        mover=np.zeros((1, 1), int), visits=np.full((1, 1), 181), values=np.zeros((1, 1, 2)),
    )  # fmt: skip
    searched = np.array([[searched, -searched]])
    said = root_summary(envs.make("tictactoe"), tree, edges(0, 0, 0)[:, 0], searched, np.arange(9)[None], most=9)
    assert [move["action"] for move in said["moves"]] == [first, {"a3": "b3", "b3": "a3"}[first], "c3"]
    assert (said["value"], said["proven"]) == (value, None)
    assert [move["proven"] for move in said["moves"] if move["action"] in ("a3", "c3")] == ["draw", "loss"]


def test_a_proof_needs_no_visits():
    """Of three moves the most visited one and one of the others are open; the third is a proven loss."""
    edges = lambda *three, rest=0.0: np.array([[[*three, *[rest] * 6]]], np.float32)
    tree = SimpleNamespace(
        logits=edges(0, 0, 0, rest=ILLEGAL), edge_visits=edges(90, 1, 1), edge_values=edges(0.1, 0.1, -1),
        lower_bound=edges(-1, -1, -1), upper_bound=edges(1, 1, -1), child=edges(-1, -1, -1).astype(int),
        mover=np.zeros((1, 1), int), visits=np.full((1, 1), 93), values=np.zeros((1, 1, 2)),
    )  # fmt: skip
    said = root_summary(
        envs.make("tictactoe"), tree, edges(0.5, 0.5, 0)[:, 0], np.zeros((1, 2)), np.arange(9)[None], most=9
    )
    assert [(move["action"], move["few"]) for move in said["moves"]] == [("a3", False), ("b3", True), ("c3", False)]


@pytest.mark.parametrize(
    ("visits", "order", "few"),
    [
        ((32, 32, 8), ["a3", "b3", "c3"], set()),
        ((32, 40, 4), ["a3", "b3", "c3"], set()),  # a tenth is enough
        ((32, 41, 4), ["a3", "b3", "c3"], {"c3"}),
        ((3, 40, 8), ["b3", "c3", "a3"], {"a3"}),
    ],
)
def test_the_improved_policy_ranks_the_moves_with_enough_visits(visits, order, few):
    """b3 is worth a little more than a3, by less than its prior makes up for."""
    edges = lambda *three, rest=0.0: np.array([[[*three, *[rest] * 6]]], np.float32)
    tree = SimpleNamespace(
        logits=edges(0, -4, -4, rest=ILLEGAL), edge_visits=edges(*visits), edge_values=edges(0.010, 0.012, 0.5),
        child=edges(-1, -1, -1).astype(int), mover=np.zeros((1, 1), int), visits=np.full((1, 1), 73),
        values=np.zeros((1, 1, 2)), lower_bound=None, upper_bound=None,
    )  # fmt: skip
    said = root_summary(
        envs.make("tictactoe"), tree, edges(0.9, 0.08, 0.02)[:, 0], np.zeros((1, 2)), np.arange(9)[None], most=9
    )
    assert [move["action"] for move in said["moves"]] == order
    assert {move["action"] for move in said["moves"] if move["few"]} == few


def test_a_line_follows_what_is_proven():
    """A move that was tried more often than one that then won, and one that turned out worse than a sure draw."""
    nodes = 4
    edges = lambda *rows: np.array([rows], np.float32)
    tree = SimpleNamespace(
        child=edges([1, -1, -1], [2, 3, -1], [-1, -1, -1], [-1, -1, -1]).astype(int),
        edge_visits=edges([5, 0, 0], [3, 1, 0], [0, 0, 0], [0, 0, 0]),
        edge_values=edges([0, 0, 0], [-0.5, 0.0, 0], [0, 0, 0], [0, 0, 0]),
        lower_bound=np.full((1, nodes, 3), -1), upper_bound=np.full((1, nodes, 3), 1),
    )  # fmt: skip
    codes = np.broadcast_to(np.arange(3), (nodes, 3))
    assert line(tree, codes, 0) == [0, 0]
    for proven in (1, 0):
        tree.lower_bound[0, 1, 1] = tree.upper_bound[0, 1, 1] = proven
        assert line(tree, codes, 0) == [0, 1]
    tree.edge_values[0, 1, 0] = 0.5  # better than the draw
    assert line(tree, codes, 0) == [0, 0]


def test_a_finished_position_has_no_moves_to_report():
    game = envs.make("tictactoe")
    analyst = make_analyst(game, blank_network(9), CONFIG, max_nodes=100)
    tree = analyst.begin({}, jax.random.key(0), tictactoe("XXX OO. ..."))
    said = report(analyst, tree)
    assert (said["moves"], said["proven"], said["values"]) == ([], None, [1.0, -1.0])


def test_what_does_not_go_together_is_refused():
    game, config = envs.make("tictactoe"), dataclasses.replace(CONFIG, search_loop="mctx")
    with pytest.raises(ValueError, match="--search_loop: only 'native' keeps trees, got 'mctx'"):
        make_analyst(game, blank_network(9), config)
    with pytest.raises(ValueError, match="3 copies do not divide among 2 devices"):
        make_analyst(game, blank_network(9), CONFIG, copies=3, devices=mesh.make_mesh(2, 2))
