"""Players of one game that keep their search tree from move to move."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from agents.actions import ILLEGAL
from agents.config import for_play
from agents.players import analysis
from agents.players.analysis import Analyst
from agents.players.budget import even_step
from agents.players.ownership import Owners, make_owners
from agents.players.players import Mover, has_policy, make_player, simulations_of
from agents.players.spec import NETWORK, PlayerSpec, parse_player
from agents.runtime import mesh
from agents.search import tree as tree_search
from agents.search.tree import Tree
from agents.search.uct import uct_tree_policy
from agents.solvers.solve import make_solver
from agents.storage.weights import TrainedNetwork, load_network
from envs.game import Game

ROOM = 2**14  # nodes of a tree
STEP = 32  # simulations between clock checks
UCT_STEP = 50  # playouts between clock checks


def network_for(folder: str, game: Game) -> TrainedNetwork:
    """The network in `folder`, of a run or a model.

    Raises:
        ValueError: a network of another game.
    """
    trained = load_network(folder)
    if not same_board(trained.config.env, game.name):
        raise ValueError(f"expected a network for {game.name}, got one for {trained.config.env} in {folder}")
    return trained


def network_analyst(trained: TrainedNetwork, game: Game, trees: int, step: int) -> tuple[Analyst, Any]:
    """The match search of a network in `trees` trees, and its weights."""
    config = for_play(dataclasses.replace(trained.config, search_loop="native"), game, step)
    devices = mesh.make_mesh(trees, trees)
    weights = jax.device_put(trained.weights, NamedSharding(devices, PartitionSpec()))
    analyst = analysis.make_analyst(game, trained.net, config, max_nodes=ROOM, copies=trees, devices=devices)
    return analyst, weights


def same_board(a: str, b: str) -> bool:
    """Whether a network of game `a` can play game `b`: the same game, or Go with another komi or ko rule, which a
    network does not see."""
    without = [re.sub(r"(?:komi|ko)=[^,]*", "", name) if name.startswith("go:") else name for name in (a, b)]
    return without[0] == without[1]


def uct_analyst(game: Game, trees: int, step: int) -> Analyst:
    """As `network_analyst`, for MCTS without a network."""
    devices = mesh.make_mesh(trees, trees)
    return analysis.from_tree_policy(
        game, uct_tree_policy(game, step), step, max_nodes=ROOM, copies=trees, devices=devices
    )


class TreePlayer:
    """Searches the current position of one game, which `place` sets."""

    def __init__(self, spec: PlayerSpec, game: Game, seed: int = 0, trees: int = 1):
        """`spec` is a network or UCT; its number is the budget of a move, if simulations limit it. The trees grow at
        the same time, on as many devices as divide their number."""
        self.game, self.network = game, spec.kind == NETWORK
        self.name = dataclasses.replace(spec, number=None).short_name
        self.owners: Owners | None = None
        if self.network:
            trained = network_for(spec.path, game)
            self.analyst, self.weights = network_analyst(trained, game, trees, even_step(spec.number, STEP))
            self.owners = make_owners(game, trained.config)
        else:
            self.analyst, self.weights = uct_analyst(game, trees, even_step(spec.number, UCT_STEP)), {}
        self._key, self._count = jax.random.key(seed), 0
        self._start: Any = None
        self._actions: list[int] = []
        self._among: frozenset[int] | None = None
        self._tree: Any = None
        self._compiled = False

    def _fresh(self) -> jax.Array:
        self._count += 1
        return jax.random.fold_in(self._key, self._count)

    def place(self, start: Any, actions: Sequence[int], state: Any, among: frozenset[int] | None = None) -> None:
        """Sets the position `state`, which the moves `actions` reach from `start`. If they continue from the last
        position, its subtree is kept. With `among` only these root moves are searched: legal ones, at least one."""
        kept, more = len(self._actions), list(actions[len(self._actions) :])
        goes_on = start is self._start and list(actions[:kept]) == self._actions
        if self._tree is None or not goes_on or among != (None if more else self._among):
            self._tree = self.analyst.begin(self.weights, self._fresh(), state)
            if among is not None:
                self._tree = _only(self.analyst, self._tree, among)
        else:
            for action in more:
                self._tree = analysis.advance_trees(self.analyst, self.weights, self._fresh(), self._tree, action)
        self._start, self._actions, self._among = start, list(actions), among

    def think(self, seconds: float | None = None, simulations: int | None = None) -> int:
        """Searches until either budget is spent (simulations of every tree) or a tree is full. Returns the simulations
        of all trees together. The first search's clock starts after its first step, which compiles."""
        before = self._visits()
        limits = {"seconds": seconds, "simulations": simulations, "compiled": self._compiled}
        self._tree = analysis.analyse(self.analyst, self.weights, self._fresh(), self._tree, **limits)
        self._compiled = True
        return self._visits() - before

    def _visits(self) -> int:
        return int(self._tree.visits[:, tree_search.ROOT].sum())

    def report(self, most: int = 5) -> dict[str, Any]:
        """See `analysis.report`; without a network all moves have the same prior."""
        said = analysis.report(self.analyst, self._tree, most)
        if not self.network:
            state = jax.tree.map(lambda x: x[0, tree_search.ROOT], self.analyst.states(self._tree))
            even = round(1 / max(1, int(self.game.mask(state).sum())), 4)
            said["moves"] = [move | {"prior": even} for move in said["moves"]]
        return said

    def owners_after(self, moves: Sequence[dict[str, Any]]) -> np.ndarray | None:
        """Expected final owner of each cell after the line of each move of a report: float32[len(moves), C], from 1 for
        player 0 to -1 for player 1. None without a network that knows owners."""
        if self.owners is None:
            return None
        state = jax.tree.map(lambda x: x[0, tree_search.ROOT], self.analyst.states(self._tree))
        lines = [[self.game.parse_action(name) for name in move["line"]] for move in moves]
        return self.owners(self.weights, lines, state)

    def best(self) -> tuple[int, float]:
        """The move to play after a search, and its value for the mover, in [-1, 1]."""
        said = self.report(1)
        return self.game.parse_action(said["moves"][0]["action"]), said["value"]


def _only(analyst: Analyst, tree: Tree, actions: frozenset[int]) -> Tree:
    """Trees that hold their roots alone, with only the edges `actions` left there."""
    codes = jnp.broadcast_to(analyst.codes(tree), tree.logits.shape)[:, tree_search.ROOT]
    left = jnp.isin(codes, jnp.array(sorted(actions)))

    def at_root(x, nothing):
        return None if x is None else x.at[:, tree_search.ROOT].set(jnp.where(left, x[:, tree_search.ROOT], nothing))

    return tree._replace(
        logits=at_root(tree.logits, ILLEGAL),
        lower_bound=at_root(tree.lower_bound, -1),
        upper_bound=at_root(tree.upper_bound, -1),
    )


def words(value: float, proven: str | None, players: int = 2) -> str:
    """A player's value of a position as text: a chance in percent, or a proven result. The values of all players add up
    to 0, their chances to 1."""
    chance = min(max((value * (players - 1) + 1) / players, 0), 1)
    return {"win": "won", "draw": "drawn", "loss": "lost", None: f"{100 * chance:.0f}%"}[proven]


def searcher(spec: PlayerSpec, game: Game, seconds: float, seed: int = 0, trees: int = 1) -> Mover:
    """A mover that searches each move for `seconds` or for the number of its spec; `spec` and `trees` as in
    `TreePlayer`."""
    player = TreePlayer(spec, game, seed, trees)

    def move(start: Any, actions: Sequence[int], state: Any) -> int:
        player.place(start, actions, state)
        player.think(seconds, spec.number)
        return player.best()[0]

    return move


def proving(mover: Mover, game: Game, max_positions: int, seconds: float) -> Mover:
    """As `mover`, but first plays what a search of `max_positions` positions within `seconds` proves to keep the value.

    Raises:
        ValueError: the game is not for two players, or `max_positions` is too small.
    """
    solve = make_solver(game, max_positions)
    solve(game.init(), seconds=0.0)  # compiles before the clock starts

    def move(start: Any, actions: Sequence[int], state: Any) -> int:
        kept = solve(state, seconds=seconds).kept
        return mover(start, actions, state) if kept is None else kept

    return move


def make_mover(
    spec: str | PlayerSpec, game: Game, num_simulations: int, seconds: float, seed: int = 0, trees: int = 1
) -> Mover:
    """A player of one game at a time. Players that search keep their trees. A player that proves first spends up to
    half of the time on the proof.

    Args:
        spec: the player.
        game: the game.
        num_simulations: simulations of a network without @N.
        seconds: maximum time of a move; a spec with a time of its own searches for that time instead.
        seed: of all randomness.
        trees: trees that search at the same time.

    Raises:
        ValueError: unknown player, or a network of another game.
    """
    spec = parse_player(spec)
    by_time, seconds = spec.seconds is not None, spec.seconds or seconds
    if spec.proof_positions is not None:
        half = dataclasses.replace(spec.base, seconds=seconds / 2 if by_time else None)
        mover = make_mover(half, game, num_simulations, seconds / 2, seed, trees)
        return proving(mover, game, spec.proof_positions, seconds / 2)
    if spec.kind == NETWORK and (not by_time or not has_policy(spec)):
        spec = dataclasses.replace(spec, number=simulations_of(spec, num_simulations), seconds=None)
    if spec.searches:
        return searcher(spec, game, seconds, seed, trees)
    player = make_player(spec, game)
    act = jax.jit(lambda w, key, s, plies: player.act(w, key, jax.tree.map(lambda x: x[None], s), plies)[0])

    def at_once(start: Any, actions: Sequence[int], state: Any) -> int:
        plies = jnp.full(1, len(actions), jnp.int32)
        state = jax.tree.map(jnp.asarray, state)
        return int(act(player.weights, jax.random.fold_in(jax.random.key(seed), len(actions)), state, plies))

    return at_once
