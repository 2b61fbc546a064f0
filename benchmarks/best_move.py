"""The first move of a report against the most visited one and the last choice of the search, with networks of models/.

python benchmarks/best_move.py [--games connect_four othello] [--steps 8] [--matches 256] [--seed 0] [--json]

A move has `steps` sequential halvings of 32 simulations each in one tree. All players share this search and differ in
what they play after it: the first move of the report (agents/players/analysis.py), the move with most visits, or the
choice of the last halving. Every opening, random moves, is played twice with the seats exchanged. `differ` is the
share of positions where the two moves differ, `score` that of the report's first move, with its 95% interval.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from agents.arena.match import check_match
from agents.arena.openings import sample_openings
from agents.config import for_play
from agents.players.analysis import root_summary
from agents.search.policies import make_tree_policy
from agents.search.tree import ROOT
from agents.storage import weights as models
from agents.storage.weights import TrainedNetwork
from benchmarks import rounds
from envs.game import Game

ROOT_FOLDER = Path(__file__).parents[1]
HALVING = 32  # simulations
OPENING = 4  # random moves
RIVALS: dict[str, Callable[[Game, dict[str, Any], int], str]] = {
    "visits": lambda game, report, last: max(report["moves"], key=lambda move: move["visits"])["action"],
    "last": lambda game, report, last: game.action_name(last),
}


def make_reports(trained: TrainedNetwork, steps: int, lanes: int) -> Callable[[Any, Any], list[Any]]:
    """(key, states) -> for every lane the report of its search and the choice of the last halving."""
    game = trained.game
    config = for_play(dataclasses.replace(trained.config, search_loop="native"), game, HALVING)
    config = dataclasses.replace(config, proofs=game.num_players == 2, root_symmetry="average")
    tree_policy, plies = make_tree_policy(game, trained.net, config), jnp.full(lanes, game.max_plies)

    @jax.jit
    def search(weights: Any, key: Any, states: Any) -> tuple[Any, ...]:
        tree = tree_policy.init_tree(weights, key, states, steps * HALVING + 1)

        def halve(tree: Any, step_key: Any) -> tuple[Any, Any]:
            edge, _, tree = tree_policy.run_simulations(weights, step_key, tree, plies, False)
            return tree, edge

        tree, edges = jax.lax.scan(halve, tree, jax.random.split(key, steps))
        codes = jnp.broadcast_to(tree_policy.codes(tree), tree.logits.shape)
        last = jnp.take_along_axis(codes[:, ROOT], edges[-1][:, None], axis=-1)[:, 0]
        return tree, tree_policy.policy(tree), tree_policy.values(tree), codes, last

    def reports(key: Any, states: Any) -> list[Any]:
        *searched, last = jax.device_get(search(trained.weights, key, states))
        found = []
        for i in range(lanes):
            tree, policy, values, codes = jax.tree.map(lambda x, i=i: x[i : i + 1], searched)
            found.append((root_summary(game, tree, policy, values, codes, game.num_actions), int(last[i])))
        return found

    return reports


def play(name: str, rival: str, steps: int, games: int, seed: int) -> rounds.Row:
    trained = models.load_network(ROOT_FOLDER / "models" / name)
    check_match(trained.game, games, None, "--matches")
    game, reports = trained.game, make_reports(trained, steps, games)
    move, over = jax.jit(jax.vmap(game.move)), jax.jit(jax.vmap(game.over))
    states, _ = sample_openings(game, jax.random.key(seed), games // 2, OPENING)
    states = jax.tree.map(lambda x: jnp.concatenate([x, x]), states)
    seat = np.arange(games) // (games // 2)  # of the player who follows the report
    differ = positions = 0
    for ply in range(game.max_plies):
        live, player = np.asarray(~over(states)), np.asarray(jax.vmap(game.player)(states))
        if not live.any():
            break
        found, actions = reports(jax.random.fold_in(jax.random.key(seed), ply), states), np.zeros(games, np.int32)
        for i in np.flatnonzero(live):
            report, last = found[i]
            names = report["moves"][0]["action"], RIVALS[rival](game, report, last)
            differ, positions = differ + (names[0] != names[1]), positions + 1
            actions[i] = game.parse_action(names[int(player[i] != seat[i])])
        states = move(states, actions)
    points = (np.asarray(jax.vmap(game.rewards)(states))[np.arange(games), seat] + 1) / 2
    pairs = points.reshape(2, -1).mean(0)
    mean, half = pairs.mean(), 1.96 * pairs.std() / np.sqrt(len(pairs))
    interval = f"{mean - half:.3f} to {mean + half:.3f}"
    share = round(differ / positions, 3)
    return {"game": name, "against": rival, "differ": share, "score": round(mean, 3), "interval": interval}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="+", default=["connect_four", "othello"])
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--matches", type=int, default=256, help="games of each match")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    pairs = [(name, rival) for name in given.games for rival in RIVALS]
    rounds.show((play(*pair, given.steps, given.matches, given.seed) for pair in pairs), given.json)


if __name__ == "__main__":
    main()
