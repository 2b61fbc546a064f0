"""One search in many forms: our loop and mctx's, both forms of trees and of writes, low precision, any neighbours."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from phases_in_turn import compare
from toys import KINDS, choose, noisy_network, order_game, random_positions

import envs
from agents.config import Config
from agents.search.expansion import tree_slots
from agents.search.policies import make_tree_policy


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("loop", "spec"), [("native", "foq:rows=4,cols=5"), ("native", "tictactoe"), ("mctx", "tictactoe")]
)
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


def random_orders(count):
    """Positions of `order_game` after 0 to 2 moves, each with an order and a table of its own."""
    rng, game = np.random.default_rng(2), order_game()
    order = jnp.asarray(rng.integers(0, 2, (count, 4)), jnp.int8)
    table = jnp.asarray(rng.permuted(np.tile(np.linspace(-1, 1, 16), (count, 1)), axis=1), jnp.float32)
    states = jax.vmap(lambda s, o, t: s._replace(order=o, table=t))(random_positions(game, count, 3), order, table)
    return game, states


SAME = [
    ("gumbel", "foq:rows=3,cols=4", 7, 64), ("gumbel", "foq:rows=5,cols=6", 100, 5), ("gumbel", "tictactoe", 32, 17),
    ("gumbel", "order", 32, 17), ("puct", "foq:rows=4,cols=5", 32, 17), ("puct", "order", 7, 64),
    ("puct", "order", 100, 5),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "spec", "simulations", "count"), SAME)
def test_our_loop_answers_as_mctx(kind, spec, simulations, count, record_property):
    """Same noise, same model: the same policy, and the same move wherever the margin is more than rounding. With PUCT
    mctx decides equal scores by lot and ours by order: of eight lots what does not hang on them is the same."""
    if spec == "order":
        game, states = random_orders(count)
    else:
        game = envs.make(spec)
        states = random_positions(game, count, game.max_plies * 2 // 3)
    going = np.asarray(jax.vmap(game.mask)(states)).any(1)
    net, config = noisy_network(game.num_actions), Config(num_simulations=simulations, search=kind)
    ours = choose(game, net, config, states, explore=kind == "gumbel")
    lots = {"gumbel": 1, "puct": 8}[kind]
    states = jax.tree.map(lambda x: jnp.concatenate([x] * lots), states)
    config = dataclasses.replace(config, search_loop="mctx")
    reference = choose(game, net, config, states, explore=kind == "gumbel")
    drawn = np.column_stack([reference.visits, reference.value]).reshape(lots, count, -1)
    reference = jax.tree.map(lambda x: x[:count], reference)
    certain = (np.ptp(drawn, axis=0) < 1e-6).all(-1)
    if kind == "puct":
        apart = f"{(going & ~certain).sum()} of {going.sum()} searches"
        record_property("report", f"lots in mctx's puct  {spec:17s} {simulations:3d} simulations: decide {apart}")
    assert certain[going].mean() > 0.5
    going &= certain
    np.testing.assert_allclose(ours.policy[going], reference.policy[going], atol=1e-5)
    np.testing.assert_array_equal(ours.visits[going], reference.visits[going])
    np.testing.assert_array_equal(ours.action[going], reference.action[going])
    np.testing.assert_allclose(ours.value[going], reference.value[going], atol=1e-5)


OTHERWISE = {
    "values as they are": {"gumbel_value_scale": 1.0, "rescale_values": False, "max_num_considered_actions": 16},
    "few actions": {"max_num_considered_actions": 2, "gumbel_value_scale": 0.5},
    "puct": {"search": "puct", "c_puct": 4.0},
}


@pytest.mark.parametrize(("seed", "options"), list(enumerate(OTHERWISE.values(), 1)), ids=OTHERWISE)
def test_our_loop_answers_as_mctx_with_other_options_and_models(seed, options):
    game = envs.make("foq:rows=4,cols=5")
    states = random_positions(game, 64, game.max_plies * 2 // 3)
    going = np.asarray(jax.vmap(game.mask)(states)).any(1)
    config = Config(num_simulations=32, **options)
    ours, reference = (
        choose(game, noisy_network(20, seed), dataclasses.replace(config, search_loop=loop), states, seed=seed)
        for loop in ("native", "mctx")
    )
    np.testing.assert_allclose(ours.policy[going], reference.policy[going], atol=1e-5)
    np.testing.assert_array_equal(ours.visits[going], reference.visits[going])
    np.testing.assert_array_equal(ours.action[going], reference.action[going])
    np.testing.assert_allclose(ours.value[going], reference.value[going], atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tree_over_slots_answers_as_the_dense_one(kind):
    game = envs.make("foq:rows=4,cols=5")
    assert tree_slots(game, True) == game.max_legal + 1 < 20
    states = random_positions(game, 64, 9)
    legal = np.asarray(jax.vmap(game.mask)(states))
    going = legal.any(1)
    packed, dense = (
        choose(game, noisy_network(20), Config(num_simulations=40, search=kind), states, kind == "gumbel", slots=slots)
        for slots in (True, False)
    )
    np.testing.assert_allclose(packed.policy[going], dense.policy[going], atol=1e-5)
    np.testing.assert_array_equal(packed.visits[going], dense.visits[going])
    np.testing.assert_array_equal(packed.action[going], dense.action[going])
    np.testing.assert_allclose(packed.qvalues[going], dense.qvalues[going], atol=1e-5)
    np.testing.assert_allclose(packed.value[going], dense.value[going], atol=1e-5)


@pytest.mark.parametrize(("kind", "slots"), [("gumbel", False), pytest.param("puct", True, marks=pytest.mark.nightly)])
def test_both_forms_of_writes_grow_the_same_trees(kind, slots):
    game = envs.make("foq:rows=4,cols=5")
    states = random_positions(game, 48, game.max_plies)
    scattered, selected = (
        choose(
            game,
            noisy_network(20),
            Config(num_simulations=40, search=kind, proofs=True),
            states,
            explore=True,
            slots=slots,
            writes=form,
        )
        for form in ("scatter", "one_hot")
    )
    for name, values in scattered._asdict().items():
        np.testing.assert_allclose(getattr(selected, name), values, atol=1e-6, err_msg=name)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("spec", "simulations", "options"),
    [
        ("tictactoe", 33, {"proofs": True, "writes": "one_hot", "considered": 8}),
        ("foq:rows=4,cols=5", 32, {"proofs": True, "slots": True}),
        ("foq_multi:rows=4,cols=5", 32, {"writes": "one_hot", "considered": 3}),
    ],
)
def test_side_by_side_are_the_trees_of_the_same_contenders_in_turn(monkeypatch, spec, simulations, options):
    compare(monkeypatch, spec, simulations, **options)


@pytest.mark.parametrize(("dtype", "kind"), [("bfloat16", "gumbel"), ("float16", "puct")])
def test_answers_have_their_types_whatever_those_of_the_network(dtype, kind):
    """And the same values as with a network in float32 whose outputs are just as coarse."""
    game = envs.make("foq:rows=4,cols=5")
    states = random_positions(game, 32, 9)
    net = noisy_network(20)

    def coarse(finally_as):
        apply = lambda w, planes: tuple(x.astype(dtype).astype(finally_as) for x in net.apply(w, planes))
        return choose(
            game, dataclasses.replace(net, apply=apply), Config(num_simulations=24, search=kind), states, explore=True
        )

    found, reference = coarse(dtype), coarse("float32")
    whole = ("action", "visits")
    for name, values in found._asdict().items():
        assert values.dtype == (np.int32 if name in whole else np.float32), name
        np.testing.assert_allclose(values, getattr(reference, name), atol=1e-6, err_msg=name)


def test_a_tree_with_room_for_many_nodes_counts_in_wider_numbers():
    """Children are numbered in 16 bits as long as they can be; the tree is the same."""
    game, states = envs.make("tictactoe"), random_positions(envs.make("tictactoe"), 2, 4)
    tree_policy = make_tree_policy(game, noisy_network(9), Config(num_simulations=40, proofs=True))
    grown = {}
    for max_nodes, dtype in ((2**15 - 1, np.int16), (2**15, np.int32)):

        @jax.jit
        def grow(key, max_nodes=max_nodes):
            trees = tree_policy.init_tree({}, key, states, max_nodes)
            return tree_policy.run_simulations({}, key, trees, jnp.zeros(2, jnp.int32), True)[2]

        trees = jax.device_get(grow(jax.random.key(0)))
        assert trees.child.dtype == trees.edge_visits.dtype == dtype
        grown[max_nodes] = [x[:, :41] if x.ndim > 1 else x for x in jax.tree.leaves(trees)]
    for narrow, wide in zip(*grown.values(), strict=True):
        np.testing.assert_allclose(narrow, wide, atol=1e-6)


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
