"""The programs as people start them: training, resuming, evaluating, a stop by signal; bad input is one line."""

import dataclasses
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

import envs
from agents.arena import match as arena
from agents.arena import solve_commands
from agents.arena.solve_commands import Solved, looks
from agents.config import preset
from agents.players import players as players_file
from agents.players.players import usual_baselines
from agents.run.metrics import PROTO, Balance, Report
from agents.run.resume import load_run
from agents.runtime import mesh
from agents.storage import checkpoint
from agents.storage import weights as models

ROOT = pathlib.Path(__file__).parents[1]
TINY = [
    "--env=tictactoe",
    "--num_envs=16",
    "--num_simulations=4",
    "--channels=16",
    "--blocks=1",
    "--replay_capacity=400",
]


def start(*command, cwd):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, str(ROOT / command[0]), *command[1:]],
        cwd=cwd, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def call(*command, cwd):
    process = start(*command, cwd=cwd)
    output, errors = process.communicate(timeout=300)
    return process.returncode, output, errors


def metrics(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of three iterations, in a folder of its own."""
    home = tmp_path_factory.mktemp("home")
    code, output, errors = call("train.py", *TINY, "--iterations=3", "--out=runs/a", cwd=home)
    assert code == 0, errors
    return home, output, errors


def test_training_says_what_it_does(run):
    home, output, errors = run
    lines = [json.loads(line) for line in output.splitlines()]
    assert lines == metrics(home / "runs/a")
    assert [line["iteration"] for line in lines] == [1, 2, 3]
    wanted = {
        "games", "total_plies", "moves_per_second", "policy_loss", "value_loss", "policy_entropy", "draw_rate",
        "game_length", "value_error", "replay_age", "distinct_openings",
    }  # fmt: skip
    assert wanted <= set(lines[0])
    assert "networks/3" in errors
    assert "evaluate.py match runs/a random" in errors
    assert "train.py --resume=runs/a" in errors


def test_tensorboard_shows_the_same_numbers(run):
    """A record is its length and a checksum, 12 bytes, the event, and another checksum of 4 (TensorFlow's TFRecord)."""
    home, _, _ = run
    (file,) = (home / "runs/a/tensorboard").glob("events*")
    content, shown = file.read_bytes(), {}
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        event = PROTO.Event.FromString(content[12 : 12 + length])
        content = content[16 + length :]
        shown |= {(event.step, value.tag): value.simple_value for value in event.summary.value}
    told = {
        (line["iteration"], name): value
        for line in metrics(home / "runs/a")
        for name, value in line.items()
        if isinstance(value, int | float)
    }
    assert shown == pytest.approx(told, rel=1e-6)
    assert len(told) > 60


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


def test_a_value_that_is_not_learnt_is_told_once():
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


def test_a_value_that_is_learnt_by_heart_is_told_once():
    """Figures of a run of EvoPawness: what the buffer holds was learnt, of new games less was known than nothing."""
    figures = {"value_loss": 0.55, "value_baseline": 0.96, "value_target_rms": 0.99}
    balance = Balance()
    said = [balance.warning({**figures, "value_error": 1.08}) for _ in range(80)]
    (words,) = filter(None, said)
    assert said.index(words) == 29
    assert "foretold games worse than one that always says 0 (squared error 1.166, 0.980): it learns them by" in words
    assert not any(balance.warning({**figures, "value_error": None, "value_target_rms": None}) for _ in range(80))
    balance = Balance()
    assert not any(balance.warning({**figures, "value_error": 0.95}) for _ in range(80))


def test_a_position_is_proved(tmp_path):
    """Tic-tac-toe: who answers the centre at an edge loses; every reply but the one opposite wins."""
    asks = ("evaluate.py", "prove", "tictactoe", "--moves=b2 a2", "--all_moves")
    code, output, errors = call(*asks, "--json", cwd=tmp_path)
    assert code == 0, errors
    found = json.loads(output)
    assert (found["value"], found["to_move"], found["stopped"]) == (1, 0, None)
    assert found["moves"] == {move: 0 if move == "c2" else 1 for move in ("a1", "a3", "b1", "b3", "c1", "c2", "c3")}
    code, output, errors = call(*asks, cwd=tmp_path)
    assert code == 0, errors
    assert "X to move wins" in output
    assert [line.split() for line in output.splitlines() if "draws" in line] == [["draws", "1", "c2"]]


def test_solved_positions_are_counted(run):
    home, _, _ = run
    golden = ROOT / "tests/golden/tictactoe_solved.jsonl.gz"
    code, output, errors = call(
        "evaluate.py", "solved", "runs/a", str(golden), "--num_simulations=2", "--json", cwd=home
    )
    assert code == 0, errors
    found = json.loads(output)
    for look in (found, found["alone"], found["without_proofs"]):
        assert look["positions"] == 4520 == sum(part["positions"] for part in look["phases"].values())
        assert look["kept"] == sum(part["kept"] for part in look["phases"].values())
        assert look["share"] == pytest.approx(look["kept"] / 4520)
        assert look["phases"]["01 empty"]["share"] == 1  # a single legal move
    # The last two moves fit into two simulations.
    assert found["phases"]["02 empty"]["share"] >= found["without_proofs"]["phases"]["02 empty"]["share"]
    code, _, errors = call("evaluate.py", "solved", "runs/a", "nowhere.jsonl", cwd=home)
    assert code == 2
    assert errors.count("\n") == 1
    assert "nowhere.jsonl" in errors


def test_the_gate_lets_the_better_one_through(run):
    home, _, _ = run
    for players, verdict in ((("minimax:3", "random"), 0), (("random", "minimax:3"), 1)):
        options = ("--env=tictactoe", "--games=40", "--json")
        code, output, errors = call("evaluate.py", "gate", *players, *options, cwd=home)
        assert code == verdict, errors
        assert json.loads(output)["verdict"] == ("accepted", "rejected")[verdict]


def test_a_match_stops_once_it_is_decided(run):
    home, _, _ = run
    options = ("--env=tictactoe", "--games=2000", "--sprt", "0", "50", "--json")
    code, output, errors = call("evaluate.py", "match", "minimax:3", "random", *options, cwd=home)
    assert code == 0, errors
    found = json.loads(output)
    assert found["verdict"] == "stronger"
    assert found["openings"] > 1
    assert found["games"] < 2000


def test_a_ladder_rates_all_networks(run):
    home, _, _ = run
    golden = ROOT / "tests/golden/tictactoe_solved.jsonl.gz"
    options = ("--baselines", "random", "minimax:3", "--games=20", "--num_simulations=2", "--plot=ladder.svg")
    options = (*options, f"--solved={golden}")
    code, output, errors = call("evaluate.py", "ladder", "runs/a", *options, "--json", cwd=home)
    assert code == 0, errors
    found = json.loads(output)
    rows = found["ratings"]
    assert [row["player"] for row in rows] == ["random", "minimax:3", "runs/a/networks/3@2"]
    assert rows[0]["elo"] == 0
    assert rows[1]["elo"] > 100
    assert rows[2]["games"] > 0
    assert 0.3 < rows[2]["kept_alone"] <= 1
    assert 0.3 < rows[2]["kept"] <= 1
    for name in ("kept", "kept_alone"):
        low, high = rows[2][f"{name}_interval"]
        assert low <= rows[2][name] <= high < low + 0.05  # of 4520 positions
    assert [row["player"] for row in found["passed"]] == ["random", "minimax:3"]
    assert (home / "ladder.svg").read_text().count("<svg") == 1


def interrupt(folder, arguments, number=signal.SIGINT):
    """Starts a run, sends a signal once the first iteration is reported, and gives the last iteration."""
    process = start("train.py", *arguments, f"--out={folder.name}", cwd=folder.parent)
    limit = time.monotonic() + 120
    while not (folder / "metrics.jsonl").exists() or not (folder / "metrics.jsonl").read_text():
        assert time.monotonic() < limit
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return metrics(folder)[-1]["iteration"]


def test_stopping_and_resuming_equals_never_stopping(tmp_path):
    """The same figures, but for the time, in every iteration."""
    arguments = [*TINY, "--seed=5", "--iterations=300"]
    assert call("train.py", *arguments, "--out=whole", cwd=tmp_path)[0] == 0
    assert interrupt(tmp_path / "half", arguments) < 300
    code, _, errors = call("train.py", "--resume=half", cwd=tmp_path)
    assert code == 0, errors
    timed = lambda name: "seconds" in name or "minutes" in name or name in ("moves_per_second", "saved_iteration")
    plain = lambda name: [{k: v for k, v in d.items() if not timed(k)} for d in metrics(tmp_path / name)]
    assert plain("whole") == plain("half")
    assert (tmp_path / "whole/games.jsonl").read_bytes() == (tmp_path / "half/games.jsonl").read_bytes()
    whole, half = (checkpoint.find(tmp_path / name, "resume") for name in ("whole", "half"))
    config = checkpoint.about(whole)["config"]
    assert {"whole", "half"} == {config.out, checkpoint.about(half)["config"].out}
    devices = mesh.make_mesh(config.num_envs, config.batch_size)
    ends = [jax.tree.leaves(load_run(path, config, devices)) for path in (whole, half)]
    assert all(np.array_equal(x, y, equal_nan=True) for x, y in zip(*ends, strict=True))


def report(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "agents.run.report", *arguments],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True, capture_output=True, timeout=300,
    )  # fmt: skip


def test_a_page_about_value_generations(tmp_path):
    """The two plots of the tic-tac-toe article, and of the race to a sum the value of every total."""
    options = ("--recipe=value_generations", "--num_envs=64", "--channels=16", "--rating_games=8", "--iterations=3")
    code, _, errors = call("train.py", "--env=sum_to_100:target=20", *options, "--out=run", cwd=tmp_path)
    assert code == 0, errors
    done = report(str(tmp_path / "run"), str(tmp_path / "page.html"))
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    for title in ("Value loss", "Wins minus losses", "Value of every total"):
        assert f"<h3>{title}</h3>" in page
    assert "games held out" in page


def test_a_page_about_the_run(run, tmp_path):
    """All that the run measured, games as pictures, nothing from outside; a folder without a run is refused."""
    home, _, _ = run
    done = report(str(home / "runs/a"), str(tmp_path / "page.html"))
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    for title in (
        "Policy loss",
        "Value loss",
        "Results",
        "Game length",
        "Variety",
        "Speed",
        "Time by phase",
        "Calibration",
    ):
        assert f"<h3>{title}</h3>" in page
    assert "Wins minus losses" not in page  # these are for value generations
    assert len(re.findall(r"<h3>Iteration \d+: (?:X won|O won|drawn)</h3>", page)) == 3
    assert page.count("<figcaption>") >= 9 and page.count("<svg") >= 16
    assert not re.search(r"(src|href)=['\"]https?:|@import|url\(http", page)
    identifiers = re.findall(r'\bid="(p\d+[^"]*)"', page)
    assert len(identifiers) == len(set(identifiers))
    nothing = report(str(tmp_path))
    assert nothing.returncode == 2
    assert nothing.stderr.startswith("error:") and nothing.stderr.count("\n") == 1


def test_a_run_can_be_prolonged(run):
    home, _, _ = run
    code, output, errors = call("train.py", "--resume=runs/a", "--iterations=5", cwd=home)
    assert code == 0
    assert "another budget: 60% of it is used" in output + errors
    assert [line["iteration"] for line in metrics(home / "runs/a")] == [1, 2, 3, 4, 5]


def test_a_folder_is_one_run_s_alone(tmp_path):
    """While a process trains there nobody else begins or goes on; what was there before is kept under other names."""
    folder = tmp_path / "a"
    (folder / "tensorboard").mkdir(parents=True)
    (folder / "metrics.jsonl").write_text('{"iteration": 7}\n')
    (folder / "games.jsonl").write_text("{}\n")
    (folder / "games.jsonl.old").write_text("older\n")
    first = start("train.py", *TINY, "--iterations=1000000", "--checkpoint_minutes=0.01", "--out=a", cwd=tmp_path)
    try:
        limit = time.monotonic() + 120
        while not any(path.name.isdigit() for path in folder.glob("resume/*")):
            assert time.monotonic() < limit and first.poll() is None
            time.sleep(0.05)
        for options in ([*TINY, "--iterations=2", "--out=a"], ["--resume=a", "--iterations=2000000"]):
            code, _, errors = call("train.py", *options, cwd=tmp_path)
            assert code == 2
            assert "another process trains in a" in errors
    finally:
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=120)
    assert first.returncode == 0
    assert [line["iteration"] for line in metrics(folder)][:2] == [1, 2]
    kept = {path.name: path.read_text() for path in folder.glob("*.old*") if path.is_file()}
    assert kept == {"metrics.jsonl.old": '{"iteration": 7}\n', "games.jsonl.old": "older\n", "games.jsonl.old1": "{}\n"}
    assert (folder / "tensorboard.old").is_dir()


def test_a_run_begins_with_the_weights_of_another(run):
    """With next to no learning it ends with them; their sizes need not be given."""
    home, _, _ = run
    options = [option for option in TINY if not option.startswith(("--channels", "--blocks"))]
    code, _, errors = call(
        "train.py", *options, "--init_from=runs/a", "--learning_rate=1e-12", "--iterations=1", "--out=runs/c", cwd=home
    )
    assert code == 0, errors
    found = []
    for name in ("a", "c"):
        path = models.find(home / "runs" / name)
        config = models.about(path)["config"]
        found.append((config.channels, models.load(path, config)["params"]))
    assert found[0][0] == found[1][0] == 16
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-6), found[0][1], found[1][1])


def test_evaluating_a_run(run):
    home, _, _ = run
    code, output, errors = call(
        "evaluate.py", "match", "runs/a", "random", "--games=40", "--num_simulations=4", "--json", cwd=home
    )
    assert code == 0, errors
    result = json.loads(output)
    assert result["game"] == "tictactoe"
    assert result["wins"] + result["draws"] + result["losses"] == result["games"] == 40
    assert result["score_interval"][0] < result["score"] < result["score_interval"][1]


def test_sigterm_saves_and_exits_cleanly(tmp_path):
    last = interrupt(tmp_path / "a", [*TINY, "--iterations=1000000"], signal.SIGTERM)
    assert (tmp_path / f"a/resume/{last}").is_dir()
    assert (tmp_path / f"a/networks/{last}").is_dir()


def in_process(program, arguments, monkeypatch, capsys):
    """Runs a program's main here, which spares the start of Python; gives exit code and error text."""
    monkeypatch.setattr(sys, "argv", [program, *arguments])
    with pytest.raises(SystemExit) as stop:
        __import__(program.removesuffix(".py")).main()
    return stop.value.code, capsys.readouterr().err


def test_a_match_that_is_stopped_says_what_it_brought(monkeypatch, capsys):
    def stopped(*_, tell, **__):
        tell(np.array([1, 0.5, 0, 1]))
        raise KeyboardInterrupt

    monkeypatch.setattr(arena, "play_match", stopped)
    match = ["match", "random", "random", "--env=tictactoe", "--games=10"]
    code, said = in_process("evaluate.py", match, monkeypatch, capsys)
    assert code == 130
    assert "stopped after 4 of 10 games, the shorter ones first: 2 won, 1 drawn, 1 lost" in said


def test_a_ladder_that_was_stopped_goes_on(run, tmp_path, monkeypatch, capsys):
    """Matches that ended are not played again; the ratings are those of a ladder that was never stopped."""
    import shutil

    import evaluate

    real, played, most = arena.play_match, [], 1

    def play(game, a, b, **options):
        if len(played) == most:
            raise KeyboardInterrupt
        played.append(a.name)
        return real(game, a, b, **options)

    def rate(folder, *baselines):
        played.clear()
        options = ["--baselines", *baselines, "--games=20", "--num_simulations=0", "--networks=1"]
        monkeypatch.setattr(sys, "argv", ["evaluate.py", "ladder", str(folder), *options])
        try:
            code = evaluate.main() or 0
        except SystemExit as stop:
            code = stop.code
        return code, capsys.readouterr().err, len(played)

    monkeypatch.setattr(arena, "play_match", play)
    half, whole, moved = tmp_path / "half", tmp_path / "whole", tmp_path / "moved"
    shutil.copytree(run[0] / "runs/a", half, ignore=shutil.ignore_patterns("matches.jsonl", "ladder.json"))
    shutil.copytree(half, whole)
    code, said, _ = rate(half, "random", "greedy")
    assert code == 130
    assert "stopped after 1 of 3 matches" in said
    assert not (half / "ladder.json").exists()
    most = 9
    assert rate(half, "random", "greedy")[::2] == (0, 2)
    assert rate(whole, "random", "greedy")[::2] == (0, 3)
    half.rename(moved)
    elo = lambda folder: [row["elo"] for row in json.loads((folder / "ladder.json").read_text())["ratings"]]
    assert elo(moved) == elo(whole)
    code, said, matches = rate(moved, "random", "greedy")
    assert (code, matches) == (0, 0)
    assert said.startswith(f"3 of 3 matches were played before: {moved / 'matches.jsonl'}")
    assert rate(moved, "random", "minimax:2", "greedy")[::2] == (0, 3)  # those of minimax:2
    (moved / "matches.jsonl").write_text("{}\n")
    code, said, _ = rate(moved, "random", "greedy")
    assert code == 2
    assert "is not a file of matches" in said


BAD = {
    "unknown game": ("train.py", ["--env=chezz"], "known games"),
    "unknown game option": ("train.py", ["--env=foq:size=3"], "known options: rows"),
    "small board": ("train.py", ["--env=foq:rows=1"], "too small"),
    "unknown option": ("train.py", ["--bogus=1"], "--bogus"),
    "no games": ("train.py", ["--num_envs=0"], "--num_envs must be at least 1"),
    "weights of nothing": ("train.py", ["--init_from=nowhere"], "nowhere does not exist"),
    "no such devices": ("train.py", ["--devices=99"], "--devices=99: must be from 1"),
    "no number": ("train.py", ["--num_envs=many"], "num_envs"),
    "no choice": ("train.py", ["--search=alphabeta"], "gumbel"),
    "nothing to resume": ("train.py", ["--resume=nowhere"], "nowhere does not exist"),
    "folder that cannot be": ("train.py", ["--out=/proc/none/run"], "/proc/none"),
    "unknown player": ("evaluate.py", ["match", "alice", "random"], "unknown player 'alice'"),
    "odd number of games": ("evaluate.py", ["match", "random", "random", "--games=3"], "even number"),
    "no runs": ("evaluate.py", [], "train one first"),
    "unknown command": ("evaluate.py", ["mach", "a", "b"], "match"),
    "rating of three": ("train.py", ["--env=foq_multi", "--rating_games=64"], "--rating_games must be a multiple of 3"),
    "proof for three": ("evaluate.py", ["prove", "foq_multi"], "proofs are for games of two players"),
    "illegal move": ("evaluate.py", ["prove", "tictactoe", "--moves=b2 b2"], "move 2: 'b2' is not legal here"),
    "minimax for three": (
        "evaluate.py",
        ["match", "minimax:2", "random", "--env=foq_multi"],
        "minimax:2 is for two players; foq_multi:",
    ),
    "no room": ("evaluate.py", ["prove", "tictactoe", "--positions=5"], "--positions must be at least 512"),
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


def test_bad_use_of_a_run(run, monkeypatch, capsys):
    """Nothing is lost: the run's files stay as they are."""
    home, _, _ = run
    monkeypatch.chdir(home)
    before = sorted((p, p.stat().st_mtime_ns) for p in (home / "runs/a").rglob("*"))
    for program, arguments, words in (
        ("train.py", [*TINY, "--out=runs/a"], "holds a run already"),
        ("train.py", ["--resume=runs/a", "--num_envs=8"], "--num_envs (was 16) cannot change"),
        ("train.py", ["--resume=runs/a", "--env=foq"], "--env (was tictactoe) cannot change"),
        ("train.py", ["--resume=runs/a", "--iterations=2"], "budget"),
        ("evaluate.py", ["match", "runs/a", "random", "--env=foq"], "is a network for tictactoe"),
    ):
        code, errors = in_process(program, arguments, monkeypatch, capsys)
        assert (code, len(errors.strip().splitlines())) == (2, 1)
        assert words in errors
    assert before == sorted((p, p.stat().st_mtime_ns) for p in (home / "runs/a").rglob("*"))


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
    monkeypatch.setattr(solve_commands, "game_of", lambda spec: game.name if spec.startswith("net") else None)
    config = dataclasses.replace(preset(game, "cpu"), recipe=recipe)
    for file in (solve_commands, players_file):
        monkeypatch.setattr(file, "config_of", lambda spec: config)
    monkeypatch.setattr(solve_commands, "make_player", lambda spec, *_, **__: spec)
    found = looks(Solved(spec, tmp_path), game)
    assert list(found) == names
    assert found.get("alone", "net") == "net"


def test_players_of_a_table_have_openings_of_their_own_in_every_match():
    from agents.arena import ladder

    seeds = {ladder.seed_of(seed, a, b) for seed in range(3) for a in "abcde" for b in "abcde"}
    assert len(seeds) == 75


def test_baselines_that_the_game_has():
    assert usual_baselines(envs.make("tictactoe")) == ("random", "minimax:2", "uct:100")
    assert usual_baselines(envs.make("foq_multi")) == ("random", "uct:100")


def test_a_damaged_run_is_named(run, tmp_path, monkeypatch, capsys):
    home, _, _ = run
    import shutil

    shutil.copytree(home / "runs/a", tmp_path / "b")
    for file in (p for p in (tmp_path / "b").glob("*/*/*/**/*") if p.is_file()):
        file.write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    for program, arguments in (("train.py", ["--resume=b"]), ("evaluate.py", ["match", "b", "random"])):
        code, errors = in_process(program, arguments, monkeypatch, capsys)
        assert code == 2
        assert "damaged" in errors
        assert len(errors.strip().splitlines()) == 1
