"""The notebook runs from top to bottom, on the CPU with small settings."""

import os
import pathlib

import nbclient
import nbformat

ROOT = pathlib.Path(__file__).parents[1]


def test_train_notebook(tmp_path, monkeypatch):
    options = "--env=foq:rows=4,cols=5 --num_envs=16 --num_simulations=2 --channels=8 --blocks=1 --batch_size=32"
    settings = {"MINUTES": "0.5", "OPTIONS": options, "RUN": tmp_path / "run", "SAFE": tmp_path / "safe"}
    for name, value in settings.items():
        monkeypatch.setenv(f"RIPZERO_{name}", str(value))
    monkeypatch.setenv("JAX_PLATFORMS", os.environ.get("JAX_PLATFORMS", "cpu"))
    book = nbformat.read(ROOT / "colab" / "train_tpu.ipynb", as_version=4)
    nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(ROOT)}}).execute()
    printed = "".join(o.get("text", "") for c in book.cells if c.cell_type == "code" for o in c.outputs)
    assert "error:" not in printed.lower()
    assert printed.count("won/drawn/lost") == 2  # two matches, no column cut off
    assert (tmp_path / "safe/run/metrics.jsonl").exists()
    networks = lambda folder: {int(p.name) for p in (folder / "networks").iterdir()}
    assert max(networks(tmp_path / "safe/run")) > max(networks(tmp_path / "run"))
