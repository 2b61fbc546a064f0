"""Speed of the convolutions that agents/network/convolution.py writes out for CPUs, compared with XLA's own.

python benchmarks/convolutions.py [--json]

The test body has ten layers with ReLU between them, on one device. `forward` evaluates it, and `learn` also computes
its gradient, in milliseconds for ours. A ratio is XLA's time over ours. Both run once per round; figures are medians.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp

sys.path.insert(0, str(Path(__file__).parents[1]))

from agents.network import convolution
from agents.runtime import mesh
from benchmarks import rounds
from envs.game import Array

LAYERS, ROUNDS = 10, 7
# Rows of the board, columns, channels.
SIZES = [(6, 7, 32), (6, 7, 64), (8, 9, 16), (8, 9, 32), (8, 9, 64), (9, 9, 32), (9, 9, 64), (9, 9, 128), (19, 19, 64)]
BOARDS = 64  # per batch

Form = Callable[[Array, Array], Array]


@jax.custom_vjp
def plain(x: Array, kernel: Array) -> Array:
    """XLA's convolution; the kernel's gradient is formed as in `convolve` for few channels."""
    return convolution.as_it_is(x, kernel)


def plain_gradient(saved: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
    x, kernel = saved
    of_x = convolution.as_it_is(g, kernel[::-1, ::-1].swapaxes(2, 3))
    return of_x, convolution.of_kernel(x, g, [(1, 1), (1, 1)])


plain.defvjp(lambda x, kernel: (plain(x, kernel), (x, kernel)), plain_gradient)


def sides(form: Form, rows: int, columns: int, channels: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Evaluation and gradient of the body, each as a function without arguments."""
    x = jax.random.normal(jax.random.key(0), (BOARDS, rows, columns, channels))
    kernels = list(jax.random.normal(jax.random.key(1), (LAYERS, 3, 3, channels, channels)) * (2 / 9 / channels) ** 0.5)

    @jax.jit
    def forward(kernels):
        y = x
        for kernel in kernels:
            y = jax.nn.relu(form(y, kernel))
        return y

    learn = jax.jit(jax.grad(lambda kernels: jnp.square(forward(kernels)).mean()))
    return lambda: forward(kernels), lambda: learn(kernels)


def measure() -> Iterator[rounds.Row]:
    for rows, columns, channels in SIZES:
        ours, xla = (sides(form, rows, columns, channels) for form in (convolution.convolve, plain))
        row: rounds.Row = {"board": f"{rows} x {columns}", "channels": channels}
        for what, own, other in zip(("forward", "learn"), ours, xla, strict=True):
            times = rounds.take_turns({"ours": own, "xla": other}, ROUNDS)
            row[what] = round(1000 * median(times["ours"]), 2)
            row[f"{what}_ratio"] = rounds.ratio(times["xla"], times["ours"])
        yield row


def main() -> None:
    mesh.claim_cores()
    _, as_json = rounds.arguments()
    rounds.show(measure(), as_json)


if __name__ == "__main__":
    main()
