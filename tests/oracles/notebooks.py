"""Runs notebooks from top to bottom, with small settings.

Through nbclient and not nbmake: their cells call commands, and a command that fails raises nothing in a notebook. So
its exit status is looked at, and what the cells print and leave behind.
"""

import pathlib
import re

import nbclient
import nbformat

ROOT = pathlib.Path(__file__).parents[2]
TINY = "--num_envs=16 --num_simulations=2 --channels=8 --blocks=1 --no_slides --batch_size=32"


def execute(name, **settings):
    """The cells of a notebook after a run with these settings of its forms, and all that they printed."""
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
    printed = "".join(o.get("text", "") for cell in cells for o in cell.outputs)
    assert "\x1b[2K" not in printed  # a notebook keeps every line that a terminal would overwrite
    return cells, printed


def pictures(cells):
    kinds = ("image/png", "image/gif", "image/svg+xml")
    return sum(kind in output.get("data", {}) for cell in cells for output in cell.outputs for kind in kinds)
