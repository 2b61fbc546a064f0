"""The GTP engine by the letter of the protocol."""

import copy
import dataclasses
import io
import re

import numpy as np
import pytest
from gtp_dialogue import SPEC, ask, go_name, looked_at, raw, refused, stones

import envs
from agents.serve.gtp.engine import Clock, Engine
from agents.serve.gtp.protocol import ANALYSES, COMMANDS, respond
from agents.serve.options import PlayOptions

NEXT_MOVE = "known for the next move alone: expected the colour to move and a depth of 1"


def test_the_form_of_answers(engine):
    """Sections 2.4 to 2.8: ids, comments, control characters, empty lines, two line ends after every answer."""
    assert raw(engine, "protocol_version") == "= 2\n\n"
    assert raw(engine, "17 protocol_version") == "=17 2\n\n"
    assert raw(engine, "  17\tprotocol_version\t# why not \r") == "=17 2\n\n"
    assert raw(engine, "", "   \t ", "# only a comment", "\r") == ""
    assert raw(engine, "3 clear_board") == "=3\n\n"
    assert raw(engine, "4 nonsense") == "?4 unknown command\n\n"
    assert raw(engine, "5") == "?5 unknown command\n\n"
    assert raw(engine, "p\x07lay b A1") == "=\n\n"  # control characters have no meaning


def test_commands_are_listed_and_known(engine):
    listed = ask(engine, "list_commands").split()
    assert listed == sorted({*COMMANDS, *ANALYSES})
    required = {
        "protocol_version", "name", "version", "known_command", "list_commands", "quit", "boardsize", "clear_board",
        "komi", "play", "genmove",
    }  # fmt: skip
    assert required <= set(listed)
    assert ask(engine, "known_command genmove") == "true"
    assert ask(engine, "known_command fly") == "false"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("play b", "syntax error"),
        ("play b A1 A2", "syntax error"),
        ("play green A1", "syntax error"),
        ("play b I1", "invalid coordinate"),
        ("play b A6", "invalid coordinate"),
        ("boardsize", "syntax error"),
        ("boardsize five", "syntax error"),
        ("boardsize 4", "unacceptable size"),
        ("boardsize 25", "unacceptable size"),
        ("komi", "syntax error"),
        ("komi much", "syntax error"),
        ("komi nan", "syntax error"),
        ("genmove", "syntax error"),
        ("genmove x", "syntax error"),
        ("undo", "cannot undo"),
        ("time_settings 1 2", "syntax error"),
        ("time_settings 1 -2 3", "syntax error"),
        ("time_left b", "syntax error"),
        ("known_command", "syntax error"),
        ("final_status_list", "syntax error"),
        ("final_status_list undead", "syntax error"),
        ("fixed_handicap 2", "invalid number of stones"),
        ("set_free_handicap A1", "bad vertex list"),
        ("set_free_handicap A1 A1", "bad vertex list"),
        ("set_free_handicap A1 pass", "bad vertex list"),
        ("loadsgf", "syntax error"),
        ("loadsgf no_such_file.sgf", "cannot load file"),
        ("lz-analyze b c", "unknown option 'c'; known are interval, minmoves, maxmoves, ownership, avoid and allow"),
        ("lz-analyze b interval", "syntax error"),
        ("lz-analyze b minmoves -1", "syntax error"),
        ("lz-analyze b avoid b A1", "syntax error"),
        ("lz-analyze b avoid b I1 1", "invalid coordinate"),
        ("lz-analyze b avoid w A1 1", f"avoid is {NEXT_MOVE}"),
        ("lz-analyze b 50 allow b A1 8", f"allow is {NEXT_MOVE}"),
        ("lz-genmove_analyze b allow b A1 1 avoid b A1 1", "no legal move is left to look at"),
        ("place_free_handicap 1", "invalid number of stones"),
        ("place_free_handicap 25", "invalid number of stones"),
        ("place_free_handicap", "syntax error"),
    ],
)
def test_wrong_arguments_are_refused_as_the_protocol_words_it(engine, line, words):
    before = engine.now
    assert refused(engine, line) == words
    assert engine.now is before


def test_rules_are_kept(engine):
    """An occupied point, suicide, and a ko that is open again after a move elsewhere."""
    for line in (
        "play b C4",
        "play w D4",
        "play b B3",
        "play w E3",
        "play b C2",
        "play w D2",
        "play w C3",
        "play b D3",
    ):
        ask(engine, line)
    # 4  . . X O .
    # 3  . X . X O      black D3 has taken white C3; white may not take back at once
    # 2  . . X O .
    assert "C3" not in stones(engine, -1)
    assert refused(engine, "play w C3") == "illegal move"
    assert refused(engine, "play w D3") == "illegal move"
    ask(engine, "play w A1")
    ask(engine, "play b A5")
    ask(engine, "play w C3")
    assert "D3" not in stones(engine, 1)
    ask(engine, "clear_board")
    for line in ("play b A2", "play b B1"):
        ask(engine, line)
    assert refused(engine, "play w A1") == "illegal move"  # suicide


def test_colours_move_in_any_order_and_after_two_passes(engine):
    """By the protocol that is not illegal; every move can be taken back."""
    for line in ("play w B2", "play w C2", "play b D2", "play b pass", "play w PASS", "play White D4", "play BLACK d5"):
        ask(engine, line)
    assert stones(engine, 1) == {"D2", "D5"}
    assert stones(engine, -1) == {"B2", "C2", "D4"}
    assert engine.to_move == 1
    for _ in range(7):
        ask(engine, "undo")
    assert not any(engine.board())
    assert refused(engine, "undo") == "cannot undo"


def test_passes_are_moves_and_a_finished_game_is_passed_on(engine):
    ask(engine, "play b C3")
    ask(engine, "play w pass")
    ask(engine, "play b pass")
    assert engine.over
    assert ask(engine, "genmove w") == "pass"
    assert ask(engine, "reg_genmove b") == "pass"


def test_final_score_counts_the_area_with_the_komi(engine):
    """A wall on the third line: 15 points of Black on and left of it, 10 of White."""
    assert ask(engine, "final_score") == "W+24.5"
    for row in range(1, 6):
        ask(engine, f"play b C{row}")
        ask(engine, f"play w D{row}")
    assert ask(engine, "final_score") == "W+19.5"  # 15 - 10 - 24.5
    assert set(ask(engine, "final_status_list alive").split()) == {f"{c}{r}" for c in "CD" for r in range(1, 6)}
    assert ask(engine, "final_status_list dead") == ""


def test_komi_changes_the_count_and_keeps_the_moves():
    engine = Engine(PlayOptions(env=SPEC, ui="gtp", opponent="uct:16"), envs.make(SPEC))
    ask(engine, "play b C3")
    ask(engine, "komi 3")
    assert ask(engine, "final_score") == "B+22"
    ask(engine, "komi 25")
    assert ask(engine, "final_score") == "0"
    ask(engine, "boardsize 7")
    assert (engine.size, engine.komi) == (7, 25)
    assert not any(engine.board())


def test_handicap(engine):
    """Section 4.1: set up as points of Black, White to move, only on an empty board."""
    ask(engine, "set_free_handicap B2 D4")
    assert stones(engine, 1) == {"B2", "D4"}
    assert engine.to_move == 1
    assert refused(engine, "set_free_handicap A1 A2") == "board not empty"
    wide = Engine(PlayOptions(env="go:size=9", ui="gtp", opponent="uct:16"), envs.make("go:size=9"))
    assert ask(wide, "fixed_handicap 5") == "C3 G7 C7 G3 E5"
    assert refused(wide, "fixed_handicap 2") == "board not empty"
    ask(wide, "clear_board")
    assert refused(wide, "fixed_handicap 10") == "invalid number of stones"
    assert ask(wide, "place_free_handicap 5") == "C3 G7 C7 G3 E5"  # as the fixed ones
    ask(wide, "clear_board")
    nine = "C3 G7 C7 G3 C5 G5 E3 E7 E5"
    assert ask(wide, "place_free_handicap 60") == nine  # fewer than asked for, where no more are marked
    assert wide.to_move == 1
    ask(wide, "clear_board")
    assert ask(wide, "fixed_handicap 9") == nine
    ask(engine, "clear_board")
    assert ask(engine, "place_free_handicap 4") == "B2 D4 B4 D2"
    assert stones(engine, 1) == {"B2", "D4", "B4", "D2"}
    assert refused(engine, "place_free_handicap 2") == "board not empty"


def test_genmove_plays_and_reg_genmove_does_not(engine):
    move = ask(engine, "reg_genmove b")
    assert not any(engine.board())
    assert re.fullmatch(r"[A-E][1-5]|pass", move)
    move = ask(engine, "genmove w")  # white begins
    assert stones(engine, -1) == {move} - {"pass"}
    assert engine.now.last[0] == 1
    assert not engine.over


def test_a_lost_game_is_given_up(engine, monkeypatch):
    """After a quarter of the 25 points, when three moves in a row were worth less than -0.9 to their player; nothing is
    played then, and what the controller plays for him counts as no such move."""
    value = -0.95
    first_free = lambda: int(np.flatnonzero(engine.mask(engine.turn_to(0).state))[0])
    monkeypatch.setattr(engine, "options", dataclasses.replace(engine.options, resign_threshold=-0.9))
    monkeypatch.setattr(engine, "think", lambda *words, **more: 0)
    monkeypatch.setattr(engine.tree_player, "best", lambda: (first_free(), value))
    for black, white in (("A5", "A1"), ("B5", "B1"), ("C5", "C1")):
        assert ask(engine, "genmove b") == black
        ask(engine, f"play w {white}")
    assert ask(engine, "genmove b") == "resign"
    assert ask(engine, "reg_genmove b") == "D5"
    assert raw(engine, "lz-genmove_analyze b").endswith("play resign\n\n")
    assert stones(engine, 1) == {"A5", "B5", "C5"}
    value = -0.85
    assert ask(engine, "genmove b") == "D5"
    value = -0.95
    for black, white in (("E5", "D1"), ("A4", "E1")):
        ask(engine, f"play w {white}")
        assert ask(engine, "genmove b") == black
    ask(engine, "play b B4")
    assert ask(engine, "genmove b") == "C4"
    assert ask(engine, "genmove b") == "D4"
    assert ask(engine, "genmove b") == "resign"
    monkeypatch.setattr(engine, "options", dataclasses.replace(engine.options, resign_threshold=-1))
    value = -1.0
    assert ask(engine, "genmove b") == "E4"


def test_analysis_as_leela_zero_writes_it(engine):
    """`info` lines with visits, winrate and prior as shares of 10000, the best first, ended by an empty line."""
    looks = iter([False, False, True, True])
    out = io.StringIO()
    respond(engine, "8 lz-analyze b 5\n", out, lambda: next(looks, True))
    first, *lines, last, after = out.getvalue().split("\n")
    assert first == "=8"
    assert last == after == ""
    assert lines
    for line in lines:
        infos = [part.split() for part in line.split("info ")[1:]]
        assert [int(words[words.index("order") + 1]) for words in infos] == list(range(len(infos)))
        for words in infos:
            assert words[0] == "move"
            assert words[words.index("pv") + 1] == words[1]
            assert 0 <= int(words[words.index("winrate") + 1]) <= 10000
            assert 0 <= int(words[words.index("prior") + 1]) <= 10000
    assert not any(engine.board())
    # With this komi every move loses, so a search as short as this may choose to pass.
    *_, played, _, _ = raw(engine, "lz-genmove_analyze b interval 5 avoid b pass 1").split("\n")
    assert played.startswith("play ")
    assert stones(engine, 1) == {played.split()[1]}


def test_analysis_of_some_moves_alone(engine, thinking):
    """The first report of a fresh search, also with moves that it has not tried; what was restricted does not stay."""
    all_of = lambda command: {info["move"] for info in looked_at(raw(engine, f"{command} minmoves 26"))}
    moves = lambda options: all_of(f"lz-analyze b 1 {options}")
    assert moves("allow b A1,c3 1") == {"A1", "C3"}
    assert moves("allow b A1,C3,E5 1 avoid b C3 1") == {"A1", "E5"}
    everywhere = {go_name(p) for p in range(25)} | {"pass"}
    assert moves("") == everywhere
    assert moves("interval 1 avoid b C3,pass 1") == everywhere - {"C3", "pass"}
    ask(engine, "play b C3")
    assert all_of("lz-analyze w 1") == everywhere - {"C3"}
    assert raw(engine, "lz-genmove_analyze w allow w E1 1").endswith("play E1\n\n")


def test_least_and_most_moves_of_an_analysis(engine, monkeypatch):
    """Three of five moves were visited."""
    move = {"value": 0, "prior": 0.2, "line": ["A1"]}
    moves = [move | {"action": f"A{i + 1}", "visits": max(0, 3 - i)} for i in range(5)]
    monkeypatch.setattr(engine, "think", lambda *words, **more: 0)
    monkeypatch.setattr(engine.tree_player, "report", lambda most: {"moves": moves[:most]})
    shown = lambda options: len(looked_at(raw(engine, f"lz-analyze b 1 {options}")))
    assert [shown(options) for options in ("", "minmoves 4", "maxmoves 2", "minmoves 3 maxmoves 1")] == [3, 4, 2, 3]


def test_the_clock_becomes_seconds_for_a_move(engine):
    """0.7 x 25 moves make a usual game, half of them ours, and never fewer than 10 are reckoned with."""
    seconds = lambda player: engine.budget(player)[0]
    ask(engine, "time_settings 100 0 0")
    assert seconds(0) == pytest.approx(0.95 * 100 / 10 - 0.05)
    ask(engine, "time_left w 20 0")
    assert seconds(1) == pytest.approx(0.95 * 20 / 10 - 0.05)
    ask(engine, "time_left b 30 5")  # thirty seconds for five moves
    assert seconds(0) == pytest.approx(0.95 * 6 - 0.05)
    assert engine.budget(0)[1] is None  # the clock alone counts
    ask(engine, "clear_board")  # a new game has all of its time
    assert engine.left == [(100.0, 0)] * 2
    ask(engine, "time_left b 0.02 0")
    ask(engine, "boardsize 5")
    assert engine.left == [(100.0, 0)] * 2
    ask(engine, "time_settings 0 1 0")  # no limits
    assert engine.budget(0) == (engine.options.limits.seconds, 16)


def test_a_game_with_a_clock_compiles_before_the_clock_runs(engine, monkeypatch):
    """When the clock or, after that, the komi is set. Without a clock nothing is urgent."""
    engine, thoughts, real = copy.copy(engine), [], Engine.think
    monkeypatch.setattr(Engine, "think", lambda *words, **more: thoughts.append(words) or real(*words, **more))
    said = lambda line: (thoughts.clear(), ask(engine, line), len(thoughts))[-1]
    assert said("komi 3.5") == 0
    assert said("time_settings 0 1 0") == 0  # no limits
    assert said("time_settings 10 0 0") == 2  # a move of each player
    assert said("time_settings 10 0 0") == said("komi 3.5") == 0
    ask(engine, "play b C3")
    assert said("komi 4.5") == 2
    assert stones(engine, 1) == {"C3"}  # the komi keeps the moves


def test_an_analysis_for_the_other_colour_goes_on_with_its_tree(engine):
    ask(engine, "play b C3")
    for player in (0, 1):
        before = 0
        for _ in range(3):
            engine.think(player, simulations=16)
            visits = sum(move["visits"] for move in engine.tree_player.report(25)["moves"])
            assert visits == before + 16
            before = visits
    ask(engine, "play w B2")
    engine.think(1, simulations=16)  # White again, in another position
    assert "B2" not in {move["action"] for move in engine.tree_player.report(25)["moves"]}


def test_our_own_count_of_the_clock():
    """Canadian overtime: 10 seconds for 2 moves once the 60 are used up."""
    clock = Clock(60, 10, 2)
    assert clock.full == (60, 0)
    assert clock.after(60, 0, 15) == (45, 0)
    assert clock.after(5, 0, 6) == (10, 2)
    assert clock.after(10, 2, 4) == (6, 1)
    assert clock.after(6, 1, 3) == (10, 2)
    assert Clock(60, 0, 0).after(5, 0, 6) == (0, 0)
    assert Clock(0, 10, 2).full == (10, 2)


def test_sgf_through_the_protocol(engine, tmp_path):
    for line in ("play b C3", "play w C4", "play w D4", "play b pass"):
        ask(engine, line)
    board = engine.board()
    ask(engine, f"printsgf {tmp_path}/game.sgf")
    text = ask(engine, "printsgf")
    ask(engine, "clear_board")
    ask(engine, f"loadsgf {tmp_path}/game.sgf")
    assert engine.board() == board
    assert ask(engine, "printsgf") == text
    ask(engine, f"loadsgf {tmp_path}/game.sgf 3")  # before the third move
    assert stones(engine, -1) == {"C4"}
    spaced = tmp_path / "my games" / "a b.sgf"
    spaced.parent.mkdir()
    ask(engine, f"printsgf {spaced}")
    assert spaced.is_file()
    for path in (spaced, f'"{spaced}"', f"'{spaced}'"):
        ask(engine, f"loadsgf {path} 2")
        assert stones(engine, -1) == set()
        ask(engine, f"loadsgf {path}")
        assert stones(engine, -1) == {"C4"}
    assert refused(engine, f"loadsgf {tmp_path}/my games 1") == "cannot load file"
    assert refused(engine, 'loadsgf ""') == "syntax error"
    assert refused(engine, "printsgf /nonexistent/x.sgf").endswith("No such file or directory: '/nonexistent/x.sgf'")
    (tmp_path / "broken.sgf").write_text("(;SZ[5];B[aa];W[aa])")
    before = engine.now
    assert refused(engine, f"loadsgf {tmp_path}/broken.sgf") == "illegal move"
    (tmp_path / "broken.sgf").write_bytes(b"\x00(;")
    assert "SGF" in refused(engine, f"loadsgf {tmp_path}/broken.sgf")
    assert engine.now is before


def test_only_go_and_players_that_search():
    with pytest.raises(ValueError, match="expected Go, .* got tictactoe"):
        Engine(PlayOptions(ui="gtp"), envs.make("tictactoe"))
    with pytest.raises(ValueError, match="expected a network that searches, or uct:N"):
        Engine(PlayOptions(ui="gtp", opponent="random"), envs.make(SPEC))
    with pytest.raises(ValueError, match="--resign_threshold: expected -1 to 0, got 5"):
        PlayOptions(ui="gtp", resign_threshold=5)


def test_the_budget_of_an_analysis_is_that_of_every_tree(engine, monkeypatch):
    """Two trees of 16 simulations, 8 in each until the first report: there is time for a second one."""
    asked = []

    def think(player, seconds, simulations, among):
        asked.append(simulations)
        return 2 * 8

    ask(engine, "reg_genmove b")
    monkeypatch.setattr(engine, "think", think)
    monkeypatch.setattr(engine, "options", dataclasses.replace(engine.options, trees=2))
    monkeypatch.setattr(engine.tree_player, "best", lambda: (0, 0.0))
    assert raw(engine, "lz-genmove_analyze b 100").endswith("play A5\n\n")
    assert asked == [16, 8]
