"""Chess programs that speak UCI, as players of matches: the commands that they receive, and illegal moves."""

import sys

import numpy as np
import pytest

import envs
from agents.arena import host_match
from agents.players.players import make_player
from agents.players.program import program_of
from agents.players.spec import parse_player
from agents.players.uci_client import UciProcess, uci_name

# A program that writes down what it hears, and has one answer to every go.
PROGRAM = """
import sys
for line in sys.stdin:
    with open(sys.argv[1], "a") as file:
        file.write(line)
    word = line.split()[0]
    if word == "uci":
        print("option name UCI_Variant type combo default chess var chess var gardner\\nuciok", flush=True)
    if word == "isready":
        print("readyok", flush=True)
    if word == "go":
        print("info depth 1 score cp 13\\nbestmove", sys.argv[2], "ponder e7e5", flush=True)
"""


@pytest.fixture
def toy(tmp_path):
    """toy(answer): the program with that answer; it writes to heard.txt."""
    (tmp_path / "toy.py").write_text(PROGRAM)
    command = f"{sys.executable} {tmp_path}/toy.py {tmp_path}/heard.txt"
    return lambda answer: program_of(parse_player(f"uci:depth 3,{command} {answer}"))


def test_the_program_hears_the_game_with_its_promotions(toy, tmp_path):
    """The promotion to a queen is sent with its q."""
    table = host_match.HostGame(envs.make("chess"))
    lane = host_match.open_lane(table, (toy("b7a8q"), make_player("random", table.game)), [], 0, 0, 0, 20.0)
    made = ["a2a4", "h7h5", "a4a5", "h5h4", "a5a6", "h4h3", "a6b7", "h3g2"]
    try:
        for name in made:
            table.play(lane, table.game.parse_action(name), None)
        (process,) = lane.programs
        process.request(0)
        table.answer(lane, process, 0)
        for name in ("g2h1n", "h2h3", "h8h3"):
            table.play(lane, table.game.parse_action(name), None)
        process.request(0)
        assert process.take(0) == "b7a8q"
    finally:
        lane.close()
    heard = (tmp_path / "heard.txt").read_text().splitlines()
    before = " ".join(made)
    assert heard == [
        "uci", "ucinewgame", "isready",
        f"position startpos moves {before}", "go depth 3",
        f"position startpos moves {before} b7a8q g2h1n h2h3 h8h3", "go depth 3",
    ]  # fmt: skip


def test_only_a_pawn_that_becomes_a_queen_has_a_q():
    """A rook that makes the same step has the same code. A pawn could also become a rook, and has that move too."""
    game = envs.make("chess")
    queen, rook, quiet = (game.parse_action(name) for name in ("b7a8", "b7a8r", "a1a2"))
    of_rook = np.isin(np.arange(game.num_actions), [queen, quiet])
    of_pawn = of_rook | (np.arange(game.num_actions) == rook)
    assert [uci_name(game, queen, legal) for legal in (of_rook, of_pawn)] == ["b7a8", "b7a8q"]
    assert uci_name(game, rook, of_pawn) == "b7a8r" and uci_name(game, quiet, of_pawn) == "a1a2"


def test_a_variant_is_asked_for_and_an_illegal_move_ends_the_match(toy, tmp_path):
    game = envs.make("chess:size=5")
    options = {"games": 2, "opening_plies": 0, "seed": 0, "timeout": 20.0}
    with pytest.raises(ValueError, match=r"toy.py .* plays 'a1b2' at move 1, which is not legal"):
        host_match.play_host_games(game, toy("a1b2"), make_player("random", game), **options)
    heard = (tmp_path / "heard.txt").read_text().splitlines()
    assert heard[:4] == ["uci", "setoption name UCI_Variant value gardner", "ucinewgame", "isready"]
    assert "position startpos" in heard and "go depth 3" in heard


def test_what_a_program_tells_of_its_search_has_no_limit(tmp_path):
    """It has the time of its search and the usual timeout for the answer."""
    chatty = "import time; input(); input(); print('info depth 1\\n' * 3000); time.sleep(1.5); print('bestmove a2a3')"
    (tmp_path / "chatty.py").write_text(chatty)
    process = UciProcess(program_of(parse_player(f"uci:movetime 20000,{sys.executable} {tmp_path}/chatty.py")), 1.0)
    process._names = []
    process.request(0)
    assert process.take(0) == "a2a3"
    process.close()


def test_refusals(toy):
    with pytest.raises(
        ValueError, match="expected depth N, nodes N or movetime MS and a program: uci:depth 4,stockfish"
    ):
        program_of(parse_player("uci:stockfish"))
    with pytest.raises(ValueError, match="there is no program 'no-such-engine'"):
        program_of(parse_player("uci:nodes 100,no-such-engine"))
    process = UciProcess(toy("e2e4"), 20.0)
    with pytest.raises(ValueError, match="expected chess:size=8 or chess:size=5 for a UCI program, got othello"):
        process.begin(envs.make("othello"))
    process.close()
