"""Search against positions with a known answer, and our loop against mctx's."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import bandit_game, blank_network, noisy_network, order_game, order_values, three_game, three_values

import envs
from agents import search as search_lib
from agents import selection, tree_search
from agents.config import Config
from agents.evaluation import ILLEGAL, make_evaluate
from agents.search import make_search
from agents.selection import halving_table
from agents.selfplay import random_action

KINDS = ["gumbel", "puct"]
# Enough to see every reply to every reply from a late position; values outweigh a prior that knows nothing.
DEEP = Config(num_simulations=400, gumbel_actions=16, value_scale=1.0, rescale_values=False, c_puct=4.0)


def choose(game, net, config, states, **options):
    """Moves and policies of the search, without noise unless asked for."""
    count = len(jax.tree.leaves(states)[0])
    search = jax.jit(make_search(game, net, config, explore=options.get("explore", False)))
    found = search({}, jax.random.key(options.get("seed", 0)), states, jnp.full(count, 99, jnp.int32))
    return jax.device_get(found)


def stack(states):
    return jax.tree.map(lambda *x: jnp.asarray(np.stack(x)), *jax.device_get(states))


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


def wins_at_once(board, mover):
    """Cells with which `mover` completes a line."""
    return {c for line in LINES for c in line if board[c] == 0 and sum(board[i] for i in line) == 2 * mover}


def wins_in_two_by(board, mover):
    """Cells after which the other side has no win at once, and every reply of his leaves `mover` one."""

    def put(cells, cell, stone):
        return [*cells[:cell], stone, *cells[cell + 1 :]]

    def forces(cell):
        after = put(board, cell, mover)
        replies = [r for r in range(9) if after[r] == 0]
        return replies and not wins_at_once(after, -mover) and all(
            wins_at_once(put(after, r, -mover), mover) for r in replies
        )  # fmt: skip

    return {c for c in range(9) if board[c] == 0 and forces(c)}


@pytest.fixture(scope="module")
def forced_wins(golden):
    """Positions that are won in two moves and not in one, both sides; and every move that keeps the win."""
    lines = [p for p in golden("tictactoe_solved.jsonl.gz") if p["value"] == 1 and not p["terminal"]]
    lines = [p for p in lines if not wins_at_once(p["board"], p["to_move"])]
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
@pytest.mark.parametrize("loop", ["ours", "mctx"])
def test_any_order_of_turns(kind, loop):
    """Same side again, twice in a row, never: against a full enumeration of 16 endings."""
    rng = np.random.default_rng(1)
    game, count = order_game(), 128
    order, table = rng.integers(0, 2, (count, 4)), rng.integers(0, 2, (count, 16))
    states = jax.vmap(lambda o, t: game.init()._replace(order=o, table=t))(
        jnp.asarray(order, jnp.int8), jnp.asarray(table, jnp.int8)
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loop", ["ours", "mctx"])
@pytest.mark.parametrize("spec", ["foq:rows=4,cols=5", "tictactoe"])
def test_never_illegal_and_finished_games_do_no_harm(kind, loop, spec):
    game = envs.make(spec)
    states = random_positions(game, 64, game.max_plies)
    legal = np.asarray(jax.vmap(game.mask)(states))
    assert legal.any(1).any()
    assert not legal.any(1).all()
    config = Config(num_simulations=24, search=kind, search_loop=loop)
    found = choose(game, noisy_network(game.num_actions), config, states, explore=True)
    going = legal.any(1)
    assert legal[np.arange(64), found.action][going].all()
    assert (found.policy[~legal] == 0).all()
    assert (found.visits[going][~legal[going]] == 0).all()
    assert all(np.isfinite(x).all() for x in found)
    np.testing.assert_allclose(found.policy[going].sum(1), 1, atol=1e-5)
    assert (np.abs(found.value) <= 1 + 1e-6).all()


def random_positions(game, count, spread):
    """Positions after a random number of random plies, some of them finished."""
    wait = jnp.arange(count) * spread // count

    @jax.jit
    def run():
        states = jax.vmap(lambda _: game.init())(wait)

        def ply(t, states):
            action = random_action(jax.random.fold_in(jax.random.key(3), t), jax.vmap(game.mask)(states))
            moved = jax.vmap(game.step)(states, action)
            pick = lambda new, old: jnp.where((t < wait).reshape(-1, *[1] * (old.ndim - 1)), new, old)
            return jax.tree.map(pick, moved, states)

        return jax.lax.fori_loop(0, spread, ply, states)

    return run()


def random_orders(count):
    """Positions of `order_game` after 0 to 2 moves, each with an order and a table of its own."""
    rng, game = np.random.default_rng(2), order_game()
    order, table = (jnp.asarray(rng.integers(0, 2, (count, n)), jnp.int8) for n in (4, 16))
    states = jax.vmap(lambda s, o, t: s._replace(order=o, table=t))(random_positions(game, count, 3), order, table)
    return game, states


# With PUCT mctx decides equal scores by lot and ours by order: in tic-tac-toe and the game of `Order`, whose results
# repeat, such scores are common.
SAME = [("gumbel", "foq:rows=4,cols=5"), ("gumbel", "tictactoe"), ("gumbel", "order"), ("puct", "foq:rows=4,cols=5")]


@pytest.mark.parametrize(("kind", "spec"), SAME)
@pytest.mark.parametrize("simulations", [7, 32, 100])
def test_our_loop_answers_as_mctx(kind, spec, simulations):
    """Same noise, same model: the same policy, and the same move wherever the margin is more than rounding."""
    if spec == "order":
        game, states = random_orders(64)
    else:
        game = envs.make(spec)
        states = random_positions(game, 64, game.max_plies * 2 // 3)
    going = np.asarray(jax.vmap(game.mask)(states)).any(1)
    net = noisy_network(game.num_actions)
    config = Config(num_simulations=simulations, search=kind)
    ours, reference = (
        choose(game, net, dataclasses.replace(config, search_loop=loop), states, explore=kind == "gumbel")
        for loop in ("ours", "mctx")
    )
    np.testing.assert_allclose(ours.policy[going], reference.policy[going], atol=1e-4)
    np.testing.assert_array_equal(ours.visits[going], reference.visits[going])
    np.testing.assert_array_equal(ours.action[going], reference.action[going])
    np.testing.assert_allclose(ours.value[going], reference.value[going], atol=1e-5)


OTHERWISE = {
    "values as they are": {"value_scale": 1.0, "rescale_values": False, "gumbel_actions": 16},
    "few actions": {"gumbel_actions": 2, "visit_offset": 10.0, "value_scale": 0.5},
    "puct": {"search": "puct", "c_puct": 4.0},
}


@pytest.mark.parametrize("options", OTHERWISE.values(), ids=OTHERWISE)
@pytest.mark.parametrize("seed", [1, 2])
def test_our_loop_answers_as_mctx_with_other_options_and_models(options, seed):
    game = envs.make("foq:rows=4,cols=5")
    states = random_positions(game, 64, game.max_plies * 2 // 3)
    going = np.asarray(jax.vmap(game.mask)(states)).any(1)
    config = Config(num_simulations=32, **options)
    ours, reference = (
        choose(game, noisy_network(20, seed), dataclasses.replace(config, search_loop=loop), states, seed=seed)
        for loop in ("ours", "mctx")
    )
    np.testing.assert_allclose(ours.policy[going], reference.policy[going], atol=1e-4)
    np.testing.assert_array_equal(ours.visits[going], reference.visits[going])
    np.testing.assert_array_equal(ours.action[going], reference.action[going])
    np.testing.assert_allclose(ours.value[going], reference.value[going], atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tree", ["dense", "slots"])
def test_no_node_of_a_tree_has_been_left_by_an_illegal_move(kind, tree):
    """Noise at the root included; the rules say what is legal."""
    game, net = envs.make("foq:rows=4,cols=5"), noisy_network(20)
    config = Config(num_simulations=60, search=kind, tree=tree)
    forest, states = search_lib.make_forest(game, net, config), random_positions(game, 32, 6)

    @jax.jit
    def grow(key):
        trees = forest.plant({}, key, states, 61)
        trees = forest.think({}, key, trees, jnp.zeros(32, jnp.int32), True)[2]
        legal = jax.vmap(jax.vmap(game.mask))(forest.states(trees))
        return trees, jnp.broadcast_to(forest.codes(trees), trees.logits.shape), legal

    trees, codes, legal = jax.device_get(grow(jax.random.key(0)))
    lane, node, edge = np.nonzero((trees.child >= 0) | (trees.edge_visits > 0))
    assert len(lane) == (trees.size - 1).sum() > 1000  # every node but the roots was met along one edge
    assert (node > 0).sum() > 500
    assert legal[lane, node, codes[lane, node, edge]].all()


def test_a_search_is_traced_once():
    """Whatever the weights, keys and positions: only shapes may compile anew."""
    game, traces = envs.make("tictactoe"), []
    blank = blank_network(9)

    def apply(weights, planes):
        traces.append(planes.shape)
        return blank.apply(weights, planes)

    search = jax.jit(make_search(game, dataclasses.replace(blank, apply=apply), Config(), explore=True))
    met = []
    for seed in range(3):
        search({}, jax.random.key(seed), random_positions(game, 4, seed), jnp.full(4, seed))
        met.append(len(traces))
    assert met == [met[0]] * 3
    assert met[0] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_tree_over_slots_answers_as_the_dense_one(kind):
    game = envs.make("foq:rows=4,cols=5")
    assert search_lib.tree_slots(game, Config(tree="slots")) == game.max_legal + 1 < 20
    states = random_positions(game, 64, 9)
    legal = np.asarray(jax.vmap(game.mask)(states))
    going = legal.any(1)
    packed, dense = (
        choose(game, noisy_network(20), Config(num_simulations=40, tree=tree, search=kind), states, explore=explore)
        for tree, explore in (("slots", kind == "gumbel"), ("dense", kind == "gumbel"))
    )
    np.testing.assert_allclose(packed.policy[going], dense.policy[going], atol=1e-5)
    np.testing.assert_array_equal(packed.visits[going], dense.visits[going])
    np.testing.assert_array_equal(packed.action[going], dense.action[going])
    np.testing.assert_allclose(packed.qvalues[going], dense.qvalues[going], atol=1e-5)
    np.testing.assert_allclose(packed.value[going], dense.value[going], atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tree", ["dense", "slots"])
def test_both_forms_of_writes_grow_the_same_trees(kind, tree):
    game = envs.make("foq:rows=4,cols=5")
    states = random_positions(game, 48, game.max_plies)
    scattered, selected = (
        choose(
            game,
            noisy_network(20),
            Config(num_simulations=40, search=kind, tree=tree, proofs=True, tree_writes=form),
            states,
            explore=True,
        )
        for form in ("scatter", "one_hot")
    )
    for name, values in scattered._asdict().items():
        np.testing.assert_allclose(getattr(selected, name), values, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_answers_have_their_types_whatever_those_of_the_network(dtype):
    """And the same values as with a network in float32 whose outputs are just as coarse."""
    game = envs.make("foq:rows=4,cols=5")
    states = random_positions(game, 32, 9)
    net = noisy_network(20)

    def coarse(finally_as):
        apply = lambda w, planes: tuple(x.astype(dtype).astype(finally_as) for x in net.apply(w, planes))
        return choose(game, dataclasses.replace(net, apply=apply), Config(num_simulations=24), states, explore=True)

    found, reference = coarse(dtype), coarse("float32")
    whole = ("action", "visits")
    for name, values in found._asdict().items():
        assert values.dtype == (np.int32 if name in whole else np.float32), name
        np.testing.assert_allclose(values, getattr(reference, name), atol=1e-6, err_msg=name)


def test_a_tree_with_room_for_many_nodes_counts_in_wider_numbers():
    """Children are numbered in 16 bits as long as they can be."""
    leaf = tree_search.Leaf(jnp.zeros((1, 2)), jnp.zeros((1, 2)), jnp.zeros(1, jnp.int8), jnp.zeros(1, bool))
    for room, dtype in ((2**15 - 1, jnp.int16), (2**15, jnp.int32)):
        tree = tree_search.plant(leaf, {}, room)
        assert tree.child.dtype == tree.edge_visits.dtype == dtype


def test_slots_are_the_default_where_few_of_many_actions_are_legal():
    game = envs.make("evopawness")
    assert search_lib.tree_slots(game, Config()) == game.max_legal + 1
    assert search_lib.tree_slots(game, Config(tree="dense")) is None
    assert search_lib.tree_slots(envs.make("foq"), Config()) is None


def test_what_needs_two_players_is_refused_with_three():
    game = envs.make("foq_multi")
    for options, named in (({"search_loop": "mctx"}, "--search_loop=mctx"), ({"proofs": True}, "--proofs")):
        with pytest.raises(ValueError, match=f"{named}.*two players.*has 3"):
            make_search(game, blank_network(game.num_actions), Config(**options), explore=False)


def test_what_mctx_cannot_do_is_refused_by_name():
    game = envs.make("foq:rows=4,cols=5")
    for options, named in (
        ({"tree": "slots"}, "--tree=slots"),
        ({"proofs": True}, "--proofs"),
        ({"tree_writes": "one_hot"}, "--tree_writes=one_hot"),
        ({"search": "puct", "rescale_values": False}, "--no_rescale_values"),
    ):
        with pytest.raises(ValueError, match=named):
            make_search(game, blank_network(20), Config(search_loop="mctx", **options), explore=False)


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
    near = {"gumbel": {"value_scale": 0.05}, "puct": {"c_puct": 0.7}}[kind]
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
    heads = noisy_network(game.num_actions + 2)

    def apply(weights, planes):
        logits, value = heads.apply(weights, planes)
        return logits[:, :-2], jnp.stack([value, jnp.tanh(logits[:, -2]), jnp.tanh(logits[:, -1])], axis=-1)

    net = dataclasses.replace(heads, apply=apply)
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


# O to move: b1 (cell 7) leads to a draw, c1 (cell 8) wins.
TWO_MOVES = "OXO XXO X.."


def test_gumbel_by_hand():
    """Both edges are due twice. Their values, spread over [0, 1], weigh (50 + 2) * 0.1 in the improved policy."""
    found = choose(envs.make("tictactoe"), blank_network(9), Config(num_simulations=4), boards(TWO_MOVES))
    assert found.visits[0].tolist() == [0] * 7 + [2, 2]
    assert found.qvalues[0, 7:].tolist() == [0, 1]
    assert found.policy[0, 8] == pytest.approx(1 / (1 + np.exp(-5.2)), abs=1e-6)
    assert found.value[0] == pytest.approx(2 / 5)
    assert found.values[0].tolist() == pytest.approx([-2 / 5, 2 / 5])


def test_puct_by_hand():
    """Values as shares of a win are 1/2 and 1, the prior is 1/2 each: (1/2 + sqrt(n) / 2 / (1 + visits)) against
    (1 + sqrt(n) / 2 / (1 + visits)) sends simulations 1 and 8 to the draw and the six between them to the win."""
    options = {"search": "puct", "rescale_values": False, "first_play_urgency": 0.0, "c_puct": 1.0}
    for simulations, visits in ((1, [1, 0]), (2, [1, 1]), (7, [1, 6]), (8, [2, 6])):
        config = Config(num_simulations=simulations, **options)
        found = choose(envs.make("tictactoe"), blank_network(9), config, boards(TWO_MOVES))
        assert found.visits[0, 7:].tolist() == visits
        assert found.value[0] == pytest.approx(visits[1] / (simulations + 1))


def test_a_bandit_by_hand():
    """Eight simulations on four arms: each once, then the better two twice more, and the best of them is taken."""
    worth = jnp.array([-0.5, 0.3, -0.2, 0.9])
    game = bandit_game(worth)
    states = jax.tree.map(lambda x: x[None], game.init())
    found = choose(game, blank_network(4), Config(num_simulations=8), states)
    assert found.visits[0].tolist() == [1, 3, 1, 3]
    np.testing.assert_allclose(found.qvalues[0], worth, atol=1e-6)
    assert found.action[0] == 3
    # The root's own estimate, 0, counts as one visit.
    assert found.value[0] == pytest.approx((-0.5 + 3 * 0.3 - 0.2 + 3 * 0.9) / 9)


@pytest.fixture(scope="module")
def solved(golden):
    """Every unfinished position of tic-tac-toe, the moves that keep its value, and that value for the mover."""
    lines = [p for p in golden("tictactoe_solved.jsonl.gz") if not p["terminal"]]
    right = np.zeros((len(lines), 9), bool)
    for i, p in enumerate(lines):
        right[i, p["optimal"]] = True
    game = envs.make("tictactoe")
    states = [game.from_record({k: p[k] for k in ("board", "to_move")}) for p in lines]
    # The table's values are the mover's own.
    return stack(states), right, np.array([p["value"] for p in lines])


def table_network(states, values):
    """A network that looks its value up, by the board as the mover sees it, and has no prior."""
    game = envs.make("tictactoe")
    power = jnp.asarray(3 ** np.arange(9))
    code = lambda planes: ((planes[..., 0] + 2 * planes[..., 1]).reshape(len(planes), 9).astype(jnp.int32) * power).sum(
        -1
    )
    table = jnp.zeros(3**9).at[code(jax.vmap(game.observe)(states))].set(jnp.asarray(values, jnp.float32))
    net = blank_network(9)
    return dataclasses.replace(net, apply=lambda w, planes: (jnp.zeros((len(planes), 9)), table[code(planes)]))


def test_perfect_values_give_perfect_play_from_every_position(solved):
    """Gumbel search that sees each move once, and PUCT with simulations enough for its means."""
    states, right, values = solved
    game, net = envs.make("tictactoe"), table_network(states, values)
    empty = (np.asarray(states.board).reshape(len(right), 9) == 0).sum(1)
    for moves in range(1, 10):
        here = empty == moves
        some = jax.tree.map(lambda x, here=here: x[here], states)
        found = choose(game, net, dataclasses.replace(DEEP, num_simulations=moves), some)
        assert right[here][np.arange(here.sum()), found.action].all()
    found = choose(game, net, dataclasses.replace(DEEP, search="puct", c_puct=1.25), states)
    assert right[np.arange(len(right)), found.action].all()


@pytest.mark.parametrize("kind", KINDS)
def test_proofs_play_perfectly_with_a_network_that_is_wrong(kind, solved):
    """Where the rest of the game fits into the search: up to five empty cells, which is at most 326 positions."""
    states, right, values = solved
    few = (np.asarray(states.board).reshape(len(right), 9) == 0).sum(1) <= 5
    assert few.sum() > 2000
    states, right, values = jax.tree.map(lambda x: x[few], states), right[few], values[few]
    wrong = table_network(states, -values)
    config = Config(num_simulations=400, search=kind, gumbel_actions=16, proofs=True)
    found = choose(envs.make("tictactoe"), wrong, config, states)
    assert right[np.arange(len(right)), found.action].all()
    np.testing.assert_array_equal(found.value, values)
    without = choose(
        envs.make("tictactoe"), wrong, dataclasses.replace(config, proofs=False, num_simulations=32), states
    )
    assert right[np.arange(len(right)), without.action].mean() < 0.95  # the network is really wrong


def corridors(game, mine, other, to_move):
    """A position in which each queen stands at the end of a corridor of so many free squares, the mover's first."""
    lengths = (mine, other) if to_move == 0 else (other, mine)
    free = {9 * row + 1 + i for row, length in zip((0, 7), lengths, strict=True) for i in range(length)}
    ripped = sorted(set(range(72)) - free)
    record = {"variant": "foq", "rows": 8, "cols": 9, "ripped": ripped, "queens": [0, 63], "to_move": to_move}
    return game.from_record(record)


@pytest.mark.parametrize("kind", KINDS)
def test_proofs_know_what_the_theory_of_the_game_does(kind):
    """Who has more squares to walk to wins, and only if he takes one at a time: seven plies and more before the end,
    after sixteen simulations with a network that knows nothing."""
    game = envs.make("foq")
    states = stack([corridors(game, *lengths, mover) for lengths in ((6, 5), (5, 5)) for mover in (0, 1)])
    config = Config(num_simulations=16, search=kind, gumbel_actions=16, proofs=True)
    found = choose(game, blank_network(72), config, states)
    assert found.action[:2].tolist() == [1, 64]
    assert found.value.tolist() == [1, 1, -1, -1]
    without = choose(game, blank_network(72), dataclasses.replace(config, proofs=False), states)
    assert (np.abs(without.value) < 1).all()


def after(game, *actions):
    """A batch of the one position that these moves lead to."""
    state = game.init()
    for action in actions:
        state = game.step(state, action)
    return jax.tree.map(lambda x: jnp.asarray(x)[None], state)


@pytest.mark.parametrize("kind", KINDS)
def test_proofs_see_a_win_in_one_that_is_not_even_looked_at(kind):
    """Four in a row at the far end of the board, which five simulations of a network that knows nothing never reach."""
    game = envs.make("gomoku:size=9")
    config = Config(num_simulations=5, search=kind, gumbel_actions=5, proofs=True)
    states = after(game, 73, 0, 74, 2, 75, 4, 76, 6)  # X on the last line from its second point on
    found = choose(game, blank_network(81), config, states)
    assert found.visits[0, [72, 77]].sum() == 0
    assert found.action[0] in (72, 77)
    assert found.value[0] == 1
    np.testing.assert_allclose(found.policy[0, [72, 77]], 0.5)  # nothing tells the two wins apart
    blind = choose(game, blank_network(81), dataclasses.replace(config, proofs=False), states)
    assert blind.action[0] not in (72, 77)


@pytest.mark.parametrize("kind", KINDS)
def test_proofs_see_that_a_move_lets_the_other_side_win_at_once(kind):
    """Three in a row at the bottom of Connect Four: all moves but the one beside them lose, as a look at each shows."""
    game = envs.make("connect_four")
    config = Config(num_simulations=7, search=kind, gumbel_actions=7, proofs=True)
    found = choose(game, blank_network(7), config, after(game, 0, 0, 1, 1, 2))
    assert found.action[0] == 3
    assert found.policy[0, found.visits[0] == 1].max() == 0  # what was looked at once is known to lose
    assert found.policy[0, 3] >= 0.25


@pytest.mark.parametrize("kind", KINDS)
def test_a_policy_is_taught_over_moves_that_may_still_be_best(kind):
    """After three simulations three moves are known to lose and nothing of the others."""
    config = Config(num_simulations=3, search=kind, gumbel_actions=7, proofs=True)
    game = envs.make("connect_four")
    found = choose(game, blank_network(7), config, after(game, 0, 0, 1, 1, 2))
    assert found.visits[0].tolist() == [1, 1, 1, 0, 0, 0, 0]
    np.testing.assert_allclose(found.policy[0], [0, 0, 0, 0.25, 0.25, 0.25, 0.25], atol=1e-6)
    assert found.action[0] == 3


def test_contenders():
    """Rows: a draw beside an open move; a win beside an open move; all lost; a loss and two open moves; a draw as the
    best there is; a draw at least, beside the place of a move that is not there."""
    low = [[0, -1, -1], [1, -1, -1], [-1, -1, -1], [-1, -1, -1], [0, 0, -1], [-1, 0, -1]]
    high = [[0, 1, -1], [1, 1, -1], [-1, -1, -1], [-1, 1, 1], [0, 0, -1], [-1, 1, 1]]
    left = [[1, 1, 0], [1, 0, 0], [1, 1, 1], [0, 1, 1], [1, 1, 0], [0, 1, 1]]
    logits = jnp.zeros((6, 3)).at[5, 0].set(ILLEGAL)
    zeros = jnp.zeros(6)
    edges = tree_search.Edges(
        logits, jnp.ones((6, 3), jnp.int32), jnp.full((6, 3), 0.5), zeros, zeros, jnp.full(6, 4),
        jnp.array(low, jnp.int8), jnp.array(high, jnp.int8),
    )  # fmt: skip
    found = selection.contenders(edges)
    np.testing.assert_array_equal(selection.legal(found), np.array(left, bool))
    np.testing.assert_array_equal(found.q[0], [0, 0.5, -1])


@pytest.mark.parametrize("kind", KINDS)
def test_a_game_is_searched_alike_whatever_its_neighbours(kind):
    game = envs.make("foq:rows=4,cols=5")
    states = random_positions(game, 32, 8)
    config, net = Config(num_simulations=40, search=kind), noisy_network(20)
    together = choose(game, net, config, states)
    order = np.random.default_rng(0).permutation(32)
    shuffled = choose(game, net, config, jax.tree.map(lambda x: x[order], states))
    alone = [choose(game, net, config, jax.tree.map(lambda x, i=i: x[i : i + 1], states)) for i in (3, 20)]
    for name in ("action", "visits", "policy", "value", "qvalues"):
        np.testing.assert_allclose(getattr(shuffled, name), getattr(together, name)[order], atol=1e-6)
        for one, i in zip(alone, (3, 20), strict=True):
            np.testing.assert_allclose(getattr(one, name)[0], getattr(together, name)[i], atol=1e-6)


def test_leaves_through_symmetries():
    """Averaged, a position and its images get the same evaluation; at random, that of one of its images."""
    game, net = envs.make("tictactoe"), noisy_network(9)
    states = random_positions(game, 16, 6)
    evaluate = {kind: make_evaluate(game, net, kind) for kind in ("none", "random", "average")}
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
    for loop in ("ours", "mctx"):
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
