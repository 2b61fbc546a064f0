"""The equivariant network turns with the board, in every game that has symmetries, and stays a network like others."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_network import random_planes, random_weights
from tiers import with_nightly

import envs
from agents.config import Config
from agents.network.equivariant import group_of, width
from agents.network.network import make_network
from agents.network.transfer import grow, resize
from agents.training import learner
from agents.training.replay import Batch

# Every game with symmetries, on small boards: mirror, half turn, rectangle, square; columns, cells, cells and a pass.
GAMES = [
    "tictactoe",
    "connect_four:rows=4,cols=5",
    "foq:rows=4,cols=5",
    "foq_single:rows=4,cols=4",
    "foq_multi:rows=4,cols=5",
    "go:size=5,history=2",
    "gomoku:size=6",
    "othello",
    "hex:size=4",
]
COSTLY = ("foq_single:rows=4,cols=4", "foq_multi:rows=4,cols=5", "gomoku:size=6", "othello")
KINDS = {
    "plain": {"pooling": False},
    "all": {"slides": True, "future_weight": 1.0},
    "layer": {"normalisation": "layer"},
    "none": {"normalisation": "none", "slides": True},
}


def config_of(game, **options):
    return Config(**{"env": game.name, "network": "equivariant", "channels": 16, "blocks": 1} | options)


@functools.cache
def compiled(spec, kind):
    game = envs.make(spec)
    net = make_network(game, config_of(game, **KINDS[kind]))
    shapes = jax.eval_shape(net.init, jax.random.key(0))
    return game, shapes, net.apply, jax.jit(lambda weights, planes: net.train(weights, planes, None)[0])


def test_games_are_all_that_have_symmetries():
    named = {name for name in envs.list() if len(envs.make(name).symmetries) > 1}
    assert named == {spec.partition(":")[0] for spec in GAMES}


@pytest.mark.parametrize("spec", with_nightly(GAMES, COSTLY))
@settings(max_examples=8, deadline=None)
@given(kind=st.sampled_from(["plain", "all"]), seed=st.integers(0, 2**32 - 1))
def test_turning_the_board_turns_the_policy_and_leaves_the_value(spec, kind, seed):
    game, shapes, apply, train = compiled(spec, kind)
    weights, planes = random_weights(shapes, seed), random_planes(game, seed)
    logits, value = apply(weights, planes)
    heads = train(weights, planes)
    assume(np.ptp(logits) > 1e-3)  # a few networks at random answer alike to everything
    for symmetry in game.symmetries:
        turned = jax.vmap(symmetry.planes)(planes)
        same = functools.partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-4, err_msg=symmetry.name)
        there, its = apply(weights, turned)
        same(there[:, symmetry.actions], logits)
        same(its, value)
        seen = train(weights, turned)
        same(seen.policy[:, symmetry.actions], heads.policy)
        same(seen.value, heads.value)
        if heads.future is not None:
            same(seen.future[:, symmetry.actions], heads.future)


@pytest.mark.parametrize("kind", ["layer", "none"])
def test_without_batch_normalisation_too(kind):
    game, shapes, apply, _ = compiled("foq:rows=4,cols=5", kind)
    weights, planes = random_weights(shapes, 1), random_planes(game, 1)
    logits, value = apply(weights, planes)
    for symmetry in game.symmetries:
        there, its = apply(weights, jax.vmap(symmetry.planes)(planes))
        np.testing.assert_allclose(there[:, symmetry.actions], logits, atol=1e-5)
        np.testing.assert_allclose(its, value, atol=1e-5)


def test_the_plain_network_does_not_turn_with_the_board():
    """Otherwise the tests above could not fail."""
    game = envs.make("foq:rows=4,cols=5")
    net = make_network(game, config_of(game, network="resnet"))
    weights, planes = random_weights(jax.eval_shape(net.init, jax.random.key(0)), 1), random_planes(game, 1)
    logits, _ = net.apply(weights, planes)
    for symmetry in game.symmetries[1:]:
        there, _ = net.apply(weights, jax.vmap(symmetry.planes)(planes))
        assert abs(there[:, symmetry.actions] - logits).max() > 0.01


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_half_precision_keeps_the_symmetry_up_to_its_rounding(dtype):
    game = envs.make("foq_single:rows=4,cols=4")
    net = make_network(game, config_of(game, dtype=dtype))
    weights, planes = random_weights(jax.eval_shape(net.init, jax.random.key(0)), 2), random_planes(game, 2)
    logits, _ = net.apply(weights, planes)
    off = max(
        float(abs(net.apply(weights, jax.vmap(s.planes)(planes))[0][:, s.actions] - logits).max() / np.ptp(logits))
        for s in game.symmetries[1:]
    )
    assert off < {"float32": 1e-5, "bfloat16": 0.05}[dtype]


def test_features_differ_between_frames():
    """A network of features that are alike in all frames would be equivariant too, and blind to orientation."""
    game = envs.make("connect_four:rows=4,cols=5")
    net = make_network(game, config_of(game))
    weights = random_weights(jax.eval_shape(net.init, jax.random.key(0)), 3)
    logits, _ = net.apply(weights, random_planes(game, 3))
    assert abs(logits - logits[:, ::-1]).max() > 0.01


def test_free_weights_are_divided_by_the_number_of_symmetries():
    """Worked out by hand: 9 places, G frames in and out, in orbits of G; 10 orbits of 3 x 3 places for a plain map."""
    group = group_of(envs.make("othello"))
    assert len(group.turns) == 8
    for kinds, size, free in (
        (("frames", "frames"), 3, 9 * 8),
        (("plain", "frames"), 3, 9),
        (("frames", "frames"), 1, 8),
        (("frames", "lines"), 1, 8),
        (("plain", "plain"), 3, 3),  # middle, edge and corner
    ):
        assert group.tied(*kinds, size).max() + 1 == free
    mirror = group_of(envs.make("connect_four"))
    assert mirror.tied("plain", "plain", 3).tolist() == [[[x]] for x in (0, 1, 0, 2, 3, 2, 4, 5, 4)]
    assert mirror.kinds["lines"].tolist() == [[0, 1, 2, 3, 4, 5, 6, 7], [2, 1, 0, 5, 4, 3, 7, 6]]


def test_gradients_keep_the_ties():
    game, shapes, _, _ = compiled("foq_single:rows=4,cols=4", "plain")
    net = make_network(game, config_of(game, **KINDS["plain"]))
    weights, planes = random_weights(shapes, 4), random_planes(game, 4)
    of = lambda params: net.train({**weights, "params": params}, planes, None)[0].value.sum()
    gradient = np.asarray(jax.grad(of)(weights["params"])["Block_0"]["Tied_0"]["kernel"])
    tied = group_of(game).tied("frames", "frames", 3)
    parts = gradient.reshape(9, 8, 2, 8, 2).transpose(0, 1, 3, 2, 4).reshape(tied.size, 4)
    assert np.ptp(parts) > 0
    for number in range(tied.max() + 1):
        orbit = parts[tied.ravel() == number]
        np.testing.assert_allclose(orbit, np.broadcast_to(orbit[:1], orbit.shape), rtol=1e-3, atol=1e-6)


def test_augmentation_changes_no_update():
    """Each row seen through another symmetry gives the same losses and gradients, so --augment is idle."""
    game = envs.make("foq:rows=4,cols=5")
    config = config_of(game, **KINDS["all"])
    net = make_network(game, config)
    weights = random_weights(jax.eval_shape(net.init, jax.random.key(0)), 7)
    lot = np.random.default_rng(7)
    actions = np.stack([lot.permutation(20)[:6] for _ in range(3)])
    policy, value, future = lot.dirichlet(np.ones(6), 3), lot.uniform(-1, 1, 3), lot.integers(-1, 3, (3, 20))
    planes = random_planes(game, 7)
    plain = Batch(planes, actions, policy, value, future)
    turns = [game.symmetries[i] for i in (1, 2, 3)]
    turned = Batch(
        jnp.stack([turn.planes(x) for turn, x in zip(turns, planes, strict=True)]),
        np.stack([turn.actions[x] for turn, x in zip(turns, actions, strict=True)]),
        policy,
        value,
        np.stack([x[np.argsort(turn.actions)] for turn, x in zip(turns, future, strict=True)]),
    )

    @jax.jit
    def update(batch):
        of = lambda params: learner.loss(net, {**weights, "params": params}, batch, config)
        gradient, (losses, _) = jax.grad(of, has_aux=True)(weights["params"])
        return gradient, losses

    gradient, losses = update(plain)
    its, there = update(turned)
    assert losses.policy_loss > 0.1 and losses.future_loss > 0.1
    np.testing.assert_allclose(there, losses, rtol=1e-4)
    most = max(float(abs(x).max()) for x in jax.tree.leaves(gradient))
    assert all(abs(x - y).max() < 1e-4 * most for x, y in zip(*map(jax.tree.leaves, (gradient, its)), strict=True))


def test_without_symmetries_it_is_the_plain_network():
    game = envs.make("evopawness:history=2")
    shapes = [
        jax.eval_shape(make_network(game, config_of(game, network=name)).init, jax.random.key(0))
        for name in ("resnet", "equivariant")
    ]
    assert jax.tree.map(jnp.shape, shapes[0]) == jax.tree.map(jnp.shape, shapes[1])


def test_channels_are_a_multiple_of_the_symmetries():
    game = envs.make("othello")
    assert width(game, config_of(game, channels=24)) == 3
    with pytest.raises(ValueError, match="--channels: expected a multiple of 8, the symmetries, got 20"):
        make_network(game, config_of(game, channels=20)).init(jax.random.key(0))


def changed(change):
    """Tic-tac-toe with other symmetries."""
    game = envs.make("tictactoe")
    return dataclasses.replace(game, symmetries=change(game.symmetries))


def test_other_symmetries_are_refused():
    for planes in (lambda x: x[..., ::-1], lambda x: jnp.roll(x, 1, axis=0)):
        other = lambda found, planes=planes: (found[0], dataclasses.replace(found[1], name="other", planes=planes))
        with pytest.raises(
            ValueError, match="expected turns and mirrors of the board, each once, got symmetry 'other'"
        ):
            group_of(changed(other))
    with pytest.raises(ValueError, match="expected a group, got"):
        group_of(changed(lambda found: found[:3]))


def test_a_larger_network_gives_the_same_outputs():
    game = envs.make("foq:rows=4,cols=5")
    small = config_of(game, **KINDS["all"])
    large = dataclasses.replace(small, channels=32, blocks=2)
    narrow, wide = make_network(game, small), make_network(game, large)
    weights, planes = random_weights(jax.eval_shape(narrow.init, jax.random.key(0)), 5), random_planes(game, 5)
    widths = width(game, small), width(game, large)
    grown = jax.jit(lambda key: grow(weights, wide.init(key), widths, key))(jax.random.key(3))
    for answers in (lambda net, w: net.apply(w, planes), lambda net, w: net.train(w, planes, None)[0]):
        jax.tree.map(
            lambda x, y: np.testing.assert_allclose(x, y, rtol=2e-3, atol=2e-3),
            answers(narrow, weights),
            answers(wide, grown),
        )


def test_it_moves_to_another_board():
    small, large = (envs.make(f"gomoku:size={size}") for size in (6, 7))
    config = config_of(small)
    weights = random_weights(jax.eval_shape(make_network(small, config).init, jax.random.key(0)), 6)
    net = make_network(large, config)
    moved = resize(weights, jax.eval_shape(net.init, jax.random.key(0)), ((6, 6), (7, 7)), width(small, config))
    planes = random_planes(large, 6)
    logits, value = net.apply(moved, planes)
    for symmetry in large.symmetries:
        there, its = net.apply(moved, jax.vmap(symmetry.planes)(planes))
        np.testing.assert_allclose(there[:, symmetry.actions], logits, atol=1e-4)
        np.testing.assert_allclose(its, value, atol=1e-4)
