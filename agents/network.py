"""Policy and value networks: a residual network for boards, a perceptron for tiny games."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from agents.config import Config
from envs.game import Array, Game


@dataclasses.dataclass(frozen=True)
class Network:
    """A network as two pure functions. Weights are a pytree {"params", perhaps "batch_stats"}."""

    init: Callable[[Array], Any]  # key -> weights
    apply: Callable[[Any, Array], tuple[Array, Array]]
    """(weights, float32[B, R, C, P]) -> logits float32[B, A] in the mover's frame, value float32[B] for the mover."""
    train: Callable[[Any, Array], tuple[tuple[Array, Array], Any]]
    """The same for learning; also gives the weights with new running statistics, where the network has some."""


class Norm(nn.Module):
    """Normalisation of the given kind; `none` is a learnt scale and shift per channel."""

    kind: str
    train: bool

    @nn.compact
    def __call__(self, x: Array) -> Array:
        if self.kind == "batch":
            return nn.BatchNorm(use_running_average=not self.train, momentum=0.95, dtype=x.dtype)(x)
        if self.kind == "layer":
            return nn.LayerNorm(dtype=x.dtype)(x)
        scale = self.param("scale", nn.initializers.ones, (x.shape[-1],))
        bias = self.param("bias", nn.initializers.zeros, (x.shape[-1],))
        return x * scale.astype(x.dtype) + bias.astype(x.dtype)


class ResidualBlock(nn.Module):
    """Pre-activation block (He et al. 2016) whose last layer starts at zero, so that it starts as the identity."""

    config: Config
    train: bool
    layer: Callable[..., nn.Module]

    @nn.compact
    def __call__(self, x: Array) -> Array:
        kind = self.config.normalisation
        y = self.layer()(nn.relu(Norm(kind, self.train)(x)))
        return x + self.layer(kernel_init=nn.initializers.zeros)(nn.relu(Norm(kind, self.train)(y)))


class PolicyValue(nn.Module):
    """Body and two heads. With one action per cell, and perhaps a few more (a pass), the policy head is a map over the
    board and shares its weights between cells; otherwise it is a dense layer."""

    config: Config
    num_actions: int
    train: bool

    @nn.compact
    def __call__(self, planes: Array) -> tuple[Array, Array]:
        c, dtype = self.config, jnp.dtype(self.config.dtype)
        x = planes.astype(dtype)
        if c.network == "mlp":
            layer = lambda **kw: nn.Dense(c.channels, use_bias=False, dtype=dtype, **kw)
            x = x.reshape(len(x), -1)
        else:
            layer = lambda **kw: nn.Conv(c.channels, (3, 3), use_bias=False, dtype=dtype, **kw)
        x = layer()(x)
        for _ in range(c.blocks):
            x = ResidualBlock(c, self.train, layer)(x)
        x = nn.relu(Norm(c.normalisation, self.train)(x)).astype(jnp.float32)
        return self.policy(x), self.value(x)

    def policy(self, x: Array) -> Array:
        zeros = {"kernel_init": nn.initializers.zeros}  # starts uniform
        if x.ndim == 2:
            return nn.Dense(self.num_actions, **zeros)(x)
        cells = x.shape[1] * x.shape[2]
        x = nn.relu(nn.Dense(self.config.channels)(x))
        if 0 <= self.num_actions - cells <= 2:
            of_cells = nn.Dense(1, **zeros)(x).reshape(len(x), cells)
            others = nn.Dense(self.num_actions - cells, **zeros)(x.mean((1, 2)))
            return jnp.concatenate([of_cells, others], axis=-1)
        return nn.Dense(self.num_actions, **zeros)(x.reshape(len(x), -1))

    def value(self, x: Array) -> Array:
        if x.ndim == 4:
            pooled = jnp.concatenate([x.mean((1, 2)), x.max((1, 2))], axis=-1)
            cells = nn.relu(nn.Dense(4)(x)).reshape(len(x), -1)
            x = jnp.concatenate([pooled, cells], axis=-1)
        x = nn.relu(nn.Dense(64)(x))
        return jnp.tanh(nn.Dense(1, kernel_init=nn.initializers.zeros)(x))[:, 0]


def make_network(game: Game, config: Config) -> Network:
    """The network of `config` for the shapes of `game`."""
    shape = jax.eval_shape(lambda: game.observe(game.init())).shape

    def module(train: bool) -> PolicyValue:
        return PolicyValue(config, game.num_actions, train)

    def train(weights, planes):
        output, changed = module(True).apply(weights, planes, mutable=["batch_stats"])
        return output, {**weights, **changed}

    return Network(
        init=lambda key: module(False).init(key, jnp.zeros((1, *shape))),
        apply=lambda weights, planes: module(False).apply(weights, planes),
        train=train,
    )
