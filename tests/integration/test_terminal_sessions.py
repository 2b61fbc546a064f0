"""Games in the terminal: every game, every command of the document, several trees at once."""

import re
from pathlib import Path

import pytest

import envs
from envs import draw

ROOT = Path(__file__).parents[2]
PROMPT = "your move>"


def test_several_trees_add_up(sit):
    """Four trees on two devices: 64 simulations each for a position, on top of those kept from the move before.
    `hint` and `eval` show one search. After a3 X wins at once at c3."""
    options = "--env=tictactoe --opponent=person --trees=4 --num_simulations=64 --seconds=600"
    printed = sit(options, "b2", "a2", "a1", "eval", "a3", "hint", "eval")
    made = re.findall(r"^[XO]: \w+ \(models/tictactoe, (\d+) simulations\)", printed, re.MULTILINE)
    before, after = map(int, made)
    assert before == 4 * 64
    assert after > 4 * 64  # every legal move was tried before a3 was made
    assert "c3 (won), expects c3" in printed


@pytest.mark.parametrize(("seat", "first"), [(1, "person"), (2, "random")])
def test_the_seat_is_a_place_in_the_order_of_moves(sit, seat, first):
    """In EvoPawness Black begins, who has the number 1 inside: whoever sits first is asked first, and is Black."""
    printed = sit(f"--env=evopawness --opponent=random --seat={seat}", "moves", "quit")
    assert ("played: none" in printed) == (first == "person")
    assert ("random plays" in printed) == (first == "random")
    printed = sit("--env=evopawness --opponent=uct:1 --num_simulations=1", "eval")
    assert re.search(r"^Black: \d+% ", printed, re.MULTILINE)


@pytest.mark.parametrize("name", [*envs.list(), str(ROOT / "docs" / "domineering.py")])
def test_every_game_of_the_registry_can_be_played(sit, name):
    """A random move of the person's and one of the opponent's."""
    game = envs.make(name)
    (move,) = draw.random_moves(game, game.init(), 1, seed=5)
    printed = sit(f"--env={name} --opponent=random", move, "moves")
    assert f"played: {move}" in printed
    assert "Traceback" not in printed


def documented(ui):
    """The options of every such program in docs/playing.md, on a small board and against a quick player."""
    text = (ROOT / "docs/playing.md").read_text().replace("size=9", "size=5")
    text = re.sub(r"uct:\d+", "random", text) if ui == "text" else text
    return re.findall(rf"python play\.py (\S*--env=\S+ --ui={ui}\b[^#\n]*)", text)


@pytest.mark.parametrize("options", documented("text"))
def test_commands_of_the_document(sit, options):
    printed = sit(options.replace("--ui=text", ""), "quit")
    assert (" moves\n" in printed) == ("--seat=0" in options)  # the result of a whole game
    assert (PROMPT in printed) == ("--seat=0" not in options)


@pytest.mark.parametrize("options", documented("gtp"))
def test_gtp_commands_of_the_document(options):
    from agents.runtime import cli
    from agents.serve.gtp.engine import Engine
    from agents.serve.options import PlayOptions

    parsed = cli.parse_command(PlayOptions, options.split())
    assert Engine(parsed, envs.make(parsed.env)).size == 5


def test_the_document_has_both():
    assert len(documented("text")) >= 5
    assert len(documented("gtp")) == 2
