"""Chess programs as players, over UCI: chess, and Gardner's chess where they know it, as Fairy-Stockfish does."""

from __future__ import annotations

import numpy as np

from agents.players.program import Process
from envs.game import Game

VARIANTS = {"chess:size=8": "", "chess:size=5": "gardner"}  # values of the option UCI_Variant


class UciProcess(Process):
    """A program that speaks UCI."""

    chatter = ("info",)

    def begin(self, game: Game) -> None:
        if game.name not in VARIANTS:
            raise ValueError(f"expected {' or '.join(VARIANTS)} for a UCI program, got {game.name}")
        self._names: list[str] = []
        variant, said = VARIANTS[game.name], self._ask("uci", "uciok")
        if variant:
            if not any("UCI_Variant" in line and variant in line.split() for line in said):
                raise ValueError(f"{self.name} does not play {game.name}: it has no UCI_Variant {variant}")
            self.send(f"setoption name UCI_Variant value {variant}")
        self.send("ucinewgame")
        self._ask("isready", "readyok")

    def tell(self, game: Game, mover: int, moves: list[int], legal: np.ndarray, made: bool) -> None:
        self._names.append(uci_name(game, moves[-1], legal))

    def request(self, mover: int) -> None:
        self.send(" ".join(["position startpos", *(["moves", *self._names] if self._names else ())]))
        self.send(f"go {self.program.limit}")

    def take(self, mover: int) -> str:
        kind, _, number = self.program.limit.partition(" ")
        thinks = int(number) / 1000 if kind == "movetime" else 0.0
        return self._wait(f"go {self.program.limit}", "bestmove", thinks)[-1].partition(" ")[2].partition(" ")[0]

    def action_of(self, game: Game, answer: str) -> int:
        return game.parse_action(answer)

    def _ask(self, command: str, last: str) -> list[str]:
        self.send(command)
        return self._wait(command, last)

    def _wait(self, command: str, last: str, more: float = 0.0) -> list[str]:
        """Lines of the answer up to the one that begins with the word `last`; `more` is as for `lines`."""
        said: list[str] = []
        for line in self.lines(command, more):
            said.append(line)
            if line.partition(" ")[0] == last:
                break
        return said


def uci_name(game: Game, action: int, legal: np.ndarray) -> str:
    """The name of a legal move in UCI. Ours leaves out the q of a promotion to a queen, as its code serves other pieces
    too; a pawn could become a rook instead."""
    name = game.action_name(action)
    try:
        promotes = len(name) == 4 and bool(legal[game.parse_action(f"{name}r")])
    except ValueError:
        promotes = False
    return f"{name}q" if promotes else name
