"""Games of one's own: what `envs.check` says of broken ones, and networks whose game has moved or changed."""

from __future__ import annotations

import dataclasses
import pathlib
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
import train
from agents.players.players import choose_game
from agents.storage import weights
from agents.storage.checkpoint import CheckpointError
from envs import check
from envs.check import play

DOMINEERING = pathlib.Path(__file__).parents[2] / "docs" / "domineering.py"


def changed(path: pathlib.Path, old: str, new: str) -> pathlib.Path:
    """A copy of Domineering with one change."""
    text = DOMINEERING.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    return path


ASKS_A_VALUE = {
    "if": (lambda x: 1 if x > 0 else 2, "use jnp.where, & | ~"),
    "and": (lambda x: (jnp.arange(3) > 1) and x, "use jnp.where, & | ~"),
    "int": (lambda x: int(x), "in place of int()"),
    "a shape": (lambda x: jnp.nonzero(jnp.arange(3) > x), "shapes that do not depend on values"),
    "a list": (lambda x: [3, 4][x], "use jnp.array(list)[index]"),
    "a loop": (lambda x: [0 for _ in range(x)], "use jnp.array(list)[index], or jax.lax.fori_loop"),
    "numpy": (lambda x: np.sin(x), "use jnp"),
    "a mask": (lambda x: jnp.arange(3)[jnp.arange(3) > x], "a mask as an index"),
}


@pytest.mark.parametrize(("rule", "words"), ASKS_A_VALUE.values(), ids=ASKS_A_VALUE)
def test_what_jax_cannot_compile_is_explained_in_plain_words(rule, words):
    with pytest.raises((TypeError, ValueError, IndexError)) as raised:
        jax.jit(rule)(1)
    assert words in envs.in_words(raised.value)
    assert "racer" not in envs.in_words(raised.value)


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


def said_of(game: envs.Game, rule: str) -> str:
    return check.broken(rule, check.RULES[rule], check.Bench(game)) or ""


def test_a_board_turned_without_its_actions_is_found():
    """Breakthrough reverses the rows of the board for Black. No frame, and one upside down, do not fit."""
    game, rule = envs.make("docs/breakthrough.py"), "frames turn actions as planes turn the board"
    assert said_of(game, rule) == ""
    assert "with its rows reversed" in said_of(dataclasses.replace(game, to_mover_frame=None), rule)
    codes = np.arange(game.num_actions).reshape(5, 5, 6)
    turned = np.stack([codes.ravel(), codes[::-1, ::-1].ravel()])
    assert "with its columns reversed" in said_of(dataclasses.replace(game, to_mover_frame=turned), rule)


def test_planes_that_are_not_the_movers_are_found():
    """White's pieces before Black's, whoever is to move."""
    game, rule = envs.make("docs/breakthrough.py"), "planes are the movers"
    assert said_of(game, rule) == ""
    exchanged = lambda s: jnp.where(s.to_move == 0, game.observe(s), game.observe(s)[..., [1, 0, 2]])
    assert "expected planes of the mover" in said_of(dataclasses.replace(game, observe=exchanged), rule)


@pytest.mark.parametrize(
    ("hint", "rule", "words"),
    [
        ("evaluate", "heuristic value is the movers", "is it the mover's?"),
        ("owners", "cells belong to players or nobody and turn with the board", "got fewer"),
    ],
)
def test_hints_from_the_wrong_side_are_found(hint, rule, words):
    """Black's discs less White's, whoever is to move, and cells of Black taken for White's."""
    game = envs.make("othello")
    assert said_of(game, rule) == ""
    right = game.hints
    wrong = {
        "evaluate": lambda s: jnp.where(game.player(s) == 0, 1, -1) * right.evaluate(s),
        "owners": lambda s: jnp.where(right.owners(s) < 2, 1 - right.owners(s), 2).astype(jnp.int8),
    }
    hints = dataclasses.replace(right, **{hint: wrong[hint]})
    assert words in said_of(dataclasses.replace(game, hints=hints), rule)


def test_how_a_random_game_ended_is_shown():
    """A game of Domineering on 2 x 2 lasts one move: the first domino, upright, leaves no room for a flat one."""
    shown = play.a_random_game(check.Bench(envs.make(f"{DOMINEERING}:rows=2,cols=2"))).splitlines()
    assert shown[0] == "A random game ended at ply 1. Upright wins: Flat cannot move. Is that right? No rule can know."
    assert shown[1:] in (["# .", "# ."], [". #", ". #"])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("rows", "expected a default for the option rows of make, got none"),
        ("rows=None", "expected a bool, a number or a string as the default of rows, got None"),
        ("rows=(4, 4)", r"expected a bool, a number or a string as the default of rows, got \(4, 4\)"),
    ],
)
def test_options_of_make_need_defaults(rows, words, tmp_path):
    path = changed(tmp_path / "mine.py", "def make(rows: int = 4, cols: int = 4", f"def make({rows}, cols=4")
    with pytest.raises(ValueError, match=words):
        envs.make(f"{path}:rows=5")


def test_a_file_may_define_dataclasses_and_errors_name_a_line(tmp_path):
    head = "from __future__ import annotations\nimport dataclasses\n"
    text = head + "\n\n@dataclasses.dataclass\nclass Rule:\n    size: int\n\n\n"
    (tmp_path / "fine.py").write_text(text + "def make():\n    return Rule('x').missing\n")
    with pytest.raises(ValueError, match=r"fine.py': `make` raised AttributeError: .*, in line 11$"):
        envs.make(str(tmp_path / "fine.py"))
    (tmp_path / "wrong.py").write_text(text + "SEATS = SETAS\n")
    with pytest.raises(ValueError, match=r"cannot be loaded: NameError: name 'SETAS' is not defined, in line 10$"):
        envs.make(str(tmp_path / "wrong.py"))


def test_what_cannot_be_checked_is_said(capsys):
    """Actions of sum_to_100 are numbers to add, on a board of one cell."""
    assert check.report(envs.make("sum_to_100:target=20"))
    *lines, last = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if line.startswith("skipped planes are the movers: actions are not")]) == 1
    assert last.endswith(f"{len(check.RULES) - 2} of {len(check.RULES)} rules hold, 2 skipped")


def test_a_game_without_symmetries_has_the_identity():
    game = dataclasses.replace(envs.make("tictactoe"), symmetries=())
    assert "expected the identity first" in said_of(game, "symmetries are given")


def test_the_game_that_is_shown_has_a_winner():
    """Of random games of tic-tac-toe an eighth is drawn; such a game comes first here."""
    bench = check.Bench(envs.make("tictactoe"))
    drawn = ~np.asarray(bench.plies.rewards[-1]).any(-1)
    assert drawn.any()
    order = np.argsort(~drawn, kind="stable")
    bench.__dict__["plies"] = jax.tree.map(lambda x: np.asarray(x)[:, order], bench.plies)
    assert "draw" not in play.a_random_game(bench).splitlines()[0]


def test_one_player_games_are_refused():
    game, rule = envs.make("tictactoe"), "sizes are plain positive numbers"
    assert said_of(game, rule) == ""
    assert "num_players: expected 2 or more, got 1" in said_of(dataclasses.replace(game, num_players=1), rule)


def test_draws_count_for_nobody():
    """The rule fails if only one player of tic-tac-toe ever wins. It accepts a game that is always drawn."""
    rule = "random games are not all won by one player"
    game = envs.make("tictactoe")
    assert said_of(game, rule) == ""
    for spoilt, words in ((0, "got player 1 in all"), (1, "got player 0 in all")):
        drawn = lambda s, spoilt=spoilt: jnp.where(game.rewards(s)[spoilt] > 0, 0.0, game.rewards(s))
        assert words in said_of(dataclasses.replace(game, rewards=drawn), rule)
    assert said_of(dataclasses.replace(game, rewards=lambda s: 0 * game.rewards(s)), rule) == ""


def test_rows_may_count_from_0():
    game, rule = envs.make("tictactoe"), "bad action names are refused"
    from_0 = {f"{'abc'[code % 3]}{code // 3}": code for code in range(9)}

    def parse(name: str) -> int:
        if name not in from_0:
            raise ValueError(f"no move {name}")
        return from_0[name]

    named = dataclasses.replace(game, action_name=lambda code: list(from_0)[code], parse_action=parse)
    assert said_of(named, rule) == ""
    assert said_of(dataclasses.replace(named, parse_action=lambda name: from_0.get(name, 0)), rule) != ""


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
