"""Other programs as players, over GTP: engines of Go, of Hex as MoHex speaks it, and of Othello with the commands of
Quarry and GRhino."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time

from agents.players.spec import PlayerSpec
from envs.game import Game

LONGEST_LINE = 2**12  # characters; the rest of a line counts as the next one
MOST_ANSWER_LINES = 1000  # of one answer, empty ones included
GAMES_FOLDER = "/usr/games"  # Debian installs gnugo here, which is often not on PATH


@dataclasses.dataclass(frozen=True)
class Program:
    """Another program as a player; `name` is its spec gtp:COMMAND."""

    name: str
    command: tuple[str, ...]


def program_of(spec: PlayerSpec) -> Program:
    """The program of a spec; its command line is split as in a shell.

    Raises:
        ValueError: the command is malformed, or there is no such program.
    """
    try:
        words = shlex.split(spec.path)
    except ValueError as error:
        raise ValueError(f"player '{spec}': {error}") from None
    path = shutil.which(words[0]) or shutil.which(words[0], path=GAMES_FOLDER) if words else None
    if path is None:
        raise ValueError(f"player '{spec}': there is no program '{words[0] if words else ''}' to start")
    return Program(str(spec), (path, *words[1:]))


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


def action_of(game: Game, answer: str) -> int:
    """The move that a program answers.

    Raises:
        ValueError: the game has no such move.
    """
    return game.parse_action("swap" if answer.lower() == "swap-pieces" else answer)


class Process:
    """A running program. `ask` returns the answer, or raises a ValueError that names the program."""

    def __init__(self, played: Program, timeout: float):
        self.name, self.timeout = played.name, timeout
        try:
            self._process = subprocess.Popen(
                played.command, text=True, errors="replace", bufsize=1, start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except OSError as error:
            raise ValueError(f"{self.name} cannot be started: {error.strerror}") from None
        self._lines: queue.Queue[str] = queue.Queue(MOST_ANSWER_LINES)  # a program that floods waits until it is read
        self._closed = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(ValueError):  # the pipe was closed
            while (line := self._process.stdout.readline(LONGEST_LINE)) and not self._closed.is_set():
                self._put(line)
        self._put("")

    def _put(self, line: str) -> None:
        while not self._closed.is_set():
            with contextlib.suppress(queue.Full):
                return self._lines.put(line, timeout=0.1)

    def send(self, command: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # `receive` reports a program that has ended
            self._process.stdin.write(command + "\n")

    def receive(self, command: str) -> str:
        """The answer to the command sent last; the timeout is for the whole of it."""
        said: list[str] = []
        until = time.monotonic() + self.timeout
        for _ in range(MOST_ANSWER_LINES):
            try:
                line = self._lines.get(timeout=max(until - time.monotonic(), 0.0))
            except queue.Empty:
                raise ValueError(f"{self.name}: no answer to '{command}' within {self.timeout:g} s") from None
            if line == "":
                try:
                    code = self._process.wait(self.timeout)
                except subprocess.TimeoutExpired:
                    raise ValueError(f"{self.name} closed its output at '{command}' but goes on") from None
                raise ValueError(f"{self.name} ended at '{command}' with exit code {code}")
            if line.strip():
                said.append(line.strip())
            elif said:
                break
        else:
            raise ValueError(f"{self.name} answers '{command}' with more than {MOST_ANSWER_LINES} lines")
        answer = re.fullmatch(r"([=?])\d*\s*(.*)", " ".join(said))
        if answer is None or answer[1] == "?":
            raise ValueError(f"{self.name} answers '{command}' with '{' '.join(said)[:80]}'")
        return answer[2]

    def ask(self, command: str) -> str:
        self.send(command)
        return self.receive(command)

    def close(self) -> None:
        """Kills the program and its process group."""
        self._closed.set()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError, ValueError):
                assert pipe is not None
                pipe.close()
