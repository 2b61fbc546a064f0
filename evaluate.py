"""Says how good a player is: python evaluate.py match runs/NAME uct:100 --games=400

Without arguments it takes the newest run and plays it against the baselines.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Annotated

import tyro
from rich import box
from rich.console import Console
from rich.table import Table

import envs
from agents import arena, checkpoint, cli, mesh
from agents.players import game_of, make_player

BASELINES = ("random", "minimax:2", "uct:100")


@dataclasses.dataclass(frozen=True)
class Match:
    """A match between two players: random, uct:N, minimax:D, or the folder of a run. FOLDER@N searches with N
    simulations, FOLDER@0 is the network alone."""

    a: tyro.conf.Positional[str]
    """First player."""
    b: tyro.conf.Positional[str]
    """Second player."""
    games: int = 400
    """Games in all; every sampled opening is played twice, from both seats."""
    num_simulations: int = 32
    """Simulations of a network without @N."""
    opening_plies: int = 2
    """Random moves that make an opening: without them two deterministic players know only two games."""
    env: str | None = None
    """Game; by default that of the networks, or foq."""
    seed: int = 0
    """Openings and all chance in the players follow from it."""
    json: bool = False
    """Print the result as one JSON line."""


Command = Annotated[Match, tyro.conf.subcommand("match")] | Annotated[None, tyro.conf.subcommand("baselines")]


def choose_game(command: Match) -> envs.Game:
    """The one game that both players know."""
    known = {spec: game for spec in (command.a, command.b) if (game := game_of(spec)) is not None}
    name = envs.make(command.env or next(iter(known.values()), "foq")).name
    for spec, game in known.items():
        if game != name:
            raise ValueError(f"{spec} is a network for {game}, not for {name}")
    return envs.make(name)


def run_match(command: Match) -> arena.Result:
    game = choose_game(command)
    a, b = (make_player(spec, game, command.num_simulations) for spec in (command.a, command.b))
    console = Console(stderr=True)
    start = time.monotonic()
    with console.status(f"{game.name}: {a.name} against {b.name}, {command.games} games"):
        played = arena.play_match(
            game, a, b, games=command.games, opening_plies=command.opening_plies, seed=command.seed
        )
    result = arena.result(a, b, played)
    if command.json:
        record = {"game": game.name, "seconds": time.monotonic() - start, "seed": command.seed}
        print(json.dumps(record | {"opening_plies": command.opening_plies} | dataclasses.asdict(result)))
    return result


def table(results: list[arena.Result]) -> Table:
    """One row per opponent, narrow enough for a terminal of 80 columns."""
    points = lambda x, none: none if x is None else f"{x:+.0f}"
    out = Table(title=f"{results[0].a}, 95 % intervals over pairs of games", box=box.SIMPLE, pad_edge=False)
    out.add_column("against", overflow="fold")
    for name in ("won/drawn/lost", "score", "Elo", "distinct", "plies"):
        out.add_column(name, justify="right", no_wrap=True)
    for r in results:
        low, high = r.score_interval
        elo = points(r.elo, "> +" if r.score == 1 else "< -")
        out.add_row(
            r.b,
            f"{r.wins}/{r.draws}/{r.losses}",
            f"{r.score:.1%} [{100 * low:.1f}, {100 * high:.1f}]",
            f"{elo} [{points(r.elo_interval[0], '-')}, {points(r.elo_interval[1], '+')}]",
            str(r.distinct),
            f"{r.mean_plies:.1f}",
        )
    return out


def main() -> None:
    with cli.errors():
        mesh.claim_cores()
        arguments = sys.argv[1:]
        if arguments:
            command = cli.parse(Command, arguments, description=__doc__)
            commands = [command] if command else None
        else:
            commands = None
        if commands is None:
            newest = str(checkpoint.newest_run(Path("runs")))
            commands = [Match(newest, baseline) for baseline in BASELINES]
        results = [run_match(command) for command in commands]
        if not commands[0].json:
            Console(width=None if sys.stdout.isatty() else 160).print(table(results))


if __name__ == "__main__":
    main()
