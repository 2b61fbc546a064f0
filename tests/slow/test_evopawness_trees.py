"""Trees over slots in EvoPawness, the game of the most actions."""

import numpy as np
import pytest
from toys import KINDS, choose, noisy_network, random_positions

import envs
from agents.config import Config


@pytest.mark.parametrize("kind", KINDS)
def test_a_tree_over_slots_answers_as_the_dense_one_in_evopawness(kind):
    """Whose trees are over slots by default."""
    game = envs.make("evopawness")
    states, net = random_positions(game, 4, 40), noisy_network(game.num_actions)
    packed, dense = (
        choose(game, net, Config(num_simulations=12, search=kind), states, kind == "gumbel", slots=slots)
        for slots in (None, False)
    )
    for name, values in packed._asdict().items():
        np.testing.assert_allclose(values, getattr(dense, name), atol=1e-5, err_msg=name)
