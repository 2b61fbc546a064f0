"""Runs converted functions in node or in a browser, and compares them with Python's."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from agents.serve.standalone import kernel
from agents.serve.standalone.program import functions, turned
from agents.serve.standalone.values import TYPED
from envs.game import Game

FOLDER = pathlib.Path(kernel.__file__).parent
GAMES = [*envs.list(), "docs/domineering.py", "docs/chomp.py"]
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")
POSITIONS = 200

ANSWERS = """
// C = A B in the plain form, which defines what the kernel has to give.
function plainMatmul(a, b, c, m, k, n) {
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) {
      let sum = 0;
      for (let l = 0; l < k; l++) sum = Math.fround(sum + Math.fround(a[i * k + l] * b[l * n + j]));
      c[i * n + j] = sum;
    }
  }
}

function answers(asked) {
  const Kinds = {Uint8Array, Int8Array, Int16Array, Uint16Array, Int32Array, Uint32Array, Float32Array};
  const matmul = asked.plain ? () => plainMatmul : (memory) => fastMatmul(Uint8Array.from(asked.kernel), memory);
  const functions = program(newMemory, matmul), plain = (x) => typeof x === "object" ? Array.from(x) : [Number(x)];
  const given = (x) => Array.isArray(x) ? Kinds[x[0]].from(x[1]) : x;
  const found = asked.calls.map(([name, ...leaves]) => {
    const results = functions[name](...leaves.map(given));
    return (Array.isArray(results) ? results : [results]).map(plain);
  });
  return JSON.stringify(found, (key, x) => typeof x === "number" && !Number.isFinite(x) ? String(x) : x);
}
"""

Calls = list[list[Any]]
Engine = Callable[[str, str], str]
"""(script, JSON) -> the JSON that the script's function `answers` gives."""


def node(script: str, asked: str) -> str:
    assert NODE is not None
    with tempfile.NamedTemporaryFile("w", suffix=".js") as file:
        file.write(f'{script}console.log(answers(JSON.parse(require("fs").readFileSync(0))));')
        file.flush()
        done = subprocess.run([NODE, file.name], input=asked, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def run(text: str, calls: Calls, plain: bool = False, engine: Engine = node) -> list[list[list[Any]]]:
    """The answers of the calls `[name, *leaves]` by the functions in `text`: for each, all results, flat.

    With `plain`, matrices are multiplied without WebAssembly.
    """
    asked = {"calls": calls, "plain": plain, "kernel": list(kernel.module())}
    return json.loads(engine((FOLDER / "runtime.js").read_text() + text + ANSWERS, json.dumps(asked)))


def leaves(tree: Any) -> list[Any]:
    """The leaves of a pytree as a converted function takes them, JSON-ready."""
    arrays = [np.asarray(x) for x in jax.tree.leaves(tree)]
    return [[TYPED[str(x.dtype)], x.ravel().tolist()] if x.ndim else x.item() * 1 for x in arrays]


def flat(tree: Any) -> list[list[Any]]:
    """The leaves of a pytree as `run` gives them."""
    number = lambda x: x if np.isfinite(x) else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(x)]
    return [[number(y) for y in np.asarray(x, np.float64).ravel().tolist()] for x in jax.tree.leaves(tree)]


def positions(game: Game, count: int = POSITIONS, seed: int = 0) -> tuple[Any, np.ndarray, np.ndarray]:
    """Positions of random games at random depths, one move in a hundred illegal; for each a legal action, if there is
    one, and an action of which half are any number."""
    rng = np.random.default_rng(seed)
    step, mask = jax.jit(jax.vmap(game.step)), jax.jit(jax.vmap(game.mask))
    states = jax.tree.map(lambda x: np.repeat(np.asarray(x)[None], count, 0), game.init())
    depth = rng.integers(0, min(game.max_plies, 100), count)
    for ply in range(depth.max()):
        moved = step(states, _actions(rng, np.asarray(mask(states)), 0.01))
        going = lambda x, ply=ply: (ply < depth).reshape(-1, *[1] * (x.ndim - 1))
        states = jax.tree.map(lambda new, old: np.where(going(old), new, old), moved, states)
    legal = _actions(rng, np.asarray(mask(states)), 0.0)
    return states, legal, _actions(rng, np.asarray(mask(states)), 0.5)


def _actions(rng: np.random.Generator, mask: np.ndarray, wild: float) -> np.ndarray:
    """A random legal action in each lane, or any number where there is none; a share of `wild` is any number."""
    any_ = rng.integers(-3, mask.shape[1] + 3, len(mask))
    legal = [rng.choice(np.flatnonzero(row)) if row.any() else other for row, other in zip(mask, any_, strict=True)]
    return np.where(rng.random(len(mask)) < wild, any_, legal).astype(np.int32)


def rules(game: Game) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """What a page computes of a game without its network, `step` with its forfeits, and the view of every symmetry."""
    s = game.init()
    return functions(game, None) | {
        "step": (game.step, (s, jnp.int32(0))),
        "observe": (game.observe, (s,)),
        "turned": (lambda s: turned(game, s), (s,)),
    }


def compare(game: Game, text: str, engine: Engine = node) -> list[tuple[str, int]]:
    """Functions and positions whose answers in JavaScript differ from Python's."""
    states, legal, any_ = positions(game)
    going = np.flatnonzero(~np.asarray(jax.vmap(game.over)(states)))
    functions_of = rules(game)
    given = {name: (states,) if len(example) == 1 else (states, any_ if name == "step" else legal)
             for name, (_, example) in functions_of.items()}  # fmt: skip
    python = lambda given: {name: jax.vmap(function)(*given[name]) for name, (function, _) in functions_of.items()}
    answers = jax.tree.map(np.asarray, jax.jit(python)(given))
    asked = [(name, int(i)) for name in functions_of
             for i in (going if name in ("move", "wins", "known") else range(POSITIONS))]  # fmt: skip
    lane = lambda tree, i: jax.tree.map(lambda x: np.asarray(x)[i], tree)
    found = run(text, [[name, *leaves(lane(given[name], i))] for name, i in asked], engine=engine)
    return [(name, i) for (name, i), answer in zip(asked, found, strict=True) if answer != flat(lane(answers[name], i))]
