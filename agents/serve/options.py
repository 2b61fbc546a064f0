"""Options of `play.py`, and its default opponent."""

from __future__ import annotations

import dataclasses
import ipaddress
import math
from typing import Literal

from agents.players.spec import parse
from agents.storage import weights as models
from envs.game import Game

UNTRAINED = "uct:400"  # opponent if no network is shipped
MOST_TREES = 256
MOST_SIMULATIONS = 4096  # on the page


@dataclasses.dataclass(frozen=True)
class Options:
    """Play a game: on a web page, in the terminal, or with another program through GTP."""

    env: str = "foq"
    """Game, as name:option=value,..."""
    ui: Literal["web", "text", "gtp"] = "web"
    """A page in the browser, the terminal, or a GTP 2 engine on standard input and output."""
    opponent: str = ""
    """random, greedy, uct:N, minimax:D, the folder of a run or model, prove:N,PLAYER, or `person` for two people.
    prove:N,PLAYER plays moves proven within N positions and half of the seconds, otherwise PLAYER's. By default the
    network of models/ for exactly this game, or uct:400 if there is none."""
    num_simulations: int = 128
    """Maximum simulations of a move, in each tree; on the page up to 4096."""
    seconds: float = 5.0
    """Maximum seconds of a move."""
    trees: int = 1
    """Trees that search the same position in parallel, in the terminal and through GTP; their results are added up.
    They are shared by as many devices as divide their number, a CPU counting as one for each of its cores."""
    resign: float = 0.9
    """Through GTP, the engine resigns when its value has been below minus this at three of its moves in a row, except
    in the opening; 1 plays to the end."""
    seat: int = 1
    """Your place in the order of moves, from 1, in the terminal; 0 watches the opponent play all places."""
    host: str = "127.0.0.1"
    """Address of the page. Any address but the loopback lets others in."""
    port: int = 8000
    """Port of the page; 0 takes a free one."""
    open: bool = True
    """Open the page in the browser, if there is a display."""

    def __post_init__(self):
        if self.num_simulations < 1:
            raise ValueError(f"--num_simulations must be at least 1, not {self.num_simulations}")
        if self.ui == "web" and self.num_simulations > MOST_SIMULATIONS:
            raise ValueError(
                f"--num_simulations must be at most {MOST_SIMULATIONS} on the page, not {self.num_simulations}"
            )
        if self.ui == "web" and self.opponent and (parse(self.opponent).number or 0) > MOST_SIMULATIONS:
            raise ValueError(f"--opponent={self.opponent}: on the page want at most {MOST_SIMULATIONS} simulations")
        if not (math.isfinite(self.seconds) and self.seconds > 0):
            raise ValueError(f"--seconds must be more than 0, not {self.seconds}")
        if not 1 <= self.trees <= MOST_TREES:
            raise ValueError(f"--trees must be from 1 to {MOST_TREES}, not {self.trees}")
        if self.trees > 1 and self.ui == "web":
            raise ValueError("--trees is for --ui=text and --ui=gtp: the page searches many positions at once instead")
        if not 0 <= self.resign <= 1:
            raise ValueError(f"--resign must be from 0 to 1, not {self.resign}")
        if not 0 <= self.port < 2**16:
            raise ValueError(f"--port must be from 0 to 65535, not {self.port}")


def opponent(options: Options, game: Game) -> str:
    """Spec of the requested opponent, by default a shipped network or `UNTRAINED`."""
    return options.opponent or models.shipped(game) or UNTRAINED


def loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
