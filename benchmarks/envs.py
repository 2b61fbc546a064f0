"""Speed of the rules: Flight of Queen compared with the article's form, games compared with pgx, then every game.

python benchmarks/envs.py [foq] [pgx] [games]        (all three without an argument; pgx needs the pgx library)

1024 lanes play uniformly random legal moves, and a finished game restarts in its lane. One step of one lane counts 1
and includes everything: the choice of a move, the step, the next legal mask, the end test and the restart. All sides
run inside one compiled scan with the same sampler and random keys, so they play the same games. Each figure is the
median of several runs taken in turn.

- `ours`: `move`, as in the engine's self-play, search and rollouts, whose actions come from the mask.
- `ours, checked`: `step`, which checks every action again, as for external input.
- `article`: the article's step, rewritten from its description; it always checks the action. The mask walks outwards in
  each of the eight directions by a bounded loop, vectorised over directions. A slide is ripped by testing in parallel
  whether each square lies between start and target.

pgx's `step` also computes the legal mask and the observation, and keeps both in its state. Its figure is given with
both, and again with the observation left out of the loop, where the compiler drops it. `first call` is the time to
compile the step and the mask for 1024 lanes; bytes are per position.

The table of all games counts in the same way; its bytes include the history that a position's planes need.
"""

from __future__ import annotations

import functools
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

sys.path.insert(0, str(Path(__file__).parents[1]))

import envs
from agents.actions import random_action
from agents.runtime import cli
from benchmarks import rounds
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
    """As in the article, the step itself checks the action; here an illegal action only passes the turn."""
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


def make_playout(init, mask, step, over=None, steps=STEPS):
    """(key) -> number of games ended, over `steps` steps of `LANES` lanes; without `over`, a game ends when the mask
    is empty."""

    def play(key):
        fresh = jax.tree.map(lambda x: jnp.broadcast_to(x, (LANES, *jnp.shape(x))), init())
        at_start = jax.vmap(mask)(fresh)

        def one(carry, key):
            states, legal, ended = carry
            states = jax.vmap(step)(states, random_action(key, legal))
            legal = jax.vmap(mask)(states)
            done = jax.vmap(over)(states) if over else ~legal.any(-1)
            pick = lambda new, old: jnp.where(done.reshape(-1, *[1] * (old.ndim - 1)), new, old)
            states = jax.tree.map(pick, fresh, states)
            return (states, pick(at_start, legal), ended + done.sum()), None

        start = fresh, at_start, jnp.int32(0)
        return jax.lax.scan(one, start, jax.random.split(key, steps))[0][2]

    return jax.jit(play)


def measure(sides: dict[str, Any], repeats: int = REPEATS) -> dict[str, list[float]]:
    """Seconds of every side's playouts, taken in turn."""
    key = jax.random.key(0)
    return rounds.take_turns({name: functools.partial(play, key) for name, play in sides.items()}, repeats)


def ratio(slower: list[float], quicker: list[float]) -> str:
    """Median and range of the ratios of all rounds."""
    found = rounds.ratios(slower, quicker)
    return f"{statistics.median(found):5.1f} ({min(found):.1f} to {max(found):.1f})"


def rate(taken: list[float], steps: int = STEPS) -> float:
    return LANES * steps / statistics.median(taken)


def beside_article() -> None:
    sides = {
        "ours": make_playout(foq.init, foq.mask, foq.move),
        "ours, checked": make_playout(foq.init, foq.mask, foq.step),
        "article": make_playout(walk_init, walk_mask, walk_step),
    }
    games = {name: int(play(jax.random.key(0))) for name, play in sides.items()}
    assert len(set(games.values())) == 1, f"the sides do not play the same games: {games}"
    times = measure(sides)
    print(f"foq 8x9, {games['ours']} games")
    for name, taken in times.items():
        print(f"{name:14s} {rate(taken):12,.0f} steps/s, times the article's {ratio(times['article'], taken)}")


# Our game -> the pgx game of the same rules, as far as the two agree (docs/rules/compared.md).
PGX: dict[str, Any] = {
    "chess": "chess",
    "chess:size=5": "gardner_chess",
    "tictactoe": "tic_tac_toe",
    "connect_four": "connect_four",
    "othello": "othello",
    "hex:size=11": "hex",
    "go:size=9": "go_9x9",
    "go:size=9,ko=psk": "go_9x9",
    "go:size=19": "go_19x19",
    "go:size=19,ko=psk": "go_19x19",
}


def first_call(step, mask, states, legal) -> float:
    """Seconds to compile a step and the following mask for all lanes."""

    def both(states, actions):
        states = jax.vmap(step)(states, actions)
        return states, jax.vmap(mask)(states)

    jax.clear_caches()
    actions = random_action(jax.random.key(0), legal)
    start = time.perf_counter()
    jax.jit(both).lower(states, actions).compile()
    return time.perf_counter() - start


def unseen_by(state: Any) -> Any:
    """A pgx state without its observation."""
    return state.replace(observation=jnp.zeros(0))


def beside_pgx() -> None:
    """Compares our `step`, which checks every action as pgx's does, and our `move` with pgx."""
    import pgx

    print(f"\nbeside pgx {pgx.__version__}: steps/s; ratios to pgx with and without its observation")
    print(f"{'game':32s} {'step':>11s} {'move':>11s} {'pgx':>11s} {'unseen':>11s}  {'step/pgx':24s} {'step/unseen':24s}"
          f" {'bytes':>11s} {'first call':>14s}")  # fmt: skip
    for spec, name in PGX.items():
        game, env = envs.make(spec), pgx.make(name)
        first: Any = env.init(jax.random.key(0))
        unseen = unseen_by(first)
        legal, over = (lambda s: s.legal_action_mask), (lambda s: s.terminated | s.truncated)
        blind = lambda s, a, step=env.step: unseen_by(step(s, a))
        steps, repeats = (50, 3) if "size=19" in spec else (STEPS, REPEATS)
        playout = functools.partial(make_playout, steps=steps)
        sides = {
            "step": playout(game.init, game.mask, game.step),
            "move": playout(game.init, game.mask, game.move),
            "pgx": playout(lambda first=first: first, legal, env.step, over),
            "unseen": playout(lambda unseen=unseen: unseen, legal, blind, over),
        }
        times = measure(sides, repeats)
        compiled = []
        for start, mask, step in ((game.init(), game.mask, game.step), (first, legal, env.step)):
            lanes = jax.tree.map(lambda x: jnp.broadcast_to(x, (LANES, *jnp.shape(x))), start)
            compiled.append(first_call(step, mask, lanes, jax.vmap(mask)(lanes)))
        sizes = [sum(jnp.asarray(x).nbytes for x in jax.tree.leaves(s)) for s in (game.init(), first)]
        rates = " ".join(f"{rate(taken, steps):11,.0f}" for taken in times.values())
        print(f"{game.name:32s} {rates}  {ratio(times['pgx'], times['step']):24s} "
              f"{ratio(times['unseen'], times['step']):24s} {sizes[0]:5d} {sizes[1]:5d} "
              f"{compiled[0]:6.2f} {compiled[1]:6.2f} s", flush=True)  # fmt: skip


def every_game() -> None:
    """Steps per second, by `step` and by `move`, and bytes of a position."""
    print(f"\n{'game':44s} {'step':>12s} {'move':>12s}  bytes")
    for spec in (*envs.list(), "go:size=19"):
        game = envs.make(spec)
        sides = {name: make_playout(game.init, game.mask, f) for name, f in (("step", game.step), ("move", game.move))}
        rates = [rate(taken) for taken in measure(sides).values()]
        size = sum(x.nbytes for x in jax.tree.leaves(game.init()))
        print(f"{game.name:44s} {rates[0]:12,.0f} {rates[1]:12,.0f} {size:6d}", flush=True)


PARTS = {"foq": beside_article, "pgx": beside_pgx, "games": every_game}


def main() -> None:
    rounds.help_if_asked()
    with cli.errors():
        unknown = set(sys.argv[1:]) - set(PARTS)
        if unknown:
            raise ValueError(f"unknown part {', '.join(sorted(unknown))}; known: {', '.join(PARTS)}")
    print(f"{LANES} lanes, {jax.devices()[0].device_kind}, {os.cpu_count()} cores, jax {jax.__version__}")
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()


if __name__ == "__main__":
    main()
