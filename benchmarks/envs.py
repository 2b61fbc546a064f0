"""Speed of the rules: Flight of Queen beside the way the article writes it, in one run; then every game.

python benchmarks/envs.py

How it is counted: 1024 lanes play uniformly random legal moves, a finished game restarts in its lane, and one step of
one lane counts 1, whatever is in it: the choice of a move, the step, the next legal mask, the test for the end and the
restart. All sides run inside one compiled scan with the same sampler and the same random keys, and play the same games.
Each figure is the median of several runs taken in turn.

- `ours`: `move`, as self-play, search and rollouts of the engine play, since their actions come from the mask.
- `ours, checked`: `step`, which judges every action again, as for a stranger's input.
- `article`: its step, written anew after its description, which judges the action too and has no other form. The mask
  walks outwards in each of the eight directions by a bounded loop, vectorised over directions, and a slide is ripped by
  testing every square of the board in parallel for lying between start and target.

The table of all games counts in the same way; bytes are those of a position with the history that its planes need.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

sys.path.insert(0, str(Path(__file__).parents[1]))

import envs
from agents.selfplay import random_action
from envs import foq

LANES, STEPS, REPEATS = 1024, 200, 7
DIRECTIONS = jnp.array([(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b])


class Board(NamedTuple):
    """Position of the article's program: the board, both queens as coordinates, the turn."""

    ripped: Any  # int8[R, C]
    queens: Any  # int32[2, 2]
    to_move: Any  # int32[]


def walk_reach(ripped, queen):
    rows, cols = ripped.shape

    def walk(direction):
        def forward(i, carry):
            reached, place, open_ = carry
            place = place + direction
            inside = (place >= 0).all() & (place[0] < rows) & (place[1] < cols)
            at = jnp.clip(place, 0, jnp.array([rows - 1, cols - 1]))
            open_ = open_ & inside & (ripped[at[0], at[1]] == 0)
            return reached.at[at[0], at[1]].max(open_), place, open_

        start = jnp.zeros((rows, cols), bool), queen, jnp.array(True)
        return jax.lax.fori_loop(0, max(rows, cols), forward, start)[0]

    return jax.vmap(walk)(DIRECTIONS).any(0)


def walk_mask(s: Board):
    mine, other = s.queens[s.to_move], s.queens[1 - s.to_move]
    return (walk_reach(s.ripped, mine) & ~walk_reach(s.ripped, other)).ravel()


def walk_step(s: Board, action):
    """As in the article, the step itself judges the action; an illegal one only passes the turn here."""
    rows, cols = s.ripped.shape
    legal = walk_mask(s)[action]
    start, target = s.queens[s.to_move], jnp.array([action // cols, action % cols])
    way = target - start
    length, unit = jnp.abs(way).max(), jnp.sign(way)

    def between(square):
        gone = jnp.array([square // cols, square % cols]) - start
        far = jnp.abs(gone).max()
        return (gone == far * unit).all() & (far <= length)

    torn = jax.vmap(between)(jnp.arange(rows * cols)).reshape(rows, cols)
    ripped = jnp.where(torn & legal, 1, s.ripped).astype(jnp.int8)
    return Board(ripped, jnp.where(legal, s.queens.at[s.to_move].set(target), s.queens), 1 - s.to_move)


def walk_init() -> Board:
    ripped = jnp.zeros((8, 9), jnp.int8).at[0, 0].set(1).at[7, 8].set(1)
    return Board(ripped, jnp.array([[0, 0], [7, 8]]), jnp.int32(0))


def make_playout(init, mask, step):
    """(key) -> number of games ended and moves made, over `STEPS` steps of `LANES` lanes."""

    def play(key):
        fresh = jax.tree.map(lambda x: jnp.broadcast_to(x, (LANES, *jnp.shape(x))), init())
        at_start = jax.vmap(mask)(fresh)

        def one(carry, key):
            states, legal, ended = carry
            states = jax.vmap(step)(states, random_action(key, legal))
            legal = jax.vmap(mask)(states)
            done = ~legal.any(-1)
            pick = lambda new, old: jnp.where(done.reshape(-1, *[1] * (old.ndim - 1)), new, old)
            states = jax.tree.map(pick, fresh, states)
            return (states, pick(at_start, legal), ended + done.sum()), None

        start = fresh, at_start, jnp.int32(0)
        return jax.lax.scan(one, start, jax.random.split(key, STEPS))[0][2]

    return jax.jit(play)


def compare() -> None:
    sides = {
        "ours": make_playout(foq.init, foq.mask, foq.move),
        "ours, checked": make_playout(foq.init, foq.mask, foq.step),
        "article": make_playout(walk_init, walk_mask, walk_step),
    }
    key = jax.random.key(0)
    games, times, compiling = {}, {name: [] for name in sides}, {}
    for name, play in sides.items():
        start = time.perf_counter()
        games[name] = int(play(key))
        compiling[name] = time.perf_counter() - start
    assert len(set(games.values())) == 1, f"the sides do not play the same games: {games}"
    for _ in range(REPEATS):
        for name, play in sides.items():
            start = time.perf_counter()
            jax.block_until_ready(play(key))
            times[name].append(time.perf_counter() - start)
    print(f"foq 8x9, {LANES} lanes, {jax.devices()[0].device_kind}, {games['ours']} games, median of {REPEATS}")
    for name, taken in times.items():
        rate = LANES * STEPS / statistics.median(taken)
        ratios = [b / a for a, b in zip(taken, times["article"], strict=True)]
        times_article = f"{statistics.median(ratios):5.1f} x article ({min(ratios):.1f} to {max(ratios):.1f})"
        print(f"{name:14s} {rate:12,.0f} steps/s {times_article}   first call {compiling[name]:.1f} s")


def every_game() -> None:
    """Steps per second and bytes of a position; `step`, then `move`."""
    print(f"\n{'game':44s} {'step':>12s} {'move':>12s}  bytes")
    for spec in (*envs.list(), "go:size=19"):
        game, rates = envs.make(spec), []
        for function in (game.step, game.move):
            play, taken = make_playout(game.init, game.mask, function), []
            jax.block_until_ready(play(jax.random.key(0)))
            for _ in range(REPEATS):
                start = time.perf_counter()
                jax.block_until_ready(play(jax.random.key(0)))
                taken.append(time.perf_counter() - start)
            rates.append(LANES * STEPS / statistics.median(taken))
        size = sum(x.nbytes for x in jax.tree.leaves(game.init()))
        print(f"{game.name:44s} {rates[0]:12,.0f} {rates[1]:12,.0f} {size:6d}", flush=True)


def main() -> None:
    compare()
    every_game()


if __name__ == "__main__":
    main()
