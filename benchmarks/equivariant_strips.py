"""Strips that know the board's symmetry: the network body `equivariant_strips`, for benchmarks/networks.py.

A layer of the body `strips` mixes a whole row, and the next one a whole column. A symmetry that turns rows into columns
would exchange the two, so here one layer mixes rows and columns at once and adds them. As in the body `equivariant`,
every feature exists once per symmetry, and weights are equal where a symmetry takes one to the other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from agents.config import NetworkOptions
from agents.network.equivariant import Group, Tied, averaged, group_of, width
from agents.network.network import register_network
from envs.game import Array, Game


def tied_strips(group: Group, rows: int, cols: int) -> np.ndarray:
    """Which weights are equal, as numbers from 0: int[C * C + R * R, G, G]. The first axis counts pairs of places in a
    row, then pairs of places in a column; the others are the frames of input and output."""
    along_row = [(0, p, 0, q) for p in range(cols) for q in range(cols)]
    along_column = [(p, 0, q, 0) for p in range(rows) for q in range(rows)]
    frames, images = group.kinds["frames"], []
    shape = len(along_row) + len(along_column), len(frames), len(frames)
    for turn, moved in zip(group.turns, frames, strict=True):
        there = [divmod(int(square), cols) for square in turn.squares]
        turned = there[0][0] != there[1][0]  # rows become columns
        places = []
        for r, c, row, col in along_row + along_column:
            (i, j), (k, m) = there[r * cols + c], there[row * cols + col]
            in_row = (len(places) < cols * cols) != turned
            places.append(j * cols + m if in_row else cols * cols + i * rows + k)
        images.append(np.ravel_multi_index(np.ix_(places, moved, moved), shape))
    return np.unique(np.min(images, axis=0), return_inverse=True)[1].reshape(shape)


class TiedStrips(nn.Module):
    """The sum of a dense layer over each row and one over each column. x is [B, R, C, G * F]."""

    tied: np.ndarray

    @nn.compact
    def __call__(self, x: Array) -> Array:
        _, rows, cols, channels = x.shape
        spread = np.bincount(self.tied.ravel()).mean() ** 0.5  # makes up for the mean over tied weights
        start = lambda key, shape: spread * nn.initializers.lecun_normal()(key, shape)
        row = self.param("row", start, (cols * channels, cols * channels))
        column = self.param("column", start, (rows * channels, rows * channels))
        square = channels, channels
        pairs = lambda kernel, n: kernel.reshape(n, channels, n, channels).swapaxes(1, 2).reshape(-1, *square)
        whole = lambda kernel, n: kernel.reshape(n, n, *square).swapaxes(1, 2).reshape(n * channels, -1)
        both = averaged(jnp.concatenate([pairs(row, cols), pairs(column, rows)]), self.tied).astype(x.dtype)
        row, column = whole(both[: cols * cols], cols), whole(both[cols * cols :], rows)
        of_rows = (x.reshape(-1, cols * channels) @ row).reshape(x.shape)
        turned = x.swapaxes(1, 2)
        of_columns = (turned.reshape(-1, rows * channels) @ column).reshape(turned.shape)
        return of_rows + of_columns.swapaxes(1, 2)


class Block(nn.Module):
    """Two residual steps with strips. x is [B, R, C, G, F]."""

    tied: np.ndarray
    norm: Callable[[], nn.Module]

    @nn.compact
    def __call__(self, x: Array) -> Array:
        for step in range(2):
            y = nn.relu(self.norm()(x)).reshape(*x.shape[:3], -1)  # statistics over frames too
            y = TiedStrips(self.tied)(y).reshape(x.shape)
            x = x + y * self.param(f"gain_{step}", nn.initializers.constant(0.3), x.shape[-1:]).astype(x.dtype)
        return x


def equivariant_strips(config: NetworkOptions, norm: Callable[[], nn.Module], planes: Array, game: Game) -> Array:
    """Features in the frame of each symmetry, [B, G, R, C, F]."""
    group, features = group_of(game), width(game, dataclasses.replace(config, network="equivariant"))
    x = Tied(group, features, inputs="plain")(planes)
    x = x.reshape(*x.shape[:-1], len(group.turns), features)
    for _ in range(config.blocks):
        x = Block(tied_strips(group, *planes.shape[1:3]), norm)(x)
    return jnp.stack([jax.vmap(turn.grid)(x[..., i, :]) for i, turn in enumerate(group.turns)], axis=1)


register_network("equivariant_strips", equivariant_strips)
