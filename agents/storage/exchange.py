"""Networks for programs that do not know ripzero: StableHLO, which JAX and the compilers of XLA read, and ONNX.

An exported network is a function of the planes of `Game.observe`, float32[b, R, C, P] with any b, to logits
float32[b, A] in the mover's frame and values float32[b] for the mover. With more than two players values are
float32[b, n] in seat order from the mover.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from agents.network.network import Network, make_network
from agents.storage.weights import TrainedNetwork

PLATFORMS = ("cpu", "cuda", "tpu")


def stablehlo(trained: TrainedNetwork) -> bytes:
    """The network as `jax.export` writes it, with its weights, for CPUs, NVIDIA GPUs and TPUs.

    Raises:
        ValueError: flatbuffers is not installed.
    """
    _needs("flatbuffers")
    (batch,) = jax.export.symbolic_shape("b")
    exported = jax.export.export(jax.jit(_by_position(trained, trained.net)), platforms=PLATFORMS)
    return bytes(exported(jax.ShapeDtypeStruct((batch, *_shape(trained)), jnp.float32)).serialize())


def onnx(trained: TrainedNetwork) -> bytes:
    """The network as an ONNX model with the input `planes` and the outputs `logits` and `values`. It computes in
    float32, also where the network was trained in bfloat16.

    Raises:
        ValueError: onnx is not installed, or the network computes something for which there is no conversion.
    """
    _needs("onnx")
    from agents.storage import onnx_graph  # needs onnx

    net = make_network(trained.game, dataclasses.replace(trained.config, dtype="float32"))
    return onnx_graph.model(_by_position(trained, net), _shape(trained), ("planes", "logits", "values"))


def _needs(package: str) -> None:
    try:
        importlib.import_module(package)
    except ImportError:
        raise ValueError(f"expected {package} to be installed: pip install {package}") from None


def _shape(trained: TrainedNetwork) -> tuple[int, ...]:
    return jax.eval_shape(lambda: trained.game.observe(trained.game.init())).shape


def _by_position(trained: TrainedNetwork, net: Network) -> Callable[[Any], Any]:
    """The network, position by position, since it chooses its convolutions by the number of rows."""
    return jax.vmap(lambda planes: jax.tree.map(lambda y: y[0], net.apply(trained.weights, planes[None])))
