"""Calls of the page's interface: whatever is sent, the answer is JSON and never a fault of the server."""

from __future__ import annotations

import json

import hypothesis
import hypothesis.strategies as st
import pytest
from fuzzing import JSON, TEXT, budget, mutated
from web_client import begin, served

from agents.serve.options import PlayOptions
from agents.serve.web import server as web
from agents.serve.web.sessions import COMMANDS
from agents.serve.web.thinker import Thinker

PEOPLE = ["person", "person"]
REQUEST = {
    "game": "tictactoe",
    "players": PEOPLE,
    "simulations": 4,
    "seconds": 1.0,
    "actions": ["b2", "a1"],
    "start": None,
}


@pytest.fixture(scope="module")
def client():
    thinker = Thinker()
    options = PlayOptions(env="tictactoe", opponent="random", num_simulations=8, seconds=1.0, open=False)
    with served(web.make_context(options, thinker)) as client:
        yield client
    thinker.close()


def answered(reply) -> None:
    assert reply.status_code < 500, reply.text
    assert reply.status_code < 400 or isinstance(reply.json()["error"], str)


@budget(300)
@hypothesis.given(st.data())
def test_any_call_is_answered(client, data):
    as_text = lambda value: json.dumps(value).encode()
    session = begin(client, game="tictactoe", players=PEOPLE)
    where = f"/api/sessions/{session['id']}"
    kind = data.draw(st.sampled_from(["create", "command", "preview", "past", "raw", "path"]))
    headers = {"content-type": "application/json"}
    if kind == "create":
        sent = data.draw(mutated(REQUEST).map(as_text) | JSON.map(as_text))
        answered(client.post("/api/sessions", content=sent, headers=headers))
    elif kind == "command":
        word = data.draw(st.sampled_from(sorted(set(COMMANDS) - {"hint", "analyse", "review"})))
        whole = {"version": session["version"], "action": "b2", "players": PEOPLE, "simulations": 4, "seconds": 1}
        sent = data.draw(mutated(whole).map(as_text) | JSON.map(as_text))
        answered(client.post(f"{where}/{word}", content=sent, headers=headers))
    elif kind == "raw":
        answered(client.post(f"{where}/move", content=data.draw(st.binary(max_size=64)), headers=headers))
    elif kind == "path":
        answered(client.get(f"{where}/x", params={"a": data.draw(TEXT.filter(str.isprintable))}))
    else:
        name = {"preview": "action", "past": "ply"}[kind]
        value = data.draw(TEXT | st.integers().map(str)).encode(errors="replace").decode()
        answered(client.get(f"{where}/{kind}", params={"version": session["version"], name: value}))
    answered(client.delete(where))
