"""Networks that know the value of every position of tic-tac-toe, or are wrong about all of them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from toys import blank_network, choose, stack

import envs
from agents.config import Config


def solved_tictactoe(golden):
    """Every unfinished position of tic-tac-toe, the moves that keep its value, and that value for the mover."""
    lines = [p for p in golden("tictactoe_solved.jsonl.gz") if not p["terminal"]]
    right = np.zeros((len(lines), 9), bool)
    for i, p in enumerate(lines):
        right[i, p["optimal"]] = True
    game = envs.make("tictactoe")
    states = [game.from_record({k: p[k] for k in ("board", "to_move")}) for p in lines]
    # The table's values are the mover's own.
    return stack(states), right, np.array([p["value"] for p in lines])


def table_network(states, values):
    """A network that looks its value up, by the board as the mover sees it, and has no prior."""
    game = envs.make("tictactoe")
    power = jnp.asarray(3 ** np.arange(9))
    code = lambda planes: ((planes[..., 0] + 2 * planes[..., 1]).reshape(len(planes), 9).astype(jnp.int32) * power).sum(
        -1
    )
    table = jnp.zeros(3**9).at[code(jax.vmap(game.observe)(states))].set(jnp.asarray(values, jnp.float32))
    net = blank_network(9)
    return dataclasses.replace(net, apply=lambda w, planes: (jnp.zeros((len(planes), 9)), table[code(planes)]))


def proofs_play_perfectly(kind, empty, positions, solved):
    """Where the rest of the game fits into the search: so many empty cells, and with them at most so many positions."""
    states, right, values = solved
    few = (np.asarray(states.board).reshape(len(right), 9) == 0).sum(1) <= empty
    assert few.sum() > 1000
    states, right, values = jax.tree.map(lambda x: x[few], states), right[few], values[few]
    wrong = table_network(states, -values)
    config = Config(num_simulations=positions, search=kind, max_num_considered_actions=16, proofs=True)
    found = choose(envs.make("tictactoe"), wrong, config, states)
    assert right[np.arange(len(right)), found.action].all()
    np.testing.assert_array_equal(found.value, values)
    shallow = dataclasses.replace(config, proofs=False, num_simulations=8)
    without = choose(envs.make("tictactoe"), wrong, shallow, states)
    assert right[np.arange(len(right)), without.action].mean() < 0.95  # the network is really wrong
