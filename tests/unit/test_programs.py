"""What the programs say, without starting any: bad input is one line, a run reports what goes wrong."""

import dataclasses
import json

import numpy as np
import pytest
from in_process import in_process

import envs
from agents.arena import match as arena
from agents.arena import solve_commands
from agents.arena.solve_commands import Solved, looks
from agents.config import preset
from agents.players import players as players_file
from agents.players.players import usual_baselines
from agents.run.metrics import Balance, Report
from agents.run.options import training


def test_the_bar_shows_phase_rate_rating_and_the_time_left(tmp_path):
    report = Report(tmp_path, 0, 0.0)
    said = lambda: " ".join(report.bar.tasks[0].description.split())
    assert said() == "compiling"
    report.phase("self-play")
    assert said() == "self-play"
    figures = {"iteration": 3, "moves_per_second": 512.4, "rating": 41.2, "policy_loss": 1.5, "minutes_left": 61.7}
    report.iteration(figures, 0.25)
    report.phase("learning")
    assert said() == "learning iteration 3, 512 moves/s, rating 41"
    assert report.bar.tasks[0].completed == 0.25
    report.phase("match")
    assert said() == "match iteration 3, 512 moves/s, rating 41"
    left = lambda: report.bar.tasks[0].fields["left"]
    assert left() == "62 min left"
    report.iteration(figures | {"minutes_left": 0.4}, 0.9)
    assert left() == "24 s left"
    report.close()


def test_a_value_that_is_not_learned_is_told_once():
    tell = lambda loss, baseline, count: [
        said for _ in range(count) if (said := balance.warning({"value_loss": loss, "value_baseline": baseline}))
    ]
    balance = Balance()
    assert tell(None, None, 10) == []  # before the first update
    assert tell(0.99, 1.0, 29) == []
    (said,) = tell(0.99, 1.0, 50)
    assert said.startswith("warning: in 30 iterations the value head did no better than one that always says 0 (value")
    assert "0.990 of 1.000" in said
    balance = Balance()
    assert tell(1.1, 1.0, 10) + tell(0.8, 1.0, 50) == []  # slow, but it learns
    balance = Balance()
    assert tell(0.05, 0.05, 50) == []  # nearly all games are drawn


def test_a_value_that_is_overfitted_is_told_once():
    """Figures of a run of EvoPawness: what the buffer holds was learned, of new games less was known than nothing."""
    figures = {"value_loss": 0.55, "value_baseline": 0.96, "value_target_rms": 0.99}
    balance = Balance()
    said = [balance.warning({**figures, "value_error": 1.08}) for _ in range(80)]
    (words,) = filter(None, said)
    assert said.index(words) == 29
    assert "predicted new games worse than one that always says 0 (squared error 1.166, 0.980)" in words
    assert not any(balance.warning({**figures, "value_error": None, "value_target_rms": None}) for _ in range(80))
    balance = Balance()
    assert not any(balance.warning({**figures, "value_error": 0.95}) for _ in range(80))


def test_a_match_that_is_stopped_says_what_it_brought(monkeypatch, capsys):
    def stopped(*_, tell, **__):
        tell(np.array([1, 0.5, 0, 1]))
        raise KeyboardInterrupt

    monkeypatch.setattr(arena, "play_games", stopped)
    match = ["match", "random", "random", "--env=tictactoe", "--games=10"]
    code, said = in_process("evaluate.py", match, monkeypatch, capsys)
    assert code == 130
    assert "stopped after 4 of 10 games, the shorter ones first: 2 won, 1 drawn, 1 lost" in said


BAD = {
    "unknown game": ("train.py", ["--env=chezz"], "known games"),
    "unknown game option": ("train.py", ["--env=foq:size=3"], "known options: rows"),
    "small board": ("train.py", ["--env=foq:rows=1"], "too small"),
    "unknown option": ("train.py", ["--bogus=1"], "--bogus"),
    "no games": ("train.py", ["--num_envs=0"], "--num_envs: expected 1"),
    "weights of nothing": ("train.py", ["--init_from=nowhere"], "nowhere does not exist"),
    "no such devices": ("train.py", ["--devices=99"], "--devices=99: expected 1"),
    "no number": ("train.py", ["--num_envs=many"], "num_envs"),
    "no choice": ("train.py", ["--search=alphabeta"], "gumbel"),
    "nothing to resume": ("train.py", ["--resume=nowhere"], "nowhere does not exist"),
    "folder that cannot be": ("train.py", ["--out=/proc/none/run"], "/proc/none"),
    "unknown player": ("evaluate.py", ["match", "alice", "random"], "unknown player 'alice'"),
    "odd number of games": ("evaluate.py", ["match", "random", "random", "--games=3"], "even number"),
    "no runs": ("evaluate.py", [], "train one first"),
    "unknown command": ("evaluate.py", ["mach", "a", "b"], "match"),
    "rating of three": (
        "train.py",
        ["--env=foq_multi", "--rating_games=64"],
        "--rating_games: expected a multiple of 3",
    ),
    "proof for three": ("evaluate.py", ["prove", "foq_multi"], "proofs are for games of two players"),
    "illegal move": ("evaluate.py", ["prove", "tictactoe", "--moves=b2 b2"], "move 2: 'b2' is not legal here"),
    "minimax for three": (
        "evaluate.py",
        ["match", "minimax:2", "random", "--env=foq_multi"],
        "minimax:2 is for two players; foq_multi:",
    ),
    "no network in a ladder": ("evaluate.py", ["ladder", "nowhere", "--networks=0"], "--networks: expected 1 to"),
    "a plot of no format": ("evaluate.py", ["ladder", "nowhere", "--plot=x.xyz"], "ends in .png or .svg, got x.xyz"),
    "a plot nowhere": ("evaluate.py", ["ladder", "nowhere", "--plot=no/x.svg"], "there is no folder no"),
    "an unset variable": ("train.py", ["--resume="], "expected a value after --resume=, got nothing"),
    "an empty word": ("train.py", ["--resume", ""], "expected a value after --resume, got nothing"),
    "every address": ("play.py", ["--host="], "expected a value after --host=, got nothing"),
    "markup in a folder": ("evaluate.py", ["match", "o[/b]", "random"], "unknown player 'o[/b]'"),
    "a word without its value": ("train.py", ["--init_from", "--seed=1"], "--init_from"),
    "no room": ("evaluate.py", ["prove", "tictactoe", "--positions=5"], "--positions: expected 512"),
}


@pytest.mark.parametrize(("program", "arguments", "words"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_code_2(program, arguments, words, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    code, errors = in_process(program, arguments, monkeypatch, capsys)
    assert code == 2
    assert words in errors
    assert "parsing Training" not in errors
    assert len(errors.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_exact_is_not_asked_about_positions_that_cannot_come_up(monkeypatch, capsys, tmp_path):
    """White's queen is in the middle, but the corner in which it began is not ripped."""
    path = tmp_path / "odd.jsonl"
    record = {"variant": "foq", "rows": 3, "cols": 3, "ripped": [4, 8], "queens": [4, 8], "to_move": 0, "optimal": [0]}
    path.write_text(json.dumps(record))
    arguments = ["solved", "exact", str(path), "--env=foq:rows=3,cols=3"]
    code, errors = in_process("evaluate.py", arguments, monkeypatch, capsys)
    assert (code, len(errors.strip().splitlines())) == (2, 1)
    assert "exact: 1 position of" in errors


@pytest.mark.parametrize(
    ("spec", "recipe", "env", "names"),
    [
        ("net", "ours", "tictactoe", ["player", "alone", "without_proofs"]),
        ("net@0", "ours", "tictactoe", ["player"]),
        ("net", "value_generations", "tictactoe", ["player"]),  # the network alone, unless it is told to search
        ("net@8", "value_generations", "tictactoe", ["player", "alone", "without_proofs"]),
        ("net", "ours", "foq_multi", ["player", "alone"]),  # proofs are for two players
        ("uct:8", "ours", "tictactoe", ["player"]),
    ],
)
def test_no_player_is_listed_under_two_names(spec, recipe, env, names, monkeypatch, tmp_path):
    game = envs.make(env)
    config = dataclasses.replace(preset(game, "cpu"), recipe=recipe)
    for file in (solve_commands, players_file):
        monkeypatch.setattr(file, "config_of", lambda spec: config)
    monkeypatch.setattr(solve_commands, "make_player", lambda spec, *_, **__: str(spec))
    found = looks(Solved(spec, tmp_path), game)
    assert list(found) == names
    assert found.get("alone", "net@0") == "net@0"


def test_players_of_a_table_have_openings_of_their_own_in_every_match():
    from agents.arena import ladder

    seeds = {ladder.seed_of(seed, a, b) for seed in range(3) for a in "abcde" for b in "abcde"}
    assert len(seeds) == 75


def test_baselines_that_the_game_has():
    assert usual_baselines(envs.make("tictactoe")) == ("random", "minimax:2", "uct:100")
    assert usual_baselines(envs.make("foq_multi")) == ("random", "uct:100")


APART = {
    "half of it": (["--coordinator=127.0.0.1:1"], "expected auto, or HOST:PORT with --num_processes and --process_id"),
    "no port": (["--coordinator=there", "--num_processes=2", "--process_id=0"], "expected auto, or HOST:PORT"),
    "one too many": (["--coordinator=a:1", "--num_processes=2", "--process_id=2"], "expected 0 to 1"),
    "no coordinator": (["--num_processes=2", "--process_id=1"], "need --coordinator=HOST:PORT"),
    "both ways": (["--coordinator=auto", "--num_processes=2"], "leave them out"),
    "no number": (["--coordinator=a:1", "--num_processes=two"], "expected whole numbers, got two"),
}


@pytest.mark.parametrize("case", APART)
def test_processes_that_cannot_meet_are_told_why(case):
    """Before any of them waits for another."""
    options, message = APART[case]
    with pytest.raises(ValueError, match=message):
        training(options)
