"""Games and networks converted to JavaScript give what Python gives."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from in_javascript import GAMES, compare, leaves, needs_node, node, positions, rules, run
from random_network import random_weights
from tiers import with_nightly

import envs
from agents.config import Config
from agents.network.network import make_network
from agents.serve.options import PlayOptions
from agents.serve.standalone.convert import Unsupported, convert
from agents.serve.standalone.export import export
from agents.storage import weights as models

ROOT = Path(__file__).parents[2]
COSTLY = ("chess", "evopawness")


@needs_node
@pytest.mark.parametrize("name", with_nightly(GAMES, COSTLY))
def test_rules_are_equal(name):
    game = envs.make(name)
    assert compare(game, convert(rules(game))) == []


@pytest.mark.nightly
@needs_node
def test_rules_of_a_game_of_pgx_are_equal():
    pytest.importorskip("pgx")
    game = envs.make("pgx:animal_shogi")
    assert compare(game, convert(rules(game))) == []


@needs_node
def test_a_changed_rule_is_found():
    game = envs.make("connect_four")
    text = convert(rules(game))
    changed = text.replace("(1-a2_move)", "(0+a2_move)")  # the turn does not pass
    assert changed != text
    assert {name for name, _ in compare(game, changed)} == {"move"}


@needs_node
@pytest.mark.parametrize("folder", ["tictactoe", "connect_four", "go_9x9", "evopawness", "foq", "foq_multi"])
def test_networks_are_close(folder):
    trained = models.load_network(f"models/{folder}")
    check_network(trained.game, trained.net, trained.weights)


@needs_node
@pytest.mark.parametrize("options", [{"network": "equivariant", "slides": True}, {"canonical": True}])
def test_networks_that_use_the_symmetries_are_close(options):
    game = envs.make("foq:rows=4,cols=5")
    net = make_network(game, Config(env=game.name, channels=8, blocks=1, **options))
    check_network(game, net, random_weights(jax.eval_shape(net.init, jax.random.key(0)), 1))


SIMULATIONS_MADE = """
function answers(asked) {
  return JSON.stringify(asked.map(([players, simulations]) => {
    const {id} = server.reply("POST", "sessions", {players, simulations, seconds: 60}).said;
    const session = server.sessions.get(id);
    if (players[0] === "person") session.analyse(session.version, "analysis", {simulations, seconds: 60});
    while (session.job) {
      session.advance();
      if (session.actions.length) break;
    }
    return session.reports.get(0).simulations;
  }));
}
"""


@needs_node
def test_a_search_makes_as_many_simulations_as_asked(tmp_path):
    """For a move, the number in the player's name. For an analysis, the number that the page asks for."""
    asked = {"uct:50": 4096, "uct:33": 4096, "uct:5": 4096, "models/tictactoe": 40}
    made = []
    for player, simulations in asked.items():
        options = PlayOptions(env="tictactoe", opponent=player, export=str(tmp_path / "game.html"))
        html = export(options)[0].read_text(encoding="utf-8")
        (worker,) = re.findall(r'<script type="text/plain" id="worker">\n(.*?)</script>', html, re.DOTALL)
        script = worker.replace("<\\/script", "</script").partition("const turn = new MessageChannel")[0]
        games = [[[player, player], simulations], [["person", player], 200]]
        made.append(json.loads(node(script + SIMULATIONS_MADE, json.dumps(games))))
    assert made == [[50, 200], [33, 200], [5, 200], [40, 200]]


@needs_node
def test_networks_with_an_attention_policy_are_close():
    game = envs.make("chess:size=5")
    net = make_network(game, Config(env=game.name, channels=8, blocks=1, attention_policy=True))
    check_network(game, net, random_weights(jax.eval_shape(net.init, jax.random.key(0)), 1))


def check_network(game, net, weights):
    states, *_ = positions(game, 16)
    planes = np.asarray(jax.vmap(game.observe)(states))
    text = convert({"net": (lambda x: net.apply(weights, x), (planes[:8],))})
    calls = [["net", *leaves(planes[:8])], ["net", *leaves(planes[8:])]]
    logits, values = (np.asarray(x).reshape(16, -1) for x in net.apply(weights, planes))
    fast, plain = run(text, calls), run(text, calls, plain=True)
    for answers in (fast, plain):
        found = [np.concatenate([np.reshape(answer[i], (8, -1)) for answer in answers]) for i in (0, 1)]
        np.testing.assert_allclose(found[0], logits, rtol=0, atol=1e-4)
        np.testing.assert_allclose(found[1], values, rtol=0, atol=1e-4)
        assert (found[0].argmax(-1) == logits.argmax(-1)).all()
    assert np.abs(np.array(fast[0][0]) - np.array(fast[1][0])).max() > 1e-3  # positions differ


X = np.array([[3, -5, 127, 0], [-128, 7, 1, -1], [2, 2, 9, -9]], np.int32)
F = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)
EIGHTHS = np.round(8 * F) / 8  # sums of their products are exact, in any order
LARGE = np.float32([-3e9, -3, -1.5, 2.5, 300, 3e9])
THIRDS = np.arange(80).reshape(4, 20) % 3 > 0
CASES = [jnp.abs, jnp.negative, jnp.square]


def running(x):
    return jax.lax.scan(lambda c, y: (c + y, c), x[0], x)[1]


def exchanged(x):
    return jax.lax.fori_loop(0, 3, lambda i, pair: (pair[1], pair[0][::-1], pair[2]), (x, x + 1, x[0]))


def highest(x, axes):
    """The largest entry and its square: the second follows the first."""
    join = lambda a, b: (jnp.maximum(a[0], b[0]), jnp.where(b[0] > a[0], b[1], a[1]))
    return jax.lax.reduce((x, x * x), (np.int32(-200), np.int32(0)), join, axes)


def written(x):
    return jax.lax.dynamic_update_slice(x, x[:2, :2], (9, 1))


def convolved(x, row):
    """`row` of weights about every entry of its row, [1, R, C, 1]."""
    kernel = jnp.array(row, x.dtype).reshape(1, 3, 1, 1)
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


SMALL = {
    "wraps": (lambda x: (x.astype(jnp.int8) * jnp.int8(3), x * 1000003, -x.astype(jnp.uint8)), X),
    "shifts": (lambda x: (x << 3, x >> 1, jax.lax.shift_right_logical(x, 28), x << (x & 63)), X),
    "bits": (lambda x: (jax.lax.population_count(x), jax.lax.clz(x), ~x, x ^ 5, (x > 0) & (x != 9)), X),
    "division": (lambda x: (jax.lax.div(x, 4), jax.lax.rem(x, 4), x // 4, x % 4, jnp.sign(x)), X),
    "sums": (lambda x: (x.sum(), x.max(0), x.min(1), x.prod(1), (x > 1).any(0), x.argmax(1), x.cumsum(1)), X),
    "joins": (lambda x: (highest(x, (1,)), highest(x, (0, 1)), highest(x.T[..., None] * 3, (1,))), X),
    "shapes": (lambda x: (x.T[::-1], jnp.pad(x, ((1, 0), (0, 2)), constant_values=7), jnp.roll(x, 1, 1), x[:, ::2]), X),
    "indices": (lambda x: (x[x[2] & 1], x[jnp.abs(x) % 3, 1], jnp.take(x, 9, axis=0, mode="fill")), X),
    "writes": (lambda x: (x.at[1, 2].set(5), x.at[x[2] & 1, 3].add(x[0]), x.at[7].set(1)), X),
    "loops": (lambda x: (jax.lax.fori_loop(0, 5, lambda i, y: y + y[i % 3], x), running(x), exchanged(x)), X),
    "branches": (lambda x: (jax.lax.cond(x[0, 0] > 0, jnp.abs, jnp.negative, x), jax.lax.switch(x[2, 0], CASES, x)), X),
    "products": (lambda x: (x @ x.T, jnp.einsum("ij,kj->ik", x, x), jax.vmap(jnp.dot)(x, x)), EIGHTHS),
    "counts": (lambda x: jnp.dot(x > 1, (x < 3).T, preferred_element_type=jnp.int32), X),
    "parts": (lambda x: (jnp.split(x, [1, 3], 1), jnp.stack([x, -x], 1), jnp.clip(x, -2, x[0, 2]), x.argmin(1)), X),
    "totals": (lambda x: (jnp.cumprod(x, 1), jax.lax.cummax(x, 1, reverse=True), jnp.cumsum(x[:, ::-1], 0)), X),
    "powers": (lambda x: (x**3, jax.lax.integer_pow(x, 2), x**0, jnp.round(x * 1.5)), F),
    "repeats": (lambda x: (jnp.tile(x, (2, 3)), jnp.tile(x[0] + 1, 2), jnp.tile(x, (2, 1, 1))), X),
    "padding": (lambda x: jax.lax.pad(x, 5, ((-1, 1, 1), (2, -1, 0))), X),
    "dynamic": (lambda x: (jax.lax.dynamic_slice(x, (x[2, 0], x[0, 0]), (2, 2)), written(x)), X),
    "rounding": (lambda x: (jnp.round(x * 2), jnp.floor(x), x.astype(jnp.int32), jnp.clip(x, -1, 1), x * 0.1 + 0.3), F),
    "halves": (lambda x: (jax.lax.round(x), jnp.round(x)), np.float32([2.5, 0.5, -0.5, -1.5, 3.2, -7.7])),
    "out of range": (lambda x: (x.astype(jnp.int32), x.astype(jnp.uint8), x.astype(jnp.int8)), LARGE),
    "neighbours": (lambda x: convolved(x[None, :, :, None], [1, -4, 1]), X),
    "small neighbours": (lambda x: convolved(x.astype(jnp.int8)[None, :, :, None] // 9, [1, 2, 1]), X),
    "weighed neighbours": (lambda x: convolved(x[None, :, :, None], [1, -4, 1]), EIGHTHS),
    "counts at once": (lambda x: jnp.dot(x > 1, THIRDS, preferred_element_type=jnp.float32), X),
}  # fmt: skip


@needs_node
@pytest.mark.parametrize("name", SMALL)
def test_single_operations_are_equal(name):
    function, x = SMALL[name]
    (answer,) = run(convert({"answer": (function, (x,))}), [["answer", *leaves(x)]])
    expected = [np.asarray(y).ravel().astype(np.float64).tolist() for y in jax.tree.leaves(function(jnp.asarray(x)))]
    assert answer == expected


def test_an_unknown_primitive_is_named_with_its_line():
    def lowest(x):
        return jnp.linalg.cholesky(x)

    with pytest.raises(Unsupported, match=r"expected a primitive .*, got cholesky at .*test_standalone.py:\d+$"):
        convert({"f": (lowest, (jnp.eye(2),))})


def test_a_folder_of_games_has_an_index(tmp_path):
    folder = tmp_path / "games"
    written = export(PlayOptions(env="tictactoe sum_to_100:target=20 tictactoe", opponent="uct:5", export=str(folder)))
    assert [path.name for path in written] == ["tictactoe.html", "sum_to_100_target_20_largest_10.html", "index.html"]
    index = written[-1].read_text()
    assert re.findall(r'href="(.*?)"', index) == [path.name for path in written[:-1]]
    assert "Tic-tac-toe" in index and index.count("data:image/svg+xml;base64,") == 2
    assert all(str(ROOT) not in path.read_text() for path in written)  # nothing of this machine


@pytest.mark.parametrize(
    ("env", "opponent", "file", "message"),
    [
        ("tictactoe sum_to_100", "uct:5", "games.html", "expected a folder for 2 games, got .*games.html"),
        ("tictactoe", "random", "game.html", "expected the folder of a network or uct:N with --export, got random"),
        ("tictactoe", "models/tictactoe@8", "game.html", "expected the folder .*, got models/tictactoe@8"),
        ("tictactoe", "models/foq", "game.html", "expected a network for tictactoe"),
        ("chess960", "", "game.html", "unknown game 'chess960'"),
    ],
)
def test_what_cannot_be_exported_is_refused(tmp_path, env, opponent, file, message):
    with pytest.raises(ValueError, match=message):
        export(PlayOptions(env=env, opponent=opponent, export=str(tmp_path / file)))
    assert not list(tmp_path.iterdir())


def test_the_site_leads_to_every_shipped_game():
    linked = re.findall(r"play/(\w+)\.html", (ROOT / "docs" / "play_now.md").read_text())
    assert set(linked) == {path.parent.name for path in (ROOT / "models").glob("*/network.npz")}
