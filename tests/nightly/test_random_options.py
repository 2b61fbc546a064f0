"""Every game under options drawn at random: played inside one compiled scan, followed by plain programs of the rules.

The games' own tests compare with the same plain programs, under fixed options only. Tic-tac-toe and Othello have no
options. What holds for any game (forfeits, symmetries, records) is checked in test_conformance.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import plain_evopawness
import pytest
from plain_foq import slides
from plain_go import PlainGo, sending_two
from plain_stones import has_row, joins, planes_of_columns, planes_of_edges, planes_of_fives, rows_through

import envs
from envs import evopawness

# Every example is compiled anew: few of them, and no search for a smaller one that fails.
settings = functools.partial(
    hypothesis.settings,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[hypothesis.Phase.generate],
)
SEEDS = st.integers(0, 2**31 - 1)


class Seen(NamedTuple):
    """One game, numpy arrays with a leading axis [ply], the position at its end included."""

    state: Any  # without the history
    action: Any
    legal: Any
    over: Any
    player: Any
    rewards: Any
    planes: Any


@functools.cache
def runner(spec: str):
    """Compiled (lots [game, ply, A]) -> `Seen` of random games, where the legal action of the highest lot comes."""
    game = envs.make(spec)

    @functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})  # for a few games only
    @jax.vmap
    def run(lots):
        def ply(s, lots):
            legal = game.mask(s)
            action = jnp.where(legal, lots, -1.0).argmax()
            answers = legal, game.over(s), game.player(s), game.rewards(s), game.observe(s)
            return game.step(s, action), Seen(getattr(s, "now", s), action, *answers)

        return jax.lax.scan(ply, game.init(), lots)[1]

    return run


def play(spec: str, seed: int, lanes: int, opening: tuple[int, ...] = ()) -> list[Seen]:
    """Random games, each up to its end, and what the game promises of any of them; half begin with an `opening`."""
    game = envs.make(spec)
    lots = np.random.default_rng(seed).random((lanes, game.max_plies + 1, game.num_actions), np.float32)
    lots[: lanes // 2, range(len(opening)), opening] = 1
    played = jax.device_get(runner(spec)(lots))
    assert played.over.any(1).all()  # none is longer than max_plies
    assert played.legal.sum(-1).max() <= game.max_legal
    assert not played.legal[played.over].any()
    assert (played.legal.shape[-1], played.rewards.shape[-1]) == (game.num_actions, game.num_players)
    ends = played.over.argmax(1)
    return [jax.tree.map(lambda x: x[i, : end + 1], played) for i, end in enumerate(ends)]


def follow(spec: str, seed: int, lanes: int, begin, opening: tuple[int, ...] = ()):
    """Plays the same games with a plain program, which `begin` gives, and demands the same answers before every ply."""
    for seen in play(spec, seed, lanes, opening):
        plain = begin()
        for t, action in enumerate(seen.action):
            assert np.flatnonzero(seen.legal[t]).tolist() == plain.legal()
            assert seen.over[t] == plain.over()
            np.testing.assert_allclose(seen.rewards[t], plain.rewards() if plain.over() else 0, rtol=1e-6)
            np.testing.assert_array_equal(seen.planes[t], plain.planes())
            if not plain.over():
                assert seen.player[t] == plain.player()
                plain.play(int(action))


# Games of stones


class Stones:
    """A board of 1, -1 and 0, whose turn it is, and whether the last stone won."""

    def __init__(self, rows: int, cols: int):
        self.board, self.turn, self.won, self.plies = np.zeros((rows, cols), int), 1, False, 0

    def over(self) -> bool:
        return self.won or bool(self.board.all())

    def legal(self) -> list[int]:
        return [] if self.over() else np.flatnonzero(self.board == 0).tolist()

    def player(self) -> int:
        return self.plies % 2

    def rewards(self) -> list[int]:
        return [-self.turn, self.turn] if self.won else [0, 0]

    def planes(self) -> np.ndarray:
        return np.stack([self.board == self.turn, self.board == -self.turn], -1)

    def put(self, row: int, col: int, won):
        self.board[row, col] = self.turn
        self.won, self.turn, self.plies = won(), -self.turn, self.plies + 1


class ConnectFour(Stones):
    def __init__(self, rows: int, cols: int, connect: int):
        super().__init__(rows, cols)
        self.connect = connect

    def legal(self) -> list[int]:
        return [] if self.over() else np.flatnonzero(self.board[0] == 0).tolist()

    def planes(self) -> np.ndarray:
        return planes_of_columns(self.board, self.turn, self.connect)

    def play(self, col: int):
        row = np.flatnonzero(self.board[:, col] == 0)[-1]
        self.put(row, col, lambda: has_row(self.board, self.turn, self.connect))


class Gomoku(Stones):
    def __init__(self, size: int, exact: bool):
        super().__init__(size, size)
        self.exact = exact

    def planes(self) -> np.ndarray:
        return planes_of_fives(self.board, self.turn, self.exact)

    def play(self, cell: int):
        row, col = divmod(cell, len(self.board))
        lengths = lambda: rows_through(self.board, row, col)
        self.put(row, col, lambda: 5 in lengths() if self.exact else max(lengths()) >= 5)


class Hex(Stones):
    def __init__(self, size: int, swap: bool):
        super().__init__(size, size)
        self.swap = swap

    def may_swap(self) -> bool:
        return self.swap and self.plies == 1 and not self.won

    def legal(self) -> list[int]:
        return super().legal() + [self.board.size] * self.may_swap()

    def play(self, cell: int):
        if cell == self.board.size:
            row, col = np.argwhere(self.board)[0][::-1]
            self.board[:] = 0
        else:
            row, col = divmod(cell, len(self.board))
        self.put(row, col, lambda: joins(self.board, self.turn))

    def planes(self) -> np.ndarray:
        seen = self.board if self.turn == 1 else -self.board.T  # the mover joins top and bottom
        return planes_of_edges(seen, self.may_swap(), self.won)


@settings(max_examples=8)
@hypothesis.given(st.data(), st.integers(1, 7), st.integers(1, 8), SEEDS)
def test_connect_four(data, rows, cols, seed):
    hypothesis.assume(max(rows, cols) > 1)
    connect = data.draw(st.integers(2, max(rows, cols)))
    spec = f"connect_four:rows={rows},cols={cols},connect={connect}"
    follow(spec, seed, 24, lambda: ConnectFour(rows, cols, connect))


@settings(max_examples=5)
@hypothesis.given(st.integers(5, 9), st.booleans(), SEEDS)
def test_gomoku(size, exact, seed):
    follow(f"gomoku:size={size},exact={exact}", seed, 24, lambda: Gomoku(size, exact))


@settings(max_examples=8)
@hypothesis.given(st.integers(2, 6), st.booleans(), SEEDS)
def test_hex(size, swap, seed):
    follow(f"hex:size={size},swap={swap}", seed, 24, lambda: Hex(size, swap))


# Go


class Go(PlainGo):
    def __init__(self, size: int, komi: float, ko: str, history: int):
        super().__init__(size, ko == "psk")
        self.komi, self.history = komi, history

    def player(self) -> int:
        return len(self.moves) % 2

    def rewards(self) -> list[float]:
        black, white = self.area()
        lead = np.sign(black - white - self.komi)
        return [lead, -lead]

    def planes(self) -> np.ndarray:
        planes = self.planes_of_boards() if self.history else self.planes_of_liberties()
        return np.stack([*planes, np.full(self.size**2, self.turn == 1)], -1).reshape(self.size, self.size, -1)

    def planes_of_boards(self) -> list[np.ndarray]:
        boards = [(0,) * self.size**2] * (self.history - 1) + self.boards
        boards = np.array(boards[: -self.history - 1 : -1]) * self.turn
        return [*(boards == 1), *(boards == -1)]

    def planes_of_liberties(self) -> list[np.ndarray]:
        points, stones = np.arange(self.size**2), np.array(self.board) * self.turn
        liberties = np.array([len(self.liberties(self.board, p)) if stones[p] else 0 for p in points])
        sides = [(stones == side) & chosen for chosen in (True, liberties == 1, liberties == 2) for side in (1, -1)]
        just_played = self.moves[-1:] not in ([], [len(points)])
        ko = np.array([just_played and self.after(p) == self.boards[-2] for p in points])
        last = [points == move for move in [-1, -1, *self.moves][:-3:-1]]
        return [*sides, ko, *last, points >= 0]


@settings(max_examples=5)
@hypothesis.given(
    size=st.integers(5, 7),
    komi=st.integers(-40, 40).map(lambda quarters: quarters / 4) | st.integers(-9, 9).map(float),
    ko=st.sampled_from(["simple", "psk"]),
    history=st.just(0) | st.integers(1, 12),
    seed=SEEDS,
)
def test_go(size, komi, ko, history, seed):
    spec = f"go:size={size},komi={komi},ko={ko},history={history}"
    follow(spec, seed, 8, lambda: Go(size, komi, ko, history), opening=sending_two(size)[:-1])


# Flight of Queen, all three forms


class Queens:
    """What all forms share, with the end of the double game: who is stuck at his turn loses."""

    def __init__(self, rows: int, cols: int, queens: int, form: str):
        self.queens = [0, rows * cols - 1, cols - 1, rows * cols - cols][:queens]
        self.ripped = np.isin(np.arange(rows * cols), self.queens).reshape(rows, cols)
        self.boards, self.turn, self.form = [self.ripped], 0, form

    def reached(self) -> tuple[set[int], set[int]]:
        """Squares that the mover's queen reaches, and those that others do."""
        reached = [set(slides(self.ripped, queen)) for queen in self.queens]
        own = self.turn % len(reached)
        return reached[own], set().union(*reached[:own], *reached[own + 1 :])

    def free(self) -> list[int]:
        mine, others = self.reached()
        return sorted(mine - others)

    def over(self) -> bool:
        return not self.free()

    def legal(self) -> list[int]:
        return [] if self.over() else self.free()

    def player(self) -> int:
        return self.turn

    def rewards(self) -> list[float]:
        return [-1 if i == self.turn else 1 for i in range(2)]

    def play(self, square: int):
        own = self.turn % len(self.queens)
        path = slides(self.ripped, self.queens[own])[square]
        self.queens[own] = square
        self.ripped = self.ripped | self.marked(path)
        self.boards.append(self.ripped)
        self.pass_the_turn()

    def pass_the_turn(self):
        self.turn = 1 - self.turn

    def marked(self, squares) -> np.ndarray:
        return np.isin(np.arange(self.ripped.size), [*squares]).reshape(self.ripped.shape)

    def planes(self) -> np.ndarray:
        mine, others = self.reached()
        first = self.turn % len(self.queens)
        queens = [1 * self.marked([queen]) for queen in [*self.queens[first:], *self.queens[:first]]]
        if self.form == "plain":
            return np.stack([self.ripped, *queens, self.marked(mine - others), self.marked(others), *self.more()], -1)
        boards = [-1 * board for board in ([self.boards[0]] * 3 + self.boards)[-4:]]
        return np.stack([*boards, queens[0] - sum(queens[1:]), 1 * self.marked(mine) - self.marked(others)], -1)

    def more(self) -> list[np.ndarray]:
        return []


class Single(Queens):
    """Both players move one queen; who is stuck wins."""

    def rewards(self) -> list[float]:
        return [-x for x in super().rewards()]


class Multi(Queens):
    """Who is stuck at his turn drops out, the last one left wins."""

    def __init__(self, rows: int, cols: int, queens: int, form: str):
        super().__init__(rows, cols, queens, form)
        self.dropped: set[int] = set()
        self.settle()

    def settle(self):
        while not self.over() and not self.free():
            self.dropped.add(self.turn)
            self.next_one()

    def next_one(self):
        n = len(self.queens)
        self.turn = next(i % n for i in range(self.turn + 1, self.turn + n + 1) if i % n not in self.dropped)

    def pass_the_turn(self):
        self.next_one()
        self.settle()

    def over(self) -> bool:
        return len(self.dropped) == len(self.queens) - 1

    def rewards(self) -> list[float]:
        n = len(self.queens)
        return [1 if i == self.turn else -1 / (n - 1) for i in range(n)]

    def more(self) -> list[np.ndarray]:
        return [self.marked(self.queens[i] for i in self.dropped)]


SIDES = st.integers(2, 6)
PLANES = st.sampled_from(["plain", "article"])


@settings(max_examples=6)
@hypothesis.given(SIDES, SIDES, PLANES, SEEDS)
def test_foq(rows, cols, planes, seed):
    hypothesis.assume(rows * cols >= 8)
    follow(f"foq:rows={rows},cols={cols},planes={planes}", seed, 24, lambda: Queens(rows, cols, 2, planes))


@settings(max_examples=6)
@hypothesis.given(SIDES, SIDES, PLANES, SEEDS)
def test_foq_single(rows, cols, planes, seed):
    follow(f"foq_single:rows={rows},cols={cols},planes={planes}", seed, 24, lambda: Single(rows, cols, 1, planes))


@settings(max_examples=5)
@hypothesis.given(SIDES, SIDES, st.integers(2, 4), PLANES, SEEDS)
def test_foq_multi(rows, cols, players, planes, seed):
    hypothesis.assume(not Multi(rows, cols, players, planes).over())
    spec = f"foq_multi:rows={rows},cols={cols},players={players},planes={planes}"
    follow(spec, seed, 24, lambda: Multi(rows, cols, players, planes))


@settings(max_examples=20)
@hypothesis.given(st.integers(2, 5), st.integers(2, 5), st.integers(1, 4))
def test_boards_on_which_nobody_would_move_are_refused(rows, cols, players):
    """The double game (`players` = 1 here) wants a first move, the multi game two players with one at the start."""
    if players == 1:
        spec, plain = f"foq:rows={rows},cols={cols}", Queens(rows, cols, 2, "plain")
    else:
        spec = f"foq_multi:rows={rows},cols={cols},players={players}"
        plain = Multi(rows, cols, players, "plain")
    if plain.over():
        with pytest.raises(ValueError, match=f"{rows} x {cols}"):
            envs.make(spec)
    else:
        assert envs.make(spec).num_actions == rows * cols


# SumTo100


class Sum:
    def __init__(self, target: int, largest: int):
        self.target, self.largest, self.total, self.plies = target, largest, 0, 0

    def over(self) -> bool:
        return self.total == self.target

    def legal(self) -> list[int]:
        return list(range(min(self.largest, self.target - self.total)))

    def player(self) -> int:
        return self.plies % 2

    def rewards(self) -> list[int]:
        return [1, -1] if self.plies % 2 else [-1, 1]  # who made the last move wins

    def planes(self) -> np.ndarray:
        return (np.arange(self.target + 1) == self.total)[None, :, None]

    def play(self, action: int):
        self.total, self.plies = self.total + action + 1, self.plies + 1


@settings(max_examples=8)
@hypothesis.given(st.data(), st.integers(2, 60) | st.integers(120, 140), SEEDS)
def test_sum_to_100(data, target, seed):
    largest = data.draw(st.integers(1, target))
    follow(f"sum_to_100:target={target},largest={largest}", seed, 24, lambda: Sum(target, largest))


# EvoPawness: its plain program knows what is legal and seen, not what an action does


@settings(max_examples=4)
@hypothesis.given(st.integers(1, 120), st.integers(1, 16), SEEDS)
def test_evopawness(max_plies, history, seed):
    for seen in play(f"evopawness:max_plies={max_plies},history={history}", seed, 4):
        records = [evopawness.to_record(jax.tree.map(lambda x: x[t], seen.state)) for t in range(len(seen.over))]
        for t, record in enumerate(records):
            decided, capped = plain_evopawness.is_over(record), t == max_plies
            assert record["turn"] == t + 1 and seen.over[t] == (decided or capped)
            assert seen.player[t] == record["to_move"]
            mover = -1 if decided else 0  # who has just acted has won
            assert seen.rewards[t, [record["to_move"], 1 - record["to_move"]]].tolist() == [mover, -mover]
            if not capped:
                names = [evopawness.action_name(a) for a in np.flatnonzero(seen.legal[t])]
                assert sorted(names) == sorted(plain_evopawness.legal_names(record))
            if capped or t % 5:
                continue
            planes = np.moveaxis(seen.planes[t], -1, 0).reshape(history, 28, 9, 9)
            np.testing.assert_array_equal(planes[0], plain_evopawness.planes_of([record])[:28])
            for back in range(1, history):  # each block as if it were the last but one
                pair = [record, records[t - back]] if back <= t else [record]
                np.testing.assert_array_equal(planes[back], plain_evopawness.planes_of(pair)[28:56])
