"""A stranger's game in a file of its own: checked, trained, refused with the rule that it breaks."""

from pathlib import Path

import pytest

import envs
from agents.serve.views import lesson, look_at
from envs import check

ROOT = Path(__file__).parents[2]
OWN = str(ROOT / "docs" / "domineering.py")


def test_the_game_of_the_guide_holds_every_rule(capsys):
    assert check.report(envs.make(OWN))
    assert "BROKEN" not in capsys.readouterr().out


def test_its_rules_by_hand():
    """2 x 2: the first upright domino leaves room for another upright one, none for a flat one: player 1 loses."""
    game = envs.make(f"{OWN}:rows=2,cols=2")
    s = game.step(game.init(), game.parse_action("a2"))
    assert game.show(s) == "# .\n# ."
    assert game.over(s)
    assert game.rewards(s).tolist() == [1, -1]


def test_moves_from_square_to_square_by_hand(capsys):
    """Breakthrough on 5 x 5: five pieces go straight, all but two of their ten diagonal steps stay on the board. White
    captures on b4, Black takes back, and a white piece that reaches the far row wins."""
    game = envs.make(str(ROOT / "docs" / "breakthrough.py"))
    assert check.report(game)
    assert "BROKEN" not in capsys.readouterr().out
    here = look_at(game, game.init())
    assert len(here.legal) == 5 + 8
    for name in ("c2c3", "a4a3", "c3b4", "a5b4"):
        here = here.after(game.parse_action(name))
    assert game.show(here.state) == ". O O O O\n. O O O O\nO . . . .\nX X . X X\nX X X X X"
    assert here.reason(game.parse_action("a2a3")) == "that square is taken"
    assert here.reason(game.parse_action("b2b1")) == "pieces only go ahead"
    assert here.reason(game.parse_action("c2c3")) == "there is no piece of yours"
    for name in ("d2d3", "d4c3", "d3d4", "c3b2", "d4c5"):
        here = here.after(game.parse_action(name))
    assert (here.over, here.rewards, here.status) == (True, (1.0, -1.0), "White wins")
    assert len(lesson(game)) == 2


def test_its_lesson_and_reasons():
    """4 x 4 after a4, which fills a4 and a3: there is no room below b1, and none to the right of d4."""
    game = envs.make(OWN)
    assert len(lesson(game)) == 2
    upright = look_at(game, game.init())
    flat = upright.after(game.parse_action("a4"))
    assert upright.reason(game.parse_action("b1")) == "no room for a domino of Upright"
    assert flat.reason(game.parse_action("a3")) == "that square is filled"
    assert flat.reason(game.parse_action("d4")) == "no room for a domino of Flat"
    assert flat.reason(game.parse_action("b4")) == flat.why == ""
    small = envs.make(f"{OWN}:rows=2,cols=2")
    assert look_at(small, small.init()).after(small.parse_action("a2")).why == "Flat cannot move"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("-> Game:\n", "-> Game:\n    return 5\n"), "gives a int, not a Game"),
        (("def make(", "def made("), "no function `make`"),
        (("class State", "clas State"), "cannot be loaded: SyntaxError"),
        (("return jnp.stack([p.astype(jnp.float32)", "return jnp.stack([p.astype(jnp.int8)"), "promised dtypes"),
        (("to_move=1 - s.to_move)", "to_move=1.0 - s.to_move)"), "step and move keep structure and dtypes"),
    ],
)
def test_a_game_that_breaks_the_contract_is_refused_by_name(change, words, tmp_path):
    text = Path(OWN).read_text()
    assert change[0] in text
    own = tmp_path / "mine.py"
    own.write_text(text.replace(*change))
    with pytest.raises(ValueError, match=words):
        check.demand_form(envs.make(str(own)))


def test_broken_rules_are_named(tmp_path, capsys):
    """Nobody is punished for an illegal move, and a finished game goes on."""
    own = tmp_path / "lenient.py"
    text = Path(OWN).read_text()
    own.write_text(text.replace("jnp.where(legal.any() & ~allowed, s.to_move, s.forfeit)", "s.forfeit"))
    assert not check.report(envs.make(str(own)))
    said = capsys.readouterr().out
    assert "BROKEN  illegal actions lose at once" in said
    assert "holds   mask is empty exactly when the game is over" in said


def test_a_missing_file_is_named():
    with pytest.raises(ValueError, match="no such file"):
        envs.make("nowhere/game.py")
