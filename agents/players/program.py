"""Other programs as players: started, asked and read over pipes; protocols in `gtp_client` and `uci_client`."""

from __future__ import annotations

import abc
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
from collections.abc import Iterator

import numpy as np

from agents.players.spec import UCI, PlayerSpec
from envs.game import Game

LONGEST_LINE = 2**12  # characters; the rest of a line counts as the next one
MOST_ANSWER_LINES = 1000  # of one answer, empty ones included
GAMES_FOLDER = "/usr/games"  # Debian installs gnugo here, which is often not on PATH
LIMIT = re.compile(r"(depth|nodes|movetime) [1-9][0-9]{0,8}")  # of a UCI search


@dataclasses.dataclass(frozen=True)
class Program:
    """Another program as a player; `name` is its spec gtp:COMMAND or uci:LIMIT,COMMAND."""

    name: str
    command: tuple[str, ...]
    limit: str = ""  # of a UCI search, such as "depth 4"


def program_of(spec: PlayerSpec) -> Program:
    """The program of a spec; its command line is split as in a shell.

    Raises:
        ValueError: the command or the limit is malformed, or there is no such program.
    """
    limit, comma, command = spec.path.partition(",") if spec.kind == UCI else ("", "", spec.path)
    if spec.kind == UCI and not (comma and LIMIT.fullmatch(limit)):
        raise ValueError(
            f"player '{spec}': expected depth N, nodes N or movetime MS and a program: uci:depth 4,stockfish"
        )
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"player '{spec}': {error}") from None
    path = shutil.which(words[0]) or shutil.which(words[0], path=GAMES_FOLDER) if words else None
    if path is None:
        raise ValueError(f"player '{spec}': there is no program '{words[0] if words else ''}' to start")
    return Program(str(spec), (path, *words[1:]), limit)


class Process(abc.ABC):
    """A running program in one game. Its methods raise a ValueError that names the program if it ends, does not answer
    in time or refuses a command."""

    chatter: tuple[str, ...] = ()  # prefixes of search reports, which do not count as lines of an answer

    def __init__(self, played: Program, timeout: float):
        self.program, self.name, self.timeout = played, played.name, timeout
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

    @abc.abstractmethod
    def begin(self, game: Game) -> None:
        """Sets up the game. Raises ValueError also for a game that such programs do not play."""

    @abc.abstractmethod
    def tell(self, game: Game, mover: int, moves: list[int], legal: np.ndarray, made: bool) -> None:
        """Reports the last of all `moves`, by player `mover`, which the program has `made` itself or not. `legal`
        bool[A] are the actions of the position before it."""

    @abc.abstractmethod
    def request(self, mover: int) -> None:
        """Asks for the move of player `mover`; `take` waits for it."""

    @abc.abstractmethod
    def take(self, mover: int) -> str:
        """The move that was asked for, in the program's words, or `resign`."""

    @abc.abstractmethod
    def action_of(self, game: Game, answer: str) -> int:
        """The move that a program answers. Raises ValueError if the game has no such move."""

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
        with contextlib.suppress(OSError):  # `lines` reports a program that has ended
            self._process.stdin.write(command + "\n")

    def lines(self, command: str, more: float = 0.0) -> Iterator[str]:
        """Lines of the answer to the command sent last, without the spaces around them. All of them must come within
        the timeout and `more` seconds."""
        until, left = time.monotonic() + self.timeout + more, MOST_ANSWER_LINES
        while left:
            try:
                line = self._lines.get(timeout=max(until - time.monotonic(), 0.0))
            except queue.Empty:
                raise ValueError(f"{self.name}: no answer to '{command}' within {self.timeout + more:g} s") from None
            if line == "":
                try:
                    code = self._process.wait(self.timeout)
                except subprocess.TimeoutExpired:
                    raise ValueError(f"{self.name} closed its output at '{command}' but goes on") from None
                raise ValueError(f"{self.name} ended at '{command}' with exit code {code}")
            yield line.strip()
            left -= not line.startswith(self.chatter)
        raise ValueError(f"{self.name} answers '{command}' with more than {MOST_ANSWER_LINES} lines")

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
