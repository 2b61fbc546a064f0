"""A network that begins with what another one knows: a larger one with the same outputs (Chen, Goodfellow and Shlens
2016, "Net2Net: accelerating learning via knowledge transfer"), or one for another size of board."""

from __future__ import annotations

import zlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from agents.network.network import VALUE_CHANNELS
from envs.game import Array

UNEVEN = 0.5  # how far the shares of a channel's copies are from even ones, from 0 to 1


def grow(weights: Any, fresh: Any, channels: tuple[int, int], key: Array) -> Any:
    """Weights of the shapes of `fresh` that give the same outputs as `weights`, to rounding; with layer normalisation
    only where the wider network has a multiple of the channels.

    Channels are copied, each of them as often as the others or once more. Whatever listens to a channel listens to each
    copy with a share drawn by `key`, so that the copies go on to learn different things. Blocks that are new are those
    of `fresh`, which change nothing as long as their last layer is zero.

    Args:
        weights: of the smaller network.
        fresh: of the larger one, as its `init` gives them.
        channels: of the smaller and of the larger one, the first at most the second.
        key: for the shares.
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
    """Weights for another size of board. Convolutions, pooling and heads over cells suit any; the value's layer that
    knows the cells by their places is stretched like a picture. The outputs are a start, no more: edges are elsewhere.

    Args:
        weights: of the network for the first board.
        fresh: of the same network for the second one, as its `init` gives them.
        boards: rows and columns of both.
        channels: of the networks; the value hears two numbers of each beside those of the cells.

    Raises:
        ValueError: another layer has other shapes, which thus suits one size of board, or one game, only.
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


def copies(size: int, wide: int, channels: tuple[int, int]) -> np.ndarray:
    """int[wide], which entry of an axis of length `size` each entry of the longer one is a copy of. An axis holds all
    channels once or several times over, and behind them perhaps something else that stays as it is."""
    if size == wide:
        return np.arange(size)
    narrow, broad = channels
    times = (wide - size) // (broad - narrow)
    of = np.arange(times)[:, None] * narrow + np.arange(broad) % narrow
    return np.concatenate([of.ravel(), np.arange(times * narrow, size)])
