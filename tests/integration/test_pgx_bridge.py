"""Games of pgx as games of ours, and ours as environments of pgx."""

from __future__ import annotations

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pytest

import envs
from envs import check, draw, pgx_bridge
from envs.pgx_bridge import to_pgx

LANES, SEED = 64, 3


@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four"])
def test_a_game_of_pgx_holds_the_contract(name):
    bench = check.Bench(envs.make(f"pgx:{name}"))
    broken = [check.broken(rule, holds, bench) for rule, holds in check.RULES.items()]
    assert not [what for what in broken if what]


def test_every_game_of_pgx_for_two_without_chance_or_secrets_is_there():
    others = {"2048", "backgammon", "kuhn_poker", "leduc_holdem", "sparrow_mahjong"}  # chance or hidden cards
    others |= {name for name in pgx.available_envs() if name.startswith("minatar")}
    assert set(pgx_bridge.GAMES) == set(pgx.available_envs()) - others


def test_moves_of_the_bridge_are_those_of_pgx():
    game, env = envs.make("pgx:connect_four"), pgx.make("connect_four")

    def play(key):
        seat_key, play_key = jax.random.split(key)

        def ply(carry, key):
            s, state = carry
            action = jax.random.categorical(key, jnp.where(state.legal_action_mask, 0.0, -jnp.inf))
            done = state.terminated
            after = env.step(state, action)
            kept = jax.tree.map(lambda old, new: jnp.where(done, old, new), state, after)
            same = done | (game.mask(s) == state.legal_action_mask).all() & (game.observe(s) == state.observation).all()
            return (game.step(s, action), kept), same

        start = game.init(), env.init(seat_key)
        (s, state), same = jax.lax.scan(ply, start, jax.random.split(play_key, game.max_plies))
        first = (state.current_player + state._step_count) % 2  # the pgx player who began
        mine = jnp.where(first == 0, state.rewards, state.rewards[::-1])
        return same.all(), game.over(s), jnp.array_equal(mine, game.rewards(s)), game.rewards(s)[0]

    same, over, equal, result = jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(SEED), LANES))
    assert same.all() and over.all() and equal.all()
    assert {-1.0, 1.0} <= set(np.asarray(result).tolist())


@pytest.mark.parametrize("spec", ["tictactoe", "foq:rows=4,cols=5", "go:size=5"])
def test_a_game_of_ours_is_a_pgx_environment(spec):
    game = envs.make(spec)
    env = to_pgx(game)
    assert to_pgx(game) is env
    assert (env.num_players, env.num_actions) == (2, game.num_actions)

    def play(key):
        seat_key, play_key = jax.random.split(key)
        start = env.init(seat_key)

        def ply(carry, key):
            state, s = carry
            action = jax.random.categorical(key, jnp.where(state.legal_action_mask, 0.0, -jnp.inf))
            player = jnp.where(start.current_player == 0, game.player(s), 1 - game.player(s))
            same = game.over(s) | (
                (state.legal_action_mask == game.mask(s)).all()
                & (state.current_player == player)
                & (state.observation == game.observe(s)).all()
            )
            after = env.step(state, action)
            won = jnp.where(start.current_player == 0, after.rewards, after.rewards[::-1])
            s_after = game.step(s, action)
            # pgx gives a result once, with the move that ends the game.
            same &= (won == jnp.where(game.over(s), 0.0, game.rewards(s_after))).all()
            same &= after.terminated == game.over(s_after)
            return (after, s_after), same

        (state, _), same = jax.lax.scan(ply, (start, game.init()), jax.random.split(play_key, game.max_plies + 2))
        return same.all(), state.terminated, start.current_player, state.legal_action_mask.all()

    same, over, first, mask = jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(SEED), LANES))
    assert same.all() and over.all() and mask.all()
    assert set(np.asarray(first).tolist()) == {0, 1}  # seats are drawn by lot


def test_an_illegal_action_in_a_pgx_environment_of_ours_loses():
    env = to_pgx(envs.make("tictactoe"))
    state = jax.jit(env.init)(jax.random.key(0))
    step = jax.jit(env.step)
    mover = int(step(state, 4).current_player)
    after = step(step(state, 4), 4)
    assert after.terminated and after.rewards[mover] == -1 and after.rewards[1 - mover] == 1


@pytest.mark.parametrize("name", ["tic_tac_toe", "go_9x9"])
def test_pictures_can_be_scaled(name):
    """As the page does, and whoever writes a line below them."""
    game = envs.make(f"pgx:{name}")
    svg = game.svg(game.init())
    width, height = draw.size(svg)
    assert f'width="{width}"' in svg and f'height="{height}"' in svg
    assert draw.size(draw.with_caption(svg, "a line")) > (width, height)


def test_refusals(monkeypatch):
    with pytest.raises(ValueError, match=r"unknown game 'pgx:backgammon'.*pgx:shogi"):
        envs.make("pgx:backgammon")
    with pytest.raises(ValueError, match="two players"):
        to_pgx(envs.make("foq_multi"))
    record = envs.make("pgx:tic_tac_toe").to_record(envs.make("pgx:tic_tac_toe").init())
    as_other = lambda x: [as_other(y) for y in x] if isinstance(x, list) else int(x) if x is True else float(x)
    for wrong in ({**record, "leaves": record["leaves"][1:]}, {**record, "leaves": [[0.5]] * len(record["leaves"])},
                  {**record, "forfeit": 2}, {**record, "forfeit": True}, {**record, "forfeit": 0.0},
                  {**record, "leaves": [as_other(leaf) for leaf in record["leaves"]]},
                  {**record, "pgx": "chess"}):  # fmt: skip
        with pytest.raises(ValueError):
            envs.make("pgx:tic_tac_toe").from_record(wrong)

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ValueError, match="pip install pgx"):
        pgx_bridge.from_pgx("hex")
