"""Networks as StableHLO give the answers of the network, for batches of any size, without anything of ripzero."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from agents.storage.weights import load_network

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


@pytest.mark.parametrize("name", ["connect_four", "foq_multi", "sum_to_100"])
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
