"""The notebooks run from top to bottom, on the CPU with small settings; the one that trains is among the slow tests."""

import pathlib
import re
import subprocess
import tomllib

import nbformat
import pytest
from notebooks import TINY, execute, pictures

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def drawn():
    """Files that a notebook draws into the folder of the project go again."""
    names = [ROOT / "game.gif", ROOT / "mine.gif"]
    assert not any(path.exists() for path in names)
    yield
    for path in names:
        path.unlink(missing_ok=True)


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


def test_explore_notebook(drawn):
    cells, printed = execute("explore_envs.ipynb", ENV="foq:rows=4,cols=5", GAMES=200)
    assert "200 games of foq:rows=4,cols=5" in printed
    assert "sum_to_100" in printed
    assert pictures(cells) == 3


@pytest.mark.nightly
def test_your_game_notebook(drawn, tmp_path):
    cells, printed = execute("your_game.ipynb", OPTIONS=f"{TINY} --iterations=2", GAMES=4, RUN=str(tmp_path / "run"))
    assert "rules hold" in printed
    assert "BROKEN" not in printed
    assert "won/drawn/lost" in printed
    assert "\nA: " in printed or "\nB: " in printed  # the answer of eval
    assert pictures(cells) == 1
