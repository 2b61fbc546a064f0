"""Runs that are killed, run out of disk or diverge; and the preflight that goes before them."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import threading

import pytest
from flipped import turned
from programs import FOREVER, INTERVAL, TINY, Program, end_all, kill_and_go_on, last_saved, metrics

import envs
from agents.config import preset
from agents.run import loop, preflight
from agents.run.options import training
from agents.search import tree as tree_search
from agents.storage import checkpoint
from agents.training import algorithms

# The programs


@pytest.fixture(autouse=True)
def nothing_goes_on():
    """A test that fails leaves no program behind."""
    yield
    end_all()


@pytest.mark.nightly
def test_three_kills(tmp_path):
    kill_and_go_on(tmp_path, 3, seed=0)


class Limits:
    """Without any rights: as on a full disk no file may grow beyond 8 kB, and as in a folder that cannot be written to
    none can be made where checkpoints go."""

    def __init__(self, home: pathlib.Path):
        self.resume, self.elsewhere = home / "run/resume", home / "elsewhere"

    def fill(self, program: Program) -> None:
        _, self.hard = resource.prlimit(program.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(program.process.pid, resource.RLIMIT_FSIZE, (8192, self.hard))

    def empty(self, program: Program) -> None:
        resource.prlimit(program.process.pid, resource.RLIMIT_FSIZE, (self.hard, self.hard))

    def lock(self) -> None:
        self.resume.rename(self.elsewhere)
        self.resume.write_text("a file where a folder should be")

    def unlock(self) -> None:
        self.resume.unlink()
        self.elsewhere.rename(self.resume)

    def close(self) -> None:
        pass


class SmallDisk:
    """A file system of 8 MB in memory, with the right to mount one: filled to the last byte, and read-only."""

    def __init__(self, home: pathlib.Path):
        self.home, self.filler = home, home / "filler"
        made = self.mount("-t", "tmpfs", "-o", "size=8m", "none", home)
        if made.returncode:
            pytest.skip(f"no right to mount a file system: {made.stderr.strip()}")

    def mount(self, *arguments) -> subprocess.CompletedProcess:
        return subprocess.run(["mount", *map(str, arguments)], capture_output=True, text=True)

    def fill(self, program: Program) -> None:
        with contextlib.suppress(OSError), self.filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def empty(self, program: Program) -> None:
        self.filler.unlink()

    def lock(self) -> None:
        """What is open stays open; whatever is opened from now on is found on a mount that is read-only."""
        run, aside = self.home / "run", self.home / "aside"
        aside.mkdir()
        # A mount through which a file is being written cannot be made read-only, so it is made where nobody writes.
        for steps in (("--bind", run, aside), ("-o", "remount,bind,ro", aside), ("--bind", aside, run)):
            done = self.mount(*steps)
            assert not done.returncode, done.stderr

    def unlock(self) -> None:
        subprocess.run(["umount", self.home / "run", self.home / "aside"], check=True)

    def close(self) -> None:
        while os.path.ismount(self.home):
            subprocess.run(["umount", "--recursive", self.home], check=True)


@pytest.fixture(params=[Limits, SmallDisk])
def disk(request, tmp_path):
    made = request.param(tmp_path)
    yield made
    end_all()  # who still writes there
    made.close()


def test_a_full_disk_and_a_folder_that_cannot_be_written_to(tmp_path, disk):
    """The run says so, goes on, and saves when there is room again; with a folder that is locked it goes on until it is
    to end, and names what it leaves."""
    folder = tmp_path / "run"
    program = Program(tmp_path, *TINY, FOREVER, "--out=run", f"--checkpoint_minutes={INTERVAL}")
    program.until(lambda: last_saved(folder) > 0)
    disk.fill(program)
    program.until(lambda: all(x in program.said() for x in ("could not be saved", "metrics.jsonl cannot be written")))
    intact = last_saved(folder)
    assert checkpoint.find_checkpoint(folder, "resume").name == str(intact)
    disk.empty(program)
    program.until(lambda: last_saved(folder) > intact)
    disk.lock()
    said = program.said().count("could not be saved")
    program.until(lambda: program.said().count("could not be saved") > said)
    assert program.end(signal.SIGTERM) == 2
    assert "Traceback" not in program.said()
    last = program.said().splitlines()[-1]
    disk.unlock()
    assert last.startswith("error: iteration ")
    assert last.endswith(f"the last intact checkpoint is run/resume/{last_saved(folder)}")
    assert checkpoint.find_checkpoint(folder, "resume").name == str(last_saved(folder))
    assert all(line.startswith(("warning: ", "error: ")) for line in program.said().splitlines() if "could not" in line)
    iterations = [line["iteration"] for line in metrics(folder)]
    assert iterations == list(range(1, iterations[-1] + 1))


def test_sigterm_while_compiling(tmp_path):
    program = Program(tmp_path, *TINY, FOREVER, "--out=run")
    program.until(lambda: "games in lockstep" in program.said())
    assert program.end(signal.SIGTERM) == 0, program.said()
    assert checkpoint.find_checkpoint(tmp_path / "run", "resume").name == str(len(metrics(tmp_path / "run")))


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--learning_rate=1e36", "the network answered with"),
        pytest.param("--future_weight=1e39", " updates in a row had losses", marks=pytest.mark.nightly),
    ],
)
def test_a_run_that_diverges_stops_with_a_diagnosis(tmp_path, option, words):
    """Steps that leave weights finite, but not what the network makes of them; and a loss beyond float32's range."""
    program = Program(tmp_path, *TINY, FOREVER, "--out=run", option, "--warmup_positions=0")
    assert program.process.wait(600) == 2, program.said()
    last = program.said().splitlines()[-1]
    assert last.startswith("error: ") and words in last and "run/diagnosis.json" in last
    assert last.endswith("there is no checkpoint yet")
    found = json.loads((tmp_path / "run/diagnosis.json").read_text())
    assert found["not_finite"]
    name, _, value = option.removeprefix("--").partition("=")
    assert found["options"][name] == float(value)
    planes = found["statistics"]["batch.planes"]
    assert (planes["not_finite"], planes["planes"][0]["maximum"]) == (0, 1)
    assert any(name.startswith("weights.") for name in found["norms"])
    assert sum(line["skipped_updates"] for line in metrics(tmp_path / "run")) == found["skipped_in_a_row"]
    assert last_saved(tmp_path / "run") == -1  # what is worth nothing was not saved


# Preflight


@pytest.mark.parametrize("flipped", ["nothing", "backup"])
def test_preflight_catches_a_flipped_sign(flipped, monkeypatch):
    config = preset(envs.make("tictactoe"), "cpu")
    if flipped == "backup":  # what the search makes of its children's values
        monkeypatch.setattr(tree_search, "for_mover", turned(tree_search.for_mover))
    if flipped == "nothing":
        assert min(preflight.demand_learning(config)[:2]) >= preflight.DEMANDED
    else:
        with pytest.raises(preflight.PreflightError, match="a sign is wrong in the code"):
            preflight.demand_learning(config)


def test_preflight_learns_by_the_algorithm_of_the_recipe(monkeypatch):
    """A recipe whose second phase learns nothing fails."""
    config = preset(envs.make("tictactoe"), "cpu")

    def make_learn(game, net, config, devices):
        return lambda run, progress: (run._replace(iteration=run.iteration + 1), None)

    monkeypatch.setitem(algorithms.REGISTRY, "default", algorithms.DEFAULT._replace(make_learn=make_learn))
    with pytest.raises(preflight.PreflightError, match="not learned"):
        preflight.demand_learning(config)


def test_a_run_that_fails_preflight_leaves_nothing(monkeypatch, capsys, tmp_path):
    import train

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(preflight, "rehearse", lambda config: preflight.PreflightScore(0.5, 1.0, 1.0))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    monkeypatch.setattr(sys, "argv", ["train.py", *TINY, "--iterations=1", "--preflight"])
    with pytest.raises(SystemExit) as stop:
        train.main()
    assert handlers == {number: signal.getsignal(number) for number in handlers}
    assert stop.value.code == 2
    assert "error: preflight: " in capsys.readouterr().err
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == []


@pytest.mark.parametrize("stopped", [False, True])
def test_preflight_comes_between_iterations_of_the_same_thread(stopped, monkeypatch, tmp_path):
    """Beside an iteration it would take the threads in which other CPU devices wait for each other."""
    import train

    seen, iterate = [], loop.iterate

    def rehearse(config):
        seen.append(threading.current_thread())
        return preflight.PreflightScore(1.0, 1.0, 1.0)

    def iterated(*arguments):
        seen.append("iteration begins")
        outcome = iterate(*arguments)
        seen.append("iteration ends")
        if stopped:
            os.kill(os.getpid(), signal.SIGTERM)
        return outcome

    monkeypatch.setattr(preflight, "rehearse", rehearse)
    monkeypatch.setattr(loop, "iterate", iterated)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    monkeypatch.setattr(sys, "argv", ["train.py", *TINY, "--iterations=2", "--preflight", f"--out={tmp_path / 'run'}"])
    train.main()
    assert handlers == {number: signal.getsignal(number) for number in handlers}
    iteration = ["iteration begins", "iteration ends"]
    assert seen == (iteration if stopped else [*iteration, threading.main_thread(), *iteration])
    assert checkpoint.numbered(tmp_path / "run" / "resume") == [tmp_path / "run" / "resume" / ("1" if stopped else "2")]


def test_preflight_goes_before_long_runs():
    asks = lambda *arguments: training(["--env=tictactoe", *arguments])[0].preflight
    assert asks("--minutes=10")
    assert not asks("--minutes=9")
    assert not asks("--iterations=5")
    assert asks("--iterations=5", "--preflight")
    assert not asks("--minutes=10", "--no_preflight")
