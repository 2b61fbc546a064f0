"""Measures how strong a player is: python evaluate.py match runs/NAME uct:100 --games=400

Without arguments, or with `baselines`, it plays 100 games of the newest run against each of the baselines. After a
command --help shows its options in short, --help-all in full.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from agents.arena import tables
from agents.arena.commands import Gate, Match, run_match
from agents.arena.ladder import Ladder, run_ladder
from agents.arena.solve_commands import Prove, Solved, run_prove, run_solved
from agents.players.players import choose_game, usual_baselines
from agents.runtime import cli, mesh
from agents.storage import checkpoint


@dataclasses.dataclass(frozen=True)
class Baselines:
    """100 games of the newest run against each of the baselines, as without any command."""

    env: str | None = None
    """File of the game, if it is one of your own."""


Command = (
    Annotated[Match, tyro.conf.subcommand("match")]
    | Annotated[Gate, tyro.conf.subcommand("gate")]
    | Annotated[Ladder, tyro.conf.subcommand("ladder")]
    | Annotated[Solved, tyro.conf.subcommand("solved")]
    | Annotated[Prove, tyro.conf.subcommand("prove")]
    | Annotated[Baselines, tyro.conf.subcommand("baselines")]
)


def main(arguments: Sequence[str] | None = None) -> None:
    arguments = sys.argv[1:] if arguments is None else arguments
    with cli.errors():
        mesh.claim_cores()
        cli.collect_rarely()
        cli.keep_compiled()
        command = cli.parse_command(Command, arguments or ["baselines"], description=__doc__)
        if isinstance(command, Solved):
            run_solved(command)
        elif isinstance(command, Ladder):
            run_ladder(command)
        elif isinstance(command, Prove):
            run_prove(command)
        elif isinstance(command, Baselines):
            newest = str(checkpoint.newest_run(Path("runs")))
            game = choose_game(command.env, newest)
            baselines, games = usual_baselines(game), 100 // game.num_players * game.num_players
            print(f"{newest} against {', '.join(baselines)}: {games} games each, a few minutes in all", file=sys.stderr)
            matches = [Match(newest, name, games=games, env=command.env) for name in baselines]
            tables.show(tables.match_table([run_match(each)[0] for each in matches]))
        else:
            result, verdict = run_match(command)
            if not command.json:
                tables.show(tables.match_table([result]))
                if verdict:
                    print(verdict)
            raise SystemExit(int(verdict == "rejected"))


if __name__ == "__main__":
    main()
