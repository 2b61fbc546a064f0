"""Two processes train together, one is lost, and both go on."""

from __future__ import annotations

import json
import pathlib
import signal
import time

from programs import train_together

from agents.storage import checkpoint

SMALL = [
    "--env=tictactoe", "--num_envs=16", "--plies_per_iteration=4", "--num_simulations=4", "--channels=16", "--blocks=1",
    "--replay_capacity=400", "--batch_size=32", "--checkpoint_minutes=0.01", "--no_preflight",
    "--rating_games=8", "--rating_positions=1",
]  # fmt: skip


def saved(run: pathlib.Path) -> list[int]:
    return sorted(int(path.name) for path in run.glob("resume/*") if path.name.isdigit())


def test_two_processes_train_together_and_one_is_lost(tmp_path):
    run = tmp_path / "run"
    first, second = train_together(tmp_path, *SMALL, "--iterations=1000000", f"--out={run}")
    try:
        patience = time.monotonic() + 300
        while not saved(run) or saved(run)[-1] < 2:
            assert first.poll() is None, (tmp_path / "stderr.0").read_text()[-3000:]
            assert second.poll() is None, (tmp_path / "stderr.1").read_text()[-3000:]
            assert time.monotonic() < patience
            time.sleep(0.2)
        second.send_signal(signal.SIGKILL)
        assert first.wait(60) != 0  # it cannot go on alone, and says so
        assert "error" in (tmp_path / "stderr.0").read_text().lower()
    finally:
        first.kill()
        second.kill()
    goal = saved(run)[-1] + 3
    both = train_together(tmp_path, f"--resume={run}", f"--iterations={goal}")
    try:
        for number, process in enumerate(both):
            assert process.wait(300) == 0, (tmp_path / f"stderr.{number}").read_text()[-3000:]
    finally:
        for process in both:
            process.kill()
    assert saved(run)[-1] == goal
    # One line for every iteration, and only the first process speaks.
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [line["iteration"] for line in lines] == list(range(1, goal + 1))
    rating = checkpoint.about(checkpoint.find_checkpoint(run, "resume"))["rating"]
    learned = [line["iteration"] for line in lines if line["value_loss"] is not None]
    assert learned == list(range(2, goal + 1))  # the first one ended too few games
    assert rating["taken"] == len(learned)  # matches, one after each of these, on whose result both agree
    printed = [(tmp_path / f"stderr.{process}").read_text() for process in range(2)]
    assert ["evaluate.py match" in text for text in printed] == [True, False]
