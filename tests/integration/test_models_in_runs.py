"""Runs that begin with a shipped network: as it is, grown, and on another board."""

import dataclasses

import jax
import numpy as np
import pytest
from small_model import SPEC, run_and_model

import envs
from agents.network.network import make_network
from agents.run.resume import begin_with, sizes
from agents.storage import weights as models
from agents.storage.checkpoint import CheckpointError
from agents.training.iteration import start_run


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A run and the model made of it."""
    return run_and_model(tmp_path_factory.mktemp("models"))


def test_a_run_begins_with_the_network_of_another(folders):
    game, path = envs.make(SPEC), str(folders[1])
    config = dataclasses.replace(models.about(folders[1])["config"], init_from=path)
    begin = lambda config: begin_with(make_network(game, config), config)
    learning = start_run(game, begin(config), config).learning
    for begun, shipped in zip(
        jax.tree.leaves((learning.weights, learning.ema_weights)),
        2 * jax.tree.leaves(models.load_arrays(folders[1], config)),
        strict=True,
    ):
        np.testing.assert_array_equal(begun, shipped)
    for other, its, wanted in (
        ({"channels": 4, "blocks": 2}, "--channels=8, --blocks=1", "--channels=4, --blocks=2"),
        ({"channels": 16, "slides": False}, "--channels=8, --slides=True", "--channels=16, --slides=False"),
        ({"canonical": True}, "--canonical=False", "--canonical=True"),
    ):
        with pytest.raises(CheckpointError, match=f"network of {its}, which cannot become one of {wanted}$"):
            begin(dataclasses.replace(config, **other))
    with pytest.raises(CheckpointError, match=r"is a network for foq:rows=4,cols=5, not for go:size=5"):
        begin(dataclasses.replace(config, env="go:size=5"))
    with pytest.raises(CheckpointError, match=r"is for foq:rows=4,cols=5 with 5 planes, not 6$"):
        begin(dataclasses.replace(config, env="foq:rows=4,cols=5,planes=article"))
    assert sizes(folders[1])["channels"] == 8
    assert sizes(folders[1])["input_planes"] == 5  # all that the game has today, and what the network keeps


@pytest.mark.nightly
def test_a_run_begins_with_the_network_of_another_grown(folders):
    """Twice as wide and one block deeper it gives the same values and probabilities."""
    game, small = envs.make(SPEC), models.about(folders[1])["config"]
    large = dataclasses.replace(small, init_from=str(folders[1]), channels=16, blocks=2)
    net = begin_with(make_network(game, large), large)
    grown = start_run(game, net, large).learning.ema_weights
    assert grown["params"]["ResidualBlock_1"]["Conv_0"]["kernel"].shape[2:] == (16, 16)
    planes = jax.random.uniform(jax.random.key(0), (8, *jax.eval_shape(lambda: game.observe(game.init())).shape))
    before = make_network(game, small).apply(models.load_arrays(folders[1], small), planes)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-4), before, net.apply(grown, planes))


def test_a_run_begins_with_the_network_of_another_without_attention(tmp_path):
    """An attention policy that is added changes no answer at first, and then it learns. None is taken away."""
    spec = "chess:size=5"
    game, (_, model) = envs.make(spec), run_and_model(tmp_path / "without", spec, attention_policy=False)
    plain = models.about(model)["config"]
    more = dataclasses.replace(plain, init_from=str(model), attention_policy=True)
    net = begin_with(make_network(game, more), more)
    weights = start_run(game, net, more).learning.ema_weights
    planes = jax.random.uniform(jax.random.key(0), (8, 5, 5, 16))
    before = make_network(game, plain).apply(models.load_arrays(model, plain), planes)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-5), before, net.apply(weights, planes))
    slopes = jax.jit(jax.grad(lambda w: (net.apply(w, planes)[0] ** 3).sum()))(weights)
    assert np.abs(slopes["params"]["attention"]["end"]["kernel"]).max() > 0
    _, other = run_and_model(tmp_path / "with", spec, attention_policy=True)
    less = dataclasses.replace(plain, init_from=str(other))
    with pytest.raises(CheckpointError, match="--attention_policy=True, which cannot become one of --att"):
        begin_with(make_network(game, less), less)


@pytest.mark.nightly
def test_a_run_begins_with_the_network_of_another_that_sees_more(tmp_path):
    """It gives the same values and probabilities, whatever the further planes show."""
    game, (_, model) = envs.make(SPEC), run_and_model(tmp_path, input_planes=2)
    few = models.about(model)["config"]
    more = dataclasses.replace(few, init_from=str(model), input_planes=5)
    net = begin_with(make_network(game, more), more)
    weights = start_run(game, net, more).learning.ema_weights
    planes = jax.random.uniform(jax.random.key(0), (8, 4, 5, 5))
    before = make_network(game, few).apply(models.load_arrays(model, few), planes)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-4), before, net.apply(weights, planes))
    fewer = dataclasses.replace(more, input_planes=1)
    refusal = "is a network of --input_planes=2, which cannot become one of --input_planes=1$"
    with pytest.raises(CheckpointError, match=refusal):
        begin_with(make_network(game, fewer), fewer)


def test_a_run_begins_with_the_network_of_another_board(folders):
    config = dataclasses.replace(models.about(folders[1])["config"], init_from=str(folders[1]), env="foq:rows=6,cols=7")
    game = envs.make(config.env)
    larger = dataclasses.replace(config, channels=16)
    for wanted in (config, larger):
        net = begin_with(make_network(game, wanted), wanted)
        logits, value = net.apply(start_run(game, net, wanted).learning.weights, game.observe(game.init())[None])
        assert logits.shape == (1, game.num_actions)
        assert np.isfinite(value).all()
