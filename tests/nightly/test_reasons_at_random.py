"""Reasons against the rules in random games, and lessons of games with options."""

import numpy as np
import pytest

import envs
from agents.serve.views import lesson, look_at

TAUGHT = (  # with lessons of their own
    "connect_four:rows=2,cols=9,connect=9", "evopawness:max_plies=60,history=1", "foq_multi:players=2",
    "foq_multi:players=4", "go:size=19,komi=0.5,ko=psk", "gomoku:size=5,exact=true", "hex:size=2,swap=false",
    "sum_to_100:target=7,largest=7",
)  # fmt: skip
PLAYED = (
    "tictactoe", "sum_to_100", "connect_four", "gomoku:size=5", "hex:size=4", "othello", "foq", "foq_single",
    "foq_multi", "foq:planes=article", "go:size=5", "go:size=5,ko=psk,history=1", "evopawness:max_plies=60,history=1",
)  # fmt: skip


@pytest.mark.parametrize("spec", TAUGHT)
def test_every_form_of_a_game_is_taught(spec):
    game = envs.make(spec)
    steps = lesson(game)
    assert len(steps) == len(game.view.lesson) >= 2
    assert [step["text"] for step in steps if not 20 <= len(step["text"]) <= 300] == []


@pytest.mark.parametrize("spec", PLAYED)
def test_a_move_is_illegal_if_and_only_if_there_is_a_reason(spec):
    game, rng = envs.make(spec), np.random.default_rng(5)
    here = look_at(game, game.init())
    some = lambda actions: rng.choice(actions, min(12, len(actions)), replace=False) if len(actions) else []
    for ply in range(game.max_plies):
        if here.over:
            break
        assert here.why == ""
        if ply % 7 == 0:
            illegal = some(np.setdiff1d(np.arange(game.num_actions), here.legal))
            assert [game.action_name(a) for a in illegal if not game.view.why_illegal(here.state, int(a))] == []
            legal = some(here.legal)
            assert [game.action_name(a) for a in legal if game.view.why_illegal(here.state, int(a))] == []
        here = here.after(int(rng.choice(here.legal)))
    assert here.over
    assert here.why != ""
