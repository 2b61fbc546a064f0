"""The JSON interface of the page: every game through it, limits, bad input, many at once."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import queue
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import jax
import numpy as np
import pytest
from web_client import OPTIONS, PEOPLE, ask, begin, rested, served

import envs
import play
from agents.players.spec import PlayerSpec, parse_player
from agents.serve.options import Limits, PlayOptions
from agents.serve.views import changed, look_at
from agents.serve.web import engines, lanes
from agents.serve.web import server as web
from agents.serve.web import sessions as sessions_file
from agents.serve.web import thinker as thinker_file
from agents.serve.web.lanes import Job
from agents.serve.web.played_game import Line, PlayedGame
from agents.serve.web.requests import Refused
from agents.serve.web.session import Session
from agents.serve.web.sessions import Sessions
from agents.serve.web.thinker import Thinker
from agents.storage import weights as models

ROOT = Path(__file__).parents[2]


# Games


def test_the_squares_that_a_move_would_rip_are_shown(client):
    """From a8 to e8 the queen rips b8 to e8, and leaves a8."""
    session = begin(client, game="foq", players=PEOPLE)
    where = f"/api/sessions/{session['id']}/preview"
    reply = client.get(where, params={"version": session["version"], "ply": 0, "action": "e8"}).json()
    assert sorted(reply["changed"]) == ["a8", "b8", "c8", "d8", "e8"]
    assert reply["svg"] != session["svg"]
    assert client.get(where, params={"version": session["version"], "ply": 0, "action": "h1"}).status_code == 400
    assert client.get(f"/api/sessions/{session['id']}").json()["ply"] == 0


def test_changed_cells_of_othello():
    """The first move encloses one disc: it and the new one change, marks of legal squares do not count."""
    game = envs.make("othello")
    start = look_at(game, game.init())
    after = start.after(game.parse_action("d3"))
    assert sorted(changed(start, after)) == ["d3", "d4"]


def test_shipped_networks_are_offered_with_proofs_before_them_where_moves_are_cheap(client):
    offered = {game["game"].partition(":")[0]: game["opponents"] for game in client.get("/api/games").json()}
    proving = {name: [spec for spec in specs if spec.startswith("prove:")] for name, specs in offered.items()}
    assert [spec.partition(",")[2] for spec in proving["foq_single"]] == ["models/foq_single"]
    assert not proving["foq_multi"] and not proving["go"] and not proving["evopawness"]  # three players, dear moves
    assert [spec.partition(",")[2] for spec in proving["gomoku"]] == ["models/gomoku_15x15"]


def test_whoever_begins_is_a_person_by_default(client):
    session = begin(client, game="evopawness")
    assert session["to_move"] == 1  # Black begins
    assert session["players"][1] == "person"
    assert session["players"][0] != "person"


def test_three_players(client):
    session = begin(client, game="foq_multi", players=["random", "person", "random"])
    session = rested(client, session)
    assert (session["ply"], session["to_move"]) == (1, 1)
    session = rested(client, ask(client, session, "move", action=session["legal"][0]["action"]))
    assert session["ply"] >= 4 or session["over"]
    assert session["over"] or session["to_move"] == 1
    session = ask(client, session, "resign")
    assert session["result"] == [0.5, -1, 0.5]


# Undo, hints, analysis, files


@pytest.mark.nightly
def test_owners_and_the_expected_score_are_analysed(client):
    """The network of Go knows them, and the hint before does not ask for them; playouts know neither."""
    session = begin(client, game="go:size=7", players=PEOPLE, simulations=16)
    for point in ("D4", "C3"):
        session = ask(client, session, "move", action=point)
    session = rested(client, ask(client, session, "hint"))
    assert "owners" not in session["report"]
    session = rested(client, ask(client, session, "analyse", simulations=8))
    owners, score = session["report"]["owners"], session["report"]["score"]
    assert list(owners) == [f"{column}{row}" for row in "7654321" for column in "ABCDEFG"]
    assert session["report"]["simulations"] >= 16  # the longer search stays
    assert score == pytest.approx(sum(owners.values()) - 7.5, abs=0.3)
    assert owners["D4"] > 0.2 > -0.1 > owners["C3"]  # Black's stone and White's
    session = begin(client, players=PEOPLE)
    assert "owners" not in rested(client, ask(client, session, "analyse"))["report"]


def test_undo_and_redo_pass_over_the_engine(client):
    session = rested(client, ask(client, begin(client), "move", action="b2"))
    reply = session["history"][1]["action"]
    session = ask(client, session, "undo")
    assert (session["ply"], session["redo"], session["thinking"]) == (0, True, None)
    session = ask(client, session, "redo")
    assert [move["action"] for move in session["history"]] == ["b2", reply]
    session = ask(client, session, "undo")
    session = ask(client, session, "resign")
    assert session["result"] == [-1, 1]
    assert not session["redo"]  # moves after the end would make a game that cannot be loaded
    assert "nothing to make again" in ask(client, session, "redo", status=409)
    session = ask(client, session, "undo")
    assert not session["over"]
    assert session["redo"]
    assert "nothing to take back" in ask(client, session, "undo", status=409)


def test_watching_engines_and_going_on_after_an_undo(client):
    session = begin(client, players=["random", "random"])
    while not session["over"]:
        session |= client.get(f"/api/sessions/{session['id']}", params={"version": session["version"]}).json()
    assert "nobody plays" in ask(client, ask(client, session, "undo"), "resign", status=409)
    session = client.get(f"/api/sessions/{session['id']}").json()
    assert session["paused"]
    ask(client, session, "resume")


def test_hints_and_moves_are_the_first_of_the_list(client, monkeypatch):
    """Here the list begins with the worst move: the hint and the engine follow it."""
    in_order = lanes.root_summary

    def reversed_order(*arguments, **options):
        said = in_order(*arguments, **options)
        return said | {"moves": said["moves"][::-1]}

    monkeypatch.setattr(lanes, "root_summary", reversed_order)
    board = [1, 1, 0, -1, -1, 0, 0, 0, 0]
    session = begin(client, start={"board": board, "to_move": 1}, players=PEOPLE)
    session = rested(client, ask(client, session, "hint"))
    assert session["hint"] == session["report"]["moves"][0]["action"] != "c3"
    session = rested(client, begin(client, start={"board": board, "to_move": 1}, players=["uct:16", "person"]))
    assert session["history"][0]["action"] != "c3"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"game": "tictactoe", "actions": ["a1", "b1", "a1"]}, "move 3: a1 is not legal there"),
        ({"game": "foq", "actions": ["z9"]}, "move 1: no square 'z9'"),
        ({"game": "tictactoe", "actions": ["a1", "b1", "a2", "b2", "a3", "c3"]}, "move 6: the game was over before"),
        ({"game": "chess960", "actions": ["e4"]}, "chess960 is not played here, only tictactoe, "),
    ],
)
def test_a_refused_game_says_what_is_wrong(client, wrong, words):
    reply = client.post("/api/sessions", json=wrong)
    assert reply.status_code == 400
    assert reply.json()["error"].startswith(words)


def test_hint_takes_the_win(client):
    board = [1, 1, 0, -1, -1, 0, 0, 0, 0]
    session = begin(client, start={"board": board, "to_move": 1}, players=PEOPLE)
    session = rested(client, ask(client, session, "hint"))
    assert session["hint"] == "c3"
    assert session["version"] == 1  # nothing was played
    assert session["values"] == [[1, -1]]


def test_analysis_tells_of_every_move_and_can_be_stopped(client):
    session = begin(client, players=PEOPLE)
    session = ask(client, session, "analyse", simulations=4096, seconds=60)
    assert session["thinking"]["kind"] == "analysis"
    begun = time.monotonic()
    while session["report"] is None or (session["thinking"] and session["thinking"]["simulations"] < 64):
        session |= client.get(f"/api/sessions/{session['id']}", params={"version": session["version"]}).json()
    session = rested(client, ask(client, session, "stop"))
    assert time.monotonic() - begun < 50
    assert len(session["report"]["moves"]) == 9
    assert sum(move["visits"] for move in session["report"]["moves"]) == session["report"]["simulations"]
    assert sum(move["prior"] for move in session["report"]["moves"]) == pytest.approx(1, abs=1e-2)


def test_review_finds_the_mistake(client):
    """O answers the middle by an edge, which loses; all other moves but O's last ones keep the value."""
    session = begin(client, players=PEOPLE, simulations=1000)
    for action in ("b2", "b3", "a3", "c1"):
        session = ask(client, session, "move", action=action)
    session = rested(client, ask(client, session, "review"))
    marks = {move["action"]: move["mark"] for move in session["review"]}
    assert marks["b3"] in ("mistake", "blunder")
    assert marks["b2"] == marks["a3"] == ""
    assert all(value is not None for value in session["values"])


@pytest.mark.parametrize(("moves", "mark"), [(("b2",), False), (("b2", "b3"), True)])
def test_who_gives_up_does_not_change_what_his_last_move_was_worth(client, moves, mark):
    """X takes the middle, a draw, and gives up; or O answers by an edge, which loses, and it is X who gives up."""
    session = begin(client, players=PEOPLE, simulations=1000, actions=moves, resigned=0)
    assert session["result"] == [-1, 1]
    session = rested(client, ask(client, session, "review"))
    assert (session["review"][-1]["mark"] in ("mistake", "blunder")) == mark
    assert session["values"][-1][0] > -0.5


@pytest.mark.parametrize("ply", ["-1", "5", "1.5", "two", ""])
def test_a_ply_that_is_not_there_is_refused_in_one_line(client, ply):
    session = ask(client, begin(client, players=PEOPLE), "move", action="b2")
    where = f"/api/sessions/{session['id']}/past"
    assert client.get(where, params={"version": session["version"], "ply": "1"}).json()["last"]
    reply = client.get(where, params={"version": session["version"], "ply": ply})
    assert reply.status_code == 400
    assert "from 0 to 1" in reply.json()["error"]


def test_a_saved_game_comes_back_and_a_position_too(client):
    session = begin(client, players=PEOPLE)
    for action in ("b2", "a1", "c3"):
        session = ask(client, session, "move", action=action)
    saved = session["save"]
    again = begin(client, **{k: saved[k] for k in ("game", "actions")}, players=PEOPLE)
    assert again["id"] != session["id"]
    assert again["svg"] == session["svg"]
    assert again["history"] == session["history"]
    position = begin(client, game=saved["game"], start=saved["position"], players=PEOPLE)
    assert (position["svg"], position["ply"]) == (session["svg"], 0)
    resigned = begin(client, game="tictactoe", actions=["b2"], resigned=1, players=PEOPLE)
    assert resigned["result"] == [1, -1]
    assert resigned["save"]["resigned"] == 1


# Bad input


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        (b"{", 400, "no JSON"),
        (b"[]", 400, "JSON object"),
        (b"[" * 100_000, 400, "no JSON"),
        (b'{"version": NaN}', 400, "no JSON"),
        (b'{"version": 1e999}', 400, "no JSON"),
        (b'{"version": ' + b"9" * 5000 + b"}", 400, "no JSON"),
        (b"\xff\xfe", 400, "no JSON"),
        (b'{"version": true, "action": "b2"}', 400, "version"),
        (b'{"version": 1, "action": 7}', 400, "action"),
        (b'{"version": 1, "action": "zz"}', 400, "no cell"),
        (b'{"version": 1, "action": null}', 400, "action"),
        (rb'{"version": 1, "action": "\ud800"}', 400, r"half a character, \ud800,"),
        (rb'{"version": 1, "action": "b2", "\udfff": 0}', 400, r"half a character, \udfff,"),
        (rb'{"version": 1, "action": "\ud83d\ude00"}', 400, "no cell '\U0001f600'"),
        (b'{"version": 0, "action": "b2"}', 409, "gone on"),
        (b"{}" + b" " * 2**20, 413, "longer than"),
    ],
)
def test_bad_moves_are_refused_in_one_line(client, content, status, words):
    session = begin(client, players=PEOPLE)
    reply = client.post(
        f"/api/sessions/{session['id']}/move", content=content, headers={"Content-Type": "application/json"}
    )
    assert reply.status_code == status, reply.text
    assert words in reply.json()["error"]
    assert len(reply.text) < 400
    assert client.get(f"/api/sessions/{session['id']}").json()["ply"] == 0


@pytest.mark.parametrize(
    "request_",
    [
        {"game": "chess960"},
        {"game": "foq:rows=26,cols=26"},
        {"game": "/etc/passwd.py"},
        {"game": ["tictactoe"]},
        {"players": ["person"]},
        {"players": ["person", "../../models/foq"]},
        {"players": ["person", "/etc"]},
        {"players": ["person", "uct:99999999"]},
        {"players": ["person", 5]},
        {"players": "person"},
        {"simulations": 10**9},
        {"simulations": 0},
        {"simulations": 1.5},
        {"seconds": 1e9},
        {"seconds": True},
        {"start": {"board": [9] * 9, "to_move": 1}},
        {"start": [1]},
        {"start": {"board": "x" * 1000, "to_move": {}}},
        {"actions": ["b2", "b2"]},
        {"actions": ["b2"] * 1000},
        {"actions": {"0": "b2"}},
        {"format": "another 9"},
        {"resigned": 7},
        {"resigned": "x"},
        {"resigned": 1.0},
        {"resigned": True},
        {"resigned": [1]},
        {"resigned": 0, "actions": ["b2", "a2", "a1", "b1", "c3"]},
        {"start": {"x" * 10_000: 0}},
        {"start": {"\ud800": 0}},
        {"game": "\ud800"},
        {"actions": ["\ud800"]},
    ],
)
def test_bad_games_are_refused_in_one_line(client, request_):
    content = json.dumps(request_)  # that of the client does not write half a character
    reply = client.post("/api/sessions", content=content, headers={"Content-Type": "application/json"})
    assert reply.status_code == 400, reply.text
    assert list(reply.json()) == ["error"]
    assert len(reply.text) < 600


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/../../pyproject.toml", 404),
        ("GET", "/%2e%2e/%2e%2e/pyproject.toml", 404),
        ("GET", "/page.js/../../web.py", 404),
        ("GET", "/api/sessions/nobody", 404),
        ("DELETE", "/api/sessions/nobody", 404),
        ("GET", "/api/sessions", 405),
        ("PUT", "/api/sessions/nobody", 405),
        ("GET", "/api/sessions/nobody/move", 405),
        ("POST", "/", 405),
    ],
)
def test_wrong_paths_and_methods(client, method, path, status):
    reply = client.request(method, httpx.URL(client.base_url).copy_with(raw_path=path.encode()))
    assert reply.status_code == status
    assert list(reply.json()) == ["error"]


def test_strangers_are_not_let_in(client):
    """Neither under another name for this address, nor by a form of another page."""
    assert client.get("/api/status", headers={"Host": "evil.example"}).status_code == 400
    assert client.post("/api/sessions", data={"game": "foq"}).status_code == 415
    page = client.get("/").headers
    assert "default-src 'self'" in page["content-security-policy"]
    assert page["x-frame-options"] == "DENY"


def test_a_notebook_shows_the_page_in_a_frame(thinker):
    """Served to others, as Colab does it: under a name of its own, inside a frame."""
    with served(web.make_context(dataclasses.replace(OPTIONS, host="0.0.0.0"), thinker)) as client:
        reply = client.get("/", headers={"Host": "8000-abc.prod.colab.dev"})
    assert reply.status_code == 200
    assert "x-frame-options" not in reply.headers
    assert "frame-ancestors" not in reply.headers["content-security-policy"]


def test_sessions_are_bounded_in_number_and_age(context, monkeypatch):
    monkeypatch.setattr(sessions_file, "MOST_SESSIONS", 3)
    sessions = Sessions(context)
    made = [sessions.create({"game": "tictactoe", "players": PEOPLE}) for _ in range(3)]
    sessions.get(made[0].id).view()
    made.append(sessions.create({"game": "tictactoe", "players": PEOPLE}))
    assert len(sessions) == 3
    with pytest.raises(Refused):
        sessions.get(made[1].id)  # the one that rested longest
    assert sessions.get(made[0].id) is made[0]
    monkeypatch.setattr(sessions_file, "OLDEST", -1.0)
    sessions.create({"game": "tictactoe", "players": PEOPLE})
    assert len(sessions) == 1


# Many at once


def test_of_two_moves_at_once_one_is_made(client):
    for _ in range(5):
        session = begin(client, players=PEOPLE)
        post = lambda action, session=session: client.post(
            f"/api/sessions/{session['id']}/move", json={"version": session["version"], "action": action}
        )
        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(post, ["a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2"]))
        assert sorted(reply.status_code for reply in replies) == [200] + [409] * 7
        assert client.get(f"/api/sessions/{session['id']}").json()["ply"] == 1


@pytest.mark.parametrize(
    ("player", "asked", "made"), [("uct", 7, 7), ("uct", 37, 35), ("network", 5, 5), ("network", 63, 56)]
)
def test_nobody_thinks_more_than_asked(player, asked, made, thinker):
    """Whole steps make up seven eighths at least: seven of 5 playouts, seven of 8 simulations."""
    game, left = envs.make("tictactoe"), queue.SimpleQueue()
    thinker.submit(Job(game, PlayerSpec(player, path="models/tictactoe"), game.init(), 0, asked, 60.0, left.put))
    report = left.get(timeout=120).report
    assert report["simulations"] == sum(move["visits"] for move in report["moves"]) == made


def test_a_run_is_played_with_its_newest_network(tmp_path, monkeypatch):
    """As it is while nothing newer is there, or no longer anything."""
    game, old = envs.make("tictactoe"), ROOT / "models" / "tictactoe"
    with np.load(old / models.NETWORK_FILE) as file:
        arrays = {name: x if name == models.ABOUT else x + np.float16(1) for name, x in file.items()}
    np.savez(tmp_path / models.NETWORK_FILE, **arrays)
    engine = engines.make_engine(game, parse_player(str(old)), 32)
    assert engines.renewed(engine) is engine
    monkeypatch.setattr(models, "find_network", lambda path: tmp_path)
    newer = engines.renewed(engine)
    apart = jax.tree.map(lambda x, y: float(np.abs(x - y).min()), newer.weights, engine.weights)
    assert min(jax.tree.leaves(apart)) > 0.9
    (tmp_path / models.NETWORK_FILE).write_bytes(b"")
    assert engines.renewed(engine) is engine


def test_of_players_who_do_not_search_only_the_job_that_fails_is_told(thinker):
    """A position of another game breaks one answer; the next one in the queue is given."""
    game, left = envs.make("tictactoe"), queue.SimpleQueue()
    busy = threading.Event()
    make = lambda s, done: Job(game, parse_player("random"), s, 0, 8, 60.0, done)
    thinker.submit(make(game.init(), lambda job: busy.wait(60)))  # while the others queue up
    broken, sound = (thinker.submit(make(s, left.put)) for s in (envs.make("foq").init(), game.init()))
    busy.set()
    assert left.get(timeout=60) is broken
    assert left.get(timeout=60) is sound
    assert broken.error and not sound.error
    assert bool(game.mask(game.init())[sound.choice])


def test_other_lines_are_neither_repeated_nor_empty():
    """From a1 b1 to c1 in place of b1, back, and so on: only the other line is offered each time."""
    played = PlayedGame(envs.make("tictactoe"), None, contextlib.nullcontext)
    a1, b1, c1 = map(played.game.parse_action, ("a1", "b1", "c1"))
    played.play(a1)
    played.play(b1)
    for here, other in ((c1, "b1"), (b1, "c1"), (c1, "b1"), (b1, "c1")):
        played.follow(Line((a1, here), None))
        assert played.variations() == [{"from": 1, "words": [other]}]
    for line in (Line((a1, b1), 0), Line((a1, c1), None), Line((a1, b1, c1), None)):  # the first one was resigned
        played.follow(line)
    assert {"from": 2, "words": ["X resigned"]} in played.variations()


def test_a_resignation_after_undone_moves_ends_the_line_where_it_was_made():
    """X wins in the middle column, takes the last move back and resigns; the line is left and taken up again."""
    played = PlayedGame(envs.make("tictactoe"), None, contextlib.nullcontext)
    moves = [played.game.parse_action(name) for name in ("b2", "a1", "b1", "a2", "b3")]
    for action in moves:
        played.play(action)
    played.undo()
    played.resigned = 0
    played.follow(Line((*moves[:2], played.game.parse_action("c3")), None))
    (left,) = played.lines
    assert left == Line(tuple(moves[:4]), 0)
    played.follow(left)
    assert played.result == [-1, 1]
    assert "resigned" in played.save()


def test_a_failing_search_is_told_and_others_go_on(context):
    game = envs.make("tictactoe")
    session = Session(context, game, ["person", "models/nowhere"], Limits(8, 5.0), None)
    session.move(0, "b2")
    while session.view()["thinking"]:
        time.sleep(0.02)
    assert "nowhere" in session.view()["failure"]
    session.look_back(session.version)  # by an engine that does not fail
    while session.view()["thinking"]:
        time.sleep(0.02)
    assert [move["action"] for move in session.view()["review"]] == ["b2"]
    session.undo(session.version)
    assert session.view()["ply"] == 0
    other = Sessions(context).create({"game": "tictactoe"})
    other.move(other.version, "b2")
    while other.view()["thinking"]:
        time.sleep(0.02)
    assert other.view()["ply"] == 2


# The command


def refused(capsys, *arguments) -> str:
    """The one line with which play.py refuses its options."""
    with pytest.raises(SystemExit) as stop:
        play.main(["--no_open", "--port=0", *arguments])
    assert stop.value.code == 2
    said = capsys.readouterr().err.strip()
    assert len(said.splitlines()) == 1
    return said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--env=chess960"], "unknown game"),
        (["--opponent=nobody"], "unknown player"),
        (["--opponent=models/tictactoe"], "expected a network for foq"),
        (["--num_simulations=0"], "expected 1 to"),
        (["--num_simulations=4097"], "at most 4096"),
        (["--num_simulations=4097", "--ui=text", "--export=page.html"], "at most 4096"),
        (["--opponent=uct:4097"], "at most 4096"),
        (["--opponent=prove:1000,uct:4097"], "at most 4096"),
        (["--opponent=prove:100,random"], "at least 512 positions"),
        (["--env=foq_multi", "--opponent=prove:1000,random"], "for games of two players"),
        (["--opponent=models/foq@5000"], "at most 4096"),
        (["--seconds=nan"], "more than 0"),
        (["--host=no.such.host.invalid"], "--host="),
        (["--nonsense"], "nonsense"),
    ],
)
def test_wrong_options_end_in_one_line(capsys, arguments, words):
    assert words in refused(capsys, *arguments)


def test_limits_of_a_move_that_are_named_count_even_if_they_are_the_usual_ones():
    assert PlayOptions().limits == Limits(128, 5.0)
    assert PlayOptions(export="page.html").limits == Limits(4096, 1.0)
    assert PlayOptions(export="page.html", num_simulations=128, seconds=5.0).limits == Limits(128, 5.0)


def test_a_taken_port_is_named(capsys):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as door:
        said = refused(capsys, "--env=tictactoe", f"--port={door.getsockname()[1]}")
    assert "--port=0 takes a free port" in said


def test_the_board_is_looked_at_while_the_programs_of_the_first_move_compile(monkeypatch):
    """They are the only ones, and a page says so as long as they are not ready."""
    compiled, made, asked = threading.Event(), thinker_file.make_engine, set()

    def slow(*which):
        asked.add(which)
        assert compiled.wait(100)
        return made(*which)

    monkeypatch.setattr(thinker_file, "make_engine", slow)
    context = web.make_context(dataclasses.replace(OPTIONS, opponent="models/tictactoe"), Thinker())
    warming = threading.Thread(target=web.warm, args=(context,))
    warming.start()
    session = Sessions(context).create({"game": OPTIONS.env})
    session.move(session.version, session.view()["legal"][0]["action"])
    assert session.view()["thinking"]["compiling"]
    compiled.set()
    deadline = time.monotonic() + 120
    while session.view()["ply"] < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert len(asked) == 1
    session.move(session.version, session.view()["legal"][0]["action"])
    thinking = session.view()["thinking"]
    assert thinking is None or not thinking["compiling"]
    warming.join(60)
    assert not warming.is_alive() and context.thinker.close(60)
