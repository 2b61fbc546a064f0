"""Loss, optimiser and update."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from agents.actions import ILLEGAL
from agents.config import Config, LearnerOptions
from agents.network.network import Network
from agents.runtime import mesh
from agents.training import proof_targets
from agents.training import replay as replay_lib
from agents.training.proof_targets import ProofTargets
from agents.training.replay import Batch, Replay
from envs.game import Array, Game


class Learning(NamedTuple):
    """State carried from update to update."""

    weights: Any  # {"params", perhaps "batch_stats"}
    ema_weights: Any  # exponential average of the weights: the network that plays
    optimiser: Any  # optax state
    updates: Array  # int32[], updates made
    skipped: Array  # int32[], updates skipped since the last one made


class Losses(NamedTuple):
    policy_loss: Array  # cross entropy, nats
    value_loss: Array  # squared error
    policy_entropy: Array  # of the network's policy over legal actions, nats
    target_entropy: Array  # of the search's policy: the floor of policy_loss
    value_baseline: Array  # value_loss of a head that always says 0; a head that is no better has learned nothing
    future_loss: Array  # cross entropy of the future targets, nats; 0 where they are not learned
    gradient_norm: Array
    skipped_updates: Array  # 1 where the update was skipped, see `make_update`; the other losses are then NaN


def loss(
    net: Network, weights: Any, batch: Batch, config: Config, axis: str | None = None
) -> tuple[Array, tuple[Losses, Any]]:
    """AlphaZero's loss: cross entropy to the search's policy over legal actions plus squared error to the value target.

    `future_weight` adds the cross entropy of the future targets, where they are known: who makes each move in the rest
    of the game, or who owns its cell at the end. The network normalises over the devices of `axis`, by the rows of
    self-play alone, since only those occur in play. Means are over `batch`, which may be a device's share.
    """
    count = len(batch.planes)
    selfplay = jnp.arange(count) < count - proof_targets.rows_per_batch(config, count)
    heads, weights = net.train(weights, batch.planes, axis, selfplay if config.proof_share else None)
    policy_loss, policy_entropy, target_entropy = policy_cross_entropy(heads.policy, batch.actions, batch.policy)
    value_loss = jnp.square(heads.value - batch.value).mean()
    future_loss = jnp.float32(0)
    if heads.future is not None and batch.future is not None:
        log_future = jax.nn.log_softmax(heads.future)
        log_likelihood = jnp.take_along_axis(log_future, jnp.maximum(batch.future, 0)[..., None], axis=-1)[..., 0]
        future_loss = -jnp.where(batch.future < 0, 0.0, log_likelihood).mean()
    losses = Losses(
        policy_loss=policy_loss,
        value_loss=value_loss,
        policy_entropy=policy_entropy,
        target_entropy=target_entropy,
        value_baseline=jnp.square(batch.value).mean(),
        future_loss=future_loss,
        gradient_norm=jnp.float32(0),
        skipped_updates=jnp.float32(0),
    )
    return policy_loss + value_loss + config.future_weight * future_loss, (losses, weights)


def policy_cross_entropy(logits: Array, actions: Array, policy: Array) -> tuple[Array, Array, Array]:
    """Cross entropy of `logits` [M, A] to a policy over slots [M, K] with codes `actions`, -1 in empty ones. Also the
    entropies of the logits and of that policy. Means over the batch in nats; a row without a policy adds nothing to the
    first."""
    slots = jnp.take_along_axis(logits, jnp.maximum(actions, 0), axis=-1)
    log_policy = jax.nn.log_softmax(jnp.where(actions < 0, ILLEGAL, slots))
    entropy = lambda p, log_p: -jnp.where(p > 0, p * log_p, 0.0).sum(-1).mean()
    target = policy / jnp.maximum(policy.sum(-1, keepdims=True), 1e-6)
    own = entropy(jnp.exp(log_policy), log_policy)
    return entropy(target, log_policy), own, entropy(target, jnp.log(jnp.maximum(target, 1e-30)))


def orthogonal(x: Array) -> Array:
    """Approximate orthogonal factors of matrices [S, M, N]: singular values between about 0.7 and 1.2 replace theirs.

    Five steps of the Newton-Schulz iteration of Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural
    networks", with their coefficients.
    """
    if x.shape[1] < x.shape[2]:
        return orthogonal(x.mT).mT

    def newton_schulz(_, x):
        gram = x.mT @ x
        return 3.4445 * x + x @ (-4.7750 * gram + 2.0315 * gram @ gram)

    return jax.lax.fori_loop(0, 5, newton_schulz, x / (jnp.linalg.norm(x, axis=(1, 2), keepdims=True) + 1e-7))


def of_kernels(function: Callable[[Array], Array], kernels: Any) -> Any:
    """Applies a function of matrices [S, M, N] to kernels [..., N], each as a matrix.

    Matrices of one shape are stacked. A network has many kernels of few shapes, and accelerators compile and run one
    product for each shape faster.
    """
    leaves, structure = jax.tree.flatten(kernels)
    flat = [x.reshape(-1, x.shape[-1]) for x in leaves]
    shapes = dict.fromkeys(x.shape for x in flat)
    after = {shape: iter(function(jnp.stack([x for x in flat if x.shape == shape]))) for shape in shapes}
    return jax.tree.unflatten(
        structure, [next(after[x.shape]).reshape(kernel.shape) for x, kernel in zip(flat, leaves, strict=True)]
    )


def muon(momentum: float = 0.95) -> optax.GradientTransformation:
    """Orthogonalised Nesterov momentum: every direction of a kernel learns equally, not only the dominant ones.

    Jordan et al. 2024; scaled to the step length of Adam as in Liu et al. 2025, "Muon is scalable for LLM training",
    section 2.2. Convolution kernels [3, 3, I, O] count as matrices [9 I, O].
    """

    def steps(x: Array) -> Array:
        return -0.2 * max(x.shape[1:]) ** 0.5 * orthogonal(x)

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        blend = functools.partial(jax.tree.map, lambda m, g: momentum * m + (1 - momentum) * g)
        means = blend(state, updates)
        return of_kernels(steps, blend(means, updates)), means

    return optax.GradientTransformation(lambda params: jax.tree.map(jnp.zeros_like, params), update)


def global_norm(tree: Any) -> Array:
    """Euclidean norm of all numbers of all arrays. The squares of arrays of one shape are added first, so that a GPU
    needs one kernel for all of them."""
    shapes: dict[tuple[int, ...], list[Array]] = {}
    for x in jax.tree.leaves(tree):
        shapes.setdefault(x.shape, []).append(jnp.square(x))
    return jnp.sqrt(sum((functools.reduce(jnp.add, squares).sum() for squares in shapes.values()), jnp.float32(0)))


def clip_by_global_norm(most: float) -> optax.GradientTransformation:
    """Scales updates down to a norm of `most`; `optax.clip_by_global_norm` with our `global_norm`."""

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        norm = global_norm(updates)
        return jax.tree.map(lambda x: jnp.where(norm < most, x, x / norm * most), updates), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


# Shorter sides of the matrices for Muon: smaller ones have nothing to orthogonalise, larger ones are expensive. A
# convolution costs more than its orthogonalisation, since it meets every cell. A dense layer meets every row once: from
# 800 features to 1225 actions, orthogonalisation took 0.16 of the 0.2 s of an update of 128 rows (docs/notes/).
CONVOLUTION_SIDES, DENSE_SIDES = range(8, 1025), range(8, 257)


def make_optimiser(config: LearnerOptions) -> optax.GradientTransformation:
    """The optimiser after a clip of the gradient's norm, for a rate of 1; `learning_rate` then scales each update.

    With `muon`, AdamW handles scales, biases, and kernels with a very short or very long side: among them the last
    layers of heads with few outputs.
    """
    kernels = lambda params: jax.tree.map(lambda x: x.ndim > 1, params)
    adamw = optax.adamw(1.0, weight_decay=config.weight_decay, mask=kernels)
    clip = clip_by_global_norm(config.clip_norm)
    if config.optimiser == "adamw":
        return optax.chain(clip, adamw)

    def kind(x: Array) -> str:
        side = min(math.prod(x.shape[:-1]), x.shape[-1] if x.ndim else 1)
        return "muon" if x.ndim > 1 and side in (DENSE_SIDES if x.ndim == 2 else CONVOLUTION_SIDES) else "adamw"

    decay = optax.add_decayed_weights(-config.weight_decay)
    parts: dict[Hashable, optax.GradientTransformation] = {"muon": optax.chain(muon(), decay), "adamw": adamw}
    return optax.chain(clip, optax.multi_transform(parts, lambda params: jax.tree.map(kind, params)))


LEAST_WARMUP = 10  # updates


def learning_rate(config: LearnerOptions, updates: Array, progress: Array) -> Array:
    """Linear warm-up by updates, then a cosine from the peak down to `final_lr_fraction` of it over the budget.

    `progress` in [0, 1] is the share of the budget used, in iterations or in minutes.
    """
    needed = max(config.warmup_positions / config.batch_size, LEAST_WARMUP) if config.warmup_positions else 1
    warm = jnp.minimum((updates + 1) / needed, 1.0)
    low = config.final_lr_fraction
    return config.learning_rate * warm * (low + (1 - low) * 0.5 * (1 + jnp.cos(jnp.pi * jnp.clip(progress, 0, 1))))


def ema_decay(config: LearnerOptions, updates: Array) -> Array:
    """Share of the averaged weights that an update keeps. The first weights are forgotten quickly: after u updates the
    average spans at most a tenth of them."""
    kept = max(0.0, 1 - config.batch_size / max(config.ema_positions, 1))
    return jnp.minimum(kept, (1 + updates) / (10 + updates))


def start_learning(net: Network, config: LearnerOptions, key: Array) -> Learning:
    weights = net.init(key)
    # Copied because both trees are donated and must not alias.
    ema_weights = jax.tree.map(jnp.copy, weights)
    return Learning(weights, ema_weights, make_optimiser(config).init(weights["params"]), jnp.int32(0), jnp.int32(0))


# A run has failed after this many consecutive skipped updates. One can be chance. Ten batches drawn from the whole
# replay fail only when the weights have diverged or a game gives the network non-finite input.
MOST_SKIPPED = 10


Update = Callable[[Learning, Batch, Array], tuple[Learning, Losses]]


def make_update(net: Network, config: Config) -> Update:
    """`update(learning, batch, progress) -> (learning, Losses)`, inside a function mapped over the mesh; `batch` is the
    device's share.

    An update is skipped if its losses, the norm of its gradients, its rate or its running statistics are not all
    finite. Weights, running statistics, average, optimiser and update count then stay as they were. The learning rate
    and the average depend on that count. Each device sees the same means, so all of them decide alike. New weights are
    finite then, since steps are bounded; looking at them would cost a GPU two kernels for every array.
    """
    optimiser = make_optimiser(config)

    def update(learning: Learning, batch: Batch, progress: Array) -> tuple[Learning, Losses]:
        def of_params(params):
            return loss(net, {**learning.weights, "params": params}, batch, config, mesh.GAMES)

        params = learning.weights["params"]
        # Each device has the losses of its share of the batch. Its gradient includes its effect on other shares through
        # batch statistics, so the mean over devices is the gradient of the mean loss.
        gradients, (losses, weights) = mesh.mean_over_devices(jax.grad(of_params, has_aux=True)(params))
        steps, optimiser_state = optimiser.update(gradients, learning.optimiser, params)
        rate = learning_rate(config, learning.updates, progress)
        losses = losses._replace(gradient_norm=global_norm(gradients))
        statistics = {name: arrays for name, arrays in weights.items() if name != "params"}
        checked = jax.tree.leaves((losses, rate, statistics))
        finite = jnp.stack([jnp.isfinite(x).all() for x in checked]).all()
        weights = {**weights, "params": jax.tree.map(lambda p, s: p + rate * s, params, steps)}
        decay = ema_decay(config, learning.updates)
        ema_weights = jax.tree.map(lambda a, w: decay * a + (1 - decay) * w, learning.ema_weights, weights)
        # The count stays at MOST_SKIPPED, since the host looks at it only after the iteration.
        in_a_row = jnp.where(learning.skipped >= MOST_SKIPPED, learning.skipped, 0)
        made = Learning(weights, ema_weights, optimiser_state, learning.updates + 1, in_a_row)
        skipped = learning._replace(skipped=learning.skipped + 1)
        losses = jax.tree.map(lambda x: jnp.where(finite, x, jnp.nan), losses)
        learning = jax.tree.map(lambda x, y: jnp.where(finite, x, y), made, skipped)
        return learning, losses._replace(skipped_updates=1.0 - finite)

    return update


Learn = Callable[..., tuple[Learning, Losses]]


def make_learner(game: Game, net: Network, config: Config, num_updates: int) -> Learn:
    """`learn(learning, replay, index int32[U, M], progress, targets=None, taught=None) -> (learning, Losses [U])`,
    inside a function mapped over the mesh.

    Each update takes M rows of this device's replay. The proof rows `taught`, int32[U, m], replace the last of them.
    """
    update = make_update(net, config)

    def learn(
        learning: Learning,
        replay: Replay,
        index: Array,
        progress: Array,
        targets: ProofTargets | None = None,
        taught: Array | None = None,
    ) -> tuple[Learning, Losses]:
        # All rows are taken before the loop. Inside it a TPU would copy the ring into another layout for every update,
        # and a GPU would wait for the loop of unknown length that looks for future moves.
        of_updates = lambda drawn: jax.tree.map(lambda x: x.reshape(num_updates, -1, *x.shape[1:]), drawn)
        rows, proof_rows = of_updates(replay_lib.take(game, replay, index.ravel(), config)), None
        if targets is not None and taught is not None:
            proof_rows = of_updates(proof_targets.take(game, targets, taught.ravel(), config))

        def body(learning, drawn):
            rows, proof_rows = drawn
            if proof_rows is None:
                batch = replay_lib.batch_of(game, rows, config)
            else:
                batch = proof_targets.mixed(game, rows, proof_rows, config)
            return update(learning, batch, progress)

        return jax.lax.scan(body, learning, (rows, proof_rows))

    return learn
