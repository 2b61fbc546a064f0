"""Proofs, against solved positions from other programs and values known by hand; and what is known without search."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from solved_boards import kept

import envs
from agents.players import players
from agents.solvers import proof_number, retrograde
from agents.solvers.solve import make_solver
from envs import foq, foq_theory, saved

MANY = 1 << 16


def test_draws():
    """Tic-tac-toe: the start, all its first moves, and every position two plies later."""
    game = envs.make("tictactoe")
    solve = make_solver(game, MANY)
    first = solve(game.init(), all_moves=True)
    assert (first.value, set(first.moves.values()), first.stopped) == (0, {0}, None)
    table = retrograde.solve(game)
    for pair in itertools.permutations(["a1", "b2", "b3"], 2):
        state = saved.replay(game, game.init(), pair)[0][-1]
        place = retrograde.index_in_table(table, jax.tree.map(lambda x: x[None], state))[0]
        verdict = solve(state, all_moves=True)
        assert verdict.value == int(table.values[place])
        assert kept(verdict) == set(np.flatnonzero(table.best[place]).tolist())


def test_what_is_not_asked_is_not_told():
    """Tic-tac-toe, O to move wins at b1; after a1 it is a draw, which nobody asked."""
    game = envs.make("tictactoe")
    state = saved.replay(game, game.init(), ["a3", "b3", "c3", "b2", "a2", "c2", "c1"])[0][-1]
    solve = make_solver(game, MANY)
    by_name = lambda verdict: {game.action_name(action): value for action, value in verdict.moves.items()}
    assert by_name(solve(state)) == {"a1": None, "b1": 1}
    assert by_name(solve(state, all_moves=True)) == {"a1": 0, "b1": 1}


def test_a_win_is_found_without_looking_at_all():
    """Connect Four, first player to move with three in a column: the fourth wins, and nothing else need be known."""
    game = envs.make("connect_four")
    state = saved.replay(game, game.init(), ["1", "2", "1", "2", "1", "2"])[0][-1]
    verdict = make_solver(game, MANY)(state)
    assert (verdict.value, verdict.moves[0]) == (1, 1)
    assert verdict.positions <= 1 + 7


def test_a_game_that_is_over():
    game = envs.make("tictactoe")
    state = saved.replay(game, game.init(), ["a1", "a2", "b1", "b2", "c1"])[0][-1]
    verdict = make_solver(game, MANY)(state)
    assert (verdict.value, verdict.moves) == (-1, {})


def test_more_players_are_refused():
    with pytest.raises(ValueError, match="proofs are for games of two players; foq_multi:.* has 3"):
        proof_number.make_prover(envs.make("foq_multi"), MANY)


def test_all_moves_of_a_position_have_room():
    """One of the 521 legal moves blocks a row of four, and X is then not lost. A graph with room for fewer positions
    used to prove X lost."""
    game = envs.make("gomoku:size=23")
    state = saved.replay(game, game.init(), ["r1", "s1", "a23", "t1", "c21", "u1", "e19", "v1"])[0][-1]
    with pytest.raises(ValueError, match="gomoku.*: proofs need room for at least 786 positions, got 512"):
        make_solver(game, 512)
    verdict = make_solver(game, 1024)(state, all_moves=True)
    block = game.parse_action("w1")
    assert verdict.moves[block] is None
    assert {value for action, value in verdict.moves.items() if action != block} == {-1}


# As a player


def test_what_is_not_proved_is_left_to_the_other():
    """The start of tic-tac-toe is out of reach of so few positions; a game that is over has nothing to prove."""
    game = envs.make("tictactoe")
    proving, other = (players.make_player(spec, game, 0) for spec in ("prove:512,random", "random"))
    over = saved.replay(game, game.init(), ["a1", "a2", "b1", "b2", "c1"])[0][-1]
    states = jax.tree.map(lambda *x: jnp.stack([jnp.asarray(y) for y in x]), game.init(), over, game.init())
    act = lambda player: jax.jit(player.act)({}, jax.random.key(0), states, jnp.zeros(3, jnp.int32)).tolist()
    assert act(proving) == act(other)
    assert proving.name == "prove:512,random"


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("prove:100,random", "proofs need room for at least 512 positions, got 100"),
        ("prove:1000", "player 'prove:1000': expected positions and a player, as in prove:100000,uct:100"),
        ("prove:many,random", "player 'prove:many,random': expected a whole number from 1"),
        ("prove:1000,nobody", "unknown player 'nobody'"),
    ],
)
def test_players_that_cannot_be(spec, error):
    with pytest.raises(ValueError, match=error):
        players.make_player(spec, envs.make("foq"), 0)


# Theory


def longest(free, square):
    """Moves of a king who starts on a square and never comes back: by trying everything."""
    near = lambda a, b: a != b and max(abs(a[0] - b[0]), abs(a[1] - b[1])) == 1
    return max((1 + longest(free - {to}, to) for to in free if near(square, to)), default=0)


def random_endgames(count, rows=4, cols=5):
    rng = np.random.default_rng(5)
    for _ in range(count):
        ripped = rng.random((rows, cols)) < 0.55
        queens = rng.choice(rows * cols, 2, replace=False)
        ripped.ravel()[queens] = True
        yield foq.State(*map(jnp.asarray, (ripped, queens.astype(np.int16), np.int8(rng.integers(2)), np.int8(-1))))


def test_what_theory_settles_is_right():
    """Of 800 random positions: regions by hand, results by search; among them queens who can come to the same squares,
    while one has others of her own."""
    game = envs.make("foq:rows=4,cols=5")
    states = list(random_endgames(800))
    together = jax.tree.map(lambda *x: jnp.stack(x), *states)
    known_result = np.asarray(jax.jit(jax.vmap(foq_theory.known_result))(together))
    regions = np.asarray(jax.jit(jax.vmap(foq_theory.regions))(together))
    plain = exact_results(game, together)
    known = ~np.isnan(known_result)
    together_still = regions.all(1).any((1, 2))
    assert (known & ~together_still).sum() > 150 and 40 < (known & together_still).sum() < together_still.sum()
    np.testing.assert_array_equal(known_result[known], plain[known])
    for state, region in list(zip(states, regions, strict=True))[:60]:
        free = {(int(r), int(c)) for r, c in np.argwhere(~np.asarray(state.ripped))}
        for queen, found in zip(np.asarray(state.queens), region, strict=True):
            reached, edge = set(), {(int(queen) // 5, int(queen) % 5)}
            while edge:
                reached |= edge
                edge = {b for b in free - reached for a in edge if max(abs(a[0] - b[0]), abs(a[1] - b[1])) == 1}
            assert {(int(r), int(c)) for r, c in np.argwhere(found)} == reached & free


def test_a_draw_that_theory_knows_is_no_loss():
    """Tic-tac-toe of which it is known from the first move on that it is a draw."""
    game = envs.make("tictactoe")
    known = lambda s: jnp.where((s.board != 0).any(), 0.0, jnp.nan)
    verdict = make_solver(
        dataclasses.replace(game, hints=dataclasses.replace(game.hints, known_result=known)), 1 << 12
    )(game.init())
    assert verdict.value == 0


def exact_results(game, states):
    """Results for the mover by plain recursion over the rules."""
    move, mask = jax.jit(game.move), jax.jit(game.mask)

    def wins(state):
        return any(not wins(move(state, int(a))) for a in np.flatnonzero(mask(state)))

    count = len(states.to_move)
    return np.array([1.0 if wins(jax.tree.map(lambda x, i=i: x[i], states)) else -1.0 for i in range(count)])


def walked(start, area, enough=99):
    return int(foq_theory.walk(foq_theory.bits(start), foq_theory.bits(area), jnp.int32(enough)))


def test_a_walk_is_a_walk():
    """Never longer than the longest, and as long on an open board, where every square can be visited."""
    for state in random_endgames(30):
        start = foq_theory.places(state.queens, (4, 5))[0]
        free = {(int(r), int(c)) for r, c in np.argwhere(~np.asarray(state.ripped))}
        found = walked(start, ~state.ripped)
        assert found <= longest(free, (int(state.queens[0]) // 5, int(state.queens[0]) % 5))
    corner = jnp.zeros((4, 5), bool).at[0, 0].set(True)
    assert walked(corner, ~corner) == 19
    assert walked(corner, ~corner, 7) == 7


def test_the_essence_of_a_position():
    """Squares that nobody can come to, and who is called first, make no difference; the other's turn does."""
    record = {"variant": "foq", "rows": 3, "cols": 5, "to_move": 0}
    board = [[0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [1, 1, 1, 1, 1]]  # queens in the lower corners
    make = lambda extra, queens, turn: foq.from_record(
        record | {"ripped": np.flatnonzero(np.ravel(board)).tolist() + extra, "queens": queens, "to_move": turn}
    )
    same = lambda a, b: all(jax.tree.leaves(jax.tree.map(lambda x, y: bool((x == y).all()), a, b)))
    whole = foq_theory.canonical(make([], [10, 14], 0))
    assert same(whole, foq_theory.canonical(make([], [14, 10], 1)))
    assert not same(whole, foq_theory.canonical(make([], [10, 14], 1)))
    assert not same(whole, foq_theory.canonical(make([3], [10, 14], 0)))
    shut = [5, 6]  # the left queen can no longer come to the two squares above
    assert same(foq_theory.canonical(make(shut, [10, 14], 0)), foq_theory.canonical(make([*shut, 0, 1], [10, 14], 0)))
