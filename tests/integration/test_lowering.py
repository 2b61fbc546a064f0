"""Every compiled program also lowers for a TPU, from a machine without one; scatters and gathers are reported."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import pytest
from tiers import with_nightly

import envs
from agents.arena.match import Round, make_group
from agents.arena.openings import make_decided, sample_openings
from agents.config import preset
from agents.network.network import make_network
from agents.players.players import make_player
from agents.runtime import mesh
from agents.search.policies import make_search
from agents.training import value_regression
from agents.training.iteration import make_iteration, start_run

SPEC = "foq:rows=4,cols=5"
NAMES = [
    "start", "iteration", "iteration x2", "step", "observe", "search gumbel", "search side by side", "search puct",
    "search proofs", "iteration tied", "search tied", "openings", "decided", "generation", "regression", "match",
]  # fmt: skip
COSTLY = ("iteration tied", "iteration x2")


@functools.cache
def programs():
    game = envs.make(SPEC)
    small = {"num_envs": 16, "channels": 16, "blocks": 1, "batch_size": 32}
    config = dataclasses.replace(preset(game, "tpu"), **small, slides=True, proof_share=0.25)
    net = make_network(game, config)
    key = jax.random.key(0)
    run = jax.eval_shape(lambda: start_run(game, net, config))
    lanes, weights = run.lanes, run.learning.weights
    search = lambda order="in_turn", **options: make_search(
        game, net, dataclasses.replace(config, **options), explore=True, order=order, packed=order == "side_by_side"
    )
    uct = make_player("uct:8", game, 8)
    match = make_group(game, uct, make_player("minimax:2", game, 8), mesh.make_mesh(16, 16, 1))
    no = jnp.zeros((16, 2), bool)
    group = Round(lanes.states, no.astype(jnp.uint32), lanes.plies, no, jax.random.split(key, 1))
    tied = dataclasses.replace(config, network="equivariant")
    tied_net = make_network(game, tied)
    tied_run = jax.eval_shape(lambda: start_run(game, tied_net, tied))
    tied_search = make_search(game, tied_net, tied, explore=True)
    simple = envs.make("tictactoe")
    by_values = dataclasses.replace(preset(simple, "tpu", "value_generations"), num_envs=16, channels=16, batch_size=32)
    perceptron, alone = make_network(simple, by_values), mesh.make_mesh(16, 32, 1)
    first = jax.eval_shape(lambda: value_regression.start_run(simple, perceptron, by_values))
    made = {
        "start": (lambda: start_run(game, net, config), ()),
        "iteration": (make_iteration(game, net, config, mesh.make_mesh(16, 32, 1)), (run, jnp.float32(0))),
        "iteration x2": (make_iteration(game, net, config, mesh.make_mesh(16, 32, 2)), (run, jnp.float32(0))),
        "step": (jax.vmap(game.step), (lanes.states, lanes.plies)),
        "observe": (jax.vmap(game.observe), (lanes.states,)),
        "search gumbel": (search(), (weights, key, lanes.states, lanes.plies)),
        "search side by side": (search("side_by_side"), (weights, key, lanes.states, lanes.plies)),
        "search puct": (search(search="puct"), (weights, key, lanes.states, lanes.plies)),
        "search proofs": (search(proofs=True), (weights, key, lanes.states, lanes.plies)),
        "iteration tied": (make_iteration(game, tied_net, tied, mesh.make_mesh(16, 32, 1)), (tied_run, jnp.float32(0))),
        "search tied": (tied_search, (tied_run.learning.weights, key, lanes.states, lanes.plies)),
        "openings": (lambda k: sample_openings(game, k, 16, 2), (key,)),
        "decided": (make_decided(game), (jax.eval_shape(game.init),)),
        "generation": (value_regression.make_play(simple, perceptron, by_values, alone), (first,)),
        "regression": (value_regression.make_learn(simple, perceptron, by_values, alone), (first, jnp.float32(0))),
        "match": (match, (None, None, group, lanes.plies, jnp.int32(4))),
    }
    assert list(made) == NAMES
    return made


def lowered(function, arguments) -> str:
    """The program for a TPU. A search asks for the layout of its trees, which may not be kept in files; nobody does."""
    layouts = jax.export.DisabledSafetyCheck.custom_call("LayoutConstraint")
    export = jax.export.export(jax.jit(function), platforms=["tpu"], disabled_checks=[layouts])
    return export(*arguments).mlir_module()


@pytest.mark.parametrize("name", with_nightly(NAMES, COSTLY))
def test_lowers_for_tpu(name, record_property):
    function, arguments = programs()[name]
    text = lowered(function, arguments)
    scatters, gathers = (text.count(f'"stablehlo.{kind}"(') for kind in ("scatter", "gather"))
    record_property("report", f"tpu program {name:19s} scatters {scatters:3d}  gathers {gathers:3d}")
    assert "module @" in text
    # Rules are tables and selects, trees are selected over: scattered writes are slow on a TPU.
    assert scatters == 0 or not (name in ("step", "observe", "match") or name.startswith("search"))


def test_an_attention_policy_neither_gathers_nor_scatters_on_a_tpu():
    """There it is a product, whose gradient is one too."""
    game = envs.make("chess:size=5")
    net = make_network(game, dataclasses.replace(preset(game, "tpu"), channels=16, blocks=1))
    weights = jax.eval_shape(net.init, jax.random.key(0))
    assert "attention" in weights["params"]
    planes = jax.eval_shape(lambda: jnp.zeros((16, *game.observe(game.init()).shape)))
    text = lowered(jax.grad(lambda weights, planes: (net.apply(weights, planes)[0] ** 2).sum()), (weights, planes))
    assert not text.count('"stablehlo.scatter"(') + text.count('"stablehlo.gather"(')


@pytest.mark.parametrize("name", envs.list())
def test_rules_lower_for_tpu(name, record_property):
    """Rules of every game; scattered writes are slow on a TPU, so none may appear where today there are none."""
    game = envs.make(name)
    states = jax.eval_shape(jax.vmap(lambda _: game.init()), jnp.zeros(16))
    counts = {}
    for part, function, arguments in (
        ("step", jax.vmap(game.step), (states, jnp.zeros(16, jnp.int32))),
        ("mask", jax.vmap(game.mask), (states,)),
        ("observe", jax.vmap(game.observe), (states,)),
    ):
        text = lowered(function, arguments)
        counts[part] = text.count('"stablehlo.scatter"('), text.count('"stablehlo.gather"(')
    said = "  ".join(f"{part} {scatters}/{gathers}" for part, (scatters, gathers) in counts.items())
    record_property("report", f"tpu rules {name:16s} scatters/gathers: {said}")
    assert sum(scatters for scatters, _ in counts.values()) == 0
