"""Seconds until a person who opens the page sees their own move and the opponent's first reply.

python benchmarks/first_reply.py [--json] [GAME ...]

For every game the server starts twice in a process of its own: cold, with an empty cache of compiled programs, and
warm, with the cache that the first start left. The page is opened, and three seconds later the person makes the first
legal move, as the page does. Columns: `own` is the time until the own move is on the board, `reply` until the opponent
has moved, both from the click; `honest` is the share of the wait in which the page said that it was getting ready.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import envs
from benchmarks import rounds

ROOT = Path(__file__).parents[1]
LOOKED = 3.0  # seconds between opening the page and the first click
POLL = 0.05


def call(address: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.load(answer)


def first_reply(game: str, cache: str) -> dict[str, float]:
    """Times of one game on a server of its own."""
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": cache}
    command = [sys.executable, "play.py", f"--env={game}", "--port=0", "--no_open"]
    server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found is not None, "the server did not start"
        address = found[0]
        view = call(address, "/api/sessions", {"game": game})
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
        return {"own": own, "reply": time.monotonic() - clicked, "honest": honest / max(looks, 1)}
    finally:
        server.terminate()
        server.wait()


def measure(games: list[str]) -> Iterator[rounds.Row]:
    for game in games:
        with tempfile.TemporaryDirectory() as cache:
            for start in ("cold", "warm"):
                yield {"game": game, "start": start} | {k: round(v, 2) for k, v in first_reply(game, cache).items()}


if __name__ == "__main__":
    names = [word for word in sys.argv[1:] if not word.startswith("--")]
    rounds.show(measure(names or envs.list()), "--json" in sys.argv[1:])
