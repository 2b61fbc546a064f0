"""Positions as rows of 32-bit words, as trees on accelerators store them.

A TPU lays the last two axes of an array out in tiles of at least 8 x 128 numbers. A board of 8 x 9 bools in every node
would fill 7% of its tiles. As words, all boards and scalars of a position share one row, with one bit for a bool.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.game import Array

WORD = 32  # bits


def packs_on(platform: str) -> bool:
    """Whether trees on a platform pay for packing. A CPU's caches take a board as it is."""
    return platform != "cpu"


@dataclasses.dataclass(frozen=True)
class Packing:
    """Converts positions of one kind to words and back, exactly. Any axes may lead both forms."""

    leaves: tuple[jax.ShapeDtypeStruct, ...]  # of one position
    structure: Any

    def pack(self, states: Any) -> Array:
        """uint32[..., W] from positions [...].

        Numbers of the same width are joined to one row. With n of them in a word, word i holds the numbers i, i + W,
        i + 2 W and so on, so that whole rows of words are shifted and added.
        """
        flat, parts = jax.tree.leaves(states), []
        for bits, members in self._widths():
            rows = [_to_words(flat[i], self.leaves[i]) for i in members]
            row = jnp.concatenate(rows, axis=-1)
            share = WORD // bits
            row = jnp.pad(row, [(0, 0)] * (row.ndim - 1) + [(0, -row.shape[-1] % share)])
            pieces = jnp.split(row, share, axis=-1)
            parts.append(sum(piece << jnp.uint32(bits * i) for i, piece in enumerate(pieces)))
        return jnp.concatenate(parts, axis=-1)

    def unpack(self, words: Array) -> Any:
        """Positions [...] from uint32[..., W]."""
        found: dict[int, Array] = {}
        for bits, members in self._widths():
            sizes, share = [self.leaves[i].size for i in members], WORD // bits
            width = -(-sum(sizes) // share)
            part, words = words[..., :width], words[..., width:]
            mask = jnp.uint32(2**bits - 1)
            row = jnp.concatenate([part >> jnp.uint32(bits * i) & mask for i in range(share)], axis=-1)
            ends = np.cumsum(sizes)
            for i, end in zip(members, ends, strict=True):
                found[i] = _from_words(row[..., end - self.leaves[i].size : end], self.leaves[i])
        return jax.tree.unflatten(self.structure, [found[i] for i in range(len(self.leaves))])

    def _widths(self) -> Iterator[tuple[int, list[int]]]:
        """Widths in bits, each with the numbers of the leaves of that width."""
        widths = [_bits(leaf.dtype) for leaf in self.leaves]
        for bits in dict.fromkeys(widths):
            yield bits, [i for i, width in enumerate(widths) if width == bits]


def packing_of(state: Any) -> Packing:
    """The packing of positions like `state`, an array tree or its shapes.

    Raises:
        ValueError: the position holds numbers of over 32 bits.
    """
    leaves, structure = jax.tree.flatten(state)
    for leaf in leaves:
        if _bits(leaf.dtype) > WORD:
            raise ValueError(f"expected positions of numbers of at most {WORD} bits, got {leaf.dtype}")
    return Packing(tuple(jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves), structure)


def _bits(dtype: Any) -> int:
    return 1 if jnp.issubdtype(dtype, jnp.bool_) else 8 * jnp.dtype(dtype).itemsize


def _to_words(x: Array, leaf: jax.ShapeDtypeStruct) -> Array:
    """Every number in the low bits of its own word, uint32[..., size]."""
    x = x.reshape(*x.shape[: x.ndim - len(leaf.shape)], leaf.size)
    if x.dtype != bool:
        x = jax.lax.bitcast_convert_type(x, jnp.dtype(f"uint{_bits(x.dtype)}"))
    return x.astype(jnp.uint32)


def _from_words(words: Array, leaf: jax.ShapeDtypeStruct) -> Array:
    """The inverse of `_to_words`."""
    if leaf.dtype == bool:
        x = words != 0
    else:
        x = jax.lax.bitcast_convert_type(words.astype(jnp.dtype(f"uint{_bits(leaf.dtype)}")), leaf.dtype)
    return x.reshape(*words.shape[:-1], *leaf.shape)
