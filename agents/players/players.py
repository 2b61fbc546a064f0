"""Players by name: random, greedy, MCTS with random playouts, minimax, exact, and networks alone or with search."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

import envs
from agents.actions import legal_slots, random_action
from agents.config import Config, for_play
from agents.network.inference import make_evaluate
from agents.network.network import make_network
from agents.players.spec import (
    NAMES,
    NETWORK,
    PERSON,
    PROGRAMS,
    REGISTRY,
    UCT,
    Act,
    Player,
    PlayerSpec,
    parse_player,
    register_player,
)
from agents.search.greedy import value_greedy
from agents.search.policies import make_search
from agents.search.tree import ROOT
from agents.search.uct import uct_tree_policy
from agents.solvers import proof_number, retrograde
from agents.storage import weights as weights_lib
from envs.game import Game

# Scale of the noise that breaks ties at random: far below any difference that matters.
LOT = 1e-6
# Leaves that a minimax player may evaluate for one move; more would look like a hang.
MOST_LEAVES = 2_000_000
BASELINES = ("random", "minimax:2", "uct:100")
NO_MOVE = -2.0  # worth less than any move

Mover: TypeAlias = Callable[[Any, Sequence[int], Any], int]
"""(start, actions, state) -> a legal action in `state`, the position after the moves `actions` from `start`."""


@dataclasses.dataclass(frozen=True)
class Guest:
    """A player who chooses moves in one game at a time, such as a person."""

    name: str
    move: Mover
    by_chance: bool = False  # as of `Player`


def make_player(spec: str | PlayerSpec, game: Game, num_simulations: int = 32, proofs: bool = True) -> Player:
    """The player of a spec, see `spec.NAMES`, for batches of positions.

    Args:
        spec: the player.
        game: the game.
        num_simulations: simulations of a network without @N.
        proofs: whether a network that searches also uses proven results.

    Raises:
        ValueError: unknown player, a network of another game, or a player of one game at a time.
    """
    spec = parse_player(spec)
    if spec.proof_positions is not None:
        return proving_player(make_player(spec.base, game, num_simulations, proofs), game, spec.proof_positions)
    if spec.kind in (PERSON, *PROGRAMS) or spec.seconds is not None:
        raise ValueError(f"player '{spec}': people, other programs and searches by time play matches only")
    if spec.kind != NETWORK:
        return REGISTRY[spec.kind].make(game, spec.number)
    return network_player(spec, game, simulations_of(spec, num_simulations), proofs)


def config_of(spec: str | PlayerSpec) -> Config:
    """Options that the network of a spec was trained with.

    Raises:
        ValueError: there is no such folder.
        CheckpointError: it holds no network.
    """
    spec = parse_player(spec)
    if spec.kind != NETWORK or not weights_lib.locate(Path(spec.path)).exists():
        meant = difflib.get_close_matches(str(spec), (*REGISTRY, PERSON), 1, 0.7)
        perhaps = f"; perhaps {meant[0]} is meant" if meant else ""
        raise ValueError(f"unknown player '{spec}': expected a folder that exists, or one of {NAMES}{perhaps}")
    return weights_lib.about(weights_lib.find_network(Path(spec.path)))["config"]


def game_of(spec: str | PlayerSpec) -> str | None:
    """Name of the game that a network was trained on; None for players of any game. Raises as `config_of`."""
    spec = parse_player(spec)
    return config_of(spec).env if spec.kind == NETWORK else None


def simulations_of(spec: str | PlayerSpec, usual: int) -> int:
    """Simulations of a network: its own number, else `usual`, or 0 if it has no policy."""
    spec = parse_player(spec)
    if spec.number is not None:
        return spec.number
    return usual if has_policy(spec) else 0


def has_policy(spec: str | PlayerSpec) -> bool:
    """Whether a network has learned a policy, which a search needs."""
    return config_of(spec).recipe != "value_generations"


def usual_baselines(game: Game) -> tuple[str, ...]:
    return tuple(name for name in BASELINES if game.num_players == 2 or not name.startswith("minimax:"))


def choose_game(env: str | None, *players: str | PlayerSpec) -> Game:
    """The game of all players: `env`, by default that of the networks, or foq.

    Raises:
        ValueError: unknown game or player, or a network of another game.
    """
    named = None if env is None else envs.make(env)  # first: a network for an own game is refused unless it is named
    known = {str(spec): game for spec in players if (game := game_of(spec)) is not None}
    name = (named or envs.make(next(iter(known.values()), "foq"))).name
    for spec, game in known.items():
        if game != name:
            raise ValueError(f"expected a network for {name}, got one for {game} in {spec}")
    return envs.make(name)


def random_player(game: Game) -> Player:
    act = lambda weights, key, states, plies: random_action(key, jax.vmap(game.mask)(states))
    return Player("random", act, by_chance=True)


def exact_player(game: Game) -> Player:
    """Perfect play from a table of all positions reachable from the start, with random ties; elsewhere random legal
    moves.

    Raises:
        ValueError: the game is too large for a table.
    """

    def act(table, key, states, plies):
        place = retrograde.index_in_table(table, states)
        return random_action(key, jnp.where(place[:, None] < 0, jax.vmap(game.mask)(states), table.best[place]))

    return Player("exact", act, retrograde.solve(game), by_chance=True)


def proving_player(player: Player, game: Game, max_positions: int) -> Player:
    """Plays a move that is proven to keep the value of the position, by a search of at most `max_positions` positions.
    If nothing is proven, or all moves lose, plays as `player`. Games are searched one after another.

    Raises:
        ValueError: the game is not for two players, or `max_positions` is too small.
    """
    keep = proof_number.make_proven_move(game, max_positions)

    def act(weights, key, states, plies):
        kept = jax.lax.map(keep, states)
        return jnp.where(kept < 0, player.act(weights, key, states, plies), kept)

    return dataclasses.replace(player, name=f"prove:{max_positions},{player.name}", act=act)


def network_player(spec: PlayerSpec, game: Game, num_simulations: int, proofs: bool = True) -> Player:
    """A saved network with its own kind of search, no noise, and its root evaluated under all symmetries. With 0
    simulations it plays its most probable move, or after value generations the move to the best value."""
    trained = weights_lib.load_network(spec.path, game)
    act = make_act(game, trained.config, num_simulations, proofs)
    return Player(f"{trained.path}@{num_simulations}", act, trained.weights)


def make_act(game: Game, config: Config, num_simulations: int, proofs: bool = True) -> Act:
    """`Player.act` for a network of `config`, see `network_player`."""
    net = make_network(game, config)
    if num_simulations == 0 and config.recipe == "value_generations":
        greedy = value_greedy(game, net)
        return lambda w, key, s, plies: greedy(w, key, s)
    if num_simulations == 0:
        evaluate = make_evaluate(game, net, "average")
        return lambda w, key, s, plies: evaluate(w, key, s)[0].argmax(-1).astype(jnp.int32)
    search = make_search(game, net, for_play(config, game, num_simulations, proofs), explore=False)
    return lambda w, key, s, plies: search(w, key, s, plies).action


def uct_player(game: Game, num_simulations: int) -> Player:
    """MCTS without a network; plays the most visited move, see `make_uct`."""
    tree_policy = uct_tree_policy(game, num_simulations)

    def act(weights, key, states, plies):
        root_key, search_key = jax.random.split(key)
        tree = tree_policy.init_tree(weights, root_key, states, num_simulations + 1)
        edge, _, tree = tree_policy.run_simulations(weights, search_key, tree, plies, False)
        codes = jnp.broadcast_to(tree_policy.codes(tree)[:, ROOT], tree.logits[:, ROOT].shape)
        return jnp.take_along_axis(codes, edge[:, None], axis=-1)[:, 0]

    return Player(f"uct:{num_simulations}", act, by_chance=True)


def minimax_player(game: Game, depth: int) -> Player:
    """Looks `depth` plies ahead and values the leaves by `Hints.evaluate`, without it by the result (0 before the end).

    Up to two plies the search is full width and batched. Deeper, it is alpha-beta, one position after another. A gain
    of another player counts as a loss of the mover. Among three players that is only a guess, good enough for one ply.

    Raises:
        ValueError: there are too many leaves.
    """
    deepest = next(d for d in range(depth + 1) if d == depth or game.max_legal ** (d + 1) > MOST_LEAVES)
    if deepest < depth:
        possible = f"the deepest is minimax:{deepest}" if deepest else f"it has up to {game.max_legal} legal moves"
        raise ValueError(f"minimax:{depth} is out of reach for {game.name}; {possible}")
    leaf = game.hints.evaluate or (lambda s: game.rewards(s)[game.player(s)])

    def after(s, action, value_of):
        """Value of a move for its mover; `value_of(child, same)` is for the child's mover, `same` if that is still the
        mover."""
        child = game.move(s, action)
        same = game.player(child) == game.player(s)
        value = value_of(child, same)
        return jnp.where(game.over(child), game.rewards(child)[game.player(s)], jnp.where(same, value, -value))

    def full_width(s, depth):
        """Slots of the legal actions and their values for the mover."""
        slots = legal_slots(game.mask(s)[None], game.max_legal)[0]
        below = lambda child, _: leaf(child) if depth == 1 else full_width(child, depth - 1)[1].max()
        values = jax.vmap(lambda action: after(s, action, below))(jnp.maximum(slots, 0))
        return slots, jnp.where(slots < 0, NO_MOVE, values)

    def alpha_beta(s, depth, low, high):
        """As `full_width`, with the most promising actions first, within the window from `low` to `high`. Actions after
        one worth more than `high` are skipped. Below `low`, or below the best so far, values are only upper bounds."""
        worst, (slots, values) = jnp.float32(NO_MOVE), full_width(s, 1)
        if depth == 1:
            return slots, values

        def look(best, action):
            floor = jnp.maximum(best, low)

            def below(child, same):
                window = jnp.where(same, floor, -high), jnp.where(same, high, -floor)
                return alpha_beta(child, depth - 1, *window)[1].max()

            skipped = (action < 0) | (best > high)
            value = jax.lax.cond(skipped, lambda: worst, lambda: after(s, jnp.maximum(action, 0), below))
            return jnp.maximum(best, value), value

        slots = slots[jnp.argsort(-values)]
        return slots, jax.lax.scan(look, worst, slots)[1]

    def act(weights, key, states, plies):
        if depth <= 2:
            slots, values = jax.vmap(lambda s: full_width(s, depth))(states)
        else:
            slots, values = jax.lax.map(lambda s: alpha_beta(s, depth, NO_MOVE, -NO_MOVE), states)
        chosen = (values + LOT * jax.random.uniform(key, values.shape)).argmax(-1)
        return jnp.maximum(jnp.take_along_axis(slots, chosen[:, None], axis=-1)[:, 0], 0)

    return Player(f"minimax:{depth}", act, by_chance=True)


def _greedy(game: Game, _: int | None) -> Player:
    return dataclasses.replace(minimax_player(game, 1), name="greedy")


def _minimax(game: Game, depth: int | None) -> Player:
    assert depth is not None  # the parser demands it
    if game.num_players != 2:
        raise ValueError(f"minimax:{depth} is for two players; {game.name} has {game.num_players}")
    return minimax_player(game, depth)


def _uct(game: Game, num_simulations: int | None) -> Player:
    assert num_simulations is not None
    return uct_player(game, num_simulations)


register_player("random", lambda game, _: random_player(game))
register_player("greedy", _greedy)
register_player("exact", lambda game, _: exact_player(game))
register_player("minimax", _minimax, example=2)
register_player(UCT, _uct, example=100)
