"""Sequential halving side by side against sequential halving in turn, with the networks of models/.

python benchmarks/halving.py [--games tictactoe connect_four] [--simulations 32] [--matches 1000] [--json]

Both orders search the same positions, those of games that start with random moves and go on in turn. `same visits` is
the share of positions where every root action has the same number of visits. In the others, fewer moves are legal than
the search considers, or the search in turn ranks the contenders of a phase anew before the phase ends. `mean
simulations` are those of side by side. Then the orders play a match, with proofs and without noise. `score` is that of
side by side, with its 95% interval.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import envs
from agents.arena.match import play_match
from agents.arena.openings import sample_openings
from agents.config import for_play
from agents.players.spec import Player
from agents.search.halving import Order
from agents.search.policies import make_search
from agents.storage import weights as models
from benchmarks import rounds
from envs.game import Game

ROOT = Path(__file__).parents[1]
OPENINGS, PLIES = 128, 24  # games, and their searched plies, for the comparison


def agreement(game: Game, searches: dict[Order, Any], weights: Any) -> rounds.Row:
    """Shares of positions where both orders do the same."""

    def ply(states: Any, key: Any) -> tuple[Any, Any]:
        found = {
            order: search(weights, key, states, jnp.zeros(OPENINGS, jnp.int32)) for order, search in searches.items()
        }
        one, other = found["in_turn"], found["side_by_side"]
        live = ~jax.vmap(game.over)(states)
        same = live & (one.visits == other.visits).all(-1)
        counts = live, same, live & (one.action == other.action), jnp.where(live, other.visits.sum(-1), 0)
        return jax.vmap(game.step)(states, one.action), jnp.stack([x.sum() for x in counts])

    @jax.jit
    def run(key: Any) -> Any:
        states, _ = sample_openings(game, key, OPENINGS, 2)
        return jax.lax.scan(ply, states, jax.random.split(key, PLIES))[1].sum(0)

    positions, visits, moves, simulations = np.asarray(run(jax.random.key(0))).tolist()
    return {
        "positions": positions,
        "same visits": round(visits / positions, 3),
        "same move": round(moves / positions, 3),
        "mean simulations": round(simulations / positions, 1),
    }


def table(games: list[str], simulations: list[int], matches: int) -> Iterator[rounds.Row]:
    orders: tuple[Order, ...] = ("in_turn", "side_by_side")
    for name in games:
        game = envs.make(name)
        trained = models.load_network(ROOT / "models" / name, game)
        for number in simulations:
            config = for_play(trained.config, game, number)
            searches: dict[Order, Any] = {
                order: make_search(game, trained.net, config, order=order) for order in orders
            }
            players = {
                order: Player(
                    order, lambda w, k, s, plies, search=search: search(w, k, s, plies).action, trained.weights
                )
                for order, search in searches.items()
            }
            found = play_match(game, players["side_by_side"], players["in_turn"], matches)
            yield {
                "game": name,
                "simulations": number,
                **agreement(game, searches, trained.weights),
                "games": found.games,
                "wins": found.wins,
                "draws": found.draws,
                "losses": found.losses,
                "score": round(found.score, 3),
                "interval": "{:.3f} to {:.3f}".format(*found.score_interval),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="+", default=["tictactoe", "connect_four"])
    parser.add_argument("--simulations", nargs="+", type=int, default=[32])
    parser.add_argument("--matches", type=int, default=1000, help="games of each match")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rounds.show(table(given.games, given.simulations, given.matches), given.json)


if __name__ == "__main__":
    main()
