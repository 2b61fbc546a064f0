"""The game in the terminal, through a pipe as through a keyboard."""

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import envs
import play
from agents.players.human import coloured
from agents.players.stateful import words
from agents.serve.terminal import COMMANDS, TerminalGame
from envs import saved

ROOT = Path(__file__).parents[2]
PROMPT = "your move>"


def test_two_people_play_a_game_to_its_end(sit):
    """X wins by the diagonal: every prompt is there, and the result is said."""
    printed = sit("--env=tictactoe --opponent=person", "b2", "a2", "a1", "b1", "c3")
    assert printed.count(PROMPT) == 5
    assert "\nX wins after 5 moves" in printed
    assert printed.count("new, undo, save FILE or quit>") == 1
    board = "3  . . X\n2  O X .\n1  X O .\n   a b c\n"
    assert board in printed


def test_what_is_wrong_is_said_and_asked_again(sit):
    printed = sit(
        "--env=tictactoe --opponent=person", "z9", "b2", "b2", "save", 'load "', "undo now", "load /none", "b1"
    )
    assert "no cell 'z9': expected a column and a row, a1 to c3; legal: a3, b3, c3, a2, b2, c2, a1, b1, c1;" in printed
    assert "'b2' is not legal here: b2 is taken; legal: a3, b3, c3, a2, c2, a1, b1, c1" in printed
    assert "expected the name of one file" in printed
    assert "No closing quotation" in printed
    assert "undo takes nothing else" in printed
    assert "/none: No such file or directory" in printed
    assert printed.count(PROMPT) == 9
    assert "2  . X .\n1  . O .\n" in printed  # the last move was made


def test_no_colours_in_a_pipe(sit):
    assert "\x1b" not in sit("--env=foq:rows=4,cols=5 --opponent=random", "moves")


def test_the_opponent_answers_and_undo_takes_both_moves_back(sit):
    printed = sit("--env=tictactoe --opponent=minimax:2", "b2", "undo", "undo", "moves", "b2", "moves")
    assert printed.count("minimax:2 plays") == 2
    assert "there is nothing to take back" in printed
    assert "played: none" in printed
    assert re.search(r"played: b2 [abc][123]\n", printed)


def test_seats_and_three_players(sit):
    printed = sit("--env=foq_multi:rows=4,cols=4 --opponent=random --seat=2", "moves", "quit")
    assert printed.index("random plays") < printed.index(PROMPT)
    game = envs.make("foq_multi:rows=4,cols=4")
    names = re.search(r"played: (.*)\n", printed)[1].split()
    assert len(names) == 1
    legal = re.findall(r"legal: (.*)\n", printed)[-1].split()
    state = saved.replay(game, game.init(), names)[0][-1]
    assert legal == [game.action_name(int(a)) for a in np.flatnonzero(game.mask(state))]
    printed = sit("--env=foq_multi:rows=4,cols=4 --opponent=random --seat=0")
    assert re.search(r"^(White|Red|Blue)( and (Red|Blue) win| wins) after \d+ moves", printed, re.MULTILINE)
    assert PROMPT not in printed


@pytest.mark.parametrize(
    ("value", "players", "said"),
    [
        (0, 2, "50%"),
        (0.5, 2, "75%"),
        (-1, 2, "0%"),
        (0, 3, "33%"),
        (1, 3, "100%"),
        (-0.5, 3, "0%"),
        (0, 4, "25%"),
    ],
)
def test_chances_of_all_players_add_up(value, players, said):
    assert words(value, None, players) == said


def test_hint_and_eval_find_the_win(sit, tmp_path):
    """X to move wins at c3 at once; without a network of this size playouts see it too."""
    (tmp_path / "game.json").write_text(json.dumps({"game": "tictactoe", "actions": ["a3", "a1", "b3", "b1"]}))
    printed = sit("--env=tictactoe --opponent=uct:50", f"load {tmp_path}/game.json", "hint", "eval")
    assert re.search(r"^c3 \((won|\d+ %)\), expects c3", printed, re.MULTILINE)
    assert re.search(r"^X: (won|9\d%|100%) \(models/tictactoe, \d+ simulations\)", printed, re.MULTILINE)
    assert re.search(r"^c3 +\d+ +(won|9\d%|100%) ", printed, re.MULTILINE)


def test_games_are_saved_and_loaded(sit, tmp_path):
    printed = sit("--env=tictactoe --opponent=person", "b2", "a1", f"save {tmp_path}/game.json")
    assert f"saved 2 moves in {tmp_path}/game.json" in printed
    game = envs.make("tictactoe")
    assert saved.from_file(game, (tmp_path / "game.json").read_text())[1] == ["b2", "a1"]
    printed = sit("--env=tictactoe --opponent=person", f"load {tmp_path}/game.json", "undo", "moves", "new", "moves")
    assert "played: b2\n" in printed
    assert printed.rstrip().endswith(PROMPT)
    (tmp_path / "bad.json").write_text('{"game": "foq"}')
    printed = sit("--env=tictactoe --opponent=person", "b2", f"load {tmp_path}/bad.json", "moves")
    assert "this is a game of foq, not of tictactoe" in printed
    assert "played: b2\n" in printed
    assert not list(tmp_path.glob("*.new"))


def test_a_finished_game_of_go_is_saved_with_its_result(sit, tmp_path):
    """One stone on the board and two passes: all of it is Black's, 25 points but for the komi."""
    sit("--env=go:size=5,komi=7.5 --opponent=person", "c3", "pass", "pass", f"save {tmp_path}/game.sgf")
    assert "RE[B+17.5]" in (tmp_path / "game.sgf").read_text()


def test_go_is_saved_as_sgf(sit, tmp_path):
    sit("--env=go:size=5 --opponent=person", "c3", "D4", "pass", f"save {tmp_path}/game.sgf")
    text = (tmp_path / "game.sgf").read_text()
    assert text.replace("\n", "").endswith((";B[cc];W[db];B[])", ";B[cc];W[db];B[tt])"))
    printed = sit("--env=go:size=5 --opponent=person", f"load {tmp_path}/game.sgf", "moves")
    assert "played: C3 D4 pass" in printed
    printed = sit("--env=tictactoe --opponent=person", f"save {tmp_path}/other.sgf")
    assert "SGF is for games of Go" in printed
    assert not (tmp_path / "other.sgf").exists()


RESIGNED = {"game": "tictactoe", "actions": ["b2"], "resigned": 1}


def test_a_resigned_game_stays_over(sit, tmp_path):
    """O gives up after the first move: X has won, nobody is asked for a move, and so it is saved; undo goes on."""
    (tmp_path / "game.json").write_text(json.dumps(RESIGNED))
    typed = [f"load {tmp_path}/game.json", "a1", "moves", f"save {tmp_path}/same.json", "undo", "a1", "moves"]
    printed = sit("--env=tictactoe --opponent=person", *typed, f"save {tmp_path}/on.json", "new")
    assert printed.count("X wins after 1 move: O resigned") == 4
    assert "'a1': the game is over" in printed
    assert "played: b2\nlegal: none, the game is over\n" in printed
    assert "played: b2 a1\n" in printed
    same, on = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("same", "on"))
    assert same.items() >= RESIGNED.items()
    assert (on["actions"], "resigned" in on) == (["b2", "a1"], False)


def test_the_others_win_where_one_of_three_resigns(sit, tmp_path):
    (tmp_path / "game.json").write_text('{"actions": [], "resigned": 1}')
    printed = sit("--env=foq_multi --opponent=person", f"load {tmp_path}/game.json")
    assert "White and Blue win after 0 moves: Red resigned" in printed


def test_sgf_has_the_result_of_a_resigned_game(sit, tmp_path):
    (tmp_path / "game.json").write_text('{"actions": ["c3", "d4"], "resigned": 0}')
    sit("--env=go:size=5 --opponent=person", f"load {tmp_path}/game.json", f"save {tmp_path}/game.sgf")
    assert "RE[W+R]" in (tmp_path / "game.sgf").read_text()
    assert "White wins after 2 moves: Black resigned" in sit(
        "--env=go:size=5 --opponent=person", f"load {tmp_path}/game.sgf"
    )


def test_a_player_may_resign(sit, tmp_path):
    """After the first move it is O's turn. Against an opponent the person gives up, and may take that back."""
    printed = sit("--env=tictactoe --opponent=person", "b2", "resign", "a1", "resign", f"save {tmp_path}/game.json")
    assert "X wins after 1 move: O resigned" in printed
    assert printed.count("the game is over; 'help'") == 2
    assert json.loads((tmp_path / "game.json").read_text()).items() >= RESIGNED.items()
    printed = sit("--env=tictactoe --opponent=random --seat=2", "resign", "undo", "moves")
    assert "X wins after 1 move: O resigned" in printed
    assert len(re.findall(r"played: \w\d\n", printed)) == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"resigned": 1.0}, "resigned: expected the number of a player, 0 to 1;"),
        ({"resigned": True}, "resigned: expected the number of a player, 0 to 1;"),
        ({"resigned": 2}, "resigned: expected the number of a player, 0 to 1;"),
        ({"resigned": 1, "actions": ["b2", "a2", "a1", "b1", "c3"]}, "resigned: the game was over before;"),
        ({"actions": ["\ud800"]}, r"half a character, \ud800, stands alone"),
    ],
)
def test_files_that_cannot_be_are_refused_in_one_line(sit, tmp_path, wrong, words):
    (tmp_path / "game.json").write_text(json.dumps(RESIGNED | wrong))
    printed = sit("--env=tictactoe --opponent=person", "a1", f"load {tmp_path}/game.json", "moves")
    assert words in printed
    assert "played: a1\n" in printed


def test_a_file_that_cannot_be_written_goes_by_the_name_that_was_typed(sit, tmp_path):
    (tmp_path / "folder").mkdir()
    printed = sit("--env=tictactoe --opponent=person", "save /nonexistent/x.json", f"save {tmp_path}/folder")
    assert "/nonexistent/x.json: No such file or directory\n" in printed
    assert f"{tmp_path}/folder: Is a directory\n" in printed
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_eval_shows_every_move_at_any_width(sit, monkeypatch, width):
    """Ten moves of EvoPawness take more than a line: only they are cut."""
    monkeypatch.setenv("COLUMNS", str(width))
    report = {"visits": 12345, "value": 0.5, "prior": 0.25, "proven": None, "line": ["m*7,4*-1,0"] * 10}
    said = {"value": 0.5, "proven": None, "simulations": 9, "moves": [{"action": "p*1,4*K"} | report]}
    monkeypatch.setattr(TerminalGame, "thought", lambda session: setattr(session, "tree_player", Named()) or said)
    printed = sit("--env=evopawness --opponent=person", "eval")
    (row,) = [line for line in printed.splitlines() if "12345" in line]
    assert re.match(r"p\*1,4\*K +12345 +75% +25% +m\*7,4", row)
    assert len(row) <= width
    assert row.rstrip().endswith("…")


class Named:
    name = "somebody"


def test_help_names_every_command(sit):
    printed = sit("--env=tictactoe --opponent=person", "help")
    for name, command in COMMANDS.items():
        assert f"{name:6}  {command.__doc__}" in printed
    assert "legal: a3, b3, c3" in printed


@pytest.mark.parametrize(
    ("picture", "marked"),
    [
        ("2  X .\n1  O *\n   a b\nX to move", {"X": "bold cyan", "O": "bold red", "*": "green"}),
        (" 2  A #\n 1  B .\n    a b", {"A": "bold cyan", "B": "bold red", "#": "bright_black"}),
    ],
)
def test_pieces_have_the_colours_of_their_players(picture, marked):
    text = coloured(picture)
    assert text.plain == picture
    for sign, style in marked.items():
        at = picture.index(sign)
        assert any(span.start <= at < span.end and span.style == style for span in text.spans), sign


def test_column_names_are_no_pieces():
    """Go's columns A and B are not the queens of these names, nor O on a wide board White's stones."""
    picture = envs.make("go:size=15").show(envs.make("go:size=15").init())
    styles = {str(span.style) for span in coloured(picture).spans}
    assert styles == {"bright_black", "magenta", "bold cyan"}  # the last for the X in `Black (X) to move`
    assert len([span for span in coloured(picture).spans if span.style == "bold cyan"]) == 1
    assert {"bold cyan"} == {
        str(span.style)
        for span in coloured("S5/1/1").spans
    }  # fmt: skip


def test_a_terminal_gets_colours():
    output = io.StringIO()
    console = Console(force_terminal=True, file=output, color_system="standard")
    console.print(coloured("1  X O\n   a b"))
    assert "\x1b[1;36mX\x1b[0m" in output.getvalue()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--env=chess960", "unknown game 'chess960'"),
        ("--opponent=nobody", "unknown player 'nobody'"),
        ("--env=tictactoe --opponent=models/foq", "got one for foq"),
        ("--env=tictactoe --opponent=prove:1000,models/foq", "got one for foq"),
        ("--env=tictactoe --opponent=prove:many,random", "as in prove:100000,uct:100"),
        ("--ui=gtp --env=go:size=5 --opponent=prove:1000,models/go_5x5", "expected a network that searches, or uct:N"),
        ("--env=tictactoe --seat=3", "--seat: expected 1 to 2"),
        ("--num_simulations=0", "--num_simulations: expected 1"),
        ("--trees=0", "--trees: expected 1 to 256"),
        ("--ui=web --trees=2", "--trees is for --ui=text and --ui=gtp"),
        ("--ui=voice", "--ui"),
    ],
)
def test_bad_options_are_one_line_and_exit_code_2(options, words, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as stopped:
        play.main(["--ui=text", *options.split()])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert words in said
