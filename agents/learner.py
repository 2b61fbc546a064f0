"""Loss, optimiser and update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from agents import mesh
from agents import replay as replay_lib
from agents.config import Config
from agents.network import Network
from agents.replay import Batch, Replay
from agents.search import ILLEGAL
from envs.game import Array, Game


class Learning(NamedTuple):
    """What learning carries from update to update."""

    weights: Any  # {"params", perhaps "batch_stats"}
    average: Any  # their exponential average: the network that plays
    optimiser: Any  # optax state
    updates: Array  # int32[]


class Losses(NamedTuple):
    policy_loss: Array  # cross entropy, nats
    value_loss: Array  # squared error
    policy_entropy: Array  # of the network's policy over legal actions, nats
    target_entropy: Array  # of the search's: the floor of policy_loss
    gradient_norm: Array


def loss(net: Network, weights: Any, batch: Batch, value_weight: float) -> tuple[Array, tuple[Losses, Any]]:
    """AlphaZero's loss: cross entropy to the search's policy over legal actions plus squared error to the outcome."""
    (logits, value), weights = net.train(weights, batch.planes)
    slots = jnp.take_along_axis(logits, jnp.maximum(batch.actions, 0), axis=-1)
    log_policy = jax.nn.log_softmax(jnp.where(batch.actions < 0, ILLEGAL, slots))
    entropy = lambda p, log_p: -jnp.where(p > 0, p * log_p, 0.0).sum(-1).mean()
    target = batch.policy / jnp.maximum(batch.policy.sum(-1, keepdims=True), 1e-6)
    policy_loss = entropy(target, log_policy)
    value_loss = jnp.square(value - batch.value).mean()
    losses = Losses(
        policy_loss=policy_loss,
        value_loss=value_loss,
        policy_entropy=entropy(jnp.exp(log_policy), log_policy),
        target_entropy=entropy(target, jnp.log(jnp.maximum(target, 1e-30))),
        gradient_norm=jnp.float32(0),
    )
    return policy_loss + value_weight * value_loss, (losses, weights)


def make_optimiser(config: Config) -> optax.GradientTransformation:
    """AdamW behind a clip of the gradient's norm, for a learning rate of 1: the rate is a factor of each update."""
    kernels = lambda params: jax.tree.map(lambda x: x.ndim > 1, params)
    return optax.chain(
        optax.clip_by_global_norm(config.clip_norm),
        optax.adamw(1.0, weight_decay=config.weight_decay, mask=kernels),
    )


def learning_rate(config: Config, updates: Array, progress: Array) -> Array:
    """Linear warm-up by updates, then a cosine from the peak down to `final_learning_rate` of it over the budget.

    `progress` in [0, 1] is the share of the budget used: iterations, or minutes where the run is given minutes.
    """
    warm = jnp.minimum((updates + 1) / max(config.warmup_updates, 1), 1.0)
    low = config.final_learning_rate
    return config.learning_rate * warm * (low + (1 - low) * 0.5 * (1 + jnp.cos(jnp.pi * jnp.clip(progress, 0, 1))))


def start_learning(net: Network, config: Config, key: Array) -> Learning:
    weights = net.init(key)
    # A copy: two names for one buffer could not both be given back to a compiled iteration.
    average = jax.tree.map(jnp.copy, weights)
    return Learning(weights, average, make_optimiser(config).init(weights["params"]), jnp.int32(0))


Learn = Callable[[Learning, Replay, Array, Array], tuple[Learning, Losses]]


def make_learner(game: Game, net: Network, config: Config, num_updates: int) -> Learn:
    """`learn(learning, replay, index int32[U, M], progress) -> (learning, Losses [U])`, inside a function mapped over
    the mesh: M rows of this device's replay for each update."""
    optimiser = make_optimiser(config)

    def update(learning: Learning, batch: Batch, progress: Array) -> tuple[Learning, Losses]:
        def of_params(params):
            return loss(net, {**learning.weights, "params": params}, batch, config.value_weight)

        params = learning.weights["params"]
        # Each device has seen its share of the batch.
        gradients, (losses, weights) = mesh.mean(jax.grad(of_params, has_aux=True)(params))
        steps, optimiser_state = optimiser.update(gradients, learning.optimiser, params)
        rate = learning_rate(config, learning.updates, progress)
        weights = {**weights, "params": jax.tree.map(lambda p, s: p + rate * s, params, steps)}
        # The average forgets the first weights quickly: after u updates it looks back over at most a tenth of them.
        decay = jnp.minimum(config.average_decay, (1 + learning.updates) / (10 + learning.updates))
        average = jax.tree.map(lambda a, w: decay * a + (1 - decay) * w, learning.average, weights)
        losses = losses._replace(gradient_norm=jnp.sqrt(sum(jnp.vdot(g, g) for g in jax.tree.leaves(gradients))))
        return Learning(weights, average, optimiser_state, learning.updates + 1), losses

    def learn(learning: Learning, replay: Replay, index: Array, progress: Array) -> tuple[Learning, Losses]:
        body = lambda learning, rows: update(learning, replay_lib.sample(game, replay, rows), progress)
        return jax.lax.scan(body, learning, index, length=num_updates)

    return learn
