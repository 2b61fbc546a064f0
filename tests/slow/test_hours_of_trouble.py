"""Hours of use and of trouble: a busy server keeps its memory, kills and a clock that is set back lose nothing."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest
from programs import INTERVAL, ROOT, TINY, Program, end_all, kill_and_go_on, last_saved, metrics, train_together
from web_client import ask, begin, rested, served

import envs
from agents.serve.options import PlayOptions
from agents.serve.web import server as web
from agents.serve.web.thinker import Thinker

HOURS = float(os.environ.get("SOAK_HOURS", "1"))
SESSIONS = 50
POLL = 0.15  # seconds between two looks of a page
FOQ = ["--env=foq:rows=4,cols=5", "--num_envs=16", "--num_simulations=4", "--channels=16", "--blocks=1",
       "--replay_capacity=2000", "--rating_games=0"]  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_goes_on():
    """A test that fails leaves no program behind."""
    yield
    end_all()


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_of_a_busy_server_stays_flat(record_property):
    """Fifty guests play all games with engines for an hour: after the first half memory grows by at most a tenth."""
    thinker, stop, failed = Thinker(), threading.Event(), []
    options = PlayOptions(env="foq", num_simulations=64, seconds=1.0, open=False)
    sizes, games = [], [0]
    with served(web.make_context(options, thinker), timeout=900) as client:

        def guest(seed: int) -> None:
            chance = random.Random(seed)
            try:
                while not stop.is_set():
                    name = chance.choice(envs.list())
                    there = {one["game"].partition(":")[0]: one for one in client.get("/api/games").json()}
                    players = ["person"] * envs.make(name).num_players
                    players[-1] = chance.choice([p for p in there[name]["opponents"] if p != "person"])
                    session = begin(client, game=name, players=players, simulations=chance.choice([4, 16, 64]))
                    for _ in range(chance.randrange(12)):
                        session = rested(client, session, pause=POLL)
                        if session["over"] or stop.is_set():
                            break
                        if session["legal"] and players[session["to_move"]] == "person":
                            session = ask(client, session, "move", action=chance.choice(session["legal"])["action"])
                    client.delete(f"/api/sessions/{session['id']}")
                    games[0] += 1
            except BaseException as error:
                if not stop.is_set():  # after the hour the server no longer waits for its guests
                    failed.append(error)

        guests = [threading.Thread(target=guest, args=(seed,), daemon=True) for seed in range(SESSIONS)]
        for one in guests:
            one.start()
        end = time.monotonic() + 3600 * HOURS
        while time.monotonic() < end and not failed:
            time.sleep(min(10.0, 36 * HOURS))
            sizes.append(resident())
        stop.set()
        until = time.monotonic() + 120  # a guest may wait for a compilation
        for one in guests:
            one.join(max(0.0, until - time.monotonic()))
    thinker.close()
    assert not failed, failed[0]
    half = len(sizes) // 2
    mib = [size >> 20 for size in (sizes[half], sizes[-1])]
    record_property("report", f"soak: {games[0]} games, {mib[0]} MiB after half of {HOURS:g} h, {mib[1]} at the end")
    assert max(sizes[-max(1, half // 5) :]) <= 1.1 * max(sizes[: half + 1])


def test_twenty_kills_of_foq(tmp_path):
    kill_and_go_on(tmp_path, 20, seed=2, options=FOQ)


def test_one_of_two_processes_is_killed_ten_times(tmp_path):
    """At random moments, now the first and now the second: both start again and lose no saved iteration."""
    run, chance, before = tmp_path / "run", random.Random(3), -1
    for number in range(10):
        start = [*TINY, f"--out={run}", f"--checkpoint_minutes={INTERVAL}", "--iterations=1000000"]
        start = start if number == 0 else [f"--resume={run}"]
        both = train_together(tmp_path, *start)
        try:
            patience = time.monotonic() + 300
            while last_saved(run) <= before:
                assert all(process.poll() is None for process in both), (tmp_path / "stderr.0").read_text()[-3000:]
                assert time.monotonic() < patience
                time.sleep(0.1)
            time.sleep(chance.uniform(0, 2))
            both[number % 2].send_signal(signal.SIGKILL)
            assert both[1 - number % 2].wait(90) != 0
        finally:
            for process in both:
                process.kill()
                process.wait()
        before = last_saved(run)
    goal = before + 2
    for number, process in enumerate(train_together(tmp_path, f"--resume={run}", f"--iterations={goal}")):
        assert process.wait(300) == 0, (tmp_path / f"stderr.{number}").read_text()[-3000:]
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [line["iteration"] for line in lines] == list(range(1, goal + 1))


BACK = f"""
import runpy, sys, time
usual, start = time.time, time.time()
time.time = lambda: 2 * start - usual() - 86400
runpy.run_path({str(ROOT / "train.py")!r}, run_name="__main__")
"""


def test_a_clock_that_runs_back(tmp_path, monkeypatch):
    """The wall clock is a day late and runs backwards; budget and saves follow another one."""
    (tmp_path / "back.py").write_text(BACK)
    monkeypatch.setattr("programs.TRAIN", str(tmp_path / "back.py"))
    for limit in (3, 6):
        more = ["--resume=run"] if limit == 6 else [*FOQ, "--out=run", "--checkpoint_minutes=0"]
        program = Program(tmp_path, *more, f"--iterations={limit}")
        assert program.process.wait(600) == 0, program.said()
        assert last_saved(tmp_path / "run") == limit
    assert [line["iteration"] for line in metrics(tmp_path / "run")] == list(range(1, 7))
    minutes = [line["minutes"] for line in metrics(tmp_path / "run")]
    assert minutes == sorted(minutes) and minutes[0] > 0
