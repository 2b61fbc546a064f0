"""The notebooks run from top to bottom, on the CPU with small settings.

Through nbclient and not nbmake: their cells call commands, and a command that fails raises nothing in a notebook. So
its exit status is looked at, and what the cells print and leave behind.
"""

import os
import pathlib
import re
import subprocess
import tomllib

import nbclient
import nbformat
import pytest

ROOT = pathlib.Path(__file__).parents[2]
TINY = "--num_envs=16 --num_simulations=2 --channels=8 --blocks=1 --no_slides --batch_size=32"


@pytest.fixture
def execute(monkeypatch):
    """execute(name, setting=value, ...): the cells of a notebook after a run with these settings of its forms, and all
    that they printed."""

    def run(name, **settings):
        monkeypatch.setenv("JAX_PLATFORMS", os.environ.get("JAX_PLATFORMS", "cpu"))
        book = nbformat.read(ROOT / "colab" / name, as_version=4)
        for setting, value in settings.items():
            line = re.compile(rf"^{setting} = .*# @param", re.MULTILINE)
            assert sum(len(line.findall(cell.source)) for cell in book.cells) == 1
            for cell in book.cells:
                cell.source = line.sub(lambda _, value=value, setting=setting: f"{setting} = {value!r}  #", cell.source)
        for cell in book.cells:
            cell.source = re.sub(r"^( *)(!.*)$", r"\1\2\n\1assert _exit_code == 0", cell.source, flags=re.MULTILINE)
        nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(ROOT / "colab")}}).execute()
        cells = [cell for cell in book.cells if cell.cell_type == "code"]
        return cells, "".join(o.get("text", "") for cell in cells for o in cell.outputs)

    return run


@pytest.fixture
def drawn():
    """Files that a notebook draws into the folder of the project go again."""
    names = [ROOT / "game.gif", ROOT / "mine.gif"]
    assert not any(path.exists() for path in names)
    yield
    for path in names:
        path.unlink(missing_ok=True)


def pictures(cells):
    kinds = ("image/png", "image/gif", "image/svg+xml")
    return sum(kind in output.get("data", {}) for cell in cells for output in cell.outputs for kind in kinds)


def test_train_notebook(execute, tmp_path):
    settings = {"ENV": "foq:rows=4,cols=5", "OPTIONS": TINY, "GAMES": 4, "RUN": str(tmp_path / "run")}
    budgets = {"BUDGET": "--iterations=2", "MORE": "--iterations=3", "FIRST": f"--env=tictactoe --iterations=1 {TINY}"}
    cells, printed = execute("train_tpu.ipynb", **settings, **budgets, SAFE=str(tmp_path / "safe"))
    assert printed.count("won/drawn/lost") == 3  # matches, no column cut off
    assert any((tmp_path / "safe" / "compiled").iterdir())
    assert pictures(cells) == 1
    assert "your move>" in printed
    assert "CpuDevice" in printed
    assert (tmp_path / "safe/run/metrics.jsonl").exists()
    networks = lambda folder: {int(p.name) for p in (folder / "networks").iterdir()}
    assert max(networks(tmp_path / "safe/run")) == 3 > max(networks(tmp_path / "run"))


@pytest.mark.parametrize("name", ["train_tpu.ipynb", "your_game.ipynb"])
def test_notebooks_that_train_leave_the_accelerator_to_the_commands(name):
    """A TPU belongs to one process, and on a GPU jax takes most of the memory at its first use."""
    book = nbformat.read(ROOT / "colab" / name, as_version=4)
    cells = [cell.source for cell in book.cells if cell.cell_type == "code"]
    assert any("!python train.py" in cell for cell in cells)
    ours = re.compile(r"^\s*(import|from) (jax|envs|agents|train|evaluate|play)\b", re.MULTILINE)
    assert not [cell for cell in cells if ours.search(cell)]


@pytest.mark.parametrize("path", sorted((ROOT / "colab").glob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_open_and_clone_the_repository_of_the_project(path):
    address = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
    book = nbformat.read(path, as_version=4)
    opens = "https://colab.research.google.com/github/" + address.removeprefix("https://github.com/")
    assert f"]({opens}/blob/main/colab/{path.name})" in book.cells[0].source
    assert [cell.source.count(f'REPOSITORY = "{address}"  # @param') for cell in book.cells].count(1) == 1


def test_an_install_that_fails_stops_the_notebook(tmp_path, monkeypatch):
    book = nbformat.read(ROOT / "colab/your_game.ipynb", as_version=4)
    settings, install = (cell.source for cell in book.cells if cell.cell_type == "code" and "subprocess" in cell.source)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(subprocess.CalledProcessError):
        exec(re.sub("https://.*/ripzero", str(tmp_path / "nothing"), settings) + "\n" + install, {})


def test_explore_notebook(execute, drawn):
    cells, printed = execute("explore_envs.ipynb", ENV="foq:rows=4,cols=5", GAMES=200)
    assert "200 games of foq:rows=4,cols=5" in printed
    assert "sum_to_100" in printed
    assert pictures(cells) == 3


def test_your_game_notebook(execute, drawn, tmp_path):
    cells, printed = execute("your_game.ipynb", OPTIONS=f"{TINY} --iterations=2", GAMES=4, RUN=str(tmp_path / "run"))
    assert "rules hold" in printed
    assert "BROKEN" not in printed
    assert "won/drawn/lost" in printed
    assert "Upright: " in printed or "Flat: " in printed  # the answer of eval
    assert pictures(cells) == 1
