"""Networks as StableHLO and ONNX give the answers of the network, for batches of any size, without ripzero."""

import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from random_network import random_weights

import envs
from agents.config import Config
from agents.network.network import make_network
from agents.storage import exchange
from agents.storage.weights import TrainedNetwork, load_network

ROOT = Path(__file__).parents[2]
FOREIGN = """
import sys, jax, numpy as np
net = jax.export.deserialize(bytearray(open(sys.argv[1], "rb").read()))
for batch in (1, 5, 130):
    planes = np.load(sys.argv[2])[:batch]
    logits, value = net.call(planes)
    np.savez(f"{sys.argv[2]}.{batch}.npz", logits=logits, value=value)
assert not any(name.split(".")[0] in ("agents", "envs") for name in sys.modules)
"""


@pytest.mark.parametrize("name", ["connect_four", pytest.param("foq_multi", marks=pytest.mark.nightly), "sum_to_100"])
def test_another_program_evaluates_the_network(tmp_path, name):
    exported, planes_at = tmp_path / "net.stablehlo", tmp_path / "planes.npy"
    command = [sys.executable, "-m", "agents.storage.export", f"models/{name}", str(exported)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    trained = load_network(ROOT / "models" / name)
    shape = trained.game.observe(trained.game.init()).shape
    planes = np.random.default_rng(0).normal(size=(130, *shape)).astype(np.float32)
    np.save(planes_at, planes)
    foreign = [sys.executable, "-c", FOREIGN, str(exported), str(planes_at)]
    done = subprocess.run(foreign, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    for batch in (1, 5, 130):
        wanted = trained.net.apply(trained.weights, planes[:batch])
        found = np.load(f"{planes_at}.{batch}.npz")
        for answer, right in zip((found["logits"], found["value"]), wanted, strict=True):
            np.testing.assert_allclose(answer, right, atol=3e-4)


def check_onnx(trained, tolerance=1e-4):
    """onnxruntime gives the network's answers for one position and for seven."""
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(exchange.onnx(trained), providers=["CPUExecutionProvider"])
    shape = trained.game.observe(trained.game.init()).shape
    # Zeros and ones, as planes have: other numbers may leave no hidden layer of the policy active.
    planes = (np.random.default_rng(0).random((7, *shape)) < 0.3).astype(np.float32)
    wanted = [np.asarray(x) for x in trained.net.apply(trained.weights, planes)]
    for rows in (1, 7):
        answers = session.run(["logits", "values"], {"planes": planes[:rows]})
        for answer, right in zip(answers, wanted, strict=True):
            np.testing.assert_allclose(answer, right[:rows], rtol=0, atol=tolerance)
    assert np.ptp(wanted[0], axis=0).max() > 10 * tolerance  # positions differ


# One of each structure: other sizes bring no other operations.
STRUCTURES = ["chess", "evopawness", "foq", "foq_multi", "gardner_chess", "go_9x9", "hex_5x5", "sum_to_100"]


@pytest.mark.parametrize("name", STRUCTURES)
def test_onnx_gives_the_answers_of_shipped_networks(name):
    check_onnx(load_network(ROOT / "models" / name))


def of_options(env="foq:rows=4,cols=5", **options):
    """A network for a small board with random weights."""
    config = Config(env=env, channels=8, blocks=1, **options)
    game = envs.make(config.env)
    net = make_network(game, config)
    weights = random_weights(jax.eval_shape(net.init, jax.random.key(0)), 1)
    return TrainedNetwork(Path("random"), game, config, net, weights)


OTHERS = [{"normalisation": "layer"}, {"network": "strips"}, {"env": "chess:size=5", "attention_policy": True}]


@pytest.mark.parametrize("options", OTHERS)
def test_onnx_gives_the_answers_of_other_networks(options):
    check_onnx(of_options(**options))


def test_onnx_of_a_network_in_half_precision_computes_in_single():
    check_onnx(of_options(dtype="bfloat16"), tolerance=0.05)


def test_onnx_names_the_primitive_that_it_lacks():
    pytest.importorskip("onnx")
    with pytest.raises(ValueError, match=r"expected a network without the primitive \w+, "):
        exchange.onnx(of_options(canonical=True))
