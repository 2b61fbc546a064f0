"""Noise of self-play at the root of a search."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from agents.actions import ILLEGAL
from envs.game import Array


def where_noisy(explore: bool | Array, noisy: Callable[[], Array], plain: Array) -> Array:
    """`noisy()` where `explore` holds, one bool or bool[B], else `plain` [B, K]."""
    if isinstance(explore, bool):
        return noisy() if explore else plain
    return jnp.where(explore[:, None], noisy(), plain)


def with_dirichlet(logits: Array, log_gamma: Array, fraction: float) -> Array:
    """Prior logits mixed with Dirichlet noise over the legal actions, from the logs of Gamma variables."""
    legal = logits > ILLEGAL / 2
    # A softmax of logs, because at low concentration all Gamma variables may underflow to zero.
    noise = jax.nn.softmax(jnp.where(legal, log_gamma, ILLEGAL))
    mixed = (1 - fraction) * jax.nn.softmax(logits) + fraction * noise
    return jnp.where(legal, jnp.log(jnp.maximum(mixed, 1e-30)), ILLEGAL)
