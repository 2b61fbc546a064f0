"""The programs as people start them: training, resuming, evaluating, a stop by signal, bad use of a run."""

import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import jax
import numpy as np
import pytest
from in_process import in_process

from agents.arena import match as arena
from agents.run.metrics import PROTO
from agents.run.resume import load_run
from agents.runtime import mesh
from agents.storage import checkpoint
from agents.storage import weights as models

ROOT = pathlib.Path(__file__).parents[2]
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


def take_terminal():
    """Makes standard input the terminal that can hang up the process."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


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
    assert output == ""
    lines = metrics(home / "runs/a")
    assert [line["iteration"] for line in lines] == [1, 2, 3]
    wanted = {
        "games", "total_plies", "moves_per_second", "policy_loss", "value_loss", "policy_entropy", "draw_rate",
        "game_length", "value_error", "replay_age", "distinct_openings",
    }  # fmt: skip
    assert wanted <= set(lines[0])
    assert "iteration 1, " in errors
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
    expected = {
        (line["iteration"], name): value
        for line in metrics(home / "runs/a")
        for name, value in line.items()
        if isinstance(value, int | float)
    }
    assert shown == pytest.approx(expected, rel=1e-6)
    assert len(expected) > 60


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


@pytest.mark.nightly
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
    baselines = ("random", "minimax:3", f"{ROOT}/models/tictactoe@0")  # a network, which is none of the run
    options = ("--games=20", "--num_simulations=2", "--plot=ladder.svg", f"--solved={golden}")
    options = ("--baselines", *baselines, *options)
    code, output, errors = call("evaluate.py", "ladder", "runs/a", *options, "--json", cwd=home)
    assert code == 0, errors
    found = json.loads(output)
    rows = found["ratings"]
    assert [row["player"] for row in rows] == [*baselines, "runs/a/networks/3@2"]
    assert rows[0]["elo"] == 0
    assert rows[1]["elo"] > 100
    assert rows[3]["games"] > 0
    assert 0.3 < rows[3]["kept_alone"] <= 1
    assert 0.3 < rows[3]["kept"] <= 1
    for name in ("kept", "kept_alone"):
        low, high = rows[3][f"{name}_interval"]
        assert low <= rows[3][name] <= high < low + 0.05  # of 4520 positions
    assert [row["player"] for row in found["passed"]] == list(baselines)
    assert found["passed"][2]["minutes"] is None  # three iterations do not surpass the perfect network
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
    whole, half = (checkpoint.find_checkpoint(tmp_path / name, "resume") for name in ("whole", "half"))
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


@pytest.mark.nightly
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
    assert "new budget: 60% of it is used" in output + errors
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
        path = models.find_network(home / "runs" / name)
        config = models.about(path)["config"]
        found.append((config.channels, models.load_arrays(path, config)["params"]))
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


def test_closing_the_terminal_saves(tmp_path):
    """A closed window or a lost connection: the signal comes, and nothing more can be written to the terminal."""
    keyboard, screen = pty.openpty()
    command = [sys.executable, str(ROOT / "train.py"), *TINY, "--iterations=1000000", "--out=a"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"},
        start_new_session=True, stdin=screen, stdout=screen, stderr=screen, preexec_fn=take_terminal,
    )  # fmt: skip
    os.close(screen)
    limit = time.monotonic() + 120
    while not (tmp_path / "a/metrics.jsonl").exists() or not (tmp_path / "a/metrics.jsonl").read_text():
        assert process.poll() is None and time.monotonic() < limit
        if select.select([keyboard], [], [], 0.1)[0]:
            os.read(keyboard, 65536)
    os.close(keyboard)
    assert process.wait(120) == 0
    last = metrics(tmp_path / "a")[-1]["iteration"]
    assert (tmp_path / f"a/resume/{last}").is_dir()


@pytest.mark.nightly
def test_a_ladder_that_was_stopped_goes_on(run, tmp_path, monkeypatch, capsys):
    """Matches that ended are not played again; the ratings are those of a ladder that was never stopped."""
    import shutil

    import evaluate

    real, played, most = arena.play_games, [], 1

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

    monkeypatch.setattr(arena, "play_games", play)
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
        ("evaluate.py", ["match", "runs/a", "random", "--env=foq"], "got one for tictactoe"),
    ):
        code, errors = in_process(program, arguments, monkeypatch, capsys)
        assert (code, len(errors.strip().splitlines())) == (2, 1)
        assert words in errors
    assert before == sorted((p, p.stat().st_mtime_ns) for p in (home / "runs/a").rglob("*"))


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


@pytest.mark.parametrize("program", ["train.py", "play.py"])
def test_help_is_short_and_complete_on_request(program):
    environment = os.environ | {"COLUMNS": "100"}

    def say(flag: str) -> list[str]:
        command = [sys.executable, program, "--env=tictactoe", flag]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    brief, full = say("--help"), say("--help-all")
    assert len(brief) <= 200 and len(brief) < len(full)
    options = [{word for line in said for word in line.split() if word.startswith("--")} for said in (brief, full)]
    assert {word.rstrip(",") for word in options[0]} <= {word.rstrip(",") for word in options[1]}
