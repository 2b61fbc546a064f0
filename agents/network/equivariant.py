"""A residual network that commutes with the symmetries of a game's board, exactly up to rounding.

Group convolutions (Cohen and Welling 2016, "Group equivariant convolutional networks"): every feature exists once per
symmetry g, in the frame of the board as g shows it, and all linear maps share their weights between frames. A position
and its image under a symmetry have the same features in permuted frames. `--channels` counts the features of all
frames together, so the arithmetic is that of `resnet` with as many channels, and the free weights are divided by the
number of symmetries.

A kernel is stored in full, [3, 3, I, O] as in `resnet`, and averaged over the symmetries where it is used. Gradients
then have the symmetry too, so Muon, weight decay, the average of the weights and net2net treat it as any other kernel.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from agents.config import NetworkOptions
from agents.network import pooling
from agents.network.convolution import convolve
from agents.network.network import SLIDE_CHANNELS, along_lines, resnet
from envs.game import Array, Game, Turn, rectangle_turns

LINES = (1, -1), (1, 0), (1, 1), (-1, -1), (-1, 0), (-1, 1), (0, 1), (0, -1)  # rows and columns, as in `along_lines`

AxisKind = Literal["plain", "planes", "frames", "lines"]
"""What a symmetry does to the channels of a cell: nothing, or permute the game's planes, the frames or the eight
directions."""


@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """The symmetries of a board, and how they permute the parts of features and kernels."""

    turns: tuple[Turn, ...]  # of the board, in the order of `Game.symmetries`
    offsets: np.ndarray  # int[G, 9], image of each place of a 3 x 3 kernel
    kinds: dict[AxisKind, np.ndarray]  # int[G, n], image of each of the n parts of a feature

    def tied(self, inputs: AxisKind, outputs: AxisKind, size: int) -> np.ndarray:
        """Which weights of a kernel are equal, as numbers from 0: int[size * size, n of inputs, n of outputs]."""
        offsets = self.offsets if size == 3 else np.zeros((len(self.turns), 1), int)
        images = [offsets, self.kinds[inputs], self.kinds[outputs]]
        shape = [x.shape[1] for x in images]
        flat = [np.ravel_multi_index(np.ix_(*parts), shape) for parts in zip(*images, strict=True)]
        return np.unique(np.min(flat, axis=0), return_inverse=True)[1].reshape(shape)


@functools.lru_cache(maxsize=64)
def group_of(game: Game) -> Group:
    """The group of the game's symmetries.

    Raises:
        ValueError: a symmetry is no turn or mirror of the board, perhaps with its planes in another order, or two of
            them are the same one or make one that is missing.
    """
    turns, planes = [], []
    with jax.ensure_compile_time_eval():
        shape = game.observe(game.init()).shape
        probe = jnp.arange(np.prod(shape), dtype=jnp.float32).reshape(shape)
        known = {np.asarray(turn.grid(probe)).tobytes(): turn for turn in reversed(rectangle_turns(*shape[:2]))}
        for symmetry in game.symmetries:
            view = np.asarray(symmetry.planes(probe))
            image = np.argsort(view[0, 0] % shape[2])  # where each plane goes
            turn = known.pop(view[..., image].tobytes(), None)
            if turn is None:
                what = f"expected turns and mirrors of the board, each once, got symmetry '{symmetry.name}'"
                raise ValueError(f"--network=equivariant: {what}")
            turns.append(turn)
            planes.append(image)
    small = {turn.name: turn.squares for turn in rectangle_turns(3, 3)}
    offsets = np.stack([small[turn.name] for turn in turns])
    number = {tuple(images): i for i, images in enumerate(offsets.tolist())}
    try:  # a symmetry s shows in frame j what it shows of the board before it in frame j s^-1
        frames = [[number[tuple(j[np.argsort(s)].tolist())] for j in offsets] for s in offsets]
    except KeyError:
        raise ValueError(f"--network=equivariant: expected a group, got {[turn.name for turn in turns]}") from None
    places = [3 * (1 + row) + 1 + column for row, column in LINES]
    lines = [[places.index(image) for image in s[places]] for s in offsets]
    kinds: dict[AxisKind, np.ndarray] = {
        "plain": np.zeros((len(turns), 1), int),
        "planes": np.array(planes),
        "frames": np.array(frames),
        "lines": np.array(lines),
    }
    return Group(tuple(turns), offsets, kinds)


def width(game: Game, config: NetworkOptions) -> int:
    """Channels of the body's features in each frame. All channels of the network are multiples of it.

    Raises:
        ValueError: the channels cannot be shared out evenly.
    """
    frames = len(game.symmetries) if config.network == "equivariant" else 1
    if config.channels % frames:
        raise ValueError(f"--channels: expected a multiple of {frames}, the symmetries, got {config.channels}")
    return config.channels // frames


def averaged(kernel: Array, tied: np.ndarray) -> Array:
    """The kernel [..., I, O] with the mean of its tied weights in the place of each.

    Two products with constant matrices instead of gathers, whose derivative would be scattered writes.
    """
    _, inputs, outputs = tied.shape
    split = kernel.reshape(-1, inputs, kernel.shape[-2] // inputs, outputs, kernel.shape[-1] // outputs)
    flat = split.transpose(0, 1, 3, 2, 4).reshape(tied.size, -1)
    member = np.eye(tied.max() + 1, dtype=np.float32)[tied.ravel()]
    product = functools.partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)
    flat = product(member, product((member / member.sum(0)).T, flat))
    joined = flat.reshape(*tied.shape, *split.shape[2::2]).transpose(0, 1, 3, 2, 4)
    return joined.reshape(kernel.shape)


class Tied(nn.Module):
    """Convolution of `size` 3 without bias, or dense layer (`size` 1), that commutes with the symmetries.

    Channels are ordered by part of their kind first, so the last axis of the input is [n of inputs * features].
    """

    group: Group
    features: int  # of each part of the outputs
    inputs: AxisKind = "frames"
    outputs: AxisKind = "frames"
    size: int = 3
    zero: bool = False  # start at zero

    @nn.compact
    def __call__(self, x: Array) -> Array:
        tied = self.group.tied(self.inputs, self.outputs, self.size)
        parts = tied.shape[2]

        def start(key: Array, shape: tuple[int, ...]) -> Array:
            """Normal with the variance of LeCun et al. 1998, alike for tied weights: their mean times a factor."""
            spread = (np.bincount(tied.ravel()).mean() / (tied.shape[0] * x.shape[-1])) ** 0.5
            return averaged(spread * jax.random.normal(key, shape), tied)

        shape = x.shape[-1], parts * self.features
        shape = (3, 3, *shape) if self.size == 3 else shape
        kernel = averaged(self.param("kernel", nn.initializers.zeros if self.zero else start, shape), tied)
        if self.size == 3:
            return convolve(x, kernel.astype(x.dtype))
        bias = self.param("bias", nn.initializers.zeros, (self.features,))
        bias = jnp.broadcast_to(bias, (parts, self.features)).reshape(-1)
        return x @ kernel.astype(x.dtype) + bias.astype(x.dtype)


class Block(nn.Module):
    """`ResidualBlock` of the plain network, with tied weights. x is [B, R, C, G * F], the gate [B, R, C, 1]."""

    group: Group
    features: int  # F
    pooling: bool
    norm: Callable[[], nn.Module]

    @nn.compact
    def __call__(self, x: Array, gate: Array | None) -> Array:
        layer = functools.partial(Tied, self.group)
        split = lambda x: x.reshape(*x.shape[:-1], len(self.group.turns), self.features)
        normal = lambda x: nn.relu(self.norm()(split(x))).reshape(x.shape)  # statistics over frames too
        near = y = layer(self.features)(normal(x))
        if self.pooling:
            whole = pooling.pooled(split(near)).reshape(len(x), -1)
            y = y + layer(self.features, size=1)(whole)[:, None, None]
        if gate is not None:
            heard = along_lines(layer(SLIDE_CHANNELS, outputs="lines", size=1)(near), gate)
            y = y + layer(self.features, inputs="lines", size=1)(0.5 * heard)
        return x + layer(self.features, zero=True)(normal(y))


def equivariant(config: NetworkOptions, norm: Callable[[], nn.Module], planes: Array, game: Game) -> Array:
    """Features in the frame of each symmetry, [B, G, R, C, F]. Without symmetries it is `resnet`."""
    if len(game.symmetries) < 2:
        return resnet(config, norm, planes, game)
    group, features = group_of(game), width(game, config)
    x, gate = Tied(group, features, inputs="planes")(planes), None
    frames = lambda x: x.reshape(*x.shape[:-1], len(group.turns), features)
    if config.slides:
        start = nn.initializers.constant(2.0)
        gate = nn.sigmoid(nn.Dense(1, bias_init=start, dtype=x.dtype)(frames(x).mean(-2)))
    for _ in range(config.blocks):
        x = Block(group, features, config.pooling, norm)(x, gate)
    x = frames(x)
    return jnp.stack([jax.vmap(turn.grid)(x[..., i, :]) for i, turn in enumerate(group.turns)], axis=1)
