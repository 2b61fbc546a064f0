"""Matches with programs that speak GTP: GNU Go, and ones that break off, hang, cheat or resign."""

import os
import sys
import time
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import envs
from agents.arena import host_match, openings
from agents.arena import match as arena
from agents.arena.commands import contestant
from agents.players import gtp_client, stateful
from agents.players import players as players_file
from agents.players.players import Guest, make_player
from agents.players.program import MOST_ANSWER_LINES, Program, program_of
from agents.players.spec import parse_player

GAME = envs.make("go:size=5,komi=24.5")

# A program that knows the protocol and answers genmove as it is told to.
PROGRAM = """
import os, pathlib, sys, time
pathlib.Path(f"{sys.argv[1]}/{os.getpid()}").touch()
for line in sys.stdin:
    if line.startswith("genmove"):
        ANSWER
    else:
        print("=\\n", flush=True)
"""


@pytest.fixture
def program(tmp_path):
    """program(answer): a program whose answer to genmove is that line of Python; its processes leave their numbers."""

    def make(answer):
        (tmp_path / "program.py").write_text(PROGRAM.replace("ANSWER", answer))
        (tmp_path / "started").mkdir()
        return program_of(parse_player(f"gtp:{sys.executable} {tmp_path}/program.py {tmp_path}/started"))

    yield make
    for path in (tmp_path / "started").iterdir():  # nobody is left behind
        with pytest.raises(ProcessLookupError):
            os.kill(int(path.name), 0)


def match(a, b, games=4, **options):
    options = {"games": games, "opening_plies": 2, "seed": 0, "timeout": 20.0} | options
    return host_match.play_host_games(GAME, a, b, **options)


def says(answer):
    return f"print('= {answer}\\n', flush=True)"


@pytest.mark.parametrize(
    "name", [GAME.name, pytest.param("evopawness:max_plies=6,history=1", marks=pytest.mark.nightly)]
)
def test_openings_are_those_of_the_arena(name):
    """Each from both seats, A first behind it in the first half: also in EvoPawness, which player 1 begins."""
    game, began = envs.make(name), [[]]

    def move(start, actions, state):
        began[-1].append(list(actions))
        return int(np.flatnonzero(game.mask(state))[0])

    played = host_match.play_host_games(
        game, Guest("guest", move), make_player("random", game, 0), games=4, opening_plies=3, seed=4,
        tell=lambda done, lane: began.append([]),
    )  # fmt: skip
    anyone = make_player("random", game, 0)
    drawn = next(openings.make_openings(game, 2, 3, False)(jax.random.split(jax.random.key(4))[0]))
    same = arena.play_games(game, anyone, anyone, games=4, opening_plies=3, seed=4)
    there = [asked[0] for asked in began if asked]  # moves made when the guest was asked first
    assert [actions[:3] for actions in there] == np.repeat(drawn.moves, 2, axis=0).tolist()
    assert [len(actions) for actions in there] == [3, 4, 3, 4]
    assert played.opening.tolist() == openings.wide(drawn.code).tolist() == same.opening.tolist()


def test_who_passes_at_once_loses_or_wins_by_the_stones_there_are(program):
    """Two programs that only pass: without an opening White has all the komi."""
    passing = program(says("pass"))
    played = match(passing, passing, opening_plies=0)
    assert played.score.tolist() == [[0, 0], [1, 1]]  # A has Black in the first half
    assert (played.plies == 2).all()
    result = arena.result(passing, passing, played)
    assert (result.games, result.wins, result.losses, result.repeated) == (2, 1, 1, 2)


def test_resigning_loses(program):
    played = match(program(says("resign")), make_player("random", GAME, 0), games=6)
    assert (played.score == 0).all()
    assert played.plies.tolist() == [[2] * 3, [3] * 3]  # the other moves first in the second half


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("sys.exit(3)", "ended at 'genmove [bw]' with exit code 3"),
        ("time.sleep(1000)", "no answer to 'genmove [bw]' within 2 s"),
        ("os.close(1); time.sleep(1000)", "closed its output at 'genmove [bw]' but goes on"),
        (says("Z9"), "plays 'Z9' at move 3, which is not legal"),
        (says(""), "plays '' at move 3, which is not legal"),
        ("print('? I will not\\n', flush=True)", "answers 'genmove [bw]' with '. I will not'"),
        ("print('hello\\n', flush=True)", "answers 'genmove [bw]' with 'hello'"),
    ],
)
def test_a_program_that_fails_is_named_in_one_line(program, answer, words):
    failing = program(answer)
    began = time.monotonic()
    with pytest.raises(ValueError, match=words) as said:
        match(failing, make_player("random", GAME, 0), timeout=2.0)
    assert failing.name in str(said.value)
    assert "\n" not in str(said.value)
    assert time.monotonic() - began < 60


HEX_PROGRAM = """
import sys
for line in sys.stdin:
    print("heard", *line.split(), file=open(sys.argv[1], "a"))
    print("=", sys.argv[2] if line.startswith("genmove") else "", flush=True)
    print(flush=True)
"""


@pytest.mark.parametrize("swapper", [0, 1])
def test_a_swap_of_hex_is_told_as_the_position_after_it(tmp_path, swapper):
    """Red's b1 becomes Blue's a2 for both programs, whoever swaps; MoHex swaps by swap-pieces."""
    (tmp_path / "program.py").write_text(HEX_PROGRAM)
    table = host_match.HostGame(envs.make("hex:size=3"))
    heard = [tmp_path / name for name in ("red", "blue")]
    programs = [
        gtp_client.GtpProcess(Program("p", (sys.executable, f"{tmp_path}/program.py", str(file), "swap-pieces")), 20.0)
        for file in heard
    ]
    start = table.game.init()
    lane = host_match.Lane(0, 0, 0, [*programs], start, start, [])
    try:
        table.play(lane, table.game.parse_action("b1"), None)
        if swapper:
            programs[1].request(1)
            table.answer(lane, programs[1], 1)
        else:
            table.play(lane, table.game.parse_action("swap"), None)
        table.play(lane, table.game.parse_action("c3"), None)
    finally:
        lane.close()
    after = ["clear_board", "play w a2", "play b c3"]
    for i, file in enumerate(heard):
        said = [line.removeprefix("heard ") for line in file.read_text().splitlines()]
        assert said == ["play b b1", *(["genmove w"] if swapper and i else []), *after]
    assert table.game.show(lane.state).splitlines()[1:4] == [" 1  . . .", "  2  O . .", "   3  . . X"]


def test_a_match_stops_when_it_is_decided(program):
    looked = []
    played = match(program(says("resign")), make_player("random", GAME, 0), games=20,
                   stop=lambda pairs: looked.append(len(pairs)) or len(pairs) >= 3)  # fmt: skip
    assert played.score.shape == (2, looked[-1])
    assert 3 <= looked[-1] <= 7
    assert looked == sorted(looked)


def test_unknown_programs_and_other_games_are_refused(program):
    with pytest.raises(ValueError, match="there is no program 'no-such-engine'"):
        program_of(parse_player("gtp:no-such-engine --fast"))
    with pytest.raises(ValueError, match="there is no program ''"):
        program_of(parse_player("gtp:"))
    passing, game = program(says("pass")), envs.make("gomoku:size=5")
    with pytest.raises(ValueError, match="expected go, hex or othello for a GTP program, got gomoku:size=5"):
        host_match.play_host_games(game, passing, passing, games=2, opening_plies=0, seed=0)
    with pytest.raises(ValueError, match="play matches only"):
        make_player(passing.name, GAME, 8)


def test_a_guest_knows_the_moves_from_the_start():
    """Openings have three moves; what the guest is shown is what its moves lead to."""
    game, seen = envs.make("tictactoe"), []

    def move(start, actions, state):
        for action in actions:
            start = game.move(start, action)
        assert game.to_record(start) == game.to_record(state)
        seen.append(len(actions))
        return int(np.flatnonzero(game.mask(state))[0])

    guest = Guest("guest", move)
    reports = []
    options = {"games": 6, "opening_plies": 3, "seed": 1, "tell": lambda *said: reports.append(said)}
    played = host_match.play_host_games(game, guest, make_player("random", game, 0), **options)
    assert [done for done, _ in reports] == [1, 2, 3, 4, 5, 6]
    assert [lane.score for _, lane in reports] == played.score.T.ravel().tolist()
    assert {count for count in seen if count < 5} == {3, 4}  # first behind the opening in one half, second in the other
    with pytest.raises(ValueError, match="games for two; foq_multi.* is for 3"):
        host_match.play_host_games(envs.make("foq_multi"), guest, guest, games=3, opening_plies=0, seed=0)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("while True: print('chatter', flush=True)", "answers 'genmove b' with more than 1000 lines"),
        ("while True: print('chatter ' * 9999, end='', flush=True)", "answers 'genmove b' with more than 1000 lines"),
        ("while True: print('chatter', flush=True); time.sleep(0.3)", "no answer to 'genmove b' within 2 s"),
        ("while True: print(flush=True); time.sleep(0.3)", "no answer to 'genmove b' within 2 s"),
    ],
)
def test_a_program_that_floods_loses_the_match_at_its_deadline(program, answer, words):
    began = time.monotonic()
    with pytest.raises(ValueError, match=words):
        match(program(answer), make_player("random", GAME), timeout=2.0)
    assert time.monotonic() - began < 60


def test_what_a_flood_leaves_in_memory_is_bounded(program):
    """The program prints before it is asked; nothing is read, so it has to wait."""
    played = program("pass")
    flood = Program("flood", (sys.executable, "-c", "while True: print('x' * 10000)"))
    process = gtp_client.GtpProcess(flood, 1.0)
    time.sleep(1.0)
    assert process._lines.qsize() <= MOST_ANSWER_LINES
    process.close()
    assert played.name.startswith("gtp:")


def test_games_of_a_search_by_time_are_not_taken_for_repeated_ones():
    """Chance decides its play-outs, as it does those of uct:N."""
    moves = np.zeros((2, 3), np.uint64)
    by_time = [contestant(parse_player(name), GAME, 8, 0) for name in ("uct:0.1s", "prove:1024,uct:0.1s")]
    still = Guest("still", lambda *position: 0)
    assert [arena.codes(moves, 0, player, still).tolist() for player in by_time] == [[[0, 1, 2], [0, 1, 2]]] * 2
    assert arena.codes(moves, 0, still, still) is moves


def test_a_network_without_a_policy_plays_without_search_in_any_time(monkeypatch):
    asked = []
    generations = SimpleNamespace(recipe="value_generations")
    monkeypatch.setattr(players_file, "config_of", lambda spec: generations)
    player = SimpleNamespace(act=None, weights=None)
    monkeypatch.setattr(stateful, "make_player", lambda spec, game: asked.append(str(spec)) or player)
    stateful.make_mover("net@2s", GAME, 32, 5.0)
    assert asked == ["net@0"]
