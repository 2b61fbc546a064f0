"""The games of a server, and the players that it offers for each."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

import envs
from agents.players.spec import PERSON, UCT, PlayerSpec, parse_player
from agents.serve import levels
from agents.serve.options import MOST_SIMULATIONS, UNTRAINED, PlayOptions, opponent
from agents.serve.web.requests import Refused
from agents.serve.web.thinker import Thinker
from agents.solvers import proof_number
from agents.storage import checkpoint
from agents.storage import weights as models
from envs.game import Game

PROOFS = 200_000  # positions of the proof search before the network, on the page; 100 MB for Flight of Queen


@dataclasses.dataclass(frozen=True)
class ServerContext:
    """The games of a server, and the thinker that they share."""

    options: PlayOptions
    own: Game  # the game of the command line
    thinker: Thinker

    def game(self, name: Any) -> Game:
        """The game that a browser requests: that of the command line, or a registered one with offered options."""
        if name in (self.options.env, self.own.name):
            return self.own
        if isinstance(name, str) and levels.offered(name):
            try:
                return envs.make(name)
            except ValueError as error:  # such as an option that is given twice
                raise Refused(400, str(error)) from error
        known = ", ".join(dict.fromkeys((self.own.name, *envs.list())))
        raise Refused(400, f"{str(name)[:60]} is not played here, only {known} with the usual options")

    def opponents(self, game: Game) -> list[str]:
        """Players to choose from, the default first. Networks are those of the command line, runs/ and models/; those
        of models/ are also offered with proofs."""
        shipped = models.shipped(game)
        found = [*([opponent(self.options, game)] if game is self.own else []), shipped, *_runs(game.name)]
        if shipped and proof_number.within_reach(game):
            found.append(f"prove:{PROOFS},{shipped}")
        found += [UNTRAINED, "uct:100", "uct:2000"]
        if game.hints.evaluate is not None and game.num_players == 2:
            found.append("greedy")
        found += ["random", PERSON]
        return list(dict.fromkeys(name for name in found if name))

    def player(self, game: Game, name: Any) -> str:
        """The player that a browser requests, if it is allowed."""
        if isinstance(name, str) and (name in self.opponents(game) or _is_uct(name)):
            return name
        known = ", ".join(self.opponents(game))
        raise Refused(400, f"player: expected uct:N with N up to {MOST_SIMULATIONS}, or one of {known}")

    def analyst(self, game: Game) -> PlayerSpec:
        """The player for analyses: a network if there is one, else MCTS."""
        own = [spec for name in self.opponents(game) if (spec := parse_player(name).base).searches]
        best = next((spec for spec in own if spec.kind != UCT), parse_player(UNTRAINED))
        return dataclasses.replace(best, number=None)


def _is_uct(name: str) -> bool:
    """Whether a browser asks for playouts that are not too many."""
    try:
        spec = parse_player(name)
    except ValueError:
        return False
    return str(spec) == name and spec == PlayerSpec(UCT, number=spec.number) and (spec.number or 0) <= MOST_SIMULATIONS


@functools.lru_cache(maxsize=256)
def _game_of(folder: str, changed_at: float) -> str | None:
    del changed_at  # part of the cache key: a run with new networks is read again
    try:
        return models.about(models.find_network(Path(folder)))["config"].env
    except (ValueError, OSError, KeyError):
        return None  # not a run, or nothing is saved yet


def _runs(name: str) -> list[str]:
    """Runs of a game under runs/, newest first."""
    named = (path for path in Path("runs").glob("*") if "@" not in path.name)  # @ would begin the strength
    folders = [path for path in named if checkpoint.numbered(path / "networks")]
    times = {str(path): (path / "networks").stat().st_mtime for path in folders}
    newest = sorted(times, key=lambda folder: times[folder], reverse=True)[:20]
    return [folder for folder in newest if _game_of(folder, times[folder]) == name]


def budgeted(player: str, simulations: int) -> tuple[PlayerSpec, int]:
    """A player and the simulations of its search: its own number, or `simulations`."""
    spec = parse_player(player)
    if not spec.searches:
        return spec, simulations
    return dataclasses.replace(spec, number=None), simulations if spec.number is None else spec.number
