"""Names of players: the text that people write and its parsed form."""

from __future__ import annotations

import pytest

import envs
from agents.players import PlayerSpec, make_player, parse_player, register_player
from agents.players.spec import REGISTRY


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("random", PlayerSpec("random")),
        ("uct:100", PlayerSpec("uct", number=100)),
        ("uct:0.5s", PlayerSpec("uct", seconds=0.5)),
        ("minimax:3", PlayerSpec("minimax", number=3)),
        ("person", PlayerSpec("person")),
        ("models/foq", PlayerSpec("network", path="models/foq")),
        ("models/foq@0", PlayerSpec("network", path="models/foq", number=0)),
        ("models/foq@2s", PlayerSpec("network", path="models/foq", seconds=2.0)),
        ("at@home/foq", PlayerSpec("network", path="at@home/foq")),
        ("at@home/foq@8", PlayerSpec("network", path="at@home/foq", number=8)),
        ("gtp:gnugo --mode gtp --level 1", PlayerSpec("gtp", path="gnugo --mode gtp --level 1")),
        ("prove:1000,uct:100", PlayerSpec("uct", number=100, proof_positions=1000)),
        ("prove:1000,runs/a@2s", PlayerSpec("network", path="runs/a", seconds=2.0, proof_positions=1000)),
    ],
)
def test_a_name_and_its_text(text, spec):
    assert parse_player(text) == spec
    assert str(spec) == text
    assert parse_player(spec) is spec


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("uct", "as in uct:100"),
        ("uct:", "as in uct:100"),
        ("uct:0", "from 1 to"),
        ("uct:²", "whole number"),
        ("uct:99999999999999999999999", "whole number from 1 to 10000000"),
        ("uct:0s", "more than 0 seconds"),
        ("uct:100000s", "at most a day"),
        ("minimax:2s", "as in minimax:2"),
        ("random:3", "without a number"),
        ("models/foq@x", "models/foq@64"),
        ("models/foq@-1", "models/foq@64"),
        ("prove:1000", "and a player"),
        ("prove:x,random", "prove:100000,uct:100"),
        ("prove:5,prove:5,random", "a player of ripzero"),
        ("prove:5,person", "a player of ripzero"),
    ],
)
def test_text_that_names_no_player(text, key):
    with pytest.raises(ValueError, match=r"^player '") as refused:
        parse_player(text)
    assert key in str(refused.value)


def test_a_folder_whose_name_contains_at_is_a_network(tmp_path):
    folder = tmp_path / "me@home"
    folder.mkdir()
    assert parse_player(str(folder)) == PlayerSpec("network", path=str(folder))
    assert parse_player(f"{folder}@8") == PlayerSpec("network", path=str(folder), number=8)


@pytest.mark.parametrize("text", ["person", "gtp:gnugo", "models/tictactoe@2s"])
def test_players_of_one_game_at_a_time_are_refused_for_a_batch(text):
    with pytest.raises(ValueError, match="play matches only"):
        make_player(text, envs.make("tictactoe"))


@pytest.fixture
def registry():
    before = dict(REGISTRY)
    yield REGISTRY
    REGISTRY.clear()
    REGISTRY.update(before)


def test_a_kind_of_ones_own(registry):
    register_player("careful", lambda game, depth: make_player(f"minimax:{depth}", game), example=3)
    assert make_player("careful:2", envs.make("tictactoe")).name == "minimax:2"
    assert "careful" in registry
    with pytest.raises(ValueError, match="new name"):
        register_player("careful", lambda game, _: make_player("random", game))
    with pytest.raises(ValueError, match="new name"):
        register_player("not a name", lambda game, _: make_player("random", game))
