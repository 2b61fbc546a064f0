"""One training run, one match with its network, one session of the page and one GTP game, all in this process."""

from __future__ import annotations

import json
import sys

import pytest
from gtp_dialogue import ask as gtp
from web_client import ask, begin, rested, served

import envs
import evaluate
import train
from agents.run.options import training
from agents.serve.gtp.engine import Engine
from agents.serve.options import PlayOptions
from agents.serve.web import server as web
from agents.serve.web.thinker import Thinker

TINY = ["--env=tictactoe", "--num_envs=16", "--num_simulations=4", "--channels=16", "--blocks=1"]
LITTLE = ["--replay_capacity=400", "--rating_games=0", "--no_preflight", "--iterations=2"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home") / "run"
    train.train(*training([*TINY, *LITTLE, f"--out={folder}"]))
    return folder


def test_a_training_run(run):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [line["iteration"] for line in lines] == [1, 2]
    assert (run / "networks/2").is_dir() and (run / "resume/2").is_dir()


def test_a_match_of_the_trained_network(run, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["evaluate.py", "match", f"{run}@4", "random", "--games=8", "--json"])
    with pytest.raises(SystemExit) as stop:
        evaluate.main()
    assert stop.value.code == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["game"], result["b"]) == ("tictactoe", "random")
    assert result["wins"] + result["draws"] + result["losses"] == result["games"] == 8


def test_a_session_of_the_page(run):
    thinker = Thinker()
    options = PlayOptions(env="tictactoe", opponent=str(run), num_simulations=4, open=False)
    with served(web.make_context(options, thinker)) as client:
        session = begin(client)
        while not session["over"]:
            session = rested(client, ask(client, session, "move", action=session["legal"][0]["action"]))
        assert [move["player"] for move in session["history"]] == [i % 2 for i in range(session["ply"])]
        assert session["values"][-1] == session["result"]
    assert thinker.close(seconds=60)


def test_a_game_through_gtp():
    engine = Engine(PlayOptions(env="go:size=5", ui="gtp", opponent="uct:4"), envs.make("go:size=5"))
    moves = []
    while moves[-2:] != ["pass", "pass"] and "resign" not in moves and len(moves) < 20:
        moves.append(gtp(engine, f"genmove {'bw'[len(moves) % 2]}").lower())
    assert len(moves) > 2
    assert gtp(engine, "final_score")[0] in "BW0"
