"""How many root actions a search should consider in play: matches against the shipped settings of models/.

python benchmarks/considered.py models/go_9x9 [models/othello] [--simulations 32] [--actions 4 8] [--matches 200]
    [--seed 5] [--solved FILE] [--json]

Both players have the same network and as many simulations. One considers `actions` moves at the root, the other as
many as the network's file says (`--play_considered_actions`). `score` is that of the first, with its 95% interval;
games that repeat another are left out. With `--solved FILE` there are no matches: the table shows the share of solved
positions in which the value is kept, for the positions at even and at odd places of the file. Choose by one half.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from agents.arena import match, solved_positions
from agents.config import for_play
from agents.players.spec import Player
from agents.search.policies import make_search
from agents.storage import weights as models
from benchmarks import rounds
from envs.game import Game


def player(game: Game, network: str, simulations: int, actions: int | None) -> Player:
    """The network as a player that considers `actions` root moves; with None, as many as its file says."""
    trained = models.load_network(network, game)
    config = for_play(trained.config, game, simulations)
    if actions is not None:
        config = dataclasses.replace(config, max_num_considered_actions=actions)
    search = make_search(game, trained.net, config, explore=False)
    return Player(
        f"{network}, {config.max_num_considered_actions} actions",
        lambda weights, key, states, plies: search(weights, key, states, plies).action,
        trained.weights,
    )


def matches(network: str, simulations: int, actions: list[int], games: int, seed: int) -> Iterator[rounds.Row]:
    game = models.load_network(network).game
    shipped = player(game, network, simulations, None)
    plies = match.opening_plies_of(game, games, None)
    for number in actions:
        asked = player(game, network, simulations, number)
        played = match.play_games(game, asked, shipped, games=games, opening_plies=plies, seed=seed, fair=True)
        found = match.result(asked, shipped, played)
        yield {
            "network": network,
            "simulations": simulations,
            "actions": number,
            "won/drawn/lost": f"{found.wins}/{found.draws}/{found.losses}",
            "score": round(found.score, 3),
            "interval": "{:.3f} to {:.3f}".format(*found.score_interval),
            "Elo": None if found.elo is None else round(found.elo),
        }


def solved(network: str, simulations: int, actions: list[int], file: Path) -> Iterator[rounds.Row]:
    game = models.load_network(network).game
    positions = solved_positions.read_positions(file, game)
    for number in actions:
        moves = solved_positions.choose(player(game, network, simulations, number), positions)
        kept = positions.right[np.arange(len(moves)), moves]
        yield {
            "network": network,
            "simulations": simulations,
            "actions": number,
            "positions": len(kept),
            "even": round(float(kept[::2].mean()), 3),
            "odd": round(float(kept[1::2].mean()), 3),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+", help="folders of runs or models")
    parser.add_argument("--simulations", nargs="+", type=int, default=[32])
    parser.add_argument("--actions", nargs="+", type=int, default=[4, 8])
    parser.add_argument("--matches", type=int, default=200, help="games of each match")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--solved", type=Path, help="file of solved positions, instead of matches")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()

    def rows() -> Iterator[rounds.Row]:
        for network in given.networks:
            for number in given.simulations:
                if given.solved is None:
                    yield from matches(network, number, given.actions, given.matches, given.seed)
                else:
                    yield from solved(network, number, given.actions, given.solved)

    rounds.show(rows(), given.json)


if __name__ == "__main__":
    main()
