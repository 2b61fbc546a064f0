"""train.py as a program of its own, and what must hold however often it is killed."""

from __future__ import annotations

import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import ClassVar

from agents.storage import checkpoint

ROOT = pathlib.Path(__file__).parents[2]
TRAIN = str(ROOT / "train.py")
TINY = [
    "--env=tictactoe",
    "--num_envs=16",
    "--num_simulations=4",
    "--channels=16",
    "--blocks=1",
    "--replay_capacity=400",
    "--optimiser=adamw",
    "--rating_games=0",
]
FOREVER = "--iterations=1000000"
INTERVAL = 0.005  # minutes between two saves where programs are killed


class Program:
    """train.py as people start it; what it says is read as it comes, through a pipe, which no limit on files stops."""

    started: ClassVar[list[subprocess.Popen]] = []

    def __init__(self, home: pathlib.Path, *arguments: str):
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, TRAIN, *arguments],
            cwd=home, env=environment, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.lines: list[str] = []
        self.reader = threading.Thread(target=self.lines.extend, args=(self.process.stderr,), daemon=True)
        self.reader.start()
        self.started.append(self.process)

    def said(self) -> str:
        if self.process.poll() is not None:
            self.reader.join()
        return "".join(self.lines)

    def until(self, condition) -> None:
        limit = time.monotonic() + 300
        while not condition():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < limit, self.said()
            time.sleep(0.02)

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(300)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def train_together(folder: pathlib.Path, *options: str) -> list[subprocess.Popen[str]]:
    """Two processes of one device each that train one network; what they say lies beside the run."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=1"
    one_device = os.environ | {"PYTHONPATH": str(ROOT), "XLA_FLAGS": flags}
    command = [sys.executable, TRAIN, *options, f"--coordinator=127.0.0.1:{free_port()}", "--num_processes=2"]
    started = []
    for process in range(2):
        said, errors = ((folder / f"{name}.{process}").open("w") for name in ("stdout", "stderr"))
        one = [*command, f"--process_id={process}"]
        started.append(subprocess.Popen(one, cwd=ROOT, env=one_device, stdout=said, stderr=errors, text=True))
    return started


def end_all() -> None:
    while Program.started:
        process = Program.started.pop()
        process.kill()
        process.wait()


def metrics(folder: pathlib.Path) -> list[dict]:
    """All whole lines."""
    path = folder / "metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def last_saved(folder: pathlib.Path) -> int:
    return max((int(p.name) for p in checkpoint.numbered(folder / "resume")), default=-1)


def kill_and_go_on(home: pathlib.Path, kills: int, seed: int, options: Sequence[str] = TINY) -> None:
    """Kills a run again and again, at random moments after its first save; then it is stopped by SIGTERM.

    Each time every checkpoint there holds what was written, and the run goes on from nothing older than what it had
    told to be saved. The time lost, by the run's own clock, is at most the interval and the writing of two checkpoints:
    of the one that is cut off, and of the one before, if that took longer than the interval. One writing is taken to
    last as long as the slowest seen so far and two seconds more.
    """
    chance, folder = random.Random(seed), home / "run"
    start = (*options, FOREVER, "--out=run", f"--checkpoint_minutes={INTERVAL}")
    begun: list[int] = []  # iterations that it went on from
    for i in range(kills + 1):
        before = last_saved(folder)
        program = Program(home, *(start if i == 0 else ("--resume=run",)))
        program.until(lambda: last_saved(folder) > before)
        if i == kills:
            break
        time.sleep(chance.uniform(0, 1.5))
        assert program.end(signal.SIGKILL) == -signal.SIGKILL
        lines, goes_on = metrics(folder), checkpoint.find_checkpoint(folder, "resume")
        for path in (*checkpoint.numbered(folder / "resume"), *checkpoint.numbered(folder / "networks")):
            assert checkpoint.damage(path) is None
            assert (path / checkpoint.CHECKSUMS_FILE).is_file()
        assert int(goes_on.name) >= (lines[-1]["saved_iteration"] or 0)
        assert (folder / "networks" / goes_on.name).is_dir()
        clock = {line["iteration"]: line["minutes"] for line in lines}
        first_named = {line["saved_iteration"]: line["minutes"] for line in reversed(lines)}
        writings = [named - clock[saved] for saved, named in first_named.items() if saved not in (None, *begun)]
        assert lines[-1]["minutes"] - clock[int(goes_on.name)] < INTERVAL + 2 * (max(writings, default=0) + 2 / 60)
        begun.append(int(goes_on.name))
    assert program.end(signal.SIGTERM) == 0, program.said()
    iterations = [line["iteration"] for line in metrics(folder)]
    assert iterations == list(range(1, iterations[-1] + 1))
    assert last_saved(folder) == iterations[-1]
    assert all(p.name.isdigit() for kind in ("resume", "networks") for p in (folder / kind).iterdir())
