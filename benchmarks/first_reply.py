"""Seconds until a person who opens the page sees their own move and the opponent's first reply.

python benchmarks/first_reply.py [--guests=N] [--json] [GAME ...]

For every game the server starts twice in a process of its own: cold, with an empty cache of compiled programs, and
warm, with the cache that the first start left. The page is opened, and three seconds later the person makes the first
legal move, as the page does. Columns: `board` is the time until the page has its board, `own` the time from the click
until the own move is on the board, `reply` from the click until the opponent has moved; `honest` is the share of that
wait in which the page said that it was getting ready.

With `--guests` N people open pages of one cold server at once, the games in turn: one row each, in the order of the
replies.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import envs
from agents.config import demand
from agents.runtime import cli
from benchmarks import rounds

ROOT = Path(__file__).parents[1]
LOOKED = 3.0  # seconds between opening the page and the first click
POLL = 0.15  # seconds between two looks, as on the page


def call(address: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=900) as answer:
        return json.load(answer)


@contextlib.contextmanager
def served(game: str, cache: str) -> Iterator[str]:
    """The address of a server of its own."""
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": cache}
    command = [sys.executable, "play.py", f"--env={game}", "--port=0", "--no_open"]
    server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found is not None, "the server did not start"
        yield found[0]
    finally:
        server.terminate()
        server.wait()


def visit(address: str, game: str) -> dict[str, float]:
    """The times of one person, see above."""
    opened = time.monotonic()
    view = call(address, "/api/sessions", {"game": game})
    board = time.monotonic() - opened
    path = f"/api/sessions/{view['id']}"
    time.sleep(LOOKED)
    clicked = time.monotonic()
    view = call(address, f"{path}/move", {"version": view["version"], "action": view["legal"][0]["action"]})
    own = time.monotonic() - clicked
    version, looks, honest = view["version"], 0, 0
    while (news := call(address, f"{path}?version={version}"))["version"] == version:
        looks += 1
        honest += bool(news["thinking"] and news["thinking"]["compiling"])
        time.sleep(POLL)
    times = {"board": board, "own": own, "reply": time.monotonic() - clicked, "honest": honest / max(looks, 1)}
    return {name: round(value, 2) for name, value in times.items()}


def alone(games: list[str]) -> Iterator[rounds.Row]:
    for game in games:
        with tempfile.TemporaryDirectory() as cache:
            for start in ("cold", "warm"):
                with served(game, cache) as address:
                    yield {"game": game, "start": start} | visit(address, game)


def together(games: list[str], guests: int) -> Iterator[rounds.Row]:
    with (
        tempfile.TemporaryDirectory() as cache,
        served(games[0], cache) as address,
        ThreadPoolExecutor(guests) as pool,
    ):
        row = lambda game: {"game": game} | visit(address, game)
        visits = [pool.submit(row, game) for game in itertools.islice(itertools.cycle(games), guests)]
        yield from (done.result() for done in as_completed(visits))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", nargs="*", default=envs.list())
    parser.add_argument("--guests", type=int)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with cli.errors():
        demand(given.guests is None or given.guests > 0, f"--guests: expected 1 or more, got {given.guests}")
        for game in given.games:  # before a server starts
            envs.make(game)
    rounds.show(alone(given.games) if given.guests is None else together(given.games, given.guests), given.json)


if __name__ == "__main__":
    main()
