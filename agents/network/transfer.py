"""Starts a network from another network's weights: a larger network or one that sees more planes, both with the same
outputs, or another board size.

Growth follows Chen, Goodfellow and Shlens 2016, "Net2Net: accelerating learning via knowledge transfer".
"""

from __future__ import annotations

import zlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from agents.network.network import VALUE_CHANNELS
from envs.game import Array

UNEVEN = 0.5  # how far the weights of a channel's copies may deviate from equal, from 0 to 1


def grow(weights: Any, fresh: Any, channels: tuple[int, int], key: Array) -> Any:
    """Weights in the shapes of `fresh` that give the same outputs as `weights`, up to rounding.

    With layer normalisation this holds only if the wider network has a multiple of the channels. Channels are copied
    equally often, give or take one copy. Kernels split their weight for a channel among its copies, in random shares,
    so that the copies learn different features. New blocks, and an attention policy, come from `fresh`. They change
    nothing while their last layer is zero.

    Args:
        weights: of the smaller network.
        fresh: of the larger network, from its `init`.
        channels: of the smaller and of the larger network; the first is at most the second.
        key: for the random shares.
    """
    known = {jax.tree_util.keystr(where): x for where, x in jax.tree_util.tree_leaves_with_path(weights)}

    def leaf(where: Any, wide: Array) -> Array:
        name = jax.tree_util.keystr(where)
        if name not in known:
            return wide
        x = jnp.asarray(known[name])
        of = [copies(*sizes, channels) for sizes in zip(x.shape, wide.shape, strict=True)]
        grown = x[np.ix_(*of)]
        if where[-1].key != "kernel":
            return grown
        own = jax.random.fold_in(key, zlib.crc32(name.encode()))
        share = jax.random.uniform(own, grown.shape, minval=1 - UNEVEN, maxval=1 + UNEVEN)
        listened = jnp.zeros((*wide.shape[:-2], x.shape[-2], wide.shape[-1])).at[..., of[-2], :].add(share)
        return grown * (share / listened[..., of[-2], :])

    return jax.tree_util.tree_map_with_path(leaf, fresh)


def resize(weights: Any, fresh: Any, boards: tuple[tuple[int, int], tuple[int, int]], channels: int) -> Any:
    """Weights for another board size.

    Convolutions, pooling and heads over cells fit any size. The value layer, whose weights depend on the cell, is
    resized like an image. The outputs are only a starting point, because the edges have moved.

    Args:
        weights: of the network for the first board.
        fresh: of the same network for the second board, from its `init`.
        boards: rows and columns of both.
        channels: of the networks; the value head takes two numbers per channel in addition to those of the cells.

    Raises:
        ValueError: the shapes of another layer differ, so the network fits only one board size or one game.
    """
    before, after = (rows * columns * VALUE_CHANNELS for rows, columns in boards)
    shared = 2 * channels

    def leaf(where: Any, x: Array, wanted: Array) -> Array:
        x = jnp.asarray(x)
        if x.ndim != 2 or (len(x), wanted.shape) != (shared + before, (shared + after, x.shape[1])):
            if x.shape != wanted.shape:
                name = jax.tree_util.keystr(where, simple=True, separator="/")
                raise ValueError(f"{name} is of {list(x.shape)} there, of {list(wanted.shape)} here")
            return x
        cells = x[shared:].reshape(*boards[0], VALUE_CHANNELS, -1)
        cells = jax.image.resize(cells, (*boards[1], *cells.shape[2:]), "linear") * (before / after)
        return jnp.concatenate([x[:shared], cells.reshape(after, -1)])

    return jax.tree_util.tree_map_with_path(leaf, weights, fresh)


def add_planes(weights: Any, fresh: Any, planes: tuple[int, int]) -> Any:
    """Weights of a network that sees more of the game's planes and gives the same outputs: the kernels of the new
    planes are zero.

    Args:
        weights: of the network that sees the first planes.
        fresh: the same network's weights or shapes with the further planes.
        planes: how many both see; the first number is at most the second.
    """
    before, after = planes

    def leaf(x: Array, wanted: Array) -> Array:
        x = jnp.asarray(x)
        if x.shape == wanted.shape:
            return x
        kernel = x.reshape(*x.shape[:-2], -1, before, x.shape[-1])  # planes vary fastest, within a cell of a perceptron
        new = [(0, 0)] * (kernel.ndim - 2) + [(0, after - before), (0, 0)]
        return jnp.pad(kernel, new).reshape(wanted.shape)

    return jax.tree.map(leaf, weights, fresh)


def copies(size: int, wide: int, channels: tuple[int, int]) -> np.ndarray:
    """For each entry of the longer axis, the entry of the shorter axis that it copies, int[wide]. An axis of length
    `size` holds all channels once or several times. Further entries after them are kept unchanged."""
    if size == wide:
        return np.arange(size)
    narrow, broad = channels
    times = (wide - size) // (broad - narrow)
    of = np.arange(times)[:, None] * narrow + np.arange(broad) % narrow
    return np.concatenate([of.ravel(), np.arange(times * narrow, size)])
