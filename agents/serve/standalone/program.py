"""What a page computes of a game and its network, as one JavaScript program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from agents.actions import to_absolute
from agents.config import for_play
from agents.network.inference import by_player
from agents.players.analysis import FEW
from agents.search.expansion import wins
from agents.serve.standalone.convert import convert
from agents.storage.weights import TrainedNetwork
from envs.game import Game

BATCH = 8  # positions that the network evaluates at once; no game of the project has more symmetries
STEP = 32  # simulations between two looks at the clock, as in search.js


def functions(game: Game, trained: TrainedNetwork | None) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """The functions of a page with example arguments, for `convert`.

    Raises:
        ValueError: the game has too many symmetries.
    """
    s, a = game.init(), jnp.int32(0)
    if len(game.symmetries) > BATCH:
        raise ValueError(f"{game.name}: expected at most {BATCH} symmetries for a page, got {len(game.symmetries)}")
    found: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "move": (game.move, (s, a)),
        "picture": (game.drawing.codes, (s,)),
        "facts": (lambda s: (game.over(s), game.player(s), game.rewards(s), game.mask(s)), (s,)),
    }
    if game.num_players == 2:
        found["wins"] = functools.partial(wins, game), (s, a)
        if game.hints.known_result is not None:
            found["known"] = game.hints.known_result, (s,)
    if trained is not None:
        planes = jnp.zeros((BATCH, *jax.eval_shape(game.observe, s).shape))
        weights = halved(trained.weights)
        logits, value = jax.eval_shape(trained.net.apply, weights, planes)
        found |= {
            "observe": (game.observe, (s,)),
            "network": (lambda planes: trained.net.apply(weights, planes), (planes,)),
            "turned": (lambda s: turned(game, s), (s,)),
            "average": (lambda logits, value: _average(game, logits, value), (logits, value)),
            "translate": (_translate(game), (jnp.int32(0), *(jnp.zeros(x.shape[1:]) for x in (logits, value)))),
        }
    return found


def turned(game: Game, s: Any) -> Any:
    """The planes of a position through all symmetries, as a batch of the network."""
    planes = game.observe(s)
    turned = jnp.stack([symmetry.planes(planes) for symmetry in game.symmetries])
    return jnp.concatenate([turned, jnp.zeros((BATCH - len(turned), *planes.shape))])


def _average(game: Game, logits: Any, value: Any) -> tuple[Any, Any]:
    """The mean logits and value of the positions of `turned`, mapped back."""
    back = [row[symmetry.actions] for row, symmetry in zip(logits, game.symmetries, strict=False)]
    return jnp.stack(back).mean(0), value[: len(back)].mean(0)


def _translate(game: Game) -> Callable[..., tuple[Any, Any]]:
    """(mover, a network's logits and value) -> logits in absolute codes, values of all players."""

    def translate(player, logits, value):
        absolute = to_absolute(game, logits[None], player[None])[0]
        return absolute, by_player(value[None], player[None], game.num_players)[0]

    return translate


def halved(weights: Any) -> Any:
    """The weights, rounded to half precision; a page stores them so."""
    return jax.tree.map(lambda x: np.asarray(x).astype(np.float16).astype(np.float32), weights)


def leaf(x: Any) -> Any:
    """A leaf of a state as JSON: a number, or its type and its entries."""
    x = np.asarray(x)
    return x.item() * 1 if not x.ndim else [str(x.dtype), x.ravel().astype(np.float64).tolist()]


def description(game: Game, trained: TrainedNetwork | None) -> dict[str, Any]:
    """What search.js has to know of a game, JSON-ready."""
    network = None
    if trained is not None:
        rows, columns, planes = jax.eval_shape(game.observe, game.init()).shape
        config = for_play(trained.config, game, STEP)
        network = {
            "batch": BATCH, "rows": rows, "columns": columns, "planes": planes, "rescale": config.rescale_values,
            "scale": config.gumbel_value_scale,
            "considered": config.max_num_considered_actions,
        }  # fmt: skip
    return {
        "players": game.num_players,
        "cheap": game.hints.moves_are_cheap,
        "few": FEW,
        "init": [leaf(x) for x in jax.tree.leaves(game.init())],
        "network": network,
    }


def javascript_program(game: Game, trained: TrainedNetwork | None) -> str:
    """The JavaScript of `functions`."""
    return convert(functions(game, trained))
