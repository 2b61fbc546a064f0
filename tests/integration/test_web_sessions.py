"""Long sessions of the page: every game through it, fifty at once, whatever is sent, compiling meanwhile."""

from __future__ import annotations

import dataclasses
import json
import queue
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from web_client import OPTIONS, PEOPLE, ask, begin, rested, served

import envs
from agents.players.spec import PlayerSpec, parse_player
from agents.serve.web import engines, lanes
from agents.serve.web import server as web
from agents.serve.web import sessions as sessions_file
from agents.serve.web import thinker as thinker_file
from agents.serve.web.lanes import Job
from agents.serve.web.thinker import Thinker


@pytest.mark.parametrize("name", envs.list())
def test_every_game_is_played_through_the_interface(client, name):
    """Random moves by people; what the server shows is what the rules say, move by move."""
    game, rng = envs.make(name), random.Random(name)
    step, mask = jax.jit(game.step), jax.jit(game.mask)
    state = game.init()
    session = begin(client, game=name, players=["person"] * game.num_players)
    assert session["title"] and session["rules"] and len(session["seats"]) == game.num_players
    while not session["over"] and session["ply"] < 40:
        legal = np.flatnonzero(np.asarray(mask(state)))
        assert [way["action"] for way in session["legal"]] == [game.action_name(int(a)) for a in legal]
        assert session["to_move"] == int(game.player(state))
        action = int(rng.choice(legal))
        state = step(state, action)
        session = ask(client, session, "move", action=game.action_name(action))
        assert session["last"]["action"] == game.action_name(action)
        assert session["last"]["changed"] or not session["last"]["cells"]
    assert session["save"]["position"] == json.loads(json.dumps(game.to_record(state)))
    assert session["over"] == bool(game.over(state))
    if session["over"]:
        assert session["result"] == pytest.approx(np.asarray(game.rewards(state)).tolist())
    else:
        mover = session["to_move"]
        session = ask(client, session, "resign")
        assert session["result"][mover] == -1
        assert sum(session["result"]) == pytest.approx(0)
    assert client.delete(f"/api/sessions/{session['id']}").status_code == 200


@pytest.mark.parametrize("otherwise", ["random", "uct:16"])
def test_who_proves_first_wins_what_is_won(thinker, otherwise):
    """On 4 x 4 the second of two queens wins whatever the first does (rules of the game, table of solved boards)."""
    options = dataclasses.replace(OPTIONS, env="foq:rows=4,cols=4", opponent=f"prove:1024,{otherwise}")
    with served(web.make_context(options, thinker)) as client:
        for seed in range(4):
            rng, session = random.Random(seed), begin(client)
            assert session["players"] == ["person", options.opponent]
            analysed = rested(client, ask(client, session, "analyse", simulations=16, seconds=5))
            assert analysed["report"]["simulations"] == 15  # three steps, four are too many
            session |= analysed
            while not session["over"]:
                session = ask(client, session, "move", action=rng.choice(session["legal"])["action"])
                session = rested(client, session)
            assert session["result"] == [-1, 1]


def test_a_search_for_proofs_ends_when_asked_to(thinker):
    """From the start of 8 x 9 nothing is proved in a minute; the search ends as soon as nobody wants its answer."""
    game, ended = envs.make("foq"), threading.Event()
    job = Job(game, parse_player("prove:1000000,random"), game.init(), 0, 0, 60.0, lambda _: ended.set())
    thinker.submit(job)
    while job.budget.begun is None:
        time.sleep(0.02)
    job.stopped = True
    assert ended.wait(30.0)
    assert game.mask(game.init())[job.choice]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.text(st.characters(categories=["Cs"]), max_size=2)  # halves of characters
    | st.sampled_from(["b2", "person", 1]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
fields = st.sampled_from(
    ["version", "action", "players", "simulations", "seconds", "start", "game", "actions", "resigned", "\ud800"]
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from([*sessions_file.COMMANDS, "", "nonsense"]), st.dictionaries(fields, json_values, max_size=5))
def test_whatever_is_sent_is_answered(client, word, said):
    session = begin(client, players=PEOPLE)
    text = json.dumps(said).encode()
    for where in (f"/api/sessions/{session['id']}/{word}", "/api/sessions"):
        reply = client.post(where, content=text, headers={"Content-Type": "application/json"})
        assert reply.status_code < 500, (where, said, reply.text)
        assert reply.status_code < 300 or list(reply.json()) == ["error"]
    now = client.get(f"/api/sessions/{session['id']}").json()
    assert now["ply"] == len(now["save"]["actions"])
    client.delete(f"/api/sessions/{session['id']}")


def test_fifty_sessions_at_once_lose_no_move_and_mix_none_up(client):
    """Each plays its own random game against the engine."""
    barrier = threading.Barrier(50)

    def whole_game(number: int):
        rng, mine = random.Random(number), []
        session = begin(client)
        barrier.wait()
        while not session["over"]:
            mine.append(rng.choice(session["legal"])["action"])
            session = rested(client, ask(client, session, "move", action=mine[-1]))
        return session, mine

    with ThreadPoolExecutor(50) as pool:
        games = list(pool.map(whole_game, range(50)))
    game = envs.make("tictactoe")
    for session, mine in games:
        actions = [move["action"] for move in session["history"]]
        assert actions[::2] == mine
        state = game.init()
        for action in actions:
            assert np.asarray(game.mask(state))[game.parse_action(action)]
            state = game.step(state, game.parse_action(action))
        assert bool(game.over(state))
        assert np.asarray(game.rewards(state)).tolist() == session["result"]
    assert len({session["id"] for session, _ in games}) == 50
    assert len({tuple(mine) for _, mine in games}) > 25


def test_fifty_searches_take_the_time_of_two_batches():
    """32 lanes think side by side, the other 18 after them: two times 96 simulations in steps of 32."""
    game, left = envs.make("tictactoe"), queue.SimpleQueue()
    group = lanes.LaneGroup(engines.make_engine(game, parse_player("models/tictactoe"), 32))
    jobs = [Job(game, parse_player("models/tictactoe"), game.init(), 0, 96, 60.0, left.put) for _ in range(50)]
    group.waiting += jobs
    while not all(job.dropped for job in jobs):
        group.advance(jax.random.key(0))
    assert left.qsize() == 50
    assert (group.steps, group.searches) == (2 * 3, 50 * 3)


def test_what_is_compiled_for_newcomers_takes_nobody_s_time(monkeypatch):
    """A second job needs programs for more lanes; the clock of the first stands still meanwhile."""
    game, left = envs.make("connect_four"), queue.SimpleQueue()
    clock, compiling = [0.0], threading.Event()
    monkeypatch.setattr(lanes, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    engine = engines.make_engine(game, PlayerSpec("uct"), 10)

    def run_simulations(weights, key, tree, plies):
        if len(tree.size) > 1 and not compiling.is_set():
            compiling.set()
            clock[0] += 100.0
        clock[0] += 0.1
        return engine.programs(len(tree.size)).run_simulations(weights, key, tree, plies)

    programs = lambda width: engine.programs(width)._replace(run_simulations=run_simulations)
    group = lanes.LaneGroup(dataclasses.replace(engine, programs=programs))
    first, second = (Job(game, PlayerSpec("uct"), game.init(), 0, 100, 5.0, left.put) for _ in range(2))
    group.waiting.append(first)
    group.advance(jax.random.key(0))
    group.waiting.append(second)
    while not (first.dropped and second.dropped):
        group.advance(jax.random.key(1))
    assert compiling.is_set()
    assert first.report["simulations"] == second.report["simulations"] == 100


def test_a_search_finds_the_same_alone_and_among_others(thinker):
    """The network without noise: neighbours in the batch change nothing."""
    game, ended = envs.make("tictactoe"), threading.Event()
    states = [game.init()]
    for action in (4, 0, 8):
        states.append(game.step(states[-1], action))
    left = threading.Semaphore(0)
    make = lambda s: Job(game, parse_player("models/tictactoe"), s, 0, 96, 60.0, lambda job: left.release())
    alone = thinker.submit(make(states[1]))
    assert left.acquire(timeout=120)
    steps = thinker.steps
    held = lambda job: left.release() or ended.wait(60)  # while the others gather
    thinker.submit(Job(game, parse_player("models/tictactoe"), states[0], 0, 32, 60.0, held))
    assert left.acquire(timeout=120)
    together = [thinker.submit(make(s)) for s in states]
    ended.set()
    for _ in states:
        assert left.acquire(timeout=120)
    assert thinker.steps - steps == 1 + 3  # the one before, then 96 simulations in steps of 32, all four side by side
    assert together[1].report == alone.report
    for job, s in zip(together, states, strict=True):
        legal = {game.action_name(int(a)) for a in np.flatnonzero(np.asarray(game.mask(s)))}
        assert {move["action"] for move in job.report["moves"]} == legal
        assert game.action_name(job.choice) in legal


def test_what_is_compiled_for_one_player_keeps_nobody_else_waiting(monkeypatch):
    compiled, made = threading.Event(), thinker_file.make_engine
    slow = lambda *which: compiled.wait(100) and made(*which)
    monkeypatch.setattr(thinker_file, "make_engine", slow)
    thinker, game, left = Thinker(), envs.make("tictactoe"), queue.SimpleQueue()
    ask = lambda player: thinker.submit(Job(game, PlayerSpec(player), game.init(), 0, 8, 60.0, left.put))
    searched = ask("uct")
    quick = ask("random")
    assert left.get(timeout=60) is quick
    assert not thinker.close(seconds=0.1)  # the other still compiles
    compiled.set()
    assert left.get(timeout=60) is searched
    assert min(quick.choice, searched.choice) >= 0
    assert thinker.close(seconds=60)
