"""KataGo's commands of the GTP engine, with the network for 5x5, which knows owners."""

import json
import re

import numpy as np
import pytest
from gtp_dialogue import ask, raw, refused

import envs
from agents.players.spec import parse_player
from agents.players.stateful import TreePlayer, same_board
from agents.serve.gtp.engine import Engine
from agents.serve.options import PlayOptions
from agents.storage import weights

SPEC = "go:size=5,komi=24.5"
WALL = ("A3 A2", "B3 B2", "C3 C2", "D3 D2", "E3 E2")  # Black's row above White's


@pytest.fixture(scope="module")
def thinking():
    return Engine(PlayOptions(env=SPEC, ui="gtp", num_simulations=16, gtp_name="KataGo"), envs.make(SPEC))


@pytest.fixture
def engine(thinking):
    thinking.clear()
    return thinking


def walled(engine):
    for black, white in (pair.split() for pair in WALL):
        ask(engine, f"play b {black}")
        ask(engine, f"play w {white}")
    return engine


def fields(said):
    """The infos and the ownership of the last report, read as KataGo documents its format."""
    line = [line for line in said.split("\n") if line.startswith("info ")][-1]
    infos, _, ownership = line.partition(" ownership ")
    read = []
    for part in infos.split("info ")[1:]:
        words, _, line = part.partition(" pv ")
        read.append({**dict(zip(words.split()[::2], words.split()[1::2], strict=True)), "pv": line.split()})
    return read, [float(x) for x in ownership.split()]


def test_reports_have_katagos_form(engine):
    """Shares of 1, points, moves in order; the mean lead is what the owners say, less the komi."""
    walled(engine)
    for colour, komi in (("b", -24.5), ("w", 24.5)):
        infos, ownership = fields(raw(engine, f"kata-analyze {colour} 1 ownership true"))
        assert [info["order"] for info in infos] == [str(i) for i in range(len(infos))]
        for info in infos:
            assert set(info) == {"move", "visits", "winrate", "scoreMean", "scoreLead", "prior", "order", "pv"}
            assert 0 <= float(info["winrate"]) <= 1 and "." in info["winrate"]
            assert 0 <= float(info["prior"]) <= 1
            assert info["pv"][0] == info["move"]
            assert all(re.fullmatch(r"[A-HJ][1-5]|pass", name) for name in info["pv"])
        assert len(ownership) == 25
        assert max(map(abs, ownership)) <= 1
        leads, visits = ([float(info[name]) for info in infos] for name in ("scoreLead", "visits"))
        assert np.average(leads, weights=visits) == pytest.approx(sum(ownership) + komi, abs=0.01)
    assert fields(raw(engine, "kata-analyze b 1"))[1] == []
    assert len(fields(raw(engine, "kata-analyze b 1 maxmoves 2 rootInfo false"))[0]) == 2


def test_score_and_owners_are_the_movers(engine):
    """White's second pass ends the game: 10 points and the komi against 15. Rows are given from the top."""
    walled(engine)
    ask(engine, "play b pass")
    infos, ownership = fields(raw(engine, "kata-analyze w 1 allow w pass 1 ownership true"))
    assert [(info["move"], float(info["scoreLead"])) for info in infos] == [("pass", 10 + 24.5 - 15)]
    assert np.array(ownership).reshape(5, 5).tolist() == [[-1] * 5] * 3 + [[1] * 5] * 2


def test_owners_of_a_finished_game_are_exact():
    game = envs.make(SPEC)
    player, state, actions = TreePlayer(parse_player("models/go_5x5@4"), game), game.init(), []
    for name in [name for pair in WALL for name in pair.split()]:
        actions.append(game.parse_action(name))
        state = game.move(state, actions[-1])
    player.place(game.init(), [], game.init())
    player.place(state, [], state)
    owners = player.owners_after([{"line": ["pass", "pass"]}, {"line": ["pass"]}])
    assert owners.shape == (2, 25)
    assert owners[0].reshape(5, 5).tolist() == [[1] * 5] * 3 + [[-1] * 5] * 2
    assert 0 < abs(owners[1] - owners[0]).max() < 2


def test_kata_genmove_analyze_plays_its_best_move(engine):
    said = raw(engine, "7 kata-genmove_analyze b 100")
    assert said.startswith("=7\ninfo move ")
    played = re.search(r"\nplay (\S+)\n\n$", said)[1]
    assert played == fields(said)[0][0]["move"]
    assert len(engine.moves()) == 1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("kata-analyze b 1 ownership", "syntax error"),
        ("kata-analyze b 1 ownership yes", "ownership: expected true or false, got 'yes'"),
        ("kata-analyze b 1 pvVisits true", "pvVisits is not supported"),
        ("kata-analyze b 1 nonsense 3", "unknown option 'nonsense'"),
        ("kata-set-rules japanese", "unsupported rules: expected chinese"),
        ('kata-set-rules {"scoring":"TERRITORY"}', "unsupported rules"),
        ("kata-set-rules", "unsupported rules"),
    ],
)
def test_what_is_not_supported_is_refused(engine, line, words):
    assert words in refused(engine, line)


def test_rules_are_those_of_katago(engine):
    ours = json.loads(ask(engine, "kata-get-rules"))
    assert (ours["ko"], ours["scoring"], ours["suicide"], ours["tax"]) == ("SIMPLE", "AREA", False, "NONE")
    ask(engine, "play b C3")
    ask(engine, "kata-set-rules chinese-kgs")
    assert json.loads(ask(engine, "kata-get-rules")) == {**ours, "ko": "POSITIONAL"}
    assert engine.game.name == envs.make("go:size=5,komi=24.5,ko=psk").name
    assert [name for _, name in engine.moves()] == [12]  # C3 still stands
    assert engine.plays_with.path == "models/go_5x5"  # which does not see the ko rule
    ask(engine, f"kata-set-rules {json.dumps(ours)}")
    assert json.loads(ask(engine, "kata-get-rules")) == ours
    assert ask(engine, "name") == "KataGo"


def test_networks_play_other_komi_and_ko_rules():
    assert same_board("go:size=9,komi=7.5,ko=simple,history=8", "go:size=9,komi=6.5,ko=psk,history=8")
    assert not same_board("go:size=9,komi=7.5,ko=simple,history=8", "go:size=9,komi=7.5,ko=simple,history=4")
    assert not same_board("hex:size=5,swap=true", "hex:size=5,swap=false")
    assert weights.shipped(envs.make("go:size=9,komi=5.5"), same_board) == "models/go_9x9"
    assert weights.shipped(envs.make("go:size=9,komi=5.5")) is None
