"""Owners of the cells at the end of the game, as a network trained with `Hints.owners` expects them (Go, Othello)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from agents.config import Config
from agents.network.network import make_network
from envs.game import Array, Game

BATCH = 32  # lines followed together
MOST_FOLLOWED = 12  # moves of a line that are followed

Owners: TypeAlias = Callable[[Any, Sequence[Sequence[int]], Any], np.ndarray]
"""(weights, lines, state) -> float32[len(lines), C], expected owner of each cell after each line of actions from
`state`: 1 for player 0, -1 for player 1, 0 for nobody or an even chance. Cells are row by row as in `observe`."""


class ExpectedOwners(NamedTuple):
    """What a network expects at the end of the game, from one player's view."""

    leads: np.ndarray  # float[moves], points ahead after the line of each move
    lead: float  # their mean, weighted by visits
    mean: np.ndarray  # float[C], 1 for the player's cells to -1, weighted by visits


def average_owners(rows: np.ndarray, visits: Sequence[int], komi: float, player: int) -> ExpectedOwners:
    """Owners from the view of `player`; `rows` are the `Owners` after the lines of moves with these visits."""
    sign = 1 if player == 0 else -1
    leads, shares = sign * (rows.sum(1) - komi), np.array(visits) + 1e-9
    return ExpectedOwners(leads, float(np.average(leads, weights=shares)), sign * np.average(rows, 0, shares))


def komi_of(game: Game) -> float:
    """Points that the second player gets before the first move."""
    return game.to_record(game.init()).get("komi", 0.0)


def describe_owners(game: Game, owners: Owners, weights: Any, state: Any, line: Sequence[str]) -> dict[str, Any]:
    """What a report may add, JSON-ready: `owners`, each cell's expected owner after the expected moves `line`, 1 for
    player 0 to -1 for player 1, and `score`, the points that player 0 is then expected to be ahead."""
    rows = owners(weights, [[game.parse_action(name) for name in line]], state)
    found = average_owners(rows, [1], komi_of(game), player=0)
    cells = {game.action_name(cell): round(float(x), 2) for cell, x in enumerate(found.mean)}
    return {"owners": cells, "score": round(found.lead, 1)}


def make_owners(game: Game, config: Config) -> Owners | None:
    """The owners that a network expects; None if the game has no owners or the network did not learn them."""
    if game.hints.owners is None or not config.future_weight or game.num_players != 2:
        return None
    expected = jax.jit(jax.vmap(make_expected(game, config), in_axes=(None, None, 0)))

    def owners(weights: Any, lines: Sequence[Sequence[int]], state: Any) -> np.ndarray:
        actions = np.full((-(-len(lines) // BATCH) * BATCH, MOST_FOLLOWED), -1, np.int32)
        for row, line in zip(actions, lines, strict=False):
            row[: len(line)] = line[:MOST_FOLLOWED]
        parts = [expected(weights, state, part) for part in actions.reshape(-1, BATCH, MOST_FOLLOWED)]
        return np.concatenate(parts)[: len(lines)]

    return owners


def make_expected(game: Game, config: Config) -> Callable[[Any, Any, Array], Array]:
    """(weights, state, actions int32[MOST_FOLLOWED]) -> float32[C] after the actions, -1 for none. Exact in a finished
    game."""
    final_owners, heads = game.hints.owners, make_network(game, config).heads
    assert final_owners is not None and game.to_mover_frame is None

    def move(state: Any, action: Array) -> tuple[Any, None]:
        moved = game.move(state, jnp.maximum(action, 0))
        return jax.tree.map(lambda new, old: jnp.where(action >= 0, new, old), moved, state), None

    def expected(weights: Any, state: Any, actions: Array) -> Array:
        state = jax.lax.scan(move, state, actions)[0]
        planes, final = game.observe(state), final_owners(state)
        future = heads(weights, planes[None]).future
        assert future is not None
        shares = jax.nn.softmax(future[0])
        margins = shares[:, 0] - shares[:, 1]  # for the mover
        known = (final == 0).astype(jnp.float32) - (final == 1)
        cells = planes.shape[0] * planes.shape[1]
        return jnp.where(game.over(state), known, jnp.where(game.player(state) == 0, margins, -margins))[:cells]

    return expected
