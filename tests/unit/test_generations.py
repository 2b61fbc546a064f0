"""Value generations: the article's games, targets and player."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import network_of

import envs
from agents.config import preset
from agents.network.network import make_network
from agents.run.options import training
from agents.runtime import mesh
from agents.search.greedy import value_greedy
from agents.training import value_regression
from agents.training.value_regression import discounted, make_games

GAME = envs.make("tictactoe")
CONFIG = dataclasses.replace(preset(GAME, "cpu", "value_generations"), num_envs=4000, channels=64, batch_size=64)


@pytest.fixture(scope="module")
def random_games():
    net = make_network(GAME, CONFIG)
    lanes = value_regression.new_lanes(GAME, jax.random.key(0), 4000, CONFIG)
    play = jax.jit(make_games(GAME, net))
    return jax.device_get(play(net.init(jax.random.key(1)), jax.random.key(2), lanes, jnp.bool(True)))


def test_generation_zero_is_random(random_games):
    """Of random games of tic-tac-toe the first player wins 58.5 %, the second 28.8 %, 12.7 % are drawn; they last 7.62
    moves. (Known from enumeration; four standard errors of 4000 games.)"""
    lanes, rows = random_games
    shares = [(rows.rewards[-1, :, 0] == result).mean() for result in (1, -1, 0)]
    for share, known in zip(shares, (0.585, 0.288, 0.127), strict=True):
        assert share == pytest.approx(known, abs=4 * np.sqrt(known * (1 - known) / 4000))
    assert lanes.plies.mean() == pytest.approx(7.62, abs=0.1)
    assert (value_regression.of_games(rows).sum(0) == lanes.plies).all()
    assert (rows.done.sum(0) == 1).all()


def test_what_the_article_has_not_is_refused():
    with pytest.raises(ValueError, match="--proof_share is no part of --recipe=value_generations"):
        dataclasses.replace(CONFIG, proof_share=0.1)
    with pytest.raises(ValueError, match="--gate is no part"):
        dataclasses.replace(CONFIG, gate=True)


def test_options_that_mean_nothing_to_generations_are_refused():
    arguments = ["--env=tictactoe", "--recipe=value_generations"]
    assert training([*arguments, "--iterations=3"])[0].iterations == 3
    with pytest.raises(ValueError, match="--replay_ratio is no part of --recipe=value_generations"):
        training([*arguments, "--replay_ratio=2"])


def test_a_small_generation_is_learned_five_times_too():
    config = dataclasses.replace(CONFIG, num_envs=64, channels=8, batch_size=128, rating_games=0)
    net, one = make_network(GAME, config), mesh.make_mesh(64, 128, 1)
    run = value_regression.start_run(GAME, net, config)
    run, _, _ = jax.jit(value_regression.make_play(GAME, net, config, one))(run)
    rows = int(run.replay.known.sum())
    run, _ = jax.jit(value_regression.make_learn(GAME, net, config, one))(run, 0.5)
    assert int(run.learning.updates) * 128 / rows == pytest.approx(5, abs=128 / rows)


def test_a_device_needs_a_game_to_learn_from_and_one_to_test_by():
    config = dataclasses.replace(CONFIG, num_envs=1, batch_size=32)
    with pytest.raises(ValueError, match="--num_envs: expected two games or more for each of 1 devices, got 1"):
        value_regression.make_learn(GAME, make_network(GAME, config), config, mesh.make_mesh(1, 32, 1))


def test_of_othello_it_may_learn_the_future():
    """Whose rows tell of no owners here."""
    game = envs.make("othello")
    config = dataclasses.replace(preset(game, "cpu", "value_generations"), num_envs=8, channels=8, future_weight=1.0)
    net, one = make_network(game, config), mesh.make_mesh(8, config.batch_size, 1)
    run = jax.eval_shape(lambda: value_regression.start_run(game, net, config))
    jax.eval_shape(value_regression.make_learn(game, net, config, one), run, 0.0)


def test_results_are_discounted_towards_the_opening(random_games):
    """0.95 at the last decision of a game for whom it is won, less by that factor for every ply before."""
    lanes, rows = random_games
    result, target = jax.device_get(discounted(rows))
    for lane in range(20):
        length = int(lanes.plies[lane])
        for t in range(length):
            own = rows.rewards[-1, lane, t % 2]
            assert result[t, lane, 0] == own == -result[t, lane, 1]
            assert target[t, lane, 0] == pytest.approx(own * 0.95 ** (length - t))


def table_network(worth):
    """A network whose value is a function of the number of own and other stones."""
    return network_of(lambda weights, planes: (jnp.zeros((len(planes), 9)), worth(planes.sum((1, 2)))))


def test_the_best_successor_is_the_worst_for_who_moves_there():
    """The first player can win at once on square 2; elsewhere the network calls the opponent all but lost, no match;
    and without a win the square is taken whose successor is worth least to the opponent."""
    won = GAME.from_record({"board": [1, 1, 0, -1, -1, 0, 0, 0, 0], "to_move": 1})
    states = jax.tree.map(lambda x: x[None], won)
    act = value_greedy(GAME, table_network(lambda stones: jnp.full(len(stones), -0.9)))
    assert int(act({}, jax.random.key(0), states)[0]) == 2

    centre_or_not = network_of(
        lambda weights, planes: (jnp.zeros((len(planes), 9)), jnp.where(planes[:, 1, 1].sum(-1) > 0, -0.5, 0.5))
    )
    start = jax.tree.map(lambda x: x[None], GAME.init())
    assert int(value_greedy(GAME, centre_or_not)({}, jax.random.key(0), start)[0]) == 4
    drawn = value_greedy(GAME, table_network(lambda stones: jnp.zeros(len(stones))))
    many = jax.tree.map(lambda x: jnp.repeat(x[None], 900, axis=0), GAME.init())
    counts = np.bincount(np.asarray(drawn({}, jax.random.key(0), many)), minlength=9)
    assert (np.abs(counts - 100) < 45).all()  # equals are drawn by lot
