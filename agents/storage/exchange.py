"""Networks for programs that do not know ripzero: StableHLO, which JAX and the compilers of XLA read."""

from __future__ import annotations

import importlib

import jax
import jax.numpy as jnp

from agents.storage.weights import TrainedNetwork

PLATFORMS = ("cpu", "cuda", "tpu")


def stablehlo(trained: TrainedNetwork) -> bytes:
    """The network as `jax.export` writes it, with its weights, for CPUs, NVIDIA GPUs and TPUs.

    It is a function of the planes of `Game.observe`, float32[b, R, C, P] with any b, to logits float32[b, A] in the
    mover's frame and values float32[b] for the mover. With more than two players values are float32[b, n] in seat order
    from the mover.

    Raises:
        ValueError: flatbuffers is not installed.
    """
    try:
        importlib.import_module("flatbuffers")
    except ImportError:
        raise ValueError("expected flatbuffers to be installed: pip install flatbuffers") from None
    shape = jax.eval_shape(lambda: trained.game.observe(trained.game.init())).shape
    (batch,) = jax.export.symbolic_shape("b")
    # Position by position, since the network chooses its convolutions by the number of rows.
    one = lambda planes: jax.tree.map(lambda y: y[0], trained.net.apply(trained.weights, planes[None]))
    exported = jax.export.export(jax.jit(jax.vmap(one)), platforms=PLATFORMS)
    return bytes(exported(jax.ShapeDtypeStruct((batch, *shape), jnp.float32)).serialize())
