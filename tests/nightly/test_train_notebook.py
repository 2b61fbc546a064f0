"""The notebook that trains, with all that its cells start."""

from notebooks import TINY, execute, pictures


def test_train_notebook(tmp_path):
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
