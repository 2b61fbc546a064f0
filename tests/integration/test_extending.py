"""The examples of docs/extending.md, each as a script of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs/extending.md").read_text(encoding="utf-8"), re.DOTALL)


def run(script: str, folder: Path) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.nightly
@pytest.mark.parametrize(("example", "name"), [(0, "attention"), (2, "playouts")])
def test_a_network_and_an_algorithm_of_ones_own_train(example, name, tmp_path):
    run(EXAMPLES[example], tmp_path)
    assert (tmp_path / "runs" / name / "networks" / "3").is_dir()
    assert len((tmp_path / "runs" / name / "metrics.jsonl").read_text().splitlines()) == 3


def test_a_player_of_ones_own_plays_a_match(tmp_path):
    said = run(EXAMPLES[1], tmp_path)
    assert "stifling" in said and "random" in said
