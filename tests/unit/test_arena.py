"""Matches, players and their statistics."""

import dataclasses
import io

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from agents.arena import match, openings, tables
from agents.arena.solved_positions import Score
from agents.players.players import make_player
from agents.players.spec import Player
from agents.runtime import cli


def first_or_last(first: bool, game: envs.Game) -> Player:
    """Plays the lowest or the highest legal code."""

    def act(weights, key, states, plies):
        mask = jax.vmap(game.mask)(states)
        return (mask.argmax(-1) if first else mask.shape[-1] - 1 - mask[:, ::-1].argmax(-1)).astype(jnp.int32)

    return Player("first" if first else "last", act)


def test_a_game_followed_by_hand():
    """Lowest code for A, highest for B. A first: X 0, O 8, X 1, O 7, X 2 wins. B first: 8, 0, 7, 1, 6."""
    game = envs.make("tictactoe")
    a, b = first_or_last(True, game), first_or_last(False, game)
    played = match.play_games(game, a, b, games=4, opening_plies=0, seed=0)
    assert played.score.tolist() == [[1, 1], [0, 0]]
    assert played.plies.tolist() == [[5, 5], [5, 5]]
    result = match.result(a, b, played)
    assert (result.games, result.wins, result.draws, result.losses) == (2, 1, 0, 1)
    assert (result.repeated, result.openings) == (2, 1)
    assert (result.score, result.elo) == (0.5, 0)


@pytest.mark.parametrize(("seconds", "heard"), [(0, [0, 0, 0, 0, 2, 2, 2, 2, 2, 4]), (1e9, [0, 0, 2, 2, 2, 4])])
def test_a_match_tells_how_far_it_is(seconds, heard, monkeypatch):
    """The games above, five plies each: looked at after every ply, or after 1, 2 and 4 more. A wins those it begins."""
    monkeypatch.setattr(match, "LOOK_SECONDS", seconds)
    game, reports = envs.make("tictactoe"), []
    a, b = first_or_last(True, game), first_or_last(False, game)
    played = match.play_games(game, a, b, games=4, opening_plies=0, seed=0, tell=reports.append)
    assert [len(points) for points in reports] == heard
    assert reports[-1].tolist() == [1, 1, 0, 0]
    assert played.score.tolist() == [[1, 1], [0, 0]]


def test_a_match_of_three():
    """Equal players without chance play the same game from every seat, which one of the seats wins."""
    game = envs.make("foq_multi:rows=4,cols=4")
    same = first_or_last(True, game)
    played = match.play_games(game, same, same, games=12, opening_plies=2, seed=0)
    assert played.score.shape == (3, 4)
    assert (np.sort(played.score, axis=0) == [[0], [0], [1]]).all()
    assert (played.plies == played.plies[0]).all()
    even = match.result(same, same, played)
    # There are two openings of two moves, up to symmetry, that are not over.
    assert (even.players, even.games, even.repeated, even.openings) == (3, 6, 6, 2)
    assert (even.wins, even.draws, even.losses) == (2, 0, 4)
    assert even.elo == pytest.approx(0, abs=0.01)
    assert even.score == pytest.approx(1 / 3)
    assert even.score_interval[0] < 1 / 3 < even.score_interval[1]
    with pytest.raises(ValueError, match="--games: expected a multiple of 3, since every opening is played from all"):
        match.play_games(game, same, same, games=100, opening_plies=0, seed=0)


def test_an_illegal_move_is_an_error_and_no_loss():
    game = envs.make("foq_multi:rows=4,cols=4")
    wrong = Player("wrong", lambda weights, key, states, plies: jnp.full(len(plies), game.num_actions - 1, jnp.int32))
    for pair in ((wrong, make_player("random", game)), (make_player("random", game), wrong)):
        with pytest.raises(ValueError, match="player 'wrong': expected legal moves, got an illegal one"):
            match.play_games(game, *pair, games=30, opening_plies=2, seed=0)


def test_both_seats_of_every_opening_and_a_mirror_match_is_even():
    game = envs.make("tictactoe")
    a = make_player("random", game, 1)
    result = match.result(a, a, match.play_games(game, a, a, games=400, opening_plies=2, seed=1))
    assert result.wins + result.draws + result.losses == 400
    low, high = result.score_interval
    assert low < 0.5 < high


def test_games_that_chance_repeats_all_count():
    """Steps of 1 or 2 lead to the sum 2, and who makes it wins. After a first step of 1 the next step wins, and `one`
    always begins so; `random` begins so in half of its games."""
    game = envs.make("sum_to_100:target=2,largest=2")
    random, one = make_player("random", game), first_or_last(True, game)
    result = match.result(random, one, match.play_games(game, random, one, games=2000, opening_plies=0, seed=0))
    assert (result.games, result.repeated, result.openings) == (2000, 0, 1)
    # It wins all 1000 games in which it moves second, and half of the others: 75%, give or take 1% (a standard error).
    assert result.score == pytest.approx(0.75, abs=0.04)
    assert result.score_interval[1] - result.score_interval[0] < 0.05
    same = match.result(one, one, match.play_games(game, one, one, games=2000, opening_plies=0, seed=0))
    assert (same.games, same.repeated) == (2, 1998)


def test_a_match_goes_on_with_other_openings_and_ends_when_there_are_none():
    """Tic-tac-toe has 38 positions after three moves. Between players without chance those that come again tell nothing
    new: a match that knows no other ends."""
    game, looked = envs.make("tictactoe"), []
    a, b = first_or_last(True, game), first_or_last(False, game)
    never = lambda pairs: bool(looked.append(len(pairs)))
    played = match.play_games(game, a, b, games=4000, opening_plies=3, seed=0, stop=never)
    assert looked == [38]
    result = match.result(a, b, played)
    assert (result.games, result.openings, result.repeated) == (76, 38, 24)
    connect, looked[:] = envs.make("connect_four"), []
    a, b = first_or_last(True, connect), first_or_last(False, connect)
    played = match.play_games(connect, a, b, games=200, opening_plies=3, seed=0, stop=never)
    assert looked == [50]
    assert (len(np.unique(played.opening)), played.score.size) == (100, 200)


def test_games_that_come_again_do_not_narrow_the_interval():
    game = envs.make("tictactoe")
    a, b = first_or_last(True, game), first_or_last(False, game)
    few, many = (match.play_games(game, a, b, games=n, opening_plies=2, seed=0) for n in (24, 240))
    once, again = (match.result(a, b, played) for played in (few, many))
    assert (once.games, once.repeated, once.openings) == (24, 0, 12)
    assert (again.games, again.repeated, again.openings) == (24, 216, 12)
    thrice = match.result(a, b, match.Games(*(np.concatenate([x] * 3, axis=-1) for x in few)))
    assert thrice == dataclasses.replace(once, repeated=48)


def test_every_figure_of_a_result_is_of_the_same_games():
    """Seven pairs of games. The second pair comes three times more, move by move, and its opening once with another
    game. A has 2, 1, 1.5 and 0.5 points of four different pairs, 5 of 8, which is 400 log10(5 / 3) = 88.7 Elo."""
    game = envs.make("tictactoe")
    a, b = first_or_last(True, game), first_or_last(False, game)
    score = np.array([[1, 0, 0, 1, 0, 0, 0.5], [1, 1, 1, 0.5, 1, 1, 0]])
    plies = np.array([[5, 7, 7, 9, 7, 7, 8], [5, 7, 7, 9, 7, 7, 6]])
    code = np.array([[1, 3, 3, 5, 3, 3, 3], [2, 4, 4, 6, 4, 4, 7]], np.uint64)
    opening = np.array([1, 2, 2, 3, 2, 2, 2], np.uint64)
    result = match.result(a, b, match.Games(score, plies, code, opening))
    assert (result.games, result.repeated, result.openings) == (8, 6, 3)
    assert (result.wins, result.draws, result.losses) == (4, 2, 2)
    assert result.mean_plies == 56 / 8
    assert result.score == 5 / 8
    assert result.elo == pytest.approx(88.7, abs=0.1)
    assert result.score_interval == match.score_interval(np.array([1, 0.5, 0.75, 0.25]))


def test_the_greedy_one_takes_what_is_best_at_once():
    """In FoQ the move that leaves the other the fewest moves against its own, which is enough against `random`."""
    game = envs.make("foq:rows=4,cols=5")
    a, b = make_player("greedy", game, 1), make_player("random", game, 1)
    assert a.name == "greedy"
    assert match.result(a, b, match.play_games(game, a, b, games=100, opening_plies=1, seed=2)).score > 0.7


def test_minimax_and_uct_win_in_one_and_block():
    game = envs.make("tictactoe")
    records = [
        {"board": [1, 1, 0, -1, -1, 0, 0, 0, 0], "to_move": 1},
        {"board": [1, 1, 0, -1, 0, 0, 0, 0, 0], "to_move": -1},
    ]
    states = jax.tree.map(lambda *x: jnp.stack(x), *(game.from_record(r) for r in records))
    for name in ("minimax:2", "uct:500"):
        player = make_player(name, game, 1)
        assert jax.jit(player.act)(None, jax.random.key(0), states, jnp.full(2, 3)).tolist() == [2, 2]


def test_three_plies_ahead_as_by_a_plain_recursion():
    """Where the same side may move again as well: a game in which a lowest code grants another move."""
    plain = envs.make("foq:rows=4,cols=5")
    lowest = lambda s, a: plain.mask(s).argmax() == a

    def again(s, a):
        """The mover plays once more for the other, who then is asked nothing: the lowest code stands for two plies."""
        moved = plain.move(s, a)
        twice = plain.move(moved, plain.mask(moved).argmax())
        keep = lowest(s, a) & ~plain.over(moved)
        return jax.tree.map(lambda x, y: jnp.where(keep, x, y), twice, moved)

    game = dataclasses.replace(plain, move=again)
    step, mask, over, player, rewards, value = map(
        jax.jit, (game.move, game.mask, game.over, game.player, game.rewards, game.hints.evaluate)
    )

    def best(s, depth):
        """The value of every legal move for the mover."""
        found, mover = {}, int(player(s))
        for action in np.flatnonzero(np.asarray(mask(s))):
            child = step(s, int(action))
            if bool(over(child)):
                found[action] = float(rewards(child)[mover])
                continue
            below = float(value(child)) if depth == 1 else max(best(child, depth - 1).values())
            found[action] = below if int(player(child)) == mover else -below
        return found

    act = jax.jit(make_player("minimax:3", game, 1).act)
    states = openings.sample_openings(plain, jax.random.key(5), 12, 4)[0]
    chosen = [np.asarray(act(None, jax.random.key(i), states, jnp.full(12, 4))) for i in range(8)]
    for i in range(12):
        one = jax.tree.map(lambda x, i=i: x[i], states)
        if not bool(over(one)):
            values = best(one, 3)
            top = {action for action, v in values.items() if v > max(values.values()) - 1e-5}
            assert {moves[i] for moves in chosen} <= top


def test_intervals():
    """Forty pairs split evenly: wider than for pairs that are all 1/2; never closed, also when all were won."""
    even = match.score_interval(np.full(40, 0.5))
    split = match.score_interval(np.repeat([0.0, 1.0], 20))
    assert split[0] < even[0] < 0.5 < even[1] < split[1]
    # A binomial share of 20 in 40 has a standard error of 0.079.
    np.testing.assert_allclose(split, (0.5 - 1.96 * 0.079, 0.5 + 1.96 * 0.079), atol=0.02)
    low, high = match.score_interval(np.ones(40))
    assert 0.9 < low < high <= 1


def test_intervals_of_three_with_draws():
    """Three games of which one is drawn among all: 4/9 of the points; the interval closes around it."""
    low, high = match.score_interval(np.full(100, 4 / 9), players=3)
    assert 0.42 < low < 4 / 9 < high < 0.48


def test_elo_by_hand():
    assert match.elo(0.5) == 0
    assert match.elo(10 / 11) == pytest.approx(400)
    assert match.elo(1.0) is None
    # One of three: even with a third of the points, and with ten times the chances of either of the others 10 of 12.
    assert match.elo(1 / 3, 3) == pytest.approx(0)
    assert match.elo(10 / 12, 3) == pytest.approx(400)
    assert match.equivalent_score(10 / 11, 3) == pytest.approx(10 / 12)
    assert [match.equivalent_score(share, 2) for share in (0.0, 0.55, 1.0)] == pytest.approx([0, 0.55, 1])


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("uct:x", "whole number"), ("minimax:0", "whole number"), ("minimax:99", "deepest is minimax:"),
        ("alice", "random, greedy, uct:N"), ("alice@x", "whole number from 0"),
    ],
)  # fmt: skip
def test_unknown_players_are_refused(spec, words):
    with pytest.raises(ValueError, match=words):
        make_player(spec, envs.make("tictactoe"), 1)


def test_looking_ahead_by_turns_is_for_two():
    with pytest.raises(ValueError, match="minimax:2 is for two players; foq_multi:.* has 3"):
        make_player("minimax:2", envs.make("foq_multi"), 1)
    make_player("greedy", envs.make("foq_multi"), 1)


# Tables


def in_80_columns(table) -> list[str]:
    out = io.StringIO()
    cli.console(file=out, width=80).print(table)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert max(map(len, lines)) <= 80 and "…" not in out.getvalue()
    return lines


@pytest.mark.parametrize("players", [2, 3])
def test_a_table_of_a_match_fits_a_terminal(players):
    """With wide figures: no name and no digit is lost."""
    result = match.Result(
        a="runs/first/networks/20@32", b="uct:100", players=players, games=4000, openings=9, repeated=1234, wins=1000,
        draws=2000, losses=1000, score=1.0, score_interval=(0.986, 0.999), elo=-904.0, elo_interval=(-1053.0, -751.0),
        mean_plies=113.4,
    )  # fmt: skip
    lines = in_80_columns(tables.match_table([result]))
    words = "against won/drawn/lost score Elo repeated plies uct:100 1000/2000/1000 100.0% [98.6, 99.9] 1234 113.4"
    even = ["even", "33.3%"] if players == 3 else []
    assert {*words.split(), "-904", "[-1053,", "-751]", *even} <= set(" ".join(lines).split())


def test_a_table_of_solved_positions_fits_a_terminal():
    score = Score(1600, 1600, 1.0, (0.998, 1.0))
    phases = np.repeat(["30 to 39 free", "40 to 49 free"], 800)
    found = {name: ("models/foq@128", score, dict.fromkeys(phases, score)) for name in ("player", "without_proofs")}
    for columns in (found, {"alone": found["player"], **found}):
        lines = in_80_columns(tables.solved_table("foq:rows=8,cols=9", columns, phases, np.full(1600, 0.5)))
        shares = ["100%", "[100,", "100]"] * len(columns)
        assert ["all", "1600", "50.0%", *shares] in [line.split() for line in lines]
        words = " ".join(line[:9].strip() for line in lines if line[:2] in ("30", "39", "40", "49"))
        assert "30 to" in words and "40 to" in words
