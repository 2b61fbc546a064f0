"""Other Go programs as players, over GTP."""

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

from agents.players.spec import PlayerSpec
from envs.game import Game

GAMES_FOLDER = "/usr/games"  # Debian installs gnugo here, which is often not on PATH


@dataclasses.dataclass(frozen=True)
class Program:
    """Another program as a player; `name` is its spec gtp:COMMAND."""

    name: str
    command: tuple[str, ...]


def program(spec: PlayerSpec) -> Program:
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
    """GTP commands that set up the game.

    Raises:
        ValueError: the game is not Go.
    """
    if not game.name.startswith("go:"):
        raise ValueError(f"{game.name}: GTP programs play Go")
    record = game.to_record(game.init())
    return f"boardsize {record['size']}", f"komi {record['komi']:g}", "clear_board"


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
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(ValueError):  # the pipe was closed
            for line in self._process.stdout:
                self._lines.put(line)
        self._lines.put("")

    def send(self, command: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # `receive` reports a program that has ended
            self._process.stdin.write(command + "\n")

    def receive(self, command: str) -> str:
        """The answer to the command sent last."""
        said: list[str] = []
        while True:
            try:
                line = self._lines.get(timeout=self.timeout)
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
        answer = re.fullmatch(r"([=?])\d*\s*(.*)", " ".join(said))
        if answer is None or answer[1] == "?":
            raise ValueError(f"{self.name} answers '{command}' with '{' '.join(said)[:80]}'")
        return answer[2]

    def ask(self, command: str) -> str:
        self.send(command)
        return self.receive(command)

    def close(self) -> None:
        """Kills the program and its process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError, ValueError):
                assert pipe is not None
                pipe.close()
