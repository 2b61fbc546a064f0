"""3 x 3 convolutions of boards, with a hand-written version for CPUs, where XLA's own is slow.

Other devices use XLA's convolution.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import NamedTuple

import jax
import jax.numpy as jnp

from envs.game import Array

AXES = "NHWC", "HWIO", "NHWC"
KERNEL_ROWS = 128  # rows per chunk of a kernel's gradient: more would not fit a CPU's caches
ENOUGH = 32  # channels from which fewer products outweigh the extra sums (docs/notes)
BOARDS = 8  # batch size from which fewer products outweigh the sums of the kernel
POINTS = [Fraction(p) for p in ("0", "1", "-1", "2", "-2", "1/2")]


@jax.custom_vjp
def convolve(x: Array, kernel: Array) -> Array:
    """Convolution of [B, R, C, I] with a kernel [3, 3, I, O]; the board is padded with zeros.

    On CPUs it takes fewer products (`with_fewer_products`), which changes results by a few millionths. The gradient is
    hand-written too: inside a loop, XLA's CPU compiler runs JAX's derivative as plain loops. A scan over updates would
    take about fifty times as long per update.
    """
    return jax.lax.platform_dependent(x, kernel, cpu=quickest, default=as_it_is)


def as_it_is(x: Array, kernel: Array) -> Array:
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=AXES)


def quickest(x: Array, kernel: Array) -> Array:
    """The faster form on a CPU."""
    tiles = worth(x, kernel)
    return with_fewer_products(x, kernel, *tiles) if tiles else as_it_is(x, kernel)


def worth(x: Array, kernel: Array) -> tuple[int, int] | None:
    """The board axis and tile length with the fewest products; None if tiling does not pay."""
    if len(x) < BOARDS or min(kernel.shape[2:]) < ENOUGH or x.dtype != jnp.float32:
        return None
    products, axis, tile = min((-(-x.shape[a] // m) * (m + 2) / x.shape[a], a, m) for a in (1, 2) for m in (2, 3, 4, 5))
    return (axis, tile) if products < 2 else None


class Transforms(NamedTuple):
    """Matrices that form `tile` sums of three products from tile + 2 products; rows are tuples of numbers."""

    board: tuple  # [tile + 2][tile + 2]
    kernel: tuple  # [tile + 2][3]
    sums: tuple  # [tile][tile + 2]


@functools.cache
def transforms(tile: int) -> Transforms:
    """Transforms from the values of polynomials at tile + 1 points and at infinity. Toom and Cook; Winograd 1980,
    "Arithmetic complexity of computations"; Lavin and Gray 2016, "Fast algorithms for convolutional neural
    networks"."""
    points = POINTS[: tile + 1]
    board = [[*with_roots([p for p in points if p != own]), Fraction(0)] for own in points] + [with_roots(points)]
    apart = [math.prod(own - p for p in points if p != own) for own in points]
    kernel = [[own**i / a for i in range(3)] for own, a in zip(points, apart, strict=True)] + [[0, 0, 1]]
    sums = [[p**i for p in points] + [int(i == tile - 1)] for i in range(tile)]
    numbers = lambda rows: tuple(tuple(float(x) for x in row) for row in rows)
    return Transforms(numbers(board), numbers(kernel), numbers(sums))


def with_roots(roots: list[Fraction]) -> list[Fraction]:
    """Coefficients of the product of all (x - root), constant first."""
    coefficients = [Fraction(1)]
    for root in roots:
        shifted, scaled = [Fraction(0), *coefficients], [*(root * c for c in coefficients), Fraction(0)]
        coefficients = [a - b for a, b in zip(shifted, scaled, strict=True)]
    return coefficients


def combined(rows: tuple, parts: list[Array]) -> list[Array]:
    """The matrix `rows` times the vector of arrays `parts`."""
    scaled = lambda row: [number * part for number, part in zip(row, parts, strict=True) if number]
    return [functools.reduce(jnp.add, scaled(row)) for row in rows]


def tiled(x: Array, axis: int, tile: int) -> list[Array]:
    """Transformed boards of all tiles: tile + 2 arrays with one entry per tile along the axis."""
    tiles = -(-x.shape[axis] // tile)
    x = jnp.pad(x, [(1, tiles * tile + 1 - x.shape[axis]) if a == axis else (0, 0) for a in range(4)])
    of = lambda i: jax.lax.slice_in_dim(x, i, i + tile * (tiles - 1) + 1, tile, axis)
    return combined(transforms(tile).board, [of(i) for i in range(tile + 2)])


def with_fewer_products(x: Array, kernel: Array, axis: int, tile: int) -> Array:
    """The same convolution in tiles along one board axis (1 or 2), with tile + 2 products for `tile` sums of three."""
    kernels = combined(transforms(tile).kernel, jnp.split(kernel, 3, axis=axis - 1))
    convolved = functools.partial(jax.lax.conv_general_dilated, window_strides=(1, 1), dimension_numbers=AXES)
    around = across(axis)
    products = [convolved(b, k, padding=around) for b, k in zip(tiled(x, axis, tile), kernels, strict=True)]
    y = jnp.stack(combined(transforms(tile).sums, products), axis=axis + 1)
    y = y.reshape(*y.shape[:axis], -1, *y.shape[axis + 2 :])
    return jax.lax.slice_in_dim(y, 0, x.shape[axis], axis=axis)


def across(axis: int) -> list[tuple[int, int]]:
    """Padding along the other board axis only."""
    return [(0, 0) if a == axis else (1, 1) for a in (1, 2)]


def of_kernel(x: Array, g: Array, around: list[tuple[int, int]]) -> Array:
    """The kernel's gradient: a convolution of each channel's boards, with `g` as kernel and the batch as channels.

    The barrier keeps both arrays transposed: XLA's CPU compiler convolves only this axis order quickly.
    """
    boards, window = jax.lax.optimization_barrier((x.transpose(3, 1, 2, 0), g.transpose(1, 2, 0, 3)))
    gradient = jax.lax.conv_general_dilated(boards, window, (1, 1), around, dimension_numbers=AXES)
    return gradient.transpose(1, 2, 0, 3)


def of_kernel_with_fewer_products(x: Array, g: Array, axis: int, tile: int) -> Array:
    """The same gradient with the products of `with_fewer_products`: every matrix is transposed."""
    turned = lambda rows: tuple(zip(*rows, strict=True))
    short = -x.shape[axis] % tile
    g = jnp.pad(g, [(0, short) if a == axis else (0, 0) for a in range(4)])
    of_sums = [jax.lax.slice_in_dim(g, i, None, tile, axis) for i in range(tile)]
    of_products = combined(turned(transforms(tile).sums), of_sums)
    of_kernels = [of_kernel(b, h, across(axis)) for b, h in zip(tiled(x, axis, tile), of_products, strict=True)]
    return jnp.concatenate(combined(turned(transforms(tile).kernel), of_kernels), axis=axis - 1)


def gradient(saved: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
    x, kernel = saved

    def as_convolutions(x, kernel, g):
        tiles = worth(x, kernel)
        of = lambda x, g: of_kernel_with_fewer_products(x, g, *tiles) if tiles else of_kernel(x, g, [(1, 1), (1, 1)])
        parts = max(n for n in range(1, math.ceil(len(x) / KERNEL_ROWS) + 1) if len(x) % n == 0)
        apart = lambda y: y.reshape(parts, -1, *y.shape[1:])
        add = lambda total, part: (total + of(*part), None)
        total = jax.lax.scan(add, jnp.zeros_like(kernel), (apart(x), apart(g)))[0] if parts > 1 else of(x, g)
        return quickest(g, kernel[::-1, ::-1].swapaxes(2, 3)), total

    def as_derived(x, kernel, g):
        return jax.vjp(as_it_is, x, kernel)[1](g)

    return jax.lax.platform_dependent(x, kernel, g, cpu=as_convolutions, default=as_derived)


convolve.defvjp(lambda x, kernel: (convolve(x, kernel), (x, kernel)), gradient)
