"""Programs as processes: pictures, a game of one's own, the terminal, GTP, a missing extra, games without a device."""

import os
import pkgutil
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import envs

ROOT = Path(__file__).parents[2]
OWN = str(ROOT / "docs" / "domineering.py")
PROMPT = "your move>"
SPEC = "go:size=5,komi=24.5"


def test_captions_say_the_last_move(tmp_path):
    arguments = ["foq", "--moves=d5 f4", "--caption", "--out=new/foq.svg"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "envs.draw", *arguments]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    text = (tmp_path / "new/foq.svg").read_text()
    assert "Flight of Queen, White to move · move 2: f4" in text
    ElementTree.fromstring(text)


def call(*command, cwd):
    return subprocess.run([sys.executable, *command], cwd=cwd, capture_output=True, text=True, timeout=300)


def test_it_trains_without_touching_the_package(tmp_path):
    options = ["--num_envs=16", "--num_simulations=4", "--iterations=2", "--out=run"]
    done = call(str(ROOT / "train.py"), f"--env={OWN}:rows=3", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = call(str(ROOT / "evaluate.py"), "match", "run@2", "random", "--games=8", f"--env={OWN}:rows=3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "run/networks/2@2" in done.stdout


def test_the_program_ends_with_its_input():
    """A real pipe: broken bytes are answered, the end of the input ends the program with exit code 0."""
    command = [sys.executable, "play.py", "--ui=text", "--env=tictactoe", "--opponent=random"]
    environment = {**os.environ, "TERM": "xterm-256color"}
    done = subprocess.run(command, cwd=ROOT, env=environment, input=b"b2\n\xff\n", capture_output=True, timeout=200)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(PROMPT.encode()) == 3
    assert b"\x1b" not in done.stdout


def test_the_program_itself():
    """Started as a controller does; it ends with quit and with the end of its input."""
    command = [sys.executable, ROOT / "play.py", "--ui=gtp", f"--env={SPEC}", "--opponent=uct:16"]
    spoken = b"1 name\n\xff\xfe\nplay b C3\r\n2 genmove w\n3 quit\n4 name\n"
    done = subprocess.run(command, input=spoken, capture_output=True, timeout=200, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    answers = done.stdout.decode().split("\n\n")
    assert answers[:3] == ["=1 ripzero", "? unknown command", "="]
    assert re.fullmatch(r"=2 ([A-E][1-5]|pass)", answers[3])
    assert answers[4:] == ["=3", ""]


def test_a_missing_extra_is_named():
    code = "import sys; sys.modules['starlette'] = sys.modules['uvicorn'] = None; import play; play.main(['--no_open'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "pip install -e '.[play]'" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_importing_games_starts_no_device():
    names = [f"envs.{module.name}" for module in pkgutil.iter_modules(envs.__path__)]
    assert {"envs.foq", "envs.tictactoe", "envs.game"} <= set(names)

    def run(code):  # where no device can be started
        environment = os.environ | {"JAX_PLATFORMS": "no_such_platform"}
        return subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)

    done = run(f"import envs, {', '.join(names)}")
    assert done.returncode == 0, done.stderr
    assert run("import jax.numpy as jnp; jnp.zeros(1)").returncode != 0  # the trap works
