"""Small files that are damaged or belong to something else: one line that names the file."""

from __future__ import annotations

import dataclasses
import gzip
import json

import numpy as np
import pytest
from in_process import in_process

import envs
from agents.arena import solved_positions
from agents.arena.ladder import LADDER, Matches
from agents.run import game_log, report
from agents.run.metrics import METRICS
from envs import saved

ROW = {"iteration": 1, "minutes": 0.5, "total_games": 3, "total_plies": 20, "policy_loss": None}
GAME = {"iteration": 1, "opening": 0, "moves": ["b2", "a1"], "resigned": False, "rewards": [1.0, -1.0]}


@pytest.mark.parametrize(
    "line", ["{", "[]", "7", "\xff", '{"iteration": 1}', json.dumps(ROW | {"minutes": True}),
             json.dumps(ROW | {"policy_loss": "low"}), json.dumps(ROW | {"iteration": [1]}), "[" * 100_000],
)  # fmt: skip
def test_metrics(tmp_path, line):
    path = tmp_path / METRICS
    path.write_bytes(f"{json.dumps(ROW)}\n{line}\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"metrics\.jsonl, line 2 is damaged: "):
        report.read_metrics(tmp_path)
    path.write_text(f"{json.dumps(ROW)}\n{line[:1]}", encoding="utf-8")  # a crash cut the last line off
    assert report.read_metrics(tmp_path) == [ROW]


@pytest.mark.parametrize(
    "wrong",
    [{"moves": "b2"}, {"moves": [4]}, {"opening": True}, {"opening": 3}, {"rewards": [None]}, {"resigned": 1}],
)
def test_games(tmp_path, wrong):
    (tmp_path / game_log.GAMES_FILE).write_text(f"{json.dumps(GAME)}\n{json.dumps(GAME | wrong)}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"games\.jsonl, line 2 is damaged: "):
        list(game_log.read_games(tmp_path))


@pytest.mark.parametrize(
    "text", ["{", "{}", "[]", '{"ratings": 5}', '{"ratings": [{}]}', '{"ratings": [{"games": 1}]}']
)
def test_ladders(tmp_path, text):
    (tmp_path / LADDER).write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"ladder\.json is damaged: "):
        report.ladder_panel(tmp_path)


@pytest.mark.parametrize("pairs", [[True], [2.0], ["1"], None, [float("nan")]])
def test_matches(tmp_path, pairs):
    path = tmp_path / "matches.jsonl"
    path.write_text(json.dumps({"match": {}, "pairs": pairs}) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"matches\.jsonl is not a file of matches"):
        Matches(path)


def test_two_ladders_of_a_run_keep_the_matches_of_both(tmp_path):
    one, other = (Matches(tmp_path / "matches.jsonl") for _ in range(2))
    for matches, name in ((one, "a"), (other, "b"), (one, "c")):
        matches.add({"a": name}, np.array([0.5]))
    assert other.find({"a": "a"}) == one.find({"a": "b"}) == Matches(one.path).find({"a": "c"}) == [0.5]


SOLVED = {"board": [0] * 9, "to_move": 1, "optimal": [4]}


@pytest.mark.parametrize("wrong", [{"optimal": 4}, {"optimal": {"4": 1}}, {"optimal": [True]}, {"board": [False] * 9}])
def test_solved_positions(tmp_path, wrong):
    path = tmp_path / "some.jsonl"
    path.write_text(json.dumps(SOLVED | wrong) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"some\.jsonl, line 1: "):
        solved_positions.read_positions(path, envs.make("tictactoe"))


def test_a_damaged_archive_of_positions(tmp_path):
    whole = bytearray(gzip.compress(json.dumps(SOLVED).encode() * 50))
    whole[20:24] = b"\xff\xff\xff\xff"
    (tmp_path / "some.gz").write_bytes(whole)
    with pytest.raises(ValueError, match=r"some\.gz: damaged gzip file"):
        solved_positions.read_positions(tmp_path / "some.gz", envs.make("tictactoe"))


def test_a_damaged_position_is_named(tmp_path, monkeypatch, capsys):
    (tmp_path / "p.json").write_bytes(b"\xff{")
    arguments = ["prove", "tictactoe", f"--position={tmp_path / 'p.json'}"]
    code, errors = in_process("evaluate.py", arguments, monkeypatch, capsys)
    assert (code, errors.count("\n")) == (2, 1)
    assert "p.json: " in errors


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def make(): raise RuntimeError('no')", "`make` raised RuntimeError: no"),
        ("def make(): raise SystemExit(3)", "`make` raised SystemExit: 3"),
        ("def make(size=3): return size / 0", "`make` raised ZeroDivisionError"),
        ("raise SystemExit('away')", "cannot be loaded: SystemExit: away"),
    ],
)
def test_an_own_game_that_raises_or_exits(tmp_path, monkeypatch, capsys, text, words):
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    for program, arguments in (("train.py", []), ("evaluate.py", ["match", "random", "random"])):
        code, errors = in_process(program, [*arguments, f"--env={tmp_path / 'mine.py'}"], monkeypatch, capsys)
        assert (code, errors.count("\n")) == (2, 1)
        assert "mine.py'" in errors and words in errors


@pytest.mark.parametrize("record", [{"cells": 3}, {"cells": []}, {}, {"cells": ["x"]}])
def test_a_loose_record_of_an_own_game(record):
    """An own game may stumble over a record instead of refusing it."""
    loose = dataclasses.replace(envs.make("tictactoe"), from_record=lambda record: record["cells"][0].shape)
    with pytest.raises(ValueError, match="this is no record of tictactoe"):
        saved.read(loose, json.dumps(record))


LENIENT = [{"forfeit": True}, {"forfeit": 0.0}, {"swap": 1}, {"size": 3.0}, {"plies": True}, {"plies": 1.0}]


@pytest.mark.parametrize("wrong", LENIENT)
def test_hex_takes_no_number_for_another(wrong):
    game = envs.make("hex:size=3")
    record = game.to_record(game.step(game.init(), 4))
    assert game.from_record(record) is not None
    with pytest.raises(ValueError, match="hex record: "):
        game.from_record(record | wrong)


@pytest.mark.parametrize(
    "wrong",
    [{"filled": [0.0, 1.0]}, {"filled": [True, 5]}, {"filled": [0]}, {"filled": [0, 0]}, {"filled": [-1, 3]},
     {"filled": "ab"}, {"to_move": True}, {"to_move": 1.0}, {"to_move": 1}, {"forfeit": 1}, {"more": 0}],
)  # fmt: skip
def test_the_game_of_the_guide_checks_its_records(wrong, request):
    game = envs.make(str(request.config.rootpath / "docs" / "domineering.py"))
    record = {"filled": [], "to_move": 0}
    assert game.to_record(game.from_record(record)) == record
    with pytest.raises(ValueError, match="domineering record: "):
        game.from_record(record | wrong)
