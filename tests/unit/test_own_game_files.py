"""Games of one's own: what `envs.check` says of broken ones, and networks whose game has moved or changed."""

from __future__ import annotations

import dataclasses
import pathlib
import shutil

import numpy as np
import pytest

import envs
import train
from agents.players.players import choose_game
from agents.storage import weights
from agents.storage.checkpoint import CheckpointError
from envs import check

DOMINEERING = pathlib.Path(__file__).parents[2] / "docs" / "domineering.py"


def changed(path: pathlib.Path, old: str, new: str) -> pathlib.Path:
    """A copy of Domineering with one change."""
    text = DOMINEERING.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    return path


BROKEN = {
    "dtype": ("s.to_move.astype(jnp.int32)", "s.to_move", "player: expected int32[], got int8[]"),
    "if on an array": (
        "    rows, cols = s.filled.shape\n    first",
        "    if s.to_move == 1:\n        pass\n    rows, cols = s.filled.shape\n    first",
        "in line 43 of my_game.py",
    ),
    "type of a field": (
        "s.forfeit)\n    return State(",
        "s.forfeit).astype(jnp.int32)\n    return State(",
        "forfeit: expected",
    ),
    "no move at all": ("ravel() & (s.forfeit < 0)", "ravel() & False", "mask: expected a legal action in the first"),
    "sum": ("s.forfeit), 2), 0.0)", "s.forfeit), 2) + 0.25, 0.0)", "rewards: expected a sum of 0, got ["),
}


@pytest.mark.parametrize(("old", "new", "words"), BROKEN.values(), ids=BROKEN)
def test_a_broken_rule_is_explained(old, new, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    changed(tmp_path / "my_game.py", old, new)
    monkeypatch.setattr(envs, "_own", {})
    monkeypatch.setattr(envs, "_cache", {})
    assert not check.report(envs.make("my_game.py"))
    said = capsys.readouterr().out
    assert [line for line in said.splitlines() if line.startswith("BROKEN") and words in line], said
    assert ("more rules are checked once these hold" in said) == (words != BROKEN["sum"][2])


@pytest.mark.parametrize("name", ["hex:size=5,swap=false", "chess:size=5", "evopawness:history=1"])
def test_actions_that_do_not_turn_or_lead_as_they_should_are_found(name):
    bench = check.Bench(envs.make(name))
    frames, offsets = (
        check.RULES[rule]
        for rule in ("frames turn actions as planes turn the board", "offsets of legal actions stay on the board")
    )
    assert check.broken("frames", frames, bench) is None and check.broken("offsets", offsets, bench) is None
    game = bench.game  # the games that were played stay
    same = np.tile(np.arange(game.num_actions), (2, 1))
    bench.game = dataclasses.replace(game, to_mover_frame=same)
    assert "does to_mover_frame turn actions" in check.broken("frames", frames, bench)
    if game.offsets is not None:
        bench.game = dataclasses.replace(game, offsets=-game.offsets)
        assert "off the board" in check.broken("offsets", offsets, bench)


@pytest.fixture
def moved(tmp_path, monkeypatch):
    """A network for my_game.py, which now lies in games/; nobody has named a game of his own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(envs, "_own", {})
    monkeypatch.setattr(envs, "_cache", {})
    shutil.copy(DOMINEERING, "my_game.py")
    tiny = ["--env=my_game.py", "--iterations=1", "--num_envs=16", "--channels=8", "--blocks=1", "--devices=1"]
    train.main([*tiny, "--out=run"])
    (tmp_path / "games").mkdir()
    shutil.move("my_game.py", "games/dominoes.py")
    envs._own.clear()
    envs._cache.clear()


def test_a_game_that_has_moved_is_the_one_that_is_named(moved, tmp_path, capsys):
    with pytest.raises(CheckpointError, match=r"expected --env=my_game.py, since it is for a game of your own, got no"):
        choose_game(None, "run")
    game = choose_game("games/dominoes.py", "run")
    assert "was trained for my_game.py, and is used for games/dominoes.py" in capsys.readouterr().err
    for spelling in ("./games/dominoes.py", str(tmp_path / "games/dominoes.py"), "games/../games/dominoes.py"):
        assert envs.make(spelling) is game
    assert weights.load_network("run", game).config.env == "games/dominoes.py"
    shutil.copy(DOMINEERING, "my_game.py")  # it is there again, so it is another game
    with pytest.raises(CheckpointError, match=r"expected --env=my_game.py, .*, got --env=games/dominoes.py"):
        weights.load_network("run", game)


def test_planes_that_were_added_are_mentioned(moved, tmp_path, capsys):
    changed(tmp_path / "games/dominoes.py", "1 - s.to_move), me]", "1 - s.to_move), me, me]")
    weights.load_network("run", choose_game("games/dominoes.py", "run"))
    said = capsys.readouterr().err
    assert "sees the first 4 of the 5 planes of games/dominoes.py; planes that were added later must come last" in said
