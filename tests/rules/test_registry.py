"""The registry: one object for each game, and refusals that say what is known."""

from __future__ import annotations

import importlib

import jax
import numpy as np
import pytest

import envs


def test_same_game_is_the_same_object():
    assert envs.make("foq") is envs.make("foq:rows=8,cols=9")
    assert envs.make("foq:cols=9") is envs.make("foq:rows=8,planes=plain")
    assert envs.make("foq:cols=6,rows=5") is envs.make("foq:rows=5,cols=6")
    assert envs.make("foq:rows=5,cols=6") is not envs.make("foq:rows=6,cols=5")
    assert envs.make("foq") is not envs.make("foq:planes=article")
    assert envs.make("tictactoe") is envs.make("tictactoe")


def test_list_names_all_games():
    assert {"foq", "tictactoe"} <= set(envs.list())
    for name in envs.list():
        assert envs.make(name) is envs.make(envs.make(name).name)


def test_defaults_of_the_rules():
    assert envs.make("foq").name == "foq:rows=8,cols=9"
    assert envs.make("foq").num_actions == 72
    assert envs.make("tictactoe").num_actions == 9


@pytest.mark.parametrize("name", envs.list())
def test_every_module_has_the_functions_of_its_usual_board(name):
    """From the start each of them answers as the game's own."""
    module, game = importlib.import_module(f"envs.{name}"), envs.make(name)
    start = jax.jit(module.init)()
    action = int(np.flatnonzero(jax.jit(module.mask)(start))[-1])
    answers = lambda of, s: (of.player(s), of.over(s), of.rewards(s))
    following, found = jax.jit(lambda s: (after := module.step(s, action), answers(module, after)))(start)
    expected, wanted = jax.jit(lambda: (after := game.move(game.init(), action), answers(game, after)))()
    wanted = getattr(expected, "now", expected), wanted
    assert all(map(np.array_equal, jax.tree.leaves((following, found)), jax.tree.leaves(wanted)))
    assert module.show(following) == game.show(expected)
    assert module.to_record(module.from_record(module.to_record(following))) == module.to_record(following)
    assert jax.eval_shape(module.observe, following).dtype == np.float32


REFUSED = {
    "misspelt": ("tictacto", ["perhaps tictactoe is meant"]),
    "a folder": (".", ["it is a folder"]),
    "no such game": ("chess960", ["unknown game 'chess960'", "foq", "tictactoe"]),
    "empty": ("", ["unknown game", "foq", "tictactoe"]),
    "case": ("FoQ", ["unknown game 'FoQ'", "foq"]),
    "unknown option": ("foq:size=8", ["size", "rows=8", "cols=9", "planes=plain"]),
    "option without a value": ("foq:rows", ["rows", "rows=8", "cols=9"]),
    "empty option": ("foq:rows=8,", ["unknown option", "rows=8"]),
    "game without options": ("tictactoe:size=4", ["size=4", "tictactoe", "none"]),
    "repeated option": ("foq:rows=8,rows=8", ["rows", "twice"]),
    "not a number": ("foq:rows=eight", ["rows", "eight", "int"]),
    "not a whole number": ("foq:rows=8.5", ["rows", "8.5", "int"]),
    "empty value": ("foq:rows=", ["rows", "int"]),
    "unknown planes": ("foq:planes=deep", ["deep", "plain", "article"]),
    "too small": ("foq:rows=1,cols=9", ["1 x 9", "too small"]),
    "too small in all": ("foq:rows=2,cols=3", ["2 x 3", "too small"]),
    "negative": ("foq:rows=-4", ["-4 x 9"]),
    "too large": ("foq:rows=27,cols=9", ["27 x 9", "26"]),
}


@pytest.mark.parametrize(("spec", "words"), REFUSED.values(), ids=REFUSED)
def test_refusals_name_the_reason_and_what_is_known(spec, words):
    with pytest.raises(ValueError) as refusal:
        envs.make(spec)
    for word in words:
        assert word in str(refusal.value)
