"""Threads of the page: bounded in number, and compiling one after the other."""

from __future__ import annotations

import gc
import queue
import threading
import time
import weakref

import numpy as np
import pytest

import envs
from agents.players.spec import PlayerSpec
from agents.serve.web import thinker as thinker_file
from agents.serve.web.lanes import Job, fitting
from agents.serve.web.thinker import FairLock, Thinker

GAMES = [envs.make(name) for name in ("tictactoe", "connect_four:rows=4,cols=4", "gomoku:size=5", "sum_to_100")]


def ask(thinker, game, player, simulations=2, proofs=None):
    """A job, and a queue that gets it when it is done."""
    done: queue.SimpleQueue[Job] = queue.SimpleQueue()
    thinker.submit(Job(game, PlayerSpec(player, proof_positions=proofs), game.init(), 0, simulations, 5.0, done.put))
    return done


@pytest.fixture
def thinker():
    made = Thinker()
    yield made
    assert made.close(60)


@pytest.mark.nightly
def test_the_least_used_player_makes_room(thinker, monkeypatch):
    """Eight players, three at a time: every job is answered, and of the others neither thread nor engine is left."""
    monkeypatch.setattr(thinker_file, "MOST_WORKERS", 3)
    workers = []
    for game in GAMES:
        for player in ("random", "uct"):
            job = ask(thinker, game, player).get(timeout=300)
            assert job.error == "" and game.mask(game.init())[job.choice]
            workers.append(weakref.ref(thinker._workers[job.worker]))
            assert len(thinker._workers) <= 3
    thinker_file.make_engine.cache_clear()
    until = time.monotonic() + 60
    while sum(ref() is not None for ref in workers) > 3 and time.monotonic() < until:
        gc.collect()
        time.sleep(0.05)
    assert [ref() is not None for ref in workers] == [False] * 5 + [True] * 3
    assert ask(thinker, GAMES[0], "uct").get(timeout=300).error == ""  # who comes back is served again


def test_a_player_that_makes_room_finishes_its_jobs(thinker, monkeypatch):
    monkeypatch.setattr(thinker_file, "MOST_WORKERS", 1)
    waiting = [ask(thinker, game, "random") for game in GAMES for _ in range(3)]
    assert all(done.get(timeout=300).error == "" for done in waiting)


def test_turns_are_given_one_at_a_time_and_in_order():
    turns, order, inside = FairLock(), [], []
    threads = []

    def work(number):
        with turns.turn():
            inside.append(number)
            assert len(inside) == 1
            time.sleep(0.01)
            order.append(inside.pop())

    with turns.turn():
        for number in range(10):
            threads.append(threading.Thread(target=work, args=(number,)))
            threads[-1].start()
            time.sleep(0.02)  # it now waits for its turn
    for thread in threads:
        thread.join()
    assert order == list(range(10))
    with pytest.raises(ZeroDivisionError), turns.turn():
        _ = 1 / 0
    with turns.turn():
        pass  # an error gives the turn back


def test_no_turn_begins_while_something_goes_first():
    turns, began = FairLock(), threading.Event()

    def work():
        with turns.turn():
            began.set()

    with turns.first():
        with turns.first():
            threading.Thread(target=work, daemon=True).start()
        assert not began.wait(0.2)
    assert began.wait(10)


def test_games_opened_at_once_compile_one_after_the_other(thinker, monkeypatch):
    """Each first step is alone, players say so until theirs is over, and the first one moves long before the last."""
    busy, most, made = [0], [0], thinker_file.make_engine
    lock = threading.Lock()

    def slow(*arguments):
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
        time.sleep(0.3)
        engine = made(*arguments)
        with lock:
            busy[0] -= 1
        return engine

    monkeypatch.setattr(thinker_file, "make_engine", slow)
    jobs = [Job(game, PlayerSpec("uct"), game.init(), 0, 2, 5.0) for game in GAMES]
    ended: list[tuple[float, list[bool]]] = []

    def done(job):
        ended.append((time.monotonic(), [thinker.compiling(one) for one in jobs]))

    for job in jobs:
        job.done = done
        thinker.submit(job)
    assert all(thinker.compiling(job) for job in jobs)
    until = time.monotonic() + 300
    while len(ended) < len(jobs) and time.monotonic() < until:
        time.sleep(0.01)
    assert most[0] == 1
    assert [sum(still) >= len(jobs) - 1 - i for i, (_, still) in enumerate(ended)] == [True] * len(jobs)
    assert ended[0][0] + 0.3 * (len(jobs) - 1) <= ended[-1][0]


def test_the_programs_of_a_player_follow_each_other(thinker, monkeypatch):
    """Players that prove first compile two programs each; nobody else's comes between them."""
    order = []

    def noted(name, make):
        def noting(game, *rest):
            order.append((game.name, name))
            time.sleep(0.2)  # the others wait for their turn meanwhile
            return make(game, *rest)

        return noting

    monkeypatch.setattr(thinker_file, "make_engine", noted("search", thinker_file.make_engine))
    solver = noted("proof", thinker_file.make_solver)
    monkeypatch.setattr(thinker_file, "make_solver", solver)
    waiting = [ask(thinker, game, "uct", proofs=600) for game in GAMES[1:3]]
    assert [done.get(timeout=300).error for done in waiting] == ["", ""]
    assert [name for _, name in order] == ["proof", "search"] * 2
    one, other = order[0][0], order[2][0]
    assert {one, other} == {GAMES[1].name, GAMES[2].name} and [game for game, _ in order] == [one, one, other, other]


def test_guests_share_the_widths_that_are_there():
    assert [fitting(n, set()) for n in (1, 2, 8, 9, 32)] == [1, 8, 8, 32, 32]
    assert fitting(3, {1, 32}) == 32  # four times as many lanes cost less than a compilation
    assert fitting(1, {32}) == 1
    assert fitting(9, {1, 8}) == 32


def test_perfect_play_on_the_page(thinker):
    """X has b3 and c3, O has a1 and b1: exact finishes the row, although it has no tree to show."""
    game = GAMES[0]
    state = game.init()
    for name in ("b3", "a1", "c3", "b1"):
        state = game.step(state, game.parse_action(name))
    done: queue.SimpleQueue[Job] = queue.SimpleQueue()
    thinker.submit(Job(game, PlayerSpec("exact"), state, 4, 8, 5.0, done.put))
    job = done.get(timeout=300)
    assert job.error == ""
    assert game.action_name(job.choice) == "a3"
    assert np.asarray(game.mask(state))[job.choice]
