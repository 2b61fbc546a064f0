"""The recipes of the articles learn tic-tac-toe."""

import pytest
from recipes import learns

OPTIONS = {
    "alphazero": (
        "--iterations=160",
        "--num_envs=256",
        "--batch_size=256",
        "--rating_positions=38400",
        "--rating_games=100",
    ),
    "evopawness": ("--iterations=36", "--num_envs=128", "--batch_size=128", "--rating_positions=25600"),
    "value_generations": ("--iterations=4", "--num_envs=3000", "--learning_rate=1e-3", "--channels=256"),
}


@pytest.mark.parametrize("recipe", OPTIONS)
def test_a_recipe_learns(recipe, tmp_path, monkeypatch, record_property):
    learns(recipe, OPTIONS[recipe], tmp_path, monkeypatch, record_property)
