"""Boards and moves of envs.go as the plain program has them."""

from __future__ import annotations

import numpy as np


def cells(stones) -> np.ndarray:
    """int8[..., n * n] of the rows of stones: 1 black, -1 white."""
    stones = np.asarray(stones)
    bits = (stones[..., None] >> np.arange(stones.shape[-1], dtype=np.uint32) & 1).astype(np.int8)
    return (bits[..., 0, :, :] - bits[..., 1, :, :]).reshape(*stones.shape[:-2], -1)


def points(legal) -> list[int]:
    return np.flatnonzero(legal).tolist()
