"""Lessons: what proofs teach, against tables of perfect play, and how it gets into batches."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from agents.config import Config
from agents.network.network import make_network
from agents.run.resume import load_run, save
from agents.runtime import mesh
from agents.solvers import proof_number, retrograde
from agents.storage import checkpoint
from agents.training import learner, proof_targets, replay
from agents.training.iteration import make_iteration, run_specs, start_run
from envs import saved

SMALL = Config(
    env="tictactoe", num_envs=16, plies_per_iteration=4, num_simulations=8, network="mlp", channels=16, blocks=1,
    replay_capacity=400, batch_size=32, warmup_positions=0, proof_share=0.25,
    future_weight=1.0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "opening"),
    [
        ("tictactoe", ["a3", "b3"]),
        ("foq_single:rows=4,cols=4", []),
        ("foq:rows=4,cols=4", []),
        ("connect_four:rows=4,cols=4,connect=3", ["1"]),
    ],
)
def test_lessons_agree_with_perfect_play(spec, opening):
    """Every position, for both movers: its value, and what is said of each of its moves."""
    game = envs.make(spec)
    state = saved.replay(game, game.init(), opening)[0][-1]
    graph = jax.jit(proof_number.make_claim_prover(game, 4096))(state, jnp.float32(1))
    assert proof_number.decided(graph.numbers)[0]
    pick = jax.jit(proof_targets.pick, static_argnums=(0, 4))
    memory, actions, right, value, there = pick(game, graph, game.player(state), jax.random.key(0), 300)
    table, rows = retrograde.solve(game), np.flatnonzero(there)
    places = retrograde.find(table, jax.tree.map(lambda x: x[rows], memory))
    assert (table.values[places] == np.asarray(value)[rows]).all()
    assert {-1, 1} == set(np.asarray(value)[rows].tolist())
    movers = jax.vmap(game.player)(memory)
    assert set(np.asarray(movers)[rows].tolist()) == {0, 1}
    of_view = np.argsort(game.to_mover_frame, axis=1) if game.to_mover_frame is not None else None
    said = {True: 0, False: 0}
    for row, place in zip(rows, places, strict=True):
        for code, good in zip(np.asarray(actions[row]), np.asarray(right[row]), strict=True):
            if code < 0:
                assert not good
                continue
            action = code if of_view is None else of_view[int(movers[row]), code]
            keeps = bool(table.best[place, action]) and int(table.values[place]) == 1
            assert bool(good) == keeps
            said[bool(good)] += 1
    assert min(said.values()) > 10


def test_where_draws_are_possible_only_wins_are_told():
    """Tic-tac-toe from the start is a draw, so that X does not win is known, but not whether he loses."""
    game = envs.make("tictactoe")
    graph = jax.jit(proof_number.make_claim_prover(game, 8192))(game.init(), jnp.float32(1))
    assert (graph.numbers.refute[0], bool(graph.drawn)) == (0, True)
    memory, _, _, value, there = proof_targets.pick(game, graph, jnp.int32(0), jax.random.key(0), 500)
    rows = np.flatnonzero(there)
    assert len(rows) > 50
    mover = np.asarray(jax.vmap(game.player)(memory))[rows]
    assert (np.asarray(value)[rows] == np.where(mover == 0, 1, -1)).all()


def test_few_moves_are_as_frequent_as_many():
    """Single queen, 5 x 5: of 200 lessons from thousands of positions no number of moves has more than the even share,
    but for those that few positions have."""
    game = envs.make("foq_single:rows=5,cols=5")
    graph = jax.jit(proof_number.make_claim_prover(game, 1 << 14))(game.init(), jnp.float32(1))
    count = 200
    memory, *_, there = proof_targets.pick(game, graph, jnp.int32(0), jax.random.key(0), count)
    assert np.asarray(there).all()
    moves = np.asarray(jax.vmap(game.mask)(memory).sum(-1))
    inside = (np.arange(len(graph.actions)) < int(graph.size)) & np.asarray(proof_number.decided(graph.numbers))
    all_of_them = np.bincount((np.asarray(graph.actions)[inside] >= 0).sum(-1))
    assert all_of_them[1:4].sum() > 0.5 * all_of_them.sum()  # of all positions most have up to three moves
    assert (moves <= 3).mean() < 0.45


@pytest.fixture(scope="module")
def parts():
    game = envs.make(SMALL.env)
    net, one = make_network(game, SMALL), mesh.make_mesh(16, 32, 1)
    start = mesh.laid_out(lambda: start_run(game, net, SMALL), run_specs, one)
    return game, start, jax.jit(make_iteration(game, net, SMALL, one)), one


def test_searches_begin_as_early_as_they_come_to_an_end(parts):
    """All of tic-tac-toe is within reach of 8192 positions, so in the end every search begins at the start; 512 are too
    few for Connect Four, where only the ends of games are."""
    _, start, iterate, _ = parts
    run = start()
    for _ in range(10):
        run, figures = iterate(run, 0.0)
        assert float(figures["proved"]) == 1
    assert float(run.lessons.reach) == 0
    assert float(figures["proof_plies"]) <= 2  # of sixteen lanes one is that young
    assert int(figures["proof_rows"]) == int(run.lessons.there.sum()) > 0
    config = dataclasses.replace(SMALL, env="connect_four", num_simulations=2, future_weight=0.0)
    game, one = envs.make(config.env), mesh.make_mesh(16, 32, 1)
    net = make_network(game, config)
    run = mesh.laid_out(lambda: start_run(game, net, config), run_specs, one)()
    iterate = jax.jit(make_iteration(game, net, config, one))
    proved = []
    for _ in range(20):
        run, figures = iterate(run, 0.0)
        proved.append(float(figures["proved"]))
    assert 0.2 <= np.mean(proved[8:]) <= 0.8
    assert 10 < float(run.lessons.reach) < 42


def test_batches_hold_lessons_where_there_are_some(parts):
    """A quarter of 32 rows, in the places written; elsewhere rows of self-play stay."""
    game, start, iterate, _ = parts
    run = start()
    for _ in range(6):
        run, _ = iterate(run, 0.0)
    taught = jnp.arange(8)
    full = run.lessons._replace(there=run.lessons.there.at[0].set(jnp.arange(16) < 5))
    batch = jax.device_get(proof_targets.mixed(game, run.replay, full, jnp.arange(32), taught, SMALL))
    own = [
        jax.device_get(replay.sample(game, run.replay, part, SMALL)) for part in (jnp.arange(24), jnp.arange(24, 32))
    ]
    of_lessons = jax.device_get(proof_targets.sample(game, full, taught, SMALL))
    assert batch.planes.shape[0] == 32
    for name in batch._fields:
        rows, plain, last, taught_rows = (getattr(x, name) for x in (batch, own[0], own[1], of_lessons))
        assert (rows[:24] == plain).all() and (rows[24:29] == taught_rows[:5]).all() and (rows[29:] == last[5:]).all()
    # Tic-tac-toe has eight symmetries: each of the eight rows meets one.
    for i, symmetry in enumerate(game.symmetries):
        state = symmetry.state(jax.tree.map(lambda x: x[0, i], run.lessons.memory))
        assert (of_lessons.planes[i] == game.observe(state)).all()
        legal = np.asarray(game.mask(state))
        assert all(legal[code] for code in of_lessons.actions[i] if code >= 0)
    assert of_lessons.policy.sum(-1).round(5).tolist() == np.asarray(run.lessons.right[0, :8].any(-1), float).tolist()
    assert (of_lessons.future == -1).all()


def test_statistics_are_those_of_self_play():
    """A quarter of the batch are proved positions: they are normalised by the other rows and change no statistics."""
    game, config = envs.make("tictactoe"), dataclasses.replace(SMALL, normalisation="batch")
    net = make_network(game, config)
    weights = net.init(jax.random.key(0))
    planes = jax.random.normal(jax.random.key(1), (32, *jax.eval_shape(lambda: game.observe(game.init())).shape))
    actions = jnp.zeros((32, 9), jnp.int32)

    def statistics(planes):
        batch = replay.Batch(planes, actions, jnp.ones((32, 9)) / 9, jnp.zeros(32))
        return jax.tree.leaves(learner.loss(net, weights, batch, config)[1][1]["batch_stats"])

    plain = statistics(planes)
    assert all(np.array_equal(x, y) for x, y in zip(plain, statistics(planes.at[24:].add(7.0)), strict=True))
    changed = [np.array_equal(x, y) for x, y in zip(plain, statistics(planes.at[:24].add(7.0)), strict=True)]
    assert not all(changed)
    alone = net.train(weights, planes[:24], None)[1]["batch_stats"]
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-5), plain, jax.tree.leaves(alone))


def test_each_lesson_is_drawn_as_often_as_a_row(parts):
    """Places never written are not drawn."""
    _, start, iterate, _ = parts
    run = start()
    for _ in range(3):
        run, _ = iterate(run, 0.0)
    assert int(run.lessons.cursor) == 3 * proof_targets.rows_per_iteration(SMALL) == 3
    places = np.asarray(proof_targets.draw(run.lessons, jax.random.key(0), (4800,)))
    counts = np.bincount(places, minlength=48)
    assert len(counts) == 48 and (np.abs(counts - 100) < 50).all()


def test_a_run_goes_on_with_its_lessons(parts, tmp_path):
    _, start, iterate, one = parts
    run = start()
    for _ in range(3):
        run, _ = iterate(run, 0.0)
    save(tmp_path, run, SMALL)
    again = load_run(checkpoint.find(tmp_path, "resume"), SMALL, one)
    one_on, two_on = (jax.device_get(iterate(x, 0.0)[0]) for x in (run, again))
    equal = jax.tree.map(lambda x, y: np.array_equal(x, y, equal_nan=True), one_on, two_on)
    assert all(jax.tree.leaves(equal))
    assert one_on.lessons.there.sum() > 0


def test_devices_search_below_lanes_of_their_own():
    devices = mesh.make_mesh(16, 32, 2)
    game = envs.make(SMALL.env)
    net = make_network(game, SMALL)
    run = mesh.laid_out(lambda: start_run(game, net, SMALL), run_specs, devices)()
    iterate = jax.jit(make_iteration(game, net, SMALL, devices))
    for _ in range(4):
        run, figures = iterate(run, 0.0)
    assert float(figures["proof_rows"]) == int(run.lessons.there.sum())
    left, right = np.split(np.asarray(run.lessons.there), 2, axis=1)
    assert left.any() and right.any()
    assert float(run.lessons.reach) >= 0


def test_what_lessons_cannot_be_for_is_refused():
    game = envs.make("foq_multi")
    with pytest.raises(ValueError, match=r"--proof_share=0.25: lessons are for two players; foq_multi.* has 3"):
        proof_targets.make_teach(game, dataclasses.replace(SMALL, env="foq_multi"))
    with pytest.raises(ValueError, match="room for at least 512 positions, not 100"):
        proof_targets.make_teach(envs.make("foq"), dataclasses.replace(SMALL, lesson_positions=100))
    with pytest.raises(ValueError, match="--proof_share must be from 0 to 0.9, not 1"):
        dataclasses.replace(SMALL, proof_share=1)
