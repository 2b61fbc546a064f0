"""What a person sees first in the terminal: rules, signs; a keyboard that nobody listens to; one opinion."""

import io
import os
import re
import select
import sys
import termios

import numpy as np
import pytest

import envs
import play
from agents.runtime import keyboard
from envs import saved

OWN = [name for name in envs.list() if not name.startswith("pgx:")]


@pytest.mark.parametrize("name", OWN)
def test_every_sign_of_a_board_has_its_meaning(name):
    """Signs that are no letters, in a game at random."""
    game, rng = envs.make(name), np.random.default_rng(7)
    mask, move = saved.compiled(game)
    state, signs = game.init(), set()
    for _ in range(40):
        *board, _ = game.show(state).split("\n")
        signs |= set(re.findall(r"(?<![^\s\[#.])[#*.+]", "\n".join(board)))
        legal = np.flatnonzero(mask(state))
        if not legal.size:
            break
        state = move(state, int(rng.choice(legal)))
    text = game.view.legend
    assert signs
    assert [sign for sign in signs if not re.search(rf"(^|, ){re.escape(sign)} ", text)] == []
    assert "{" not in text


def test_signs_of_players_go_by_their_names():
    assert envs.make("foq").view.legend == "A White's queen, B Red's queen, # ripped, * legal target, . free"
    assert envs.make("foq_multi").view.legend.startswith(
        "A White's queen, B Red's queen, C Blue's queen, a b c dropped"
    )
    assert envs.make("othello").view.legend == "X Black, O White, . empty, * legal move"


def typed(monkeypatch, capsys, options, *lines):
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    play.main(["--ui=text", *options.split()])
    return capsys.readouterr().out


def test_rules_and_signs_come_first(monkeypatch, capsys):
    said = typed(monkeypatch, capsys, "--env=connect_four --opponent=person", "rules")
    rules, signs = "four in a row in any direction wins", "Signs: X Red, O Yellow, . empty"
    assert said.index(rules) < said.index(signs) < said.index("legal: 1, 2") < said.index("Red (X) to move")
    assert said.count(rules) == said.count(signs) == 2  # the second time as asked


def test_hint_and_eval_agree_however_often_they_are_asked(monkeypatch, capsys):
    """Without the proof of a win: what one more search would bring is not searched for."""
    said = typed(monkeypatch, capsys, "--env=tictactoe --opponent=person --num_simulations=24 --seconds=9",
                 "eval", "hint", "eval", "hint")  # fmt: skip
    first, second = (
        re.findall(rf"{form}", said) for form in (r"visits  value.*\n(\w\d)", r"(\w\d) \([^)]*\), expects")
    )
    assert len(first) == len(second) == 2
    assert len({*first, *second}) == 1
    assert len(set(re.findall(r"(\d+) simulations\)", said))) == 1


def test_an_impossible_file_name_does_not_end_the_game(monkeypatch, capsys):
    wrong = "save ~nobody-here/x.json", "save .", "load ~nobody-here/x"
    said = typed(monkeypatch, capsys, "--env=tictactoe --opponent=person", "a1", *wrong, "b2")
    assert said.count("expected a file, got ~nobody-here/x") == 2
    assert "expected a file, got the folder ." in said
    assert "2  . O ." in said


def test_what_is_typed_while_nobody_listens_is_neither_shown_nor_kept(monkeypatch):
    typist, terminal = os.openpty()
    with os.fdopen(terminal, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        shown = lambda: os.read(typist, 100) if select.select([typist], [], [], 0.2)[0] else b""
        os.write(typist, b"now\n")
        assert shown() == b"now\r\n"
        assert stdin.readline() == "now\n"
        with keyboard.ignored():
            os.write(typist, b"early\n")
            assert shown() == b""
            assert termios.tcgetattr(terminal)[3] & termios.ISIG  # Ctrl-C
        os.write(typist, b"later\n")
        assert shown() == b"later\r\n"
        assert stdin.readline() == "later\n"
    os.close(typist)
