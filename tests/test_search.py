"""Search against positions with a known answer, and our loop against mctx's."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import blank_network, noisy_network, order_game, order_values

import envs
from agents import search as search_lib
from agents.config import Config
from agents.search import make_search
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
    return jax.tree.map(lambda *x: jnp.stack(x), *states)


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
    right = search_lib.make_recurrent

    def flipped(game, evaluate):
        recurrent = right(game, evaluate)

        def wrong(*arguments):
            output, states = recurrent(*arguments)
            return output.replace(discount=-output.discount), states

        return wrong

    monkeypatch.setattr(search_lib, "make_recurrent", flipped)
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
    config = dataclasses.replace(DEEP, search=kind, search_loop=loop, num_simulations=128)
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


@pytest.mark.parametrize("spec", ["foq:rows=4,cols=5", "tictactoe"])
@pytest.mark.parametrize("simulations", [7, 32])
def test_our_loop_answers_as_mctx(spec, simulations):
    """Same noise, same model: the same policy, and the same move wherever the margin is more than rounding."""
    game = envs.make(spec)
    states = random_positions(game, 64, game.max_plies * 2 // 3)
    going = np.asarray(jax.vmap(game.mask)(states)).any(1)
    net = noisy_network(game.num_actions)
    ours, reference = (
        choose(game, net, Config(num_simulations=simulations, search_loop=loop), states, explore=True)
        for loop in ("ours", "mctx")
    )
    np.testing.assert_allclose(ours.policy[going], reference.policy[going], atol=1e-5)
    np.testing.assert_array_equal(ours.visits[going], reference.visits[going])
    np.testing.assert_array_equal(ours.action[going], reference.action[going])
    np.testing.assert_allclose(ours.value[going], reference.value[going], atol=1e-5)


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


def test_slots_are_the_default_where_few_of_many_actions_are_legal():
    game = envs.make("evopawness")
    assert search_lib.tree_slots(game, Config()) == game.max_legal + 1
    assert search_lib.tree_slots(game, Config(tree="dense")) is None
    assert search_lib.tree_slots(envs.make("foq"), Config()) is None


def test_more_than_two_players_are_refused():
    game = dataclasses.replace(envs.make("tictactoe"), num_players=3)
    with pytest.raises(ValueError, match="two players"):
        make_search(game, blank_network(9), Config(), explore=False)
