"""Proof targets: positions with proven results, learned in addition to self-play.

Game results teach little where a mistake at every other move reverses the result. Every iteration therefore runs a
few proof searches (agents/solvers/proof_number.py) from positions of self-play to the ends of the game. Decided
positions of their graphs become rows with exact values. For some of their moves it is known whether they keep the
value. Chess engines correct their games with endgame tables in this way; no table is needed here.

Searches begin at the ply from which about half of them finish; that ply is adapted during the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from agents.actions import to_mover_frame
from agents.config import Config, LearnerOptions
from agents.runtime import mesh
from agents.solvers import proof_number
from agents.solvers.proof_number import EMPTY, Graph
from agents.training import replay
from agents.training.replay import Batch, Drawn
from agents.training.selfplay import Lanes
from envs.game import Array, Game

MAX_POSITIONS = 1 << 15  # of one proof search
# Each search of an iteration begins in another lane. Few rows of each make the rows differ. On a CPU a search takes
# about as long as 200 moves of self-play with one queen.
ROWS_PER_SEARCH = 384
SIDE_BY_SIDE = 16  # searches at once on an accelerator, so that their graphs fit its memory


class ProofTargets(NamedTuple):
    """A ring [L, B, ...], divided among devices like the replay."""

    observation_state: Any  # game.observation_state(s)
    actions: Array  # int16[K], codes of the decided moves in the mover's frame, -1 elsewhere
    right: Array  # bool[K], moves that keep the value; none where all moves lose or none is known to
    value: Array  # int8[], result for the player to move under best play
    there: Array  # bool[], False in an empty place: a search may find fewer rows than there is room for
    cursor: Array  # int32[], rows of time written so far, the same everywhere
    reach: Array  # float32[], ply at which searches begin, the same everywhere


class ProofMetrics(NamedTuple):
    """Metrics of the proof searches."""

    proved: Array  # share of the devices' searches that finished
    proof_plies: Array  # mean plies before the positions where they began
    proof_rows: Array  # positions in the ring


def rows_per_iteration(config: Config) -> int:
    """Rows of time written per iteration, so that each is drawn about as often as a row of self-play."""
    ratio = config.proof_share / (1 - config.proof_share)
    return max(1, round(config.plies_per_iteration * ratio))


def rows_per_batch(config: Config, batch_size: int) -> int:
    """Proof rows of a batch, or of a device's share of it: with `proof_share` at least one, but never all."""
    return min(max(1, round(config.proof_share * batch_size)), batch_size - 1) if config.proof_share else 0


def no_proof_targets(game: Game, config: Config) -> ProofTargets:
    """An empty ring that keeps proof rows for as many iterations as the replay keeps rows of self-play."""
    iterations = replay.ring_length(game, config) // config.plies_per_iteration
    shape = rows_per_iteration(config) * iterations, config.num_envs
    memory = jax.eval_shape(lambda: game.observation_state(game.init()))
    slots = (*shape, game.max_legal)
    return ProofTargets(
        observation_state=jax.tree.map(lambda x: jnp.zeros((*shape, *x.shape), x.dtype), memory),
        actions=jnp.full(slots, -1, jnp.int16),
        right=jnp.zeros(slots, bool),
        value=jnp.zeros(shape, jnp.int8),
        there=jnp.zeros(shape, bool),
        cursor=jnp.int32(0),
        reach=jnp.float32(game.max_plies),
    )


def make_teach(game: Game, config: Config) -> Callable[[ProofTargets, Lanes, Array], tuple[ProofTargets, ProofMetrics]]:
    """`teach(targets, lanes, key) -> (targets, ProofMetrics)`, inside a function mapped over the mesh. Every device
    searches from a few of its lanes, once per about `ROWS_PER_SEARCH` rows, with its own `key`.

    Raises:
        ValueError: the game is not for two players, or there is no room for a round of the search.
    """
    demand_two_players(game, config)
    ask, count = proof_number.make_claim_prover(game, MAX_POSITIONS), rows_per_iteration(config)

    def teach(targets: ProofTargets, lanes: Lanes, key: Array) -> tuple[ProofTargets, ProofMetrics]:
        reach = jnp.minimum(targets.reach, jax.lax.pmax(lanes.plies.max(), mesh.GAMES).astype(jnp.float32))
        root_key, pick_key = jax.random.split(key)
        off = jnp.abs(lanes.plies - reach) + jax.random.uniform(root_key, lanes.plies.shape, maxval=1.0)
        searches = min(max(count * len(off) // ROWS_PER_SEARCH, 1), len(off))
        chosen = jax.lax.top_k(-off, searches)[1]
        of_search = -(-count * len(off) // searches)

        def search(root: tuple[Array, Array]) -> tuple[Any, Array]:
            lane, key = root
            state = jax.tree.map(lambda x: x[lane], lanes.states)
            graph = ask(state, jnp.float32(1))
            rows = pick(game, graph, game.player(state).astype(jnp.int32), key, of_search)
            return rows, proof_number.is_decided(graph.numbers)[0]

        # Side by side, searches last as long as the longest. That pays where more of them cost little more a round.
        rows, decided = jax.lax.platform_dependent(
            (chosen, jax.random.split(pick_key, searches)),
            cpu=lambda roots: jax.lax.map(search, roots),
            default=lambda roots: jax.lax.map(search, roots, batch_size=SIDE_BY_SIDE),
        )
        places = lambda new: new.reshape(-1, *new.shape[2:])[: count * len(off)].reshape(count, -1, *new.shape[2:])
        proved = mesh.mean_over_devices(decided.mean(dtype=jnp.float32))
        step = (1 - 2 * proved) * jnp.maximum(reach / 8, 1.0)
        after = insert(targets, jax.tree.map(places, rows))._replace(reach=jnp.maximum(reach + step, 0.0))
        plies = mesh.mean_over_devices(lanes.plies[chosen].mean(dtype=jnp.float32))
        return after, ProofMetrics(proved, plies, mesh.sum_over_devices(after.there))

    return teach


def demand_two_players(game: Game, config: Config) -> None:
    """
    Raises:
        ValueError: the game is not for two players.
    """
    if game.num_players != 2:
        share, players = config.proof_share, game.num_players
        raise ValueError(f"--proof_share={share}: proof targets are for two players; {game.name} has {players}")


def insert(targets: ProofTargets, rows: tuple[Any, Array, Array, Array, Array]) -> ProofTargets:
    """Writes `rows`, the first five fields with leading axes [T, B], over the oldest ones."""
    at = targets.cursor % len(targets.there)
    ring = jax.tree.map(lambda ring, new: jax.lax.dynamic_update_slice_in_dim(ring, new, at, axis=0), targets[:5], rows)
    return ProofTargets(*ring, cursor=targets.cursor + len(rows[4]), reach=targets.reach)


def pick(game: Game, graph: Graph, seat: Array, key: Array, count: int) -> tuple[Any, Array, Array, Array, Array]:
    """Draws decided positions of a graph as the first five fields of `ProofTargets`, with leading axis [count].

    Most positions of a proof take a few visits to decide, and teach little. Those that took twice as many are drawn as
    often, though there are fewer of them, and so on. The search asked whether `seat` wins. If the graph contains draws,
    a position that `seat` does not win may be lost or drawn, so it is left out.
    """
    max_positions = len(graph.actions)
    asks = jax.vmap(game.player)(graph.states) == seat
    success, failure = graph.numbers.prove == 0, graph.numbers.refute == 0
    wins = jnp.where(asks, success, failure)
    known = (jnp.arange(max_positions) < graph.size) & (success | failure) & (wins | ~graph.drawn)
    effort = jnp.log2(graph.visits + 1.0).astype(jnp.int32)
    alike = jnp.zeros(32, jnp.int32).at[effort].add(known)
    rank = jax.random.gumbel(key, (max_positions,)) - jnp.log(jnp.maximum(alike[effort], 1).astype(jnp.float32))
    best = jax.lax.top_k(jnp.where(known, rank, -jnp.inf), min(count, max_positions))[1]
    best = jnp.concatenate([best, jnp.zeros(count - len(best), best.dtype)])
    there = known[best] & (jnp.arange(count) < max_positions)
    states, actions = jax.tree.map(lambda x: x[best], graph.states), graph.actions[best].astype(jnp.int32)
    after = proof_number.after_moves(graph, best)[1]
    right = (after.prove == 0) & (actions != EMPTY)
    codes = jnp.where(right | (after.refute == 0), actions, EMPTY)
    view = to_mover_frame(game, codes, jax.vmap(game.player)(states)).astype(jnp.int16)
    value = jnp.where(success[best], 1, -1).astype(jnp.int8)
    return jax.vmap(game.observation_state)(states), view, right, value, there


def draw(targets: ProofTargets, key: Array, shape: tuple[int, ...]) -> Array:
    """Positions in the flattened ring, int32 of `shape`, uniform over those written, including empty ones. Each proof
    row is thus drawn about as often as a row of self-play, however few there are."""
    length, lanes = targets.there.shape
    return jax.random.randint(key, shape, 0, lanes * jnp.clip(targets.cursor, 1, length))


def take(game: Game, targets: ProofTargets, index: Array, config: Config) -> tuple[Drawn, Array]:
    """The rows `index` int32[M], positions in the flattened ring, and where there is one, bool[M].

    Only decided moves count as legal, and all moves that keep the value are equally likely. Future targets are unknown.
    """
    at = lambda x: x.reshape(-1, *x.shape[2:])[index]
    right, value = at(targets.right).astype(jnp.float32), at(targets.value).astype(jnp.float32)
    rows = Drawn(
        observation_state=jax.tree.map(at, targets.observation_state),
        actions=at(targets.actions),
        policy=right / jnp.maximum(right.sum(-1, keepdims=True), 1.0),
        value=jnp.stack([value, -value], axis=-1),
        number=index + targets.cursor + jnp.arange(len(index)),
        future=jnp.full((len(index), game.num_actions), -1, jnp.int8) if config.future_weight else None,
    )
    return rows, at(targets.there)


def mixed(game: Game, rows: Drawn, proof_rows: tuple[Drawn, Array], config: LearnerOptions) -> Batch:
    """A batch of self-play rows, the last of which give way to the proof rows that are there."""
    proved, there = proof_rows
    own = len(rows.number) - len(there)
    first, last = (jax.tree.map(lambda x: x[part], rows) for part in (slice(own), slice(own, None)))
    choose = lambda new, old: jnp.where(there.reshape(-1, *[1] * (new.ndim - 1)), new, old)
    parts = (replay.batch_of(game, part, config) for part in (first, jax.tree.map(choose, proved, last)))
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), *parts)
