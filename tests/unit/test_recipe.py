"""Parts of the recipe: small cases with answers worked out by hand, and each named recipe learns tic-tac-toe."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from agents.config import RECIPES, Config, preset, stage, stages
from agents.network.network import make_network
from agents.run import game_log, gating, preflight
from agents.runtime import mesh
from agents.search import selection
from agents.search.tree import SearchResult
from agents.training import iteration, replay, selfplay
from agents.training.algorithms import algorithm_of
from agents.training.learner import policy_cross_entropy
from envs import evopawness

SMALL = Config(
    env="tictactoe", num_envs=16, plies_per_iteration=4, num_simulations=8, network="mlp", channels=16, blocks=1,
    replay_capacity=400, batch_size=32, warmup_positions=0,
)  # fmt: skip
GAME = envs.make("tictactoe")


def first_free(value):
    """A search that plays the first free square and says `value(plies)`; the network always says 0."""

    def search(weights, key, states, plies):
        mask = jax.vmap(GAME.mask)(states)
        found, nothing = value(plies), mask * 1.0
        both = jnp.stack([found, -found], axis=-1)
        return SearchResult(mask.argmax(-1), nothing, found, found, both, 0 * found, nothing, nothing, found)

    return search


def play(config, plies, search, lanes=None):
    config = dataclasses.replace(config, plies_per_iteration=plies)
    if lanes is None:
        lanes = selfplay.new_games(GAME, jax.random.key(0), config.num_envs, config)
    return jax.jit(selfplay.make_selfplay(GAME, search, config))({}, jax.random.key(1), lanes)


def test_ended_games_carry_all_their_moves():
    """Up to two random moves, then the first free square each time until somebody has a line or all is full."""
    config = dataclasses.replace(SMALL, random_opening_plies=2)
    _, _, ended = play(config, 9, first_free(lambda plies: 0.0 * plies))
    packed = jax.device_get(iteration.pack(ended))
    assert packed.there.sum() == np.asarray(ended.there).sum() >= 16
    step = jax.jit(GAME.step)
    for i in np.flatnonzero(packed.there):
        s, moves = GAME.init(), packed.moves[i]
        for action in moves[moves >= 0]:
            s = step(s, int(action))
        assert bool(GAME.over(s)) and (GAME.rewards(s) == packed.rewards[i]).all()
        later = moves[packed.opening[i] : (moves >= 0).sum()]
        assert 0 <= packed.opening[i] <= 2
        assert (np.diff(later) > 0).all()  # after its random opening the first free square each time
    assert set(packed.opening[packed.there].tolist()) == {0, 1, 2}
    assert not packed.there[packed.there.sum() :].any()


def ring_of(rows):
    known = jnp.ones(rows.done.shape, bool)
    return replay.Replay(rows, known * 1.0, known * 1.0, known, jnp.int32(0))


def row_fields(**fields):
    shape = next(iter(fields.values())).shape[:2]
    return selfplay.Row(**dict.fromkeys(selfplay.Row._fields, jnp.zeros(shape)) | fields)


def test_only_rows_with_known_results_are_drawn_and_all_equally_often():
    ring = ring_of(row_fields(done=jnp.zeros((4, 1), bool)))
    ring = ring._replace(known=jnp.array([[1], [1], [1], [0]], bool))
    counts = np.bincount(np.asarray(replay.draw(ring, jax.random.key(0), (24_000,))), minlength=4)
    assert (np.abs(counts / 1000 - [8, 8, 8, 0]) < 0.4).all(), counts
    assert counts[3] == 0


def test_unknown_rows_are_never_drawn_however_large_the_ring():
    """Sums of 200,000 shares in single precision would leave room between the rows."""
    drawn_key, known_key = jax.random.split(jax.random.key(0))
    ring = ring_of(row_fields(done=jnp.zeros((196, 1024), bool)))
    ring = ring._replace(known=jax.random.bernoulli(known_key, 0.7, (196, 1024)))
    drawn = replay.draw(ring, drawn_key, (2_000_000,))
    assert bool(ring.known.ravel()[drawn].all())
    assert len(np.unique(drawn)) > 0.99 * int(ring.known.sum())


def test_a_row_without_a_policy_adds_no_loss():
    logits = jnp.log(jnp.array([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]))
    loss, own, target = policy_cross_entropy(logits, jnp.array([[0, 1], [0, 2]]), jnp.array([[1.0, 0.0], [0.0, 0.0]]))
    assert float(loss) == pytest.approx(-np.log(2 / 3) / 2)
    assert float(target) == 0
    entropy = lambda *p: -sum(x * np.log(x) for x in p)
    assert float(own) == pytest.approx((entropy(2 / 3, 1 / 3) + entropy(1 / 9, 8 / 9)) / 2, rel=1e-5)


def test_the_divergence_of_policies_by_hand():
    logits = jnp.log(jnp.array([[0.5, 0.25, 0.25]]))
    assert float(selection.divergence(jnp.array([[1.0, 0.0, 0.0]]), logits)[0]) == pytest.approx(np.log(2))
    assert float(selection.divergence(jnp.array([[0.5, 0.25, 0.25]]), logits)[0]) == pytest.approx(0, abs=1e-6)


def test_an_urge_counts_in_the_first_eighth_of_the_run():
    config = Config(search="puct", early_urge=1.0)
    assert [stage(config, p).early_urge for p in (0, 0.1, 0.12, 0.13, 1.0)] == [1.0, 1.0, 1.0, 0.0, 0.0]
    assert stages(config) == [config, dataclasses.replace(config, early_urge=0.0)]
    assert stages(Config()) == [Config()]


def test_calibration_counts_values_and_their_outcomes():
    devices = mesh.make_mesh(2, 2, 1)
    count = jax.shard_map(
        iteration.calibration, mesh=devices, in_specs=jax.sharding.PartitionSpec(),
        out_specs=jax.sharding.PartitionSpec(), check_vma=False,
    )  # fmt: skip
    value = jnp.array([[-1.0, -0.85, 0.05, 1.0, 0.9]])
    found = count(value, jnp.array([[-1.0, 1.0, 1.0, 1.0, 0.0]]), jnp.array([[1, 1, 1, 1, 0]], bool))
    assert found.tolist() == [[2, 0, 0, 0, 0, 1, 0, 0, 0, 1], [0, 0, 0, 0, 0, 1, 0, 0, 0, 1]]


def test_how_often_giving_up_was_wrong_by_hand():
    """Six games of one row each. Four rows are below -0.9: the first was resigned, the second is not counted, the third
    was lost, and the fourth was won."""
    devices = mesh.make_mesh(2, 2, 1)
    searched = jnp.array([[-0.95, -0.95, -0.95], [-0.95, -0.5, 0.95]])[..., None]
    resigned = jnp.zeros((2, 3), bool).at[0, 0].set(True)
    fields = {"values": jnp.concatenate([searched, -searched], -1), "resigned": resigned}
    ring = ring_of(row_fields(**fields, player=jnp.zeros((2, 3), jnp.int8), done=jnp.ones((2, 3), bool)))
    result = jnp.array([[-1.0, -1.0, -1.0], [1.0, -1.0, 1.0]])[..., None]
    counted = jnp.ones((2, 3), bool).at[0, 1].set(False)
    config = Config(resign_threshold=-0.9)
    share = jax.jit(jax.shard_map(
        lambda ring, counted: iteration.false_resign_rate(config, ring, counted), mesh=devices,
        in_specs=jax.sharding.PartitionSpec(), out_specs=jax.sharding.PartitionSpec(), check_vma=False,
    ))  # fmt: skip
    assert float(share(ring._replace(result=result), counted)) == 0.5
    assert np.isnan(share(ring._replace(result=result), resigned))


def test_the_first_marked_row_of_each_game_by_hand():
    """Two lanes of six plies, written from row 2 on. The first lane's games have plies 0 to 2 and 3 to 5, and its rows
    1, 2, 4 and 5 are marked; the second has one game so far, marked from ply 3 on."""
    done = jnp.array([[0, 0], [0, 0], [1, 0], [0, 0], [0, 0], [1, 0]], bool)
    marked = jnp.array([[0, 0], [1, 0], [1, 0], [0, 1], [1, 1], [1, 1]], bool)
    first = jnp.array([[0, 0], [1, 0], [0, 0], [0, 1], [1, 0], [0, 0]], bool)
    ring = ring_of(row_fields(done=jnp.roll(done, 2, axis=0)))._replace(cursor=jnp.int32(2))
    found = replay.first_in_game(ring, jnp.roll(marked, 2, axis=0))
    np.testing.assert_array_equal(found, jnp.roll(first, 2, axis=0))


def test_nobody_resigns_before_the_longest_game_could_end():
    """Two rows are below -0.9 and were played on. The longest game has nine plies, which takes three iterations of
    four."""
    devices = mesh.make_mesh(2, 2, 1)
    searched = jnp.full((1, 2, 1), -0.95)
    fields = {"values": jnp.concatenate([searched, -searched], -1), "resigned": jnp.zeros((1, 2), bool)}
    ring = ring_of(row_fields(**fields, player=jnp.zeros((1, 2), jnp.int8)))
    config = dataclasses.replace(SMALL, resign_threshold=-0.9)

    def allowed(number, *results):
        ended = jnp.array([True] * len(results) + [False] * (2 - len(results)))[None]
        won = jnp.array([*results, 0.0, 0.0])[:2].reshape(1, 2, 1)
        run = iteration.Run(*[None] * len(iteration.Run._fields))
        run = run._replace(replay=ring._replace(result=won, known=ended), iteration=jnp.int32(number))
        everywhere = jax.sharding.PartitionSpec()
        ask = lambda run: iteration.may_resign(GAME, config, run)
        ask = jax.shard_map(ask, mesh=devices, in_specs=everywhere, out_specs=everywhere, check_vma=False)
        return bool(jax.jit(ask)(run))

    assert [allowed(number, -1, -1) for number in (0, 2, 3, 100)] == [False, False, True, True]
    assert not allowed(100, -1, 1)  # one in two would have been wrong
    assert not allowed(100)  # no game tells


def test_attack_and_promotion_are_urgent_in_evopawness():
    """White's knight reaches a soldier two up and one right, his soldier may be promoted; all else can wait."""

    def piece(player, kind, y, x, hp=5, numbers=1):
        return {
            "player": player, "type": kind, "y": y, "x": x, "hp": hp, "atk": numbers, "step": numbers, "active": True,
        }  # fmt: skip

    pieces = [
        piece(0, "knight", 5, 3), piece(0, "soldier", 6, 8), piece(0, "king", 8, 4, 15, 3),
        piece(1, "king", 0, 4, 15, 3), piece(1, "soldier", 3, 4),
    ]  # fmt: skip
    s = evopawness.from_record({"turn": 60, "to_move": 0, "mana": [10, 5], "pieces": pieces, "runes": []})
    legal, urge = np.asarray(evopawness.mask(s)), np.asarray(evopawness.urge(s))
    urgent = {evopawness.action_name(a): round(float(urge[a]), 3) for a in np.flatnonzero(legal & (urge > 0))}
    assert urgent.pop("m*5,3*-2,1") == 0.6
    assert urgent and all(name.startswith("p*6,8*") and bonus == 0.5 for name, bonus in urgent.items())
    assert (legal & (urge == 0)).sum() >= 3


def test_distinct_openings_by_hand():
    """The first two of three games that ended part only after six moves."""
    moves = np.full((4, 9), -1, np.int16)
    moves[0, :8], moves[1, :8], moves[2, :3] = [0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3, 4, 5, 7, 6], [0, 1, 2]
    nothing = np.zeros(4)
    ended = selfplay.Ended(moves, nothing, nothing, nothing, np.array([True, True, True, False]))
    assert game_log.distinct_openings(ended) == pytest.approx(2 / 3)
    assert game_log.distinct_openings(ended._replace(there=np.zeros(4, bool))) is None


def test_an_archive_survives_a_crash_and_drops_what_came_after(tmp_path):
    config = dataclasses.replace(SMALL, random_opening_plies=2)
    _, _, ended = play(config, 9, first_free(lambda plies: 0.0 * plies))
    packed = iteration.pack(ended)
    games = game_log.GameLog(tmp_path, GAME, 0)
    for number in (1, 2, 3):
        games.add(number, packed)
    games.close()
    count = int(packed.there.sum())
    lines = list(game_log.read_games(tmp_path))
    assert len(lines) == 3 * count
    positions = game_log.replay(GAME, lines[0])
    assert bool(GAME.over(positions[-1])) and GAME.rewards(positions[-1]).tolist() == lines[0]["rewards"]
    with (tmp_path / game_log.GAMES_FILE).open("a") as file:
        file.write('{"iteration":3,"moves":["a1"')  # the power failed here
    again = game_log.GameLog(tmp_path, GAME, 2)
    assert len(list(game_log.read_games(tmp_path))) == 3 * count  # nothing is lost before the run has come further
    again.add(3, packed._replace(there=np.zeros_like(packed.there)))
    again.close()
    assert [line["iteration"] for line in game_log.read_games(tmp_path)] == [1] * count + [2] * count
    with pytest.raises(ValueError, match="move 2, .*, is not legal"):
        game_log.replay(GAME, {"moves": [lines[0]["moves"][0]] * 2})


def test_a_rating_adds_up_and_a_gate_keeps_the_better_player(monkeypatch):
    """Three quarters of the points are 191 Elo; half of them leave the gate shut."""
    run = iteration.Run(
        learning=type("Learning", (), {"ema_weights": jnp.float32(2), "updates": jnp.int32(70)})(),
        reference_weights=jnp.float32(1),
        replay=None, lanes=None, key=jnp.zeros(2, jnp.uint32), iteration=jnp.int32(5),
    )  # fmt: skip
    scores = iter([0.75, 0.5, 1.0])
    outcome = lambda *_: iter([type("Games", (), {"score": np.atleast_1d(next(scores))})()])
    monkeypatch.setattr(gating.match, "make_match", lambda *_, **__: outcome)
    never = lambda: False
    rate = gating.make_rating(GAME, dataclasses.replace(SMALL, rating_games=20, gate=True), never)
    won, first = rate(run, gating.Rating())
    assert (float(won.reference_weights), round(first.elo), first.taken, first.updates) == (2, 191, 1, 70)
    kept, second = rate(run, first)
    assert (float(kept.reference_weights), second.elo, second.score, second.taken) == (1, first.elo, 0.5, 1)
    _, third = rate(run, second)
    assert third.elo - second.elo == pytest.approx(400 * np.log10(39))  # 19.5 of 20
    # Six wins, four losses and ten draws: more than half of the points, and one and a half times as many wins.
    scores = iter([np.repeat([1.0, 0.5, 0.0], [6, 10, 4]), np.repeat([1.0, 0.5, 0.0], [5, 11, 4]), np.full(20, 0.5)])
    decided = dataclasses.replace(SMALL, rating_games=20, gate=True, gate_share=0.6, gate_decided=True)
    rate, standing = gating.make_rating(GAME, decided, never), gating.Rating()
    taken = []
    while len(taken) < 3:
        _, standing = rate(run, standing)
        taken.append(standing.taken)
    assert taken == [1, 1, 1]  # the first alone
    # For one of three seats 0.6 of the points tell as much: three times the chances of either of the others.
    scores = iter([0.6, 0.59])
    three = dataclasses.replace(SMALL, rating_games=21, gate=True, gate_share=0.75)
    rate = gating.make_rating(dataclasses.replace(GAME, num_players=3), three, never)
    _, first = rate(run, gating.Rating())
    assert (first.elo, first.taken) == (pytest.approx(400 * np.log10(3)), 1)
    assert rate(run, first)[1].taken == 1
    assert gating.due(dataclasses.replace(SMALL, rating_games=2, rating_positions=70 * 32), run, gating.Rating())
    assert not gating.due(dataclasses.replace(SMALL, rating_games=2, rating_positions=71 * 32), run, gating.Rating())


def test_recipes_are_those_of_the_articles():
    for game in ("tictactoe", "evopawness"):
        alphazero = preset(envs.make(game), "cpu", "alphazero")
        assert (alphazero.search, alphazero.dirichlet_fraction, alphazero.temperature_plies) == ("puct", 0.25, 30)
        assert (alphazero.leaf_symmetry, alphazero.batch_size, alphazero.rating_games) == ("random", 2048, 400)
        assert (alphazero.gate, alphazero.gate_share, alphazero.rating_positions) == (True, 0.55, 1000 * 2048)
        assert alphazero.replay_capacity == 500_000
    theirs = preset(envs.make("evopawness"), "cpu", "evopawness")
    assert (theirs.blocks, theirs.num_simulations, theirs.c_puct, theirs.batch_size) == (4, 25, 1.0, 32)
    assert (theirs.gate, theirs.gate_share, theirs.gate_decided) == (True, 0.6, True)
    assert "history=5" in theirs.env and "max_plies=250" in theirs.env
    with pytest.raises(ValueError, match="unknown recipe 'best'; known: default, alphazero"):
        preset(GAME, "cpu", "best")
    assert all(preset(GAME, "cpu", name).recipe == name for name in RECIPES)


@pytest.mark.parametrize("options", [{}, {"canonical": True}, {"network": "equivariant"}, {"network": "strips"}])
def test_the_preflight_has_a_network_for_every_game(options):
    """Whatever the options of a game demand of its board, the toy game need not have."""
    games = [envs.make(name) for name in [*envs.list(), "chess:size=5", "docs/breakthrough.py"]]
    configs = [dataclasses.replace(preset(game, "cpu", recipe), **options) for game in games for recipe in RECIPES]
    configs += [dataclasses.replace(configs[0], attention_policy=True, slides=True, pooling=True)]
    for toy in {preflight.toy_config(config) for config in configs}:
        assert jax.eval_shape(make_network(envs.make(toy.env), toy).init, jax.random.key(0))


def test_rows_of_evopawness_are_small():
    game = envs.make("evopawness")
    config = dataclasses.replace(preset(game, "cpu"), num_envs=4, batch_size=4)
    run = jax.eval_shape(lambda: iteration.start_run(game, make_network(game, config), config))
    assert 341 < replay.row_bytes(run.replay.rows) <= 1500  # more than the five positions in it


def test_a_recipe_that_this_process_does_not_know_is_no_other_recipe():
    for name in RECIPES:
        assert algorithm_of(Config(recipe=name)).make_learn
    with pytest.raises(ValueError, match="--recipe=playouts: expected one of default, .*, or the program"):
        algorithm_of(Config(recipe="playouts"))
