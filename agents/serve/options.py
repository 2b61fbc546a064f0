"""Options of `play.py`, and its default opponent."""

from __future__ import annotations

import dataclasses
import ipaddress
from typing import Annotated, Literal

from agents import config
from agents.config import LONGEST_TIME, Range
from agents.players.spec import parse_player
from agents.storage import weights as models
from envs.game import Game

UNTRAINED = "uct:400"  # opponent if no network is shipped
MOST_SIMULATIONS = 4096  # on the page


@dataclasses.dataclass(frozen=True)
class Limits:
    """The budget of a search."""

    simulations: int
    seconds: float


USUAL = Limits(128, 5.0)
EXPORTED = Limits(MOST_SIMULATIONS, 1.0)  # an exported page makes as many simulations as its machine can in a second


@dataclasses.dataclass(frozen=True)
class PlayOptions(config.Options):
    """Play a game: on a web page, in the terminal, or with another program through GTP."""

    env: str = "foq"
    """Game, as for train.py. With --export also several, separated by spaces, or `all` with a network in
    models/."""
    ui: Literal["web", "text", "gtp"] = "web"
    """A page in the browser, the terminal, or a GTP 2 engine on standard input and output."""
    opponent: str = ""
    """random, greedy, uct:N, minimax:D, the folder of a run or model, prove:N,PLAYER, or `person` for two people; by
    default the network of models/ for exactly this game, or uct:400 if there is none. prove:N,PLAYER searches N
    positions for a proof, for at most half of the seconds. It plays a proved move, otherwise PLAYER's."""
    num_simulations: Annotated[int | None, Range(least=1, most=10**6)] = None
    """Maximum simulations of a move, in each tree; on the page up to 4096. By default 128, with --export 4096."""
    seconds: Annotated[float | None, Range(above=0, most=LONGEST_TIME)] = None
    """Maximum seconds of a move. By default 5, with --export 1."""
    trees: Annotated[int, Range(least=1, most=256)] = 1
    """Trees that search the same position in parallel, in the terminal and through GTP; their results are added up.
    They are shared by as many devices as divide their number, a CPU counting as one for each of its cores."""
    resign_threshold: Annotated[float, Range(least=-1, most=0)] = -0.9
    """Through GTP, the engine resigns when its value has been below this at three of its moves in a row, except in the
    opening; -1 plays to the end."""
    gtp_name: str = "ripzero"
    """Through GTP, the answer to `name`. Lizzie shows scores and territory for an engine named KataGo only."""
    seat: Annotated[int, Range(least=0, most=26)] = 1
    """Your place in the order of moves, from 1, in the terminal; 0 watches the opponent play all places."""
    host: str = "127.0.0.1"
    """Address of the page. Any address but the loopback lets others in."""
    port: Annotated[int, Range(least=0, most=65535)] = 8000
    """Port of the page; 0 takes a free one."""
    open: bool = True
    """Open the page in the browser, if there is a display."""
    export: str = ""
    """Write the page of the game and its opponent, a network or uct:N, to this file NAME.html, or pages and an index of
    them to this folder. They play without Python, see docs/standalone.md."""

    def __post_init__(self):
        super().__post_init__()
        simulations = self.limits.simulations
        if (self.ui == "web" or self.export) and simulations > MOST_SIMULATIONS:
            raise ValueError(f"--num_simulations: expected at most {MOST_SIMULATIONS} on the page, got {simulations}")
        if self.ui == "web" and self.opponent and (parse_player(self.opponent).number or 0) > MOST_SIMULATIONS:
            raise ValueError(f"--opponent={self.opponent}: expected at most {MOST_SIMULATIONS} simulations on the page")
        if self.trees > 1 and self.ui == "web":
            raise ValueError("--trees is for --ui=text and --ui=gtp: the page searches many positions at once instead")
        if self.seat != 1 and self.ui != "text":
            raise ValueError("--seat is for --ui=text: on the page choose the players under New game")
        if not self.host:
            raise ValueError("expected an address after --host, got nothing, which would mean every address")

    @property
    def limits(self) -> Limits:
        """Of every move."""
        usual = EXPORTED if self.export else USUAL
        return Limits(self.num_simulations or usual.simulations, self.seconds or usual.seconds)


def opponent(options: PlayOptions, game: Game) -> str:
    """Spec of the requested opponent, by default a shipped network or `UNTRAINED`."""
    return options.opponent or models.shipped(game) or UNTRAINED


def loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
