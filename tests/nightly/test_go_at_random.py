"""Random games of Go against a plain program, and their records."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from go_boards import cells, points
from plain_go import PlainGo

import envs
from envs import go

step, mask = jax.jit(go.step), jax.jit(go.mask)


@functools.lru_cache
def random_games(size: int, ko: str, lanes: int):
    """Numpy arrays [lane, ply] of states, legal moves, moves, areas, owners and rewards, up to the cap; passes are
    rarer than plays."""

    @jax.jit
    @jax.vmap
    def play(key):
        odds = jnp.append(jnp.zeros(size * size), -2.0)

        def ply(s, key):
            legal = go.mask(s)
            action = jax.random.categorical(key, jnp.where(legal, odds, -jnp.inf))
            return go.step(s, action), (s, legal, action, go.area(s), go.owners(s), go.rewards(s, 0.5))

        return jax.lax.scan(ply, go.init(size, ko), jax.random.split(key, 2 * size * size + 1))[1]

    return jax.device_get(play(jax.random.split(jax.random.key(size), lanes)))


def go_rows(rows) -> np.ndarray:
    """bool[..., n * n] of rows of bits."""
    bits = np.asarray(rows)[..., None] >> np.arange(rows.shape[-1], dtype=np.uint32) & 1
    return bits.reshape(*rows.shape[:-1], -1) == 1


@pytest.mark.parametrize(("size", "ko", "lanes"), [(5, "simple", 40), (5, "psk", 40), (8, "psk", 6)])
def test_random_games_agree_with_a_plain_program(size, ko, lanes):
    states, legal, actions, areas, owners, rewards = random_games(size, ko, lanes)
    boards, atari = cells(states.stones), go_rows(states.atari)
    retakes = superkos = finished = 0
    for lane in range(lanes):
        plain = PlainGo(size, ko == "psk")
        for t in range(2 * size * size + 1):
            assert boards[lane, t].tolist() == list(plain.board)
            want = plain.legal()
            assert points(legal[lane, t]) == want
            assert areas[lane, t].tolist() == plain.area()
            retakes += states.ko[lane, t] >= 0
            if t % 4 == 0:
                check_chains(plain, states.chain[lane, t].ravel(), atari[lane, t])
            if plain.over():
                black, white = plain.area()
                assert owners[lane, t].tolist() == [*plain.owners(), 2]
                assert rewards[lane, t].tolist() == ([1, -1] if black - white > 0.5 else [-1, 1])
                finished += 1
                break
            assert not rewards[lane, t].any()
            assert (owners[lane, t] == 2).all()
            if ko == "psk":
                simple = PlainGo(size, superko=False)
                simple.boards, simple.moves, simple.turn = plain.boards, plain.moves, plain.turn
                superkos += len(simple.legal()) - len(want)
            plain.play(int(actions[lane, t]))
    assert finished == lanes and retakes > 0
    assert ko == "simple" or size > 5 or superkos > 0  # there were points that only superko forbids


def check_chains(plain: PlainGo, chain: np.ndarray, atari: np.ndarray):
    for p, cell in enumerate(plain.board):
        stones = plain.region(plain.board, p)[0] if cell else [plain.size**2]
        assert chain[p] == min(stones)
        assert atari[p] == (cell != 0 and len(plain.liberties(plain.board, p)) == 1)


@pytest.mark.parametrize("ko", ["simple", "psk"])
def test_records_of_random_games_come_back(ko):
    states = random_games(5, ko, 40)[0]
    game = envs.make(f"go:size=5,ko={ko},history=1")
    for lane, t in [(0, 0), (1, 9), (2, 23), (3, 37), (4, 50), (5, 50)]:
        s = jax.tree.map(lambda x: x[lane, t], states)
        back = game.from_record(game.to_record(s))
        assert jax.tree.all(jax.tree.map(lambda x, y: x.dtype == y.dtype and np.array_equal(x, y), back, s))
