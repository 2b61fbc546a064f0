"""Other programs as players, over GTP: engines of Go, of Hex as MoHex speaks it, and of Othello with the commands of
Quarry and GRhino."""

from __future__ import annotations

import re

import numpy as np

from agents.players.program import Process
from envs.game import Game

COLOURS = "bw"  # by player


def greeting(game: Game) -> tuple[str, ...]:
    """GTP commands that set up the game. Programs name its moves as `Game.action_name` does, in either case, but for
    the swap of Hex.

    Raises:
        ValueError: no GTP program is known to play the game.
    """
    if game.name == "othello":
        return "set_game Othello", "boardsize 8", "clear_board"
    if not game.name.startswith(("go:", "hex:")):
        raise ValueError(f"expected go, hex or othello for a GTP program, got {game.name}")
    record = game.to_record(game.init())
    if game.name.startswith("hex:"):
        return f"boardsize {record['size']}", f"param_game allow_swap {int(record['swap'])}", "clear_board"
    return f"boardsize {record['size']}", f"komi {record['komi']:g}", "clear_board"


def report_commands(game: Game, colour: str, moves: list[int], made: bool = False) -> tuple[str, ...]:
    """GTP commands that report the last of all `moves`, which the program has `made` itself or not. Othello programs
    make a forced pass themselves: GRhino refuses one. MoHex leaves the stones as they are at a swap, so Hex programs
    get the position after it."""
    name = game.action_name(moves[-1])
    if game.name.startswith("hex:") and name == "swap":
        assert game.to_mover_frame is not None
        return "clear_board", f"play {colour} {game.action_name(game.to_mover_frame[1, moves[0]])}"
    known = made or (game.name == "othello" and name == "pass")
    return () if known else (f"play {colour} {name}",)


class GtpProcess(Process):
    """A program that speaks GTP."""

    def begin(self, game: Game) -> None:
        for command in greeting(game):
            self.ask(command)

    def tell(self, game: Game, mover: int, moves: list[int], legal: np.ndarray, made: bool) -> None:
        for command in report_commands(game, COLOURS[mover], moves, made):
            self.ask(command)

    def request(self, mover: int) -> None:
        self.send(f"genmove {COLOURS[mover]}")

    def take(self, mover: int) -> str:
        return self.receive(f"genmove {COLOURS[mover]}")

    def action_of(self, game: Game, answer: str) -> int:
        return game.parse_action("swap" if answer.lower() == "swap-pieces" else answer)

    def ask(self, command: str) -> str:
        self.send(command)
        return self.receive(command)

    def receive(self, command: str) -> str:
        """The answer to the command sent last."""
        said: list[str] = []
        for line in self.lines(command):
            if line:
                said.append(line)
            elif said:
                break
        answer = re.fullmatch(r"([=?])\d*\s*(.*)", " ".join(said))
        if answer is None or answer[1] == "?":
            raise ValueError(f"{self.name} answers '{command}' with '{' '.join(said)[:80]}'")
        return answer[2]
