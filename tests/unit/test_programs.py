"""What the programs say, without starting any: bad input is one line, a run reports what goes wrong."""

import dataclasses
import io
import json
import pathlib
import signal
import sys

import numpy as np
import pytest
from in_process import in_process

import envs
import evaluate
from agents.arena import match as arena
from agents.arena import solve_commands
from agents.arena.solve_commands import Solved, looks
from agents.config import Config, preset
from agents.players import players as players_file
from agents.players.players import usual_baselines
from agents.run import loop
from agents.run import progress as progress_file
from agents.run import report as report_file
from agents.run.metrics import Balance, Report
from agents.run.options import training
from agents.run.progress import Progress
from agents.runtime import cli
from evaluate import Command

FIGURES = {
    "iteration": 12345, "plies": 4096, "moves_per_second": 51234.4, "total_games": 1234567, "total_plies": 98765432,
    "policy_loss": 1.2344, "target_entropy": 0.9871, "value_loss": 0.4567, "value_baseline": 0.9602,
    "game_length": 34.51, "draw_rate": 0.123, "rating": 1041.2, "skipped_updates": 2, "minutes_left": 1061.7,
}  # fmt: skip


def drawn(progress: Progress, width: int) -> str:
    out = io.StringIO()
    cli.console(file=out, width=width).print(progress.rows())
    return out.getvalue()


def test_the_rows_of_a_run_fit_a_narrow_terminal(tmp_path):
    """All figures, losses with what they are measured by, in few rows of at most 80 columns; no row is wrapped."""
    progress = Progress(cli.console(file=io.StringIO(), width=80), 0.25)
    progress.phase = "compiling"
    first = drawn(progress, 80).splitlines()
    assert len(first) == 1
    assert first[0].startswith("compiling") and first[0].rstrip().endswith("25%  0:00")
    progress.phase, progress.figures = "self-play", FIGURES
    rows = drawn(progress, 80)
    assert len(rows.splitlines()) == 7
    assert max(map(len, rows.splitlines())) < 80
    words = ("1,234,567 games", "51,234 moves/s", "1.234", "floor 0.987", "0.457", "0.960", "+1041 Elo", "1062 min")
    assert [word for word in words if word not in rows] == []
    progress.console.width = 40
    assert len(drawn(progress, 40).splitlines()) == 7
    progress.figures = {**FIGURES, "minutes_left": 0.4, "rating": None, "policy_loss": None, "value_loss": None}
    progress.console.width = 80
    assert "24 s left" in drawn(progress, 80)
    assert "Elo" not in drawn(progress, 80)


def test_a_line_of_the_log_comes_every_minute(tmp_path, monkeypatch, capsys):
    clock = [1000.0]
    monkeypatch.setattr(progress_file.time, "monotonic", lambda: clock[0])
    report, lines = Report(tmp_path, 0, 0.0), []
    for number in range(1, 11):
        clock[0] += 20
        figures = FIGURES | {"iteration": number, "rating": 41.2, "minutes_left": 10.0 - number}
        report.iteration(figures, number / 10)
        out, err = capsys.readouterr()
        assert out == ""
        lines += [line for line in err.splitlines() if line]
    report.close()
    assert [line.split(",")[0] for line in lines] == ["iteration 1", "iteration 4", "iteration 7", "iteration 10"]
    assert lines[2].endswith("51234 moves/s, policy loss 1.234, value loss 0.457, rating 41, 3 min left")
    assert max(map(len, lines)) < 100


def test_time_left_by_hand():
    """Half a minute an iteration of late, however long the run has compiled: 20 of them, or the rest of the minutes."""
    both = Config(iterations=30, minutes=60.0)
    assert loop.minutes_left(dataclasses.replace(both, minutes=None), 10, 50.0, [0.4, 0.6]) == pytest.approx(10)
    assert loop.minutes_left(dataclasses.replace(both, iterations=None), 10, 50.0, [0.4, 0.6]) == 10
    assert loop.minutes_left(both, 10, 57.0, [0.4, 0.6]) == 3
    assert loop.minutes_left(both, 31, 61.0, [0.5]) == 0


def test_curves_of_long_runs_are_means_by_games():
    """601 iterations become 201 points of three, the last one of one. An iteration without games counts as one."""
    rows = [{"iteration": i, "games": i % 3, "draw_rate": float(i % 3 == 2), "rating": None} for i in range(601)]
    found = report_file.averaged(rows, ["draw_rate", "rating"])
    assert len(found) == 201
    assert found[0] == {"iteration": 2, "draw_rate": 2 / 4, "rating": None}
    assert found[-1] == {"iteration": 600, "draw_rate": 0.0, "rating": None}
    assert report_file.averaged(rows[:300], ["draw_rate"]) == rows[:300]


def test_a_value_that_is_not_learned_is_told_once():
    figures = lambda loss, baseline: {"value_loss": loss, "value_baseline": baseline, "plies": 4096}
    tell = lambda loss, baseline, count: [
        said for _ in range(count) if (said := balance.warning(figures(loss, baseline)))
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


def test_short_iterations_are_watched_for_more_of_them():
    """120,000 moves are 235 iterations of 512."""
    figures = {"value_loss": 0.99, "value_baseline": 1.0, "plies": 512}
    balance = Balance()
    said = [balance.warning(figures) for _ in range(300)]
    (words,) = filter(None, said)
    assert said.index(words) == 234
    assert "in 235 iterations" in words


def test_a_value_that_is_overfitted_is_told_once():
    """Figures of a run of EvoPawness: what the buffer holds was learned, of new games less was known than nothing."""
    figures = {"value_loss": 0.55, "value_baseline": 0.96, "value_target_rms": 0.99, "plies": 4096}
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
    assert "stopped after 4 of 10 games, of which short ones end first: 2 won, 1 drawn, 1 lost" in said


README = pathlib.Path(__file__).parents[2] / "README.md"
BAD = {
    "unknown game": ("train.py", ["--env=chezz"], "known games"),
    "unknown game option": ("train.py", ["--env=foq:size=3"], "known options: rows"),
    "small board": ("train.py", ["--env=foq:rows=1"], "too small"),
    "unknown option": ("train.py", ["--bogus=1"], "--bogus"),
    "no games": ("train.py", ["--num_envs=0"], "--num_envs: expected 1"),
    "a proof file without a share": ("train.py", ["--proof_file=x.npz"], "--proof_file needs --proof_share"),
    "weights of nothing": ("train.py", ["--init_from=nowhere"], "nowhere does not exist"),
    "an option with hyphens": ("train.py", ["--num-processes=x"], "and --process_id: expected whole numbers, got x"),
    "no such devices": ("train.py", ["--devices=99"], "--devices=99: expected 1"),
    "no number": ("train.py", ["--num_envs=many"], "num_envs"),
    "no choice": ("train.py", ["--search=alphabeta"], "gumbel"),
    "nothing to resume": ("train.py", ["--resume=nowhere"], "nowhere does not exist"),
    "folder that cannot be": ("train.py", ["--out=/proc/none/run"], "/proc/none"),
    "unknown player": ("evaluate.py", ["match", "alice", "random"], "unknown player 'alice'"),
    "odd number of games": ("evaluate.py", ["match", "random", "random", "--games=3"], "even number"),
    "no runs": ("evaluate.py", [], "train one first"),
    "unknown command": ("evaluate.py", ["mach", "a", "b"], "expected one of the commands match, "),
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
    "an option by another name": ("train.py", ["--lr=0.1"], "unknown option --lr; perhaps --learning_rate is meant"),
    "a switch with a value": ("train.py", ["--pooling=false"], "--pooling: expected no value, got false"),
    "one number in place of two": ("evaluate.py", ["match", "a", "b", "--sprt", "5"], "--sprt: expected two numbers"),
    "a misspelt player": ("evaluate.py", ["match", "randm", "random"], "perhaps random is meant"),
    "a seat on the page": ("play.py", ["--seat=2"], "--seat is for --ui=text"),
    "a word without its value": (
        "train.py",
        ["--init_from", "--seed=1"],
        "--init_from: expected a value, got nothing",
    ),
    "a word in place of a number": ("train.py", ["--minutes=abc"], "--minutes: expected a number, got abc"),
    "a fraction": ("train.py", ["--iterations=1.5"], "--iterations: expected a whole number, got 1.5"),
    "powers of ten": ("train.py", ["--num_envs=1e9"], "--num_envs: expected a whole number, got 1e9"),
    "another interface": ("play.py", ["--ui=txt"], "--ui: expected one of 'web', 'text', 'gtp', got 'txt'"),
    "no players": ("evaluate.py", ["match"], "evaluate.py match: expected A and B, got neither"),
    "one player": ("evaluate.py", ["gate", "random"], "evaluate.py gate: expected BEST, got nothing"),
    "a misspelt option": ("train.py", ["--iteration=4"], "unknown option --iteration=4; perhaps --iterations is meant"),
    "no such option": ("train.py", ["--num_sims=3"], "unknown option --num_sims=3; --help lists all"),
    "a game without its option": ("train.py", ["tictactoe"], "expected options such as --env=foq, got 'tictactoe'"),
    "a document for a game": ("train.py", [f"--env={README}"], "expected a file that ends in .py, got"),
    "no room": ("evaluate.py", ["prove", "tictactoe", "--positions=5"], "--positions: expected 512"),
}


@pytest.mark.parametrize("columns", [None, 40, 200])
@pytest.mark.parametrize(("program", "arguments", "words"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_code_2(program, arguments, words, columns, monkeypatch, capsys, tmp_path):
    """Printed to a file, and on a terminal of that many columns, where tyro adds colours."""
    monkeypatch.chdir(tmp_path)
    if columns:
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    code, errors = in_process(program, arguments, monkeypatch, capsys)
    assert code == 2
    assert words in errors
    assert "parsing Training" not in errors
    assert len(errors.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["match", "--help"], ["--help"]])
def test_help_breaks_lines_between_words(arguments, monkeypatch, capsys):
    """Those above the boxes too: as words they are the same in lines of any length."""
    monkeypatch.setattr(sys, "argv", ["evaluate.py"])

    def above(columns: int) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit, match="0"):
            cli.parse_command(Command, arguments, description=evaluate.__doc__)
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= columns
        return " ".join(lines).split("usage:")[1].split(" positional arguments ")[0].split(" options  ")[0].split()

    assert len(above(60)) > 20
    assert above(60) == above(1000)


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


@pytest.mark.parametrize(("handler", "heard"), [(signal.SIG_IGN, False), (signal.SIG_DFL, True)])
def test_a_closed_terminal_ends_a_run_unless_nohup_started_it(handler, heard):
    before = signal.signal(signal.SIGHUP, handler)
    try:
        assert (signal.SIGHUP in loop.stop_signals()) == heard
    finally:
        signal.signal(signal.SIGHUP, before)


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
