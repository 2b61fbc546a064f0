"""The default recipe learns tic-tac-toe; the others are among the slow tests."""

from recipes import learns


def test_the_default_recipe_learns(tmp_path, monkeypatch, record_property):
    learns("default", ("--iterations=60", "--num_envs=256"), tmp_path, monkeypatch, record_property)
