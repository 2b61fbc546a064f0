"""Targets, replay, learner, checkpoints: small cases with answers worked out by hand, and runs that must repeat."""

import dataclasses
import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import PartitionSpec as P

import envs
from agents import config as config_lib
from agents.config import Config, preset
from agents.network.network import along_lines, make_network
from agents.network.pooling import board_max
from agents.run import options
from agents.run.options import training
from agents.run.resume import load_run, save_run
from agents.runtime import mesh
from agents.search.tree import SearchResult
from agents.storage import checkpoint
from agents.storage import weights as models
from agents.training import iteration, learner, replay, selfplay
from agents.training.iteration import Run, make_iteration, run_specs, start_run, updates_per_iteration
from envs import Hints, foq

SMALL = Config(
    env="tictactoe", num_envs=16, plies_per_iteration=4, num_simulations=8, network="mlp", channels=16, blocks=1,
    replay_capacity=400, batch_size=32, warmup_positions=0,
)  # fmt: skip
ONE = mesh.make_mesh(16, 32, 1)


@pytest.fixture(scope="module")
def parts():
    game = envs.make(SMALL.env)
    net = make_network(game, SMALL)
    start = mesh.laid_out(lambda: start_run(game, net, SMALL), run_specs, ONE)
    return game, start, jax.jit(make_iteration(game, net, SMALL, ONE))


def same(a, b) -> bool:
    return all(jax.tree.leaves(jax.tree.map(lambda x, y: bool(np.array_equal(x, y, equal_nan=True)), a, b)))


def test_outcomes_by_hand():
    """Lane 0: player 0 wins at ply 1, then a game under way. Lane 1: player 0 moves twice and loses at ply 2."""
    done = jnp.array([[0, 0], [1, 0], [0, 1], [0, 0]], bool)
    player = jnp.array([[0, 0], [1, 0], [0, 1], [1, 0]])
    rewards = jnp.zeros((4, 2, 2)).at[1, 0].set(jnp.array([1.0, -1.0])).at[2, 1].set(jnp.array([-1.0, 1.0]))
    value = jnp.array([[0.2, 0.5], [0.4, -0.5], [0.1, 0.6], [0.3, 0.7]])  # for the mover
    values = jnp.where(player[..., None] == jnp.arange(2), value[..., None], -value[..., None])
    nothing = jnp.zeros((4, 2))
    fields = dict.fromkeys(selfplay.Row._fields, nothing)
    rows = selfplay.Row(**fields | {"player": player, "values": values, "done": done, "rewards": rewards})
    result, known = selfplay.value_targets(rows, 1.0)
    assert known.tolist() == [[True, True], [True, True], [False, True], [False, False]]
    assert result[..., 0].tolist() == [[1, -1], [-1, -1], [0, 1], [0, 0]]
    assert (result[..., 1] == -result[..., 0]).all()
    # Half the value that the search found one row on, seen from here, and half of that row's own target.
    blended, known_too = selfplay.value_targets(rows, 0.5)
    assert known_too.tolist() == known.tolist()
    np.testing.assert_allclose(blended[..., 0], [[0.3, -0.65], [-1, -0.8], [0, 1], [0, 0]], atol=1e-6)


def test_outcomes_of_three_players_by_hand():
    """Players 0, 2 and 1 move; 1 wins. Seats are counted from the mover on; half of each target is the next row's."""
    player = jnp.array([[0], [2], [1]], jnp.int8)
    rewards = jnp.zeros((3, 1, 3)).at[2, 0].set(jnp.array([-0.5, 1.0, -0.5]))
    values = jnp.array([[[0.3, 0.0, -0.3]], [[0.2, 0.4, -0.6]], [[0.0, 0.8, -0.8]]])
    fields = dict.fromkeys(selfplay.Row._fields, jnp.zeros((3, 1)))
    done = jnp.array([[0], [0], [1]], bool)
    rows = selfplay.Row(**fields | {"player": player, "values": values, "done": done, "rewards": rewards})
    result, known = selfplay.value_targets(rows, 1.0)
    assert known.all()
    assert result[:, 0].tolist() == [[-0.5, 1, -0.5], [-0.5, -0.5, 1], [1, -0.5, -0.5]]
    blended, _ = selfplay.value_targets(rows, 0.5)
    # By player: (-0.25, 0.9, -0.65) at the second row, then (-0.025, 0.65, -0.625) at the first.
    np.testing.assert_allclose(blended[:, 0], [[-0.025, 0.65, -0.625], [-0.65, -0.25, 0.9], [1, -0.5, -0.5]], atol=1e-6)


def test_a_result_reaches_all_rows_of_its_game_and_no_others():
    """Games of 1 to 6 plies in a ring of 12 rows, 4 of them new in each of ten iterations. Lane 2 is not searched at
    every fifth ply, so these rows cannot be drawn. The plain program below keeps all rows in lists."""
    lanes, added, longest, length, iterations = 3, 4, 6, 12, 10
    rng = np.random.default_rng(0)
    total = added * iterations
    done, mover, winner = np.zeros((total, lanes), bool), rng.integers(0, 2, (total, lanes)), np.zeros((total, lanes))
    ends: list[dict[int, int]] = []  # of each lane: the row of time -> the last row of its game
    for lane in range(lanes):
        ends.append({})
        while len(ends[lane]) < total:
            first = len(ends[lane])
            last = first + int(rng.integers(0, longest))
            ends[lane] |= {t: last for t in range(first, last + 1)}
            if last < total:
                done[last, lane], winner[last, lane] = True, rng.integers(0, 2)
    searched = ~((np.arange(total)[:, None] % 5 == 0) & (np.arange(lanes) == 2))
    rewards = np.where(done[..., None], np.where(winner[..., None] == np.arange(2), 1.0, -1.0), 0.0)
    fields = dict.fromkeys(selfplay.Row._fields, jnp.zeros((total, lanes, 1)))
    fields |= {"done": done, "player": mover.astype(np.int8), "rewards": rewards, "policy": searched[..., None] * 1.0}
    rows = jax.tree.map(jnp.asarray, selfplay.Row(**fields | {"values": np.zeros((total, lanes, 2))}))
    ring = replay.empty_replay(rows, length)
    for upto in range(added, total + 1, added):
        ring = replay.insert(ring, jax.tree.map(lambda x: x[upto - added : upto], rows), 1.0, longest)
        for t in range(max(0, upto - length), upto):
            for lane in range(lanes):
                end = ends[lane][t]
                assert ring.known[t % length, lane] == (end < upto and searched[t, lane])
                if end < upto:
                    expected = 1 if winner[end, lane] == mover[t, lane] else -1
                    assert ring.result[t % length, lane].tolist() == [expected, -expected]
                    assert ring.target[t % length, lane].tolist() == [expected, -expected]


def test_future_moves_by_hand():
    """Lane 0: 4, 0 and 8 end a game and 1 begins the next. Lane 1: after 3 the second player gives up, thinking of 5.
    Lane 2: all play 2 again and again."""
    game = envs.make("tictactoe")
    moves = jnp.array([[4, 3, 2], [0, 5, 2], [8, 7, 2], [1, 6, 5]], jnp.int16)
    player = jnp.array([[0, 0, 0], [1, 1, 1], [0, 0, 0], [0, 1, 1]], jnp.int8)
    done = jnp.array([[0, 0, 0], [0, 1, 0], [1, 0, 1], [1, 1, 1]], bool)
    resigned = jnp.zeros((4, 3), bool).at[1, 1].set(True)
    fields = dict.fromkeys(selfplay.Row._fields, jnp.zeros((4, 3)))
    rows = selfplay.Row(**fields | {"action": moves, "player": player, "done": done, "resigned": resigned})
    unknown = jnp.full(9, -1)
    expected = {
        (0, 0): jnp.full(9, 2).at[jnp.array([4, 8])].set(0).at[0].set(1),
        (1, 0): jnp.full(9, 2).at[0].set(0).at[8].set(1),
        (0, 1): unknown.at[3].set(0),
        (1, 1): unknown,
        (1, 2): jnp.full(9, 2).at[2].set(0),
    }
    for shift in (0, 3):  # the ring may begin anywhere
        ring = jax.tree.map(lambda x, shift=shift: jnp.roll(x, shift, axis=0), rows)
        known = jnp.ones((4, 3), bool)
        filled = replay.Replay(ring, known, known, known, jnp.int32(shift))
        index = jnp.array([(t + shift) % 4 * 3 + lane for t, lane in expected])
        np.testing.assert_array_equal(replay.future_moves(game, filled, index), jnp.stack(list(expected.values())))
    view = dataclasses.replace(game, to_mover_frame=np.stack([np.arange(9), np.arange(9)[::-1]]))
    seen = replay.future_moves(view, replay.Replay(rows, known, known, known, jnp.int32(0)), jnp.array([3]))
    assert seen[0].tolist() == [1, 2, 2, 2, 2, 2, 2, 2, 0]


def test_owners_by_hand():
    """Lane 0: a game ends with its third row, another begins with the fourth. Lane 1: given up with the second row."""
    game = dataclasses.replace(envs.make("tictactoe"), hints=Hints(owners=lambda s: jnp.zeros(9, jnp.int8)))
    owners = jnp.full((4, 2, 9), 2, jnp.int8).at[2, 0, :4].set(jnp.array([0, 0, 1, 1], jnp.int8)).at[3, 0, 8].set(1)
    player = jnp.array([[0, 0], [1, 1], [0, 0], [0, 1]], jnp.int8)
    done = jnp.array([[0, 0], [0, 1], [1, 0], [1, 1]], bool)
    resigned = jnp.zeros((4, 2), bool).at[1, 1].set(True)
    fields = dict.fromkeys(selfplay.Row._fields, jnp.zeros((4, 2)))
    rows = selfplay.Row(**fields | {"player": player, "done": done, "resigned": resigned, "owners": owners})
    nobody = [2] * 5
    expected = {
        (0, 0): [0, 0, 1, 1, *nobody],
        (1, 0): [1, 1, 0, 0, *nobody],
        (2, 0): [0, 0, 1, 1, *nobody],
        (3, 0): [*nobody, 2, 2, 2, 1],
        (0, 1): [-1] * 9,
        (1, 1): [-1] * 9,
    }
    for shift in (0, 3):  # the ring may begin anywhere
        ring = jax.tree.map(lambda x, shift=shift: jnp.roll(x, shift, axis=0), rows)
        known = jnp.ones((4, 2), bool)
        filled = replay.Replay(ring, known, known, known, jnp.int32(shift))
        index = jnp.array([(t + shift) % 4 * 2 + lane for t, lane in expected])
        np.testing.assert_array_equal(replay.owners_in_the_end(game, filled, index), list(expected.values()))
    view = dataclasses.replace(game, to_mover_frame=np.stack([np.arange(9), np.arange(9)[::-1]]))
    seen = replay.owners_in_the_end(view, replay.Replay(rows, known, known, known, jnp.int32(0)), jnp.array([2]))
    assert seen[0].tolist() == [*nobody, 0, 0, 1, 1]


def test_games_are_resigned_but_for_those_played_out(parts):
    """Every player moves to the first free square and despairs from ply 2 on: the first player then wins at ply 6."""
    game = envs.make("tictactoe")
    config = dataclasses.replace(SMALL, resign_threshold=-0.9, played_out=0.5, plies_per_iteration=12)

    def search(weights, key, states, plies):
        mask = jax.vmap(game.mask)(states)
        value = jnp.where(plies >= 2, -0.95, 0.0)
        nothing = mask * 1.0
        return SearchResult(mask.argmax(-1), nothing, value, value, nothing[:, :2], value, nothing, nothing, value)

    lanes = selfplay.new_games(game, jax.random.key(0), 400, config)
    assert 160 < int(lanes.played_out.sum()) < 240
    after, rows, _ = jax.jit(selfplay.make_selfplay(game, search, config))({}, jax.random.key(1), lanes)
    out = np.asarray(lanes.played_out)
    ends, given_up = np.asarray(rows.done), np.asarray(rows.resigned)
    assert (ends.argmax(0) == np.where(out, 6, 2)).all()
    assert given_up[2, ~out].all() and not given_up[:7, out].any() and not given_up[:2].any()
    np.testing.assert_array_equal(rows.rewards[2, ~out], np.tile([-1.0, 1.0], ((~out).sum(), 1)))
    np.testing.assert_array_equal(rows.rewards[6, out], np.tile([1.0, -1.0], (out.sum(), 1)))
    assert (np.asarray(rows.plies)[3, ~out] == 0).all()
    ring = parts[1]().replay
    summary = lambda rows, ring: iteration.summarise(game, config, rows, ring, ring)
    metrics = jax.jit(jax.shard_map(summary, mesh=ONE, in_specs=P(), out_specs=P(), check_vma=False))(rows, ring)
    resigned, whole = int(given_up.sum()), int((ends & ~given_up).sum())
    assert resigned > 200 and metrics.games == resigned + whole
    np.testing.assert_allclose(metrics.game_length, (2 * resigned + 7 * whole) / (resigned + whole), rtol=1e-6)
    assert (after.played_out != lanes.played_out).any()  # drawn anew for every game
    never = selfplay.make_selfplay(game, search, dataclasses.replace(config, resign_threshold=-1.0))
    assert not jax.jit(never)({}, jax.random.key(1), lanes)[1].resigned.any()
    play = jax.jit(selfplay.make_selfplay(game, search, config))
    assert not play({}, jax.random.key(1), lanes, jnp.bool(False))[1].resigned.any()
    three = dataclasses.replace(game, num_players=3)
    with pytest.raises(ValueError, match="--resign_threshold=-0.9: expected a game for two players"):
        selfplay.make_selfplay(three, search, config)


def test_lanes_start_staggered():
    game = envs.make("foq:rows=5,cols=5")
    lanes = jax.jit(lambda k: selfplay.start_lanes(game, k, Config(num_envs=256)))(jax.random.key(0))
    assert len(np.unique(lanes.plies)) >= 6
    assert not np.asarray(jax.vmap(game.over)(lanes.states)).any()


def test_rows_of_a_run_hold_the_outcome_of_their_game(parts):
    """Every known row's result is that of its own game, also when the game ended iterations later."""
    _, start, iterate = parts
    run = start()
    for _ in range(6):
        run, _ = iterate(run, 0.0)
    ring, length = run.replay, int(run.iteration) * SMALL.plies_per_iteration
    assert int(ring.cursor) == length < ring.known.shape[0]
    rows = jax.device_get(ring.rows)
    known, result = np.asarray(ring.known), np.asarray(ring.result)
    assert not known[length:].any()
    for lane in range(SMALL.num_envs):
        for t in range(length):
            ends = [u for u in range(t, length) if rows.done[u, lane]]
            assert known[t, lane] == bool(ends)
            if ends:
                assert result[t, lane, 0] == rows.rewards[ends[0], lane, rows.player[t, lane]]
    plies = rows.plies[:length]
    assert ((plies[1:] == plies[:-1] + 1) | ((plies[1:] == 0) & rows.done[: length - 1])).all()


def test_the_ring_forgets_the_oldest_iteration():
    game = envs.make("tictactoe")
    assert replay.ring_length(game, SMALL) == 28  # 400 rows in 16 lanes are 25 plies: whole iterations of 4
    assert replay.ring_length(game, dataclasses.replace(SMALL, replay_capacity=1)) == 16  # a game and an iteration: 13


def test_draw_is_even_over_known_rows(parts):
    _, start, iterate = parts
    run = start()
    for _ in range(3):
        run, _ = iterate(run, 0.0)
    known = np.flatnonzero(np.asarray(run.replay.known).ravel())
    index = np.asarray(replay.draw(run.replay, jax.random.key(1), (200, 100))).ravel()
    counts = np.bincount(index, minlength=run.replay.known.size)
    assert counts.sum() == counts[known].sum()
    expected = 20000 / len(known)
    assert (np.abs(counts[known] - expected) < 6 * np.sqrt(expected)).all()


def test_only_recent_rows_are_drawn(parts):
    _, start, _ = parts
    ring = start().replay
    length, lanes = ring.known.shape
    ring = ring._replace(known=jnp.ones_like(ring.known), cursor=jnp.int32(3))
    kept = np.asarray(replay.recent(ring, jnp.int32(5)).known)
    assert np.flatnonzero(kept.all(1)).tolist() == [0, 1, 2, length - 2, length - 1] and kept.sum() == 5 * lanes


def test_the_window_grows_with_the_run_and_holds_a_game():
    game, config = envs.make("tictactoe"), dataclasses.replace(SMALL, replay_share=0.25)
    rows = lambda iteration: int(replay.window(game, config, jnp.int32(iteration)))
    assert rows(1) == rows(13) == 9 + 4  # the longest game and an iteration
    assert rows(14) == 14 and rows(100) == 100  # a quarter of all


def test_batches_come_from_the_window(parts):
    """The window is a game and an iteration, 13 plies, so rows drawn from it are six plies old on average."""
    game, start, _ = parts
    config = dataclasses.replace(SMALL, replay_share=0.01)
    iterate = jax.jit(make_iteration(game, make_network(game, config), config, ONE))
    run = start()
    for _ in range(8):
        run, metrics = iterate(run, 0.0)
    assert 3 < metrics["replay_age"] < 8 and metrics["replay_rows"] > 250


def rest_of_the_game(ring: replay.Replay, index: int) -> list[int]:
    """`replay.future_moves` of one row of tic-tac-toe, step by step: no move is made twice."""
    rows, lanes = jax.device_get(ring.rows), ring.known.shape[1]
    t, lane, who = index // lanes, index % lanes, [2] * 9
    while True:
        who[int(rows.action[t, lane])] = (int(rows.player[t, lane]) - int(rows.player[index // lanes, lane])) % 2
        if rows.done[t, lane]:
            return who
        t += 1


def test_samples_are_turned_as_a_whole(parts):
    """Each sampled row equals its position seen through one symmetry: planes, legal codes and policy together."""
    game, start, iterate = parts
    run = start()
    for _ in range(3):
        run, _ = iterate(run, 0.0)
    index = replay.draw(run.replay, jax.random.key(1), (32,))
    config = dataclasses.replace(SMALL, future_weight=1.0)
    batch = jax.device_get(jax.jit(lambda ring: replay.sample(game, ring, index, config))(run.replay))
    take = lambda x: x.reshape(-1, *x.shape[2:])[index]
    memory = jax.tree.map(take, run.replay.rows.observation_state)
    seen = set()
    for i in range(32):
        s = jax.tree.map(lambda x: x[i], memory)
        part = i * len(game.symmetries) // 32
        turned = game.symmetries[part].state(s)
        seen.add(part)
        np.testing.assert_array_equal(batch.planes[i], game.observe(turned))
        legal = np.flatnonzero(game.mask(turned)).tolist()
        assert sorted(c for c in batch.actions[i].tolist() if c >= 0) == legal
        assert batch.future[i][game.symmetries[part].actions].tolist() == rest_of_the_game(run.replay, int(index[i]))
    assert seen == set(range(8))


def test_few_rows_meet_every_symmetry_too():
    """A device's share of a batch may have fewer rows than symmetries; drawn again, a row meets another one."""
    game = envs.make("tictactoe")
    state = game.step(game.step(game.init(), 0), 1)
    planes, codes = game.observe(state), jnp.array([2, 5, -1])
    met = set()
    for number in range(64):
        turns = replay.Turns(game.symmetries, jnp.array([number, number + 100]))
        seen = turns.planes(jnp.stack([planes, planes]))
        moved, marks = turns.codes(jnp.stack([codes, codes])), turns.of_actions(jnp.eye(9)[jnp.array([2, 2])])
        for row in range(2):
            i = int(turns.which[row])
            met.add(i)
            symmetry = game.symmetries[i]
            np.testing.assert_array_equal(seen[row], game.observe(symmetry.state(state)))
            assert moved[row].tolist() == [symmetry.actions[2], symmetry.actions[5], -1]
            assert marks[row].argmax() == symmetry.actions[2]
    assert met == set(range(8))


def test_without_symmetries_rows_are_seen_as_they_were_played():
    assert [s.name for s in replay.learned_symmetries(envs.make("tictactoe"), Config(augment=False))] == ["identity"]
    turns = replay.Turns(envs.make("tictactoe").symmetries[:1], jnp.arange(5))
    planes, codes = jnp.arange(5 * 18.0).reshape(5, 3, 3, 2), jnp.arange(5 * 9).reshape(5, 9) % 9
    np.testing.assert_array_equal(turns.planes(planes), planes)
    np.testing.assert_array_equal(turns.codes(codes), codes)
    np.testing.assert_array_equal(turns.of_actions(codes), codes)


def test_every_row_is_drawn_as_often_as_asked():
    config = dataclasses.replace(SMALL, num_envs=1024, plies_per_iteration=4, batch_size=512, replay_ratio=3.0)
    assert updates_per_iteration(config) * 512 == 3 * 4096


def test_learning_rate_by_hand():
    config = Config(learning_rate=1.0, batch_size=100, warmup_positions=2000, final_lr_fraction=0.1)
    rate = lambda updates, progress: float(learner.learning_rate(config, jnp.int32(updates), jnp.float32(progress)))
    assert rate(0, 0.0) == pytest.approx(1 / 20)
    assert rate(9, 0.0) == pytest.approx(1 / 2)
    assert rate(19, 0.0) == pytest.approx(1.0)
    assert rate(99, 0.5) == pytest.approx(0.55)
    assert rate(99, 1.0) == pytest.approx(0.1)


def test_the_average_looks_back_over_positions_whatever_the_batch():
    """Of weights that change once, 1 / e is left in the average after `ema_positions` more positions."""
    for batch in (64, 512):
        config = Config(batch_size=batch, ema_positions=64_000)
        keeps = [float(learner.ema_decay(config, jnp.int32(100_000 + u))) for u in range(64_000 // batch)]
        assert np.prod(keeps) == pytest.approx(np.exp(-1), rel=0.01)
    assert float(learner.ema_decay(Config(), jnp.int32(10))) == pytest.approx(11 / 20)
    assert float(learner.ema_decay(Config(ema_positions=0), jnp.int32(10))) == 0


@pytest.mark.parametrize("kind", ["muon", "adamw"])
def test_kernels_decay_and_nothing_else_does(kind):
    """Without a gradient an update takes away `weight_decay` of each kernel, at a rate of 1."""
    params = {"conv": jnp.ones((3, 3, 32, 16)), "scale": jnp.ones(16), "head": jnp.ones((16, 1))}
    optimiser = learner.make_optimiser(Config(optimiser=kind, weight_decay=0.05))
    nothing = jax.tree.map(jnp.zeros_like, params)
    steps = jax.device_get(optimiser.update(nothing, optimiser.init(params), params)[0])
    np.testing.assert_allclose(steps["conv"], -0.05, rtol=1e-6)
    np.testing.assert_allclose(steps["head"], -0.05, rtol=1e-6)
    np.testing.assert_array_equal(steps["scale"], 0)


def test_options_of_earlier_versions_count_positions_now():
    saved = dataclasses.asdict(Config(batch_size=256))
    for name in ("warmup_positions", "ema_positions", "rating_positions"):
        del saved[name]
    read = config_lib.config_of_record({**saved, "warmup_updates": 100, "average_decay": 0.998, "rating_updates": 2000})
    assert (read.warmup_positions, read.ema_positions, read.rating_positions) == (25_600, 128_000, 512_000)
    with pytest.raises(TypeError, match="unheard_of"):
        config_lib.config_of_record({**saved, "unheard_of": 1})
    for damaged in ({"warmup_updates": 5}, {"average_decay": 0.9}, {"average_decay": 0.9, "batch_size": float("inf")}):
        with pytest.raises(checkpoint.CheckpointError, match="damaged or of another version"):
            checkpoint.record(json.dumps({"config": damaged}), "x.json")


KINDS = [("mlp", "none", False), ("resnet", "batch", False), ("resnet", "batch", True), ("resnet", "layer", False)]
KINDS += [("strips", "batch", False), ("strips", "none", False)]
OTHERS = [("mlp", "batch", False), ("mlp", "layer", False), ("resnet", "none", False), ("strips", "layer", False)]


@pytest.mark.parametrize(
    ("network", "normalisation", "slides"),
    [*KINDS, *(pytest.param(*kind, marks=pytest.mark.nightly) for kind in OTHERS)],
)
def test_each_network_learns_a_small_batch_by_heart(network, normalisation, slides):
    game = envs.make("tictactoe")
    options = {"network": network, "normalisation": normalisation, "slides": slides}
    config = dataclasses.replace(SMALL, **options, future_weight=1.0)
    net = make_network(game, config)
    keys = jax.random.split(jax.random.key(0), 3)
    planes = jax.random.bernoulli(keys[0], 0.4, (16, 3, 3, 2)).astype(jnp.float32)
    batch = replay.Batch(
        planes,
        jnp.tile(jnp.array([0, 2, 4, -1]), (16, 1)),
        jax.nn.one_hot(jax.random.randint(keys[1], (16,), 0, 3), 4),
        jax.random.choice(keys[2], jnp.array([-1.0, 1.0]), (16,)),
        jnp.tile(jnp.array([0, 1, 2, -1, 0, 1, 2, 0, 0], jnp.int8), (16, 1)),
    )
    weights = net.init(keys[0])
    optimiser = optax.adam(1e-2)

    @jax.jit
    def fit(params):
        def step(carry, _):
            params, state, extra = carry
            of = lambda p: learner.loss(net, {**extra, "params": p}, batch, config)
            gradient, (losses, extra) = jax.grad(of, has_aux=True)(params)
            change, state = optimiser.update(gradient, state)
            return (optax.apply_updates(params, change), state, extra), losses

        return jax.lax.scan(step, (params, optimiser.init(params), weights), length=150)[1]

    losses = fit(weights["params"])
    assert float(losses.policy_loss[0]) == pytest.approx(np.log(3), abs=1e-4)  # starts uniform over the legal actions
    assert float(losses.value_loss[0]) == pytest.approx(1.0, abs=1e-4)  # and with value 0
    assert float(losses.future_loss[0]) == pytest.approx(8 / 9 * np.log(3), abs=1e-4)  # one move of nine is unknown
    assert float(losses.policy_loss[-1] + losses.value_loss[-1] + losses.future_loss[-1]) < 0.3


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_the_highest_cells_share_the_whole_derivative(dtype):
    """By hand, and where the compiler forms the cells anew: each channel passes all of its derivative on."""
    cells = jnp.array([[[[1.0, 5.0], [3.0, 5.0]], [[2.0, 0.0], [-4.0, 1.0]]]], dtype)
    by_hand = [[[[0.0, 0.5], [1.0, 0.5]], [[0.0, 0.0], [0.0, 0.0]]]]
    np.testing.assert_array_equal(jax.grad(lambda x: board_max(x).sum())(cells), by_hand)

    of = functools.partial(jax.random.normal, shape=(64, 8, 9, 32), dtype=dtype)
    x, gain, slope = 3 * of(jax.random.key(0)), of(jax.random.key(1)), jnp.linspace(0.2, 1.3, 32, dtype=dtype)
    shifted = lambda x: ((x * gain - 0.3) * 0.7 * slope + 0.1).astype(dtype)
    derivative = jax.jit(jax.grad(lambda x: (board_max(shifted(x)).astype(jnp.float32) ** 2).sum() / 2))(x)
    passed = derivative.astype(jnp.float32) / (0.7 * slope * gain).astype(jnp.float32)
    top = np.asarray(shifted(x).astype(jnp.float32)).max((1, 2))
    np.testing.assert_allclose(passed.sum((1, 2)), top, rtol=0.05)


def test_cells_share_the_weights_of_their_actions():
    """What is seen around a cell of EvoPawness, moved to another cell, moves the logits of its 37 actions with it."""
    game = envs.make("evopawness:history=1")
    net = make_network(game, dataclasses.replace(SMALL, network="resnet"))
    noise = lambda x: x + 0.3 * jax.random.normal(jax.random.key(x.size), x.shape)
    weights = jax.tree.map(noise, net.init(jax.random.key(0))["params"])
    weights = {**net.init(jax.random.key(0)), "params": weights}
    pattern = jax.random.normal(jax.random.key(1), (3, 3, 28))
    planes = jnp.zeros((2, 9, 9, 28)).at[0, 3:6, 3:6].set(pattern).at[1, 2:5, 4:7].set(pattern)
    logits = np.asarray(net.apply(weights, planes)[0])
    of_cells = logits[:, :2997].reshape(2, 9, 9, 37)
    # Three convolutions see three cells far: around these two none of that is the edge of the board.
    np.testing.assert_allclose(of_cells[0, 4, 4], of_cells[1, 3, 5], rtol=1e-4, atol=1e-4)
    assert np.abs(of_cells[0, 4, 4] - of_cells[1, 4, 4]).max() > 0.1
    np.testing.assert_allclose(logits[0, 2997], logits[1, 2997], rtol=0.2)  # of the whole board, edges included


@pytest.mark.parametrize("shape", [(8, 8), (288, 32), (32, 288)])
def test_orthogonal_factor_keeps_directions_and_evens_out_their_lengths(shape):
    """Against numpy's singular value decomposition, of a matrix whose singular values span a factor of 30."""
    rng = np.random.default_rng(0)
    left, _, right = np.linalg.svd(rng.normal(size=shape), full_matrices=False)
    matrix = (left * np.geomspace(1, 1 / 30, min(shape))) @ right
    lengths = left.T @ np.asarray(learner.orthogonal(jnp.asarray(matrix[None], jnp.float32)))[0] @ right.T
    assert (np.abs(np.diag(lengths) - 0.95) < 0.35).all()
    np.testing.assert_allclose(lengths - np.diag(np.diag(lengths)), 0, atol=1e-4)


def test_muon_moves_every_kernel_by_the_same_length_and_leaves_the_rest_to_adamw():
    params = {"conv": jnp.ones((3, 3, 32, 16)), "scale": jnp.ones(16), "head": jnp.ones((16, 1))}
    optimiser = learner.make_optimiser(Config(optimiser="muon", weight_decay=0.0, clip_norm=1e9))
    gradients = jax.tree.map(lambda x: 0.1 * jax.random.normal(jax.random.key(x.ndim), x.shape), params)
    update = lambda gradients: jax.device_get(optimiser.update(gradients, optimiser.init(params), params)[0])
    moved, again = update(gradients), update(jax.tree.map(lambda x: 7 * x, gradients))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-5), moved, again)
    # Adam's first step is the sign of the gradient; Muon's has about a fifth of that in every entry, as Adam's later.
    np.testing.assert_allclose(moved["scale"], -np.sign(gradients["scale"]), rtol=1e-3)
    np.testing.assert_allclose(moved["head"], -np.sign(gradients["head"]), rtol=1e-3)
    assert np.sqrt(np.square(moved["conv"]).mean()) == pytest.approx(0.2, rel=0.3)
    assert float(jnp.vdot(moved["conv"], gradients["conv"])) < 0


def test_a_queen_is_heard_wherever_the_rules_let_her_slide():
    """Against the rules' own tables, on random boards; every direction has its own channel."""
    rng = np.random.default_rng(0)
    ripped, squares = rng.random((64, 5, 6)) < 0.3, rng.integers(0, 30, 64)
    queens = (np.arange(30) == squares[:, None]).reshape(64, 5, 6)
    heard = along_lines(jnp.repeat(jnp.float32(queens)[..., None], 8, axis=-1), jnp.float32(~ripped)[..., None])
    np.testing.assert_array_equal((np.asarray(heard).sum(-1) > 0) & ~ripped, jax.vmap(foq.reach)(ripped, squares))
    directions = [(1, -1), (1, 0), (1, 1), (-1, -1), (-1, 0), (-1, 1), (0, 1), (0, -1)]
    for channel, (rows, cols) in enumerate(directions):
        board, row, col = np.nonzero(np.asarray(heard[..., channel]))
        from_row, from_col = row - squares[board] // 6, col - squares[board] % 6
        np.testing.assert_array_equal(np.sign(from_row), rows)
        np.testing.assert_array_equal(np.sign(from_col), cols)


def test_a_mesh_needs_devices_that_divide_the_work():
    assert mesh.make_mesh(16, 32).size == 2
    assert mesh.make_mesh(15, 32).size == 1
    for wanted, games in ((3, 16), (2, 15), (0, 16)):
        with pytest.raises(ValueError, match="--devices=.*possible: 1"):
            mesh.make_mesh(games, 32, wanted)


def test_same_seed_same_run(parts):
    _, start, iterate = parts
    ends = []
    for _ in range(2):
        run = start()
        for _ in range(3):
            run, figures = iterate(run, 0.0)
        ends.append((run, figures))
    assert same(*ends)


def test_a_saved_run_goes_on_as_if_it_had_not_stopped(parts, tmp_path):
    _, start, iterate = parts
    run = start()
    for _ in range(2):
        run, _ = iterate(run, 0.1)
    save_run(tmp_path, run, SMALL, minutes=1.5, total_games=7, total_plies=9)
    path = checkpoint.find_checkpoint(tmp_path, "resume")
    about = checkpoint.about(path)
    assert about["config"] == SMALL
    assert (about["iteration"], about["minutes"], about["total_games"]) == (2, 1.5, 7)
    restored = load_run(path, SMALL, ONE)
    assert isinstance(restored, Run)
    assert same(run, restored)
    assert same(iterate(run, 0.2), iterate(restored, 0.2))
    assert same(run, load_run(path, SMALL, mesh.make_mesh(16, 32, 2)))  # on another number of devices
    network = models.load_arrays(checkpoint.find_checkpoint(tmp_path, "networks"), SMALL)
    assert same(network, run.learning.ema_weights)


def test_only_the_last_two_resume_folders_are_kept_and_all_networks(parts, tmp_path):
    _, start, _ = parts
    run = start()
    for i in (3, 20, 100):
        save_run(tmp_path, run._replace(iteration=jnp.int32(i)), SMALL)
    assert sorted(p.name for p in (tmp_path / "resume").iterdir()) == ["100", "20"]
    assert checkpoint.find_checkpoint(tmp_path, "resume").name == "100"
    assert {p.name for p in (tmp_path / "networks").iterdir()} == {"3", "20", "100"}


def test_damaged_and_missing_checkpoints_are_named(parts, tmp_path):
    _, start, _ = parts
    with pytest.raises(checkpoint.CheckpointError, match="does not exist"):
        checkpoint.find_checkpoint(tmp_path / "none", "resume")
    with pytest.raises(checkpoint.CheckpointError, match="holds no networks"):
        checkpoint.find_checkpoint(tmp_path, "networks")
    save_run(tmp_path, start(), SMALL)
    path = checkpoint.find_checkpoint(tmp_path, "resume")
    for file in (path / "run").rglob("*"):
        if file.is_file():
            file.write_bytes(b"")
    with pytest.raises(checkpoint.CheckpointError, match="damaged"):
        load_run(path, SMALL, ONE)


def test_presets_suit_game_and_device():
    assert preset(envs.make("tictactoe"), "cpu").network == preset(envs.make("sum_to_100"), "cpu").network == "mlp"
    small, large = (preset(envs.make("foq"), platform) for platform in ("cpu", "tpu"))
    assert (small.network, small.dtype) == ("resnet", "float32")
    assert large.channels > small.channels
    assert large.dtype == "bfloat16"
    many, alone = (preset(envs.make("foq"), "gpu", devices=n) for n in (8, 1))
    assert (many.num_envs, many.batch_size) == (8 * alone.num_envs, 8 * alone.batch_size)
    assert preset(envs.make("foq"), "cpu", devices=8) == dataclasses.replace(small, num_envs=1024)


def test_games_at_once_on_a_cpu_by_hand():
    """The longest games of all lanes of a core have 100,000 rows, counted with symmetries; 128 to 1024 lanes."""
    lanes = lambda env, cores=1: preset(envs.make(env), "cpu", devices=cores).num_envs
    assert lanes("connect_four") == 1024  # 42 plies, 2 symmetries: 1190
    assert lanes("foq") == 256  # 70 plies, 4 symmetries: 357
    assert lanes("go:size=9") == 128  # 162 plies, 8 symmetries: 77
    assert [lanes("go:size=9", cores) for cores in (2, 3, 4, 8, 64)] == [256, 256, 512, 1024, 1024]


def test_presets_scale_with_the_devices_of_a_run(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "device_count", lambda: 8)

    def sizes(*options):
        config, _ = training(["--env=foq", *options])
        return config.num_envs, config.batch_size

    assert sizes() == (8192, 32768)
    assert sizes("--devices=2") == (2048, 8192)
    assert sizes("--num_envs=1024") == (1024, 4096)


def test_a_run_with_two_budgets_keeps_the_one_that_is_not_changed():
    base = Config(iterations=1000, minutes=60.0)
    longer = dataclasses.replace(base, minutes=90.0)
    assert options._with_budget(longer, base, ["--minutes=90"], True) == longer
    timed = Config(minutes=28.0)
    counted = options._with_budget(dataclasses.replace(timed, iterations=5), timed, ["--iterations=5"], True)
    assert (counted.iterations, counted.minutes) == (5, None)
