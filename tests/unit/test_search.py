"""Search against positions with a known answer, and against visits and values worked out by hand."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import (
    DEEP,
    KINDS,
    bandit_game,
    blank_network,
    choose,
    noisy_network,
    order_game,
    order_values,
    random_positions,
    stack,
    three_game,
    three_values,
)  # fmt: skip

import envs
from agents.actions import ILLEGAL
from agents.config import Config
from agents.network.inference import make_evaluate, where_unfinished
from agents.search import tree as tree_search
from agents.search.halving import halving_table, in_turn
from agents.search.policies import make_search
from agents.search.selection import completed_q, completed_values, final_candidates, searched_value
from agents.search.tree import Edges


def boards(*pictures):
    """Tic-tac-toe positions of drawn boards; whose turn it is follows from the stones."""
    game = envs.make("tictactoe")
    cells = [[" XO".index(c) for row in p.split() for c in row.replace(".", " ")] for p in pictures]
    signs = [[(0, 1, -1)[c] for c in p] for p in cells]
    return stack([game.from_record({"board": b, "to_move": 1 if sum(b) == 0 else -1}) for b in signs])


@pytest.mark.parametrize("kind", KINDS)
def test_wins_in_one_for_both_sides(kind):
    states = boards("XX. OO. ...", "XX. OO. X..", "X.. OX. O..", "XOX XO. ...")
    found = choose(envs.make("tictactoe"), blank_network(9), dataclasses.replace(DEEP, search=kind), states)
    assert found.action.tolist() == [2, 5, 8, 7]
    assert (found.value > 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_prevents_an_avoidable_loss_for_both_sides(kind):
    states = boards("OO. X.. ..X", "XX. O.. ...", ".O. .OX X..")
    found = choose(envs.make("tictactoe"), blank_network(9), dataclasses.replace(DEEP, search=kind), states)
    assert found.action.tolist() == [2, 2, 7]


LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


def immediate_wins(board, mover):
    """Cells with which `mover` completes a line."""
    return {c for line in LINES for c in line if board[c] == 0 and sum(board[i] for i in line) == 2 * mover}


def wins_in_two_by(board, mover):
    """Cells after which the other side has no win at once, and every reply of his leaves `mover` one."""

    def put(cells, cell, stone):
        return [*cells[:cell], stone, *cells[cell + 1 :]]

    def forces(cell):
        after = put(board, cell, mover)
        replies = [r for r in range(9) if after[r] == 0]
        return replies and not immediate_wins(after, -mover) and all(
            immediate_wins(put(after, r, -mover), mover) for r in replies
        )  # fmt: skip

    return {c for c in range(9) if board[c] == 0 and forces(c)}


@pytest.fixture(scope="module")
def forced_wins(golden):
    """Positions that are won in two moves and not in one, both sides; and every move that keeps the win."""
    lines = [p for p in golden("tictactoe_solved.jsonl.gz") if p["value"] == 1 and not p["terminal"]]
    lines = [p for p in lines if not immediate_wins(p["board"], p["to_move"])]
    lines = [p for p in lines if wins_in_two_by(p["board"], p["to_move"])]
    assert len(lines) > 100
    right = np.zeros((len(lines), 9), bool)
    for i, p in enumerate(lines):
        right[i, p["optimal"]] = True
    game = envs.make("tictactoe")
    return stack([game.from_record({k: p[k] for k in ("board", "to_move")}) for p in lines]), right


def share_of_wins(kind, positions) -> float:
    states, best = positions
    assert {0, 1} == set(np.asarray(states.to_move).tolist())
    found = choose(envs.make("tictactoe"), blank_network(9), dataclasses.replace(DEEP, search=kind), states)
    return best[np.arange(len(best)), found.action].mean()


@pytest.mark.parametrize("kind", KINDS)
def test_wins_in_two_for_both_sides(kind, forced_wins):
    assert share_of_wins(kind, forced_wins) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_sign_would_be_seen(kind, forced_wins, monkeypatch):
    right = tree_search.for_mover
    monkeypatch.setattr(tree_search, "for_mover", lambda values, mover: right(values, 1 - mover))
    assert share_of_wins(kind, forced_wins) < 0.9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loop", ["native", "mctx"])
def test_any_order_of_turns(kind, loop):
    """Same side again, twice in a row, never: against a full enumeration of 16 endings."""
    rng = np.random.default_rng(1)
    game, count = order_game(), 128
    order, table = rng.integers(0, 2, (count, 4)), 1 - 2 * rng.integers(0, 2, (count, 16))
    states = jax.vmap(lambda o, t: game.init()._replace(order=o, table=t))(
        jnp.asarray(order, jnp.int8), jnp.asarray(table, jnp.float32)
    )
    values = np.stack([order_values(o, t) for o, t in zip(order, table, strict=True)])
    decisive = values[:, 0] != values[:, 1]
    assert decisive.sum() > 20
    again = order[:, 0] == order[:, 1]
    assert (decisive & again).any()
    assert (decisive & ~again).any()
    rescale = loop == "mctx" and kind == "puct"  # which it always does
    config = dataclasses.replace(DEEP, search=kind, search_loop=loop, num_simulations=128, rescale_values=rescale)
    found = choose(game, blank_network(3), config, states)
    assert (found.action[decisive] == values[decisive].argmax(1)).all()
    assert (np.sign(found.value) == values.max(1)).mean() > 0.8  # values are means over visits


def test_what_needs_two_players_is_refused_with_three():
    game = envs.make("foq_multi")
    for options, named in (({"search_loop": "mctx"}, "--search_loop=mctx"), ({"proofs": True}, "--proofs")):
        with pytest.raises(ValueError, match=f"{named}.*two players.*has 3"):
            make_search(game, blank_network(game.num_actions), Config(**options), explore=False)


@pytest.mark.parametrize("kind", KINDS)
def test_three_players_each_look_after_themselves(kind):
    """Against max^n by full enumeration; a player's results differ by a quarter or more."""
    rng = np.random.default_rng(0)
    game, count = three_game(), 64
    table = rng.permuted(np.tile(np.arange(8)[:, None] / 4 - 1, (count, 1, 3)), axis=1)
    states = jax.vmap(lambda t: game.init()._replace(table=t))(jnp.asarray(table, jnp.float32))
    values = np.stack([three_values(t) for t in table])  # [count, first move, player]
    gap = values[:, 0, 0] - values[:, 1, 0]
    net = dataclasses.replace(blank_network(2), apply=lambda w, x: (jnp.zeros((len(x), 2)), jnp.zeros((len(x), 3))))
    # Values are means over visits: enough of them, and little exploration, to come near the best.
    near = {"gumbel": {"gumbel_value_scale": 0.05}, "puct": {"c_puct": 0.7}}[kind]
    found = choose(game, net, dataclasses.replace(DEEP, search=kind, num_simulations=1000, **near), states)
    clear = np.abs(gap) >= 0.5
    assert clear.sum() > 40
    right = (found.action == (gap < 0))[clear]
    assert right.mean() > 0.95  # the policy of Gumbel search may settle on the first good reply that it met
    if kind == "puct":
        assert right.all()
        assert np.abs(found.values - values[np.arange(count), found.action])[clear].max() < 0.3


def test_three_queens_are_searched_and_illegal_moves_never_seen():
    game = envs.make("foq_multi:rows=5,cols=6")
    states = random_positions(game, 32, 20)
    legal = np.asarray(jax.vmap(game.mask)(states))
    going = legal.any(1)
    net = noisy_network(game.num_actions, players=3)
    found = choose(game, net, Config(num_simulations=24), states, explore=True)
    assert legal[np.arange(32), found.action][going].all()
    assert (found.visits[~legal] == 0).all()
    assert found.values.shape == (32, 3)


def test_halving_by_hand():
    """8 simulations on 4 edges: each once, then the better two twice more. On 3 of 10: two rounds of one and two."""
    table = halving_table(4, 8)
    assert table.shape == (5, 8)
    assert table[4].tolist() == [0, 0, 0, 0, 1, 1, 2, 2]
    assert table[1].tolist() == list(range(8)) == table[0].tolist()
    assert halving_table(3, 10)[3].tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3, 4]


def test_visits_of_a_dropped_move_are_no_part_of_the_schedule():
    """Five visits of the first edge, dropped since. Of the three others one has a visit: the next two are due."""
    edges = Edges(
        logits=jnp.array([[ILLEGAL, 5.0, 1.0, 0.0]]), visits=jnp.array([[5, 1, 0, 0]]),
        edge_values=jnp.array([[-1.0, 0.9, 0.0, 0.0]]), value=jnp.zeros(1), raw_value=jnp.zeros(1),
        total=jnp.array([6]), lower_bound=jnp.array([[-1, -1, -1, -1]]), upper_bound=jnp.array([[-1, 1, 1, 1]]),
    )  # fmt: skip
    nothing = jnp.zeros((1, 4), jnp.int32)
    assert in_turn(edges, edges.edge_values, 0.0 * edges.logits, nothing, jnp.asarray(halving_table(4, 16))) == 2


# O to move: b1 (cell 7) leads to a draw, c1 (cell 8) wins.
TWO_MOVES = "OXO XXO X.."


def test_gumbel_by_hand():
    """Both edges are due twice. Their values, spread over [0, 1], weigh (50 + 2) * 0.1 in the improved policy."""
    found = choose(envs.make("tictactoe"), blank_network(9), Config(num_simulations=4), boards(TWO_MOVES))
    assert found.visits[0].tolist() == [0] * 7 + [2, 2]
    assert found.qvalues[0, 7:].tolist() == [0, 1]
    assert found.policy[0, 8] == pytest.approx(1 / (1 + np.exp(-5.2)), abs=1e-6)
    # The win is worth 1 and the draw 0, so the value is the policy's share of the win; the mean over visits is 2 / 5.
    win = 1 / (1 + np.exp(-5.2))
    assert found.value[0] == pytest.approx(win)
    assert found.values[0].tolist() == pytest.approx([-win, win])


def test_a_refuted_move_does_not_count_in_the_values_of_the_others():
    """Of four legal edges the second is proven to lose and the fourth has no visit. The mixed value takes the raw value
    0.2 once and the mean of the other visited edges, 0.6 and 0.0 with equal priors, for each of their 5 visits."""
    edges = Edges(
        logits=jnp.array([[0.0, 0.0, 0.0, 0.0, ILLEGAL]]), visits=jnp.array([[3, 4, 2, 0, 0]]),
        edge_values=jnp.array([[0.6, -0.5, 0.0, 0.0, 0.0]]), value=jnp.zeros(1),
        raw_value=jnp.array([0.2]), total=jnp.array([10]),
        lower_bound=jnp.array([[0, -1, -1, -1, -1]]), upper_bound=jnp.array([[1, -1, 1, 1, -1]]),
    )  # fmt: skip
    mixed = (0.2 + 5 * 0.3) / 6
    completed = [[0.6, mixed, 0.0, mixed, mixed]]
    np.testing.assert_allclose(completed_q(final_candidates(edges)), completed, rtol=1e-6)
    # The refuted move sets the lower end of the range, -1, the first one the upper end, 0.6. The most visited has 4.
    spread = completed_values(final_candidates(edges), gumbel_value_scale=0.1, rescale=True)
    np.testing.assert_allclose(spread, 5.4 * (np.array(completed) + 1) / 1.6, rtol=1e-5)
    policy = jnp.array([[0.5, 0.0, 0.25, 0.25, 0.0]])
    assert searched_value(edges, policy)[0] == pytest.approx(0.5 * 0.6 + 0.25 * mixed)
    # The first edge is sure of a draw at least.
    assert searched_value(edges._replace(raw_value=jnp.array([-30.0])), policy)[0] == 0


def test_puct_by_hand():
    """Values as shares of a win are 1/2 and 1, the prior is 1/2 each: (1/2 + sqrt(n) / 2 / (1 + visits)) against
    (1 + sqrt(n) / 2 / (1 + visits)) sends simulations 1 and 8 to the draw and the six between them to the win."""
    options = {"search": "puct", "rescale_values": False, "fpu_reduction": 0.0, "c_puct": 1.0}
    for simulations, visits in ((1, [1, 0]), (2, [1, 1]), (7, [1, 6]), (8, [2, 6])):
        config = Config(num_simulations=simulations, **options)
        found = choose(envs.make("tictactoe"), blank_network(9), config, boards(TWO_MOVES))
        assert found.visits[0, 7:].tolist() == visits
        assert found.value[0] == pytest.approx(visits[1] / simulations)  # the policy is the share of the visits


def test_a_bandit_by_hand():
    """Eight simulations on four arms: each once, then the better two twice more, and the best of them is taken."""
    worth = jnp.array([-0.5, 0.3, -0.2, 0.9])
    game = bandit_game(worth)
    states = jax.tree.map(lambda x: x[None], game.init())
    found = choose(game, blank_network(4), Config(num_simulations=8), states)
    assert found.visits[0].tolist() == [1, 3, 1, 3]
    np.testing.assert_allclose(found.qvalues[0], worth, atol=1e-6)
    assert found.action[0] == 3
    # Values spread over [0, 1] weigh (50 + 3) * 0.1 in the improved policy.
    policy = np.exp(5.3 * (np.asarray(worth) + 0.5) / 1.4)
    assert found.value[0] == pytest.approx((policy * np.asarray(worth)).sum() / policy.sum())


def test_a_bandit_with_puct():
    """Against the rule, written again in plain Python: the best of value as a share of a win plus prior times the root
    of all visits over one more than the arm's, by a factor that grows; an arm that was never pulled is worth the mean
    of what was seen, the root's own 0 included, less the urgency's share."""
    worth, logits, pulls = [-0.5, 0.3, -0.2, 0.9, 0.85], np.array([2.0, 0.0, 1.0, -1.0, 0.5]), 60
    prior = np.exp(logits) / np.exp(logits).sum()
    visits = [0] * 5
    for total in range(pulls):
        mean = sum(n * w for n, w in zip(visits, worth, strict=True)) / (total + 1)
        seen = sum(p for n, p in zip(visits, prior, strict=True) if n)
        unknown = max(mean - 0.2 * math.sqrt(seen), -1)
        factor = 1.25 + math.log((total + 19652 + 1) / 19652)
        scores = [
            ((w if n else unknown) + 1) / 2 + factor * p * math.sqrt(total) / (n + 1)
            for n, w, p in zip(visits, worth, prior, strict=True)
        ]
        visits[int(np.argmax(scores))] += 1
    game = bandit_game(jnp.array(worth))
    net = dataclasses.replace(
        blank_network(5), apply=lambda w, x: (jnp.broadcast_to(jnp.asarray(logits), (len(x), 5)), jnp.zeros(len(x)))
    )
    states = jax.tree.map(lambda x: x[None], game.init())
    found = choose(game, net, Config(search="puct", num_simulations=pulls, rescale_values=False), states)
    assert found.visits[0].tolist() == visits
    assert min(visits) > 0
    assert found.action[0] == np.argmax(visits)


def test_leaves_through_symmetries():
    """Averaged, a position and its images get the same evaluation; at random, that of one of its images."""
    game, net = envs.make("tictactoe"), noisy_network(9)
    states = random_positions(game, 16, 6)
    evaluate = {kind: jax.jit(make_evaluate(game, net, kind)) for kind in ("none", "random", "average")}
    key = jax.random.key(0)
    logits, values = evaluate["average"]({}, key, states)
    images = []
    for symmetry in game.symmetries:
        turned = jax.vmap(symmetry.state)(states)
        there, value = evaluate["none"]({}, key, turned)
        images.append((there[:, symmetry.actions], value))
        again, same = evaluate["average"]({}, key, turned)
        np.testing.assert_allclose(again[:, symmetry.actions], logits, atol=1e-5)
        np.testing.assert_allclose(same, values, atol=1e-5)
    np.testing.assert_allclose(np.mean([value for _, value in images], axis=0), values, atol=1e-5)
    for loop in ("native", "mctx"):
        options = {"search_loop": loop, "num_simulations": 4}
        found = choose(game, net, Config(root_symmetry="average", **options), states)
        mover = jax.vmap(game.player)(states)[:, None]
        np.testing.assert_allclose(found.raw_value, jnp.take_along_axis(values, mover, 1)[:, 0], atol=1e-5)
    seen = set()
    for seed in range(4):
        there, value = evaluate["random"]({}, jax.random.key(seed), states)
        for i in range(16):
            hits = [k for k, (a, v) in enumerate(images) if np.allclose(a[i], there[i]) and np.allclose(v[i], value[i])]
            assert hits
            seen |= set(hits)
    assert seen == set(range(8))


@pytest.mark.parametrize(("going", "chunks"), [(130, 3), (89, 3), (88, 2), (0, 0)])
def test_finished_positions_are_not_evaluated(going, chunks):
    """130 positions are three chunks of 44; two of them hold 88."""
    game, net, sizes = envs.make("tictactoe"), noisy_network(9), []
    goes = np.random.default_rng(going).permutation(130) < going
    either = boards("XXX OO. ...", "XO. .X. ...")
    states = jax.tree.map(lambda x: x[goes.astype(int)], either)

    def apply(weights, planes):
        jax.debug.callback(lambda: sizes.append(len(planes)))
        return net.apply(weights, planes)

    counted = make_evaluate(game, dataclasses.replace(net, apply=apply))
    found = jax.jit(where_unfinished(game, counted))({}, jax.random.key(0), states)
    jax.effects_barrier()
    assert sizes == [44] * chunks
    for some, full in zip(found, make_evaluate(game, net)({}, jax.random.key(0), states), strict=True):
        # In jax 0.7 the last bits depend on the number of rows.
        np.testing.assert_allclose(np.asarray(some)[goes], np.asarray(full)[goes], rtol=1e-5, atol=1e-6)
        assert np.isfinite(some).all()


def test_a_search_whose_leaves_are_averaged_knows_no_left_and_right():
    """It finds the same in a position and in its images, move by move; one that sees leaves as they stand does not."""
    game, net = envs.make("tictactoe"), noisy_network(9)
    states = random_positions(game, 64, 7)
    images = [np.asarray(jax.vmap(symmetry.state)(states).board).reshape(64, 9) for symmetry in game.symmetries]
    # Of a position that is its own image two moves are alike, and the first of them is taken.
    clear = np.all([(image != images[0]).any(-1) for image in images[1:]], 0)
    clear &= ~np.asarray(jax.vmap(game.over)(states))
    assert clear.sum() > 10
    shares = {}
    for kind in ("none", "average"):
        config = Config(num_simulations=24, leaf_symmetry=kind, root_symmetry="average")
        search = jax.jit(make_search(game, net, config))
        look = lambda s, search=search: jax.device_get(search({}, jax.random.key(0), s, jnp.zeros(64, jnp.int32)))
        found = look(states)
        same = []
        for symmetry in game.symmetries[1:]:
            turned = look(jax.vmap(symmetry.state)(states))
            same.append((turned.visits[:, symmetry.actions] == found.visits).all(-1)[clear])
        shares[kind] = np.mean(same)
    assert shares["average"] == 1 > shares["none"]
