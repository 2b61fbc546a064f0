"""Runs converted functions in node, to compare them with Python's."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import tempfile
from typing import Any

import jax
import numpy as np
import pytest

from agents.serve.standalone import kernel
from agents.serve.standalone.values import TYPED

FOLDER = pathlib.Path(kernel.__file__).parent
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")

RUNNER = """
const fs = require("fs"), asked = JSON.parse(fs.readFileSync(0)), Kinds = {Uint8Array, Int8Array, Int16Array,
  Uint16Array, Int32Array, Uint32Array, Float32Array};
const matmul = asked.plain ? () => plainMatmul : (memory) => fastMatmul(Uint8Array.from(asked.kernel), memory);
const functions = program(newMemory, matmul), plain = (x) => typeof x === "object" ? Array.from(x) : Number(x);
const given = (x) => Array.isArray(x) ? Kinds[x[0]].from(x[1]) : x;
const answers = asked.calls.map(([name, ...leaves]) => {
  const found = functions[name](...leaves.map(given));
  return Array.isArray(found) ? found.map(plain) : [plain(found)];
});
console.log(JSON.stringify(answers, (key, x) => typeof x === "number" && !Number.isFinite(x) ? String(x) : x));
"""


def leaves(tree: Any) -> list[Any]:
    """The leaves of a pytree as a converted function takes them, JSON-ready."""
    arrays = [np.asarray(x) for x in jax.tree.leaves(tree)]
    return [[TYPED[str(x.dtype)], x.ravel().tolist()] if x.ndim else x.item() * 1 for x in arrays]


def run(text: str, calls: list[list[Any]], plain: bool = False) -> list[list[Any]]:
    """The answers of the calls `[name, *leaves]` by the functions in `text`: for each, all results, flat.

    With `plain`, matrices are multiplied without WebAssembly.
    """
    assert NODE is not None
    asked = {"calls": calls, "plain": plain, "kernel": list(kernel.module())}
    with tempfile.NamedTemporaryFile("w", suffix=".js") as file:
        file.write((FOLDER / "runtime.js").read_text() + text + RUNNER)
        file.flush()
        done = subprocess.run([NODE, file.name], input=json.dumps(asked), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
