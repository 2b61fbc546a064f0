"""Ratings and sequential tests, against figures worked out by hand."""

import numpy as np
import pytest

from agents.arena.elo import Meeting, bootstrap, decided, expected_score, fit, log_likelihood_ratio, passed

# 50 openings, 75 of 100 points: with an even opening added the odds are 76 to 26.
THREE_TO_ONE = np.array([1.0] * 25 + [0.5] * 25)
STEP = 400 * np.log10(76 / 26)


def test_ratings_by_hand():
    assert fit([Meeting(0, 1, THREE_TO_ONE)], 2, anchor=1).tolist() == pytest.approx([STEP, 0])
    chain = [Meeting(1, 0, THREE_TO_ONE), Meeting(1, 2, 1 - THREE_TO_ONE)]
    assert fit(chain, 3, anchor=0).tolist() == pytest.approx([0, STEP, 2 * STEP])
    even = [Meeting(0, 1, THREE_TO_ONE), Meeting(0, 1, 1 - THREE_TO_ONE)]
    assert fit(even, 2, anchor=0).tolist() == pytest.approx([0, 0], abs=1e-6)


def test_ratings_of_three_by_hand():
    """50 openings of three games: 50 of the 150 points are an even share, 90 with an even opening 91 to 62."""
    even, better = np.full(50, 1 / 3), np.full(50, 0.6)
    found = fit([Meeting(1, 0, even), Meeting(2, 1, better)], 3, 0, players=3)
    step = 400 * np.log10(2 * 91 / 62)
    assert found.tolist() == pytest.approx([0, 0, step], abs=1e-6)
    low, high = bootstrap([Meeting(1, 0, even), Meeting(2, 1, better)], 3, 0, players=3)
    assert low[2] < step < high[2]


def test_a_match_won_to_nothing_has_a_finite_rating():
    assert fit([Meeting(0, 1, np.ones(50))], 2, anchor=1)[0] == pytest.approx(400 * np.log10(101 / 1))


def test_players_that_never_met_anybody_are_refused():
    with pytest.raises(ValueError, match="not linked"):
        fit([Meeting(0, 1, THREE_TO_ONE)], 3, anchor=0)


def test_intervals_hold_the_rating_and_narrow_with_games():
    wide, narrow = (
        np.subtract(*bootstrap([Meeting(1, 0, np.tile(THREE_TO_ONE, times))], 2, anchor=0)[::-1])[1] for times in (1, 9)
    )
    low, high = bootstrap([Meeting(1, 0, THREE_TO_ONE)], 2, anchor=0)
    assert low[1] < STEP < high[1]
    assert low[0] == high[0] == 0
    assert 2 < wide / narrow < 4.5  # three, by the square root


def test_intervals_stay_open_where_all_was_won():
    """As those of one match: 50 pairs won leave more than 300 points between the ends."""
    low, high = bootstrap([Meeting(1, 0, np.ones(50)), Meeting(2, 1, np.full(50, 0.5))], 3, anchor=0)
    assert high[1] - low[1] > 100
    assert low[2] < high[2]


@pytest.mark.parametrize("players", [2, 3])
def test_intervals_hold_the_rating_where_all_was_won(players):
    """A chain of players who each won all games against the one before."""
    chain = [Meeting(i + 1, i, np.ones(20)) for i in range(8)]
    elo = fit(chain, 9, 0, players)
    low, high = bootstrap(chain, 9, 0, players)
    assert (low[1:] < elo[1:]).all() and (elo[1:] < high[1:]).all()


def test_when_baselines_were_passed():
    networks = lambda *elo: [
        {"player": f"{i}", "elo": x, "minutes": 1.0 + i, "games": 100 + 100 * i} for i, x in enumerate(elo)
    ]
    baselines = [{"player": "random", "elo": 0}, {"player": "uct:100", "elo": 100}]
    when = lambda *elo: [(row["player"], row["minutes"], row["games"]) for row in passed(baselines + networks(*elo))]
    assert when(-50, 50, 150) == [("random", 1.5, 150), ("uct:100", 2.5, 250)]
    assert when(50, 60, 70) == [("random", 1.0, 100), ("uct:100", None, None)]
    assert [row["at_most"] for row in passed(baselines + networks(50, 60, 170))] == [True, False]
    assert when(-100, 10, -100, 300) == [("random", 3.2, 325), ("uct:100", 3.5, 350)]  # for good


def test_likelihoods_by_hand():
    """Pairs won or lost as a whole: a coin, whose likelihood needs no fitting."""
    pairs = np.array([1.0] * 30 + [0.0] * 20)
    s0, s1 = expected_score(0), expected_score(60)
    by_hand = 30 * np.log(s1 / s0) + 20 * np.log((1 - s1) / (1 - s0))
    assert log_likelihood_ratio(pairs, 0, 60) == pytest.approx(by_hand, abs=0.01)
    assert expected_score(400 * np.log10(3)) == pytest.approx(0.75)


def test_the_largest_differences_are_decided():
    assert decided(np.ones(10), 0, 4000) == "stronger"
    assert decided(np.full(100, 0.5), 0, 4000) == "not stronger"


@pytest.mark.parametrize(("truth", "wrong"), [(0, "stronger"), (60, "not stronger")])
def test_errors_are_as_rare_as_promised(truth, wrong):
    """Two hundred matches of players whose difference is known, pairs of independent games with draws."""
    rng = np.random.default_rng(3)
    win = expected_score(truth) - 0.1
    verdicts = []
    for _ in range(200):
        games = rng.choice([1, 0.5, 0], size=(4000, 2), p=[win, 0.2, 0.8 - win])
        pairs = games.mean(1)
        counts = range(25, 4000, 25)
        verdicts.append(next(verdict for n in counts if (verdict := decided(pairs[:n], 0, 60)) is not None))
    assert 0 < verdicts.count(wrong) <= 16  # 5 % of 200, and two standard deviations
