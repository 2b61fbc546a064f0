"""Two recipes learn tic-tac-toe; the two that take longer are among the slow tests."""

import pytest
from recipes import learns

OPTIONS = {
    "default": ("--iterations=60", "--num_envs=256"),
    "value_generations": ("--iterations=4", "--num_envs=3000", "--learning_rate=1e-3", "--channels=256"),
}


@pytest.mark.parametrize("recipe", OPTIONS)
def test_a_recipe_learns(recipe, tmp_path, monkeypatch, record_property):
    learns(recipe, OPTIONS[recipe], tmp_path, monkeypatch, record_property)
