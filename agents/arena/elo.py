"""Elo ratings from matches between some of many players, and sequential tests that stop a match once it is decided."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

PER_LOGIT = 400 / np.log(10)  # Elo points per unit of log odds
PAIR_SCORES = np.arange(5) / 4  # possible scores of a pair of games, as a share of its two points


@dataclasses.dataclass(frozen=True)
class Meeting:
    """A match between players `a` and `b`, indices into a list of players."""

    a: int
    b: int
    pairs: np.ndarray  # float[openings], a's mean score in the games from each opening, one from every seat


def fit(
    meetings: list[Meeting], count: int, anchor: int, players: int = 2, more: np.ndarray | None = None
) -> np.ndarray:
    """Elo ratings float[count] by maximum likelihood (Bradley and Terry 1952), with a draw as half a win for each
    player. Player `anchor` has rating 0. In a game for more `players`, a had one seat and b the others, see
    `match.elo`.

    One opening is added to every match, so that a clean sweep still gives a finite rating. Its mean score for a is an
    even share, or `more` float[meetings].

    Raises:
        ValueError: some player is not linked to the anchor by any chain of matches.
    """
    more = np.full(len(meetings), 1 / players) if more is None else more
    won = players * (np.array([meeting.pairs.sum() for meeting in meetings]) + more)
    played = players * np.array([len(meeting.pairs) + 1 for meeting in meetings])
    sides = np.zeros((len(meetings), count))  # 1 for a, -1 for b
    for match, meeting in enumerate(meetings):
        sides[match, meeting.a], sides[match, meeting.b] = 1, -1
    linked = np.eye(count) + (abs(sides.T) @ abs(sides) > 0)
    if (np.linalg.matrix_power(linked, count)[anchor] == 0).any():
        raise ValueError("some players are not linked with the others by any match")
    free = np.arange(count) != anchor
    logits = np.zeros(count)
    for _ in range(100):
        expected = 1 / (1 + (players - 1) * np.exp(-sides @ logits))
        gradient = sides.T @ (won - played * expected)
        weight = played * expected * (1 - expected)
        curvature = sides.T @ (weight[:, None] * sides)
        step = np.linalg.solve(curvature[free][:, free], gradient[free])
        logits[free] += np.clip(step, -1, 1)
        if np.abs(step).max(initial=0) < 1e-9:
            break
    return logits * PER_LOGIT


def passed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """When the networks of a run overtook each baseline, in minutes and games, interpolated linearly between networks.
    `at_most` is set if the first network is already above the baseline. The times are None if the last is still below.

    `rows` are those of `evaluate.py ladder --json`, with the networks ordered by age. Only these have `games`, even
    if a baseline is a network."""
    networks = [row for row in rows if "games" in row]
    found = []
    for row in rows:
        if "games" in row:
            continue
        above = [network["elo"] > row["elo"] for network in networks]
        when: dict[str, Any] = {"minutes": None, "games": None, "at_most": all(above)}
        if above[-1]:
            later = len(above) - above[::-1].index(False) if False in above else 0
            for unit, digits in (("minutes", 1), ("games", None)):
                pair = networks[max(later - 1, 0) : later + 1]
                elo = [network["elo"] for network in pair]
                when[unit] = round(float(np.interp(row["elo"], elo, [x[unit] for x in pair])), digits)
        found.append({"player": row["player"], **when})
    return found


def bootstrap(
    meetings: list[Meeting], count: int, anchor: int, players: int = 2, resamples: int = 300
) -> tuple[np.ndarray, np.ndarray]:
    """95% intervals of `fit`, (low, high) float[count] each, from openings resampled with replacement.

    The opening that `fit` adds is drawn too, with a beta-distributed score from 0 to 1 whose mean is an even share.
    Without it, matches whose games all ended alike would have intervals of no width."""
    rng = np.random.default_rng(0)
    again = lambda m: dataclasses.replace(m, pairs=rng.choice(m.pairs, len(m.pairs)))
    more = lambda: rng.beta(1, players - 1, len(meetings))
    fits = [fit([again(m) for m in meetings], count, anchor, players, more()) for _ in range(resamples)]
    low, high = np.quantile(fits, [0.025, 0.975], axis=0)
    return low, high


def expected_score(elo: float) -> float:
    return 1 / (1 + np.exp(-elo / PER_LOGIT))


def log_likelihood_ratio(pairs: np.ndarray, elo0: float, elo1: float) -> float:
    """Log-likelihood ratio of `elo1` against `elo0` as the true difference, given the scores of pairs.

    This is the generalised ratio over the five results of a pair. Under either hypothesis their shares fit the counts
    best among all with the claimed mean. A prior of a thousandth of a pair per result keeps all shares positive.
    Source: Van den Bergh, "The generalized maximum likelihood ratio for the expectation value of a distribution"."""
    counts = np.array([np.isclose(pairs, score).sum() for score in PAIR_SCORES]) + 1e-3
    shares = counts / counts.sum()
    fitted = [_with_mean(shares, expected_score(elo)) for elo in (elo0, elo1)]
    return float((counts * np.log(fitted[1] / fitted[0])).sum())


def _with_mean(shares: np.ndarray, mean: float) -> np.ndarray:
    """The shares with this mean under which `shares` are most likely: shares / (1 + x (score - mean)) for one x."""
    away = PAIR_SCORES - mean
    low, high = -1 / away.max() + 1e-12, -1 / away.min() - 1e-12  # bounds between which all shares are positive
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (shares * away / (1 + middle * away)).sum() > 0 else (low, middle)
    return shares / (1 + low * away)


def decided(pairs: np.ndarray, elo0: float, elo1: float, error: float = 0.05) -> str | None:
    """`stronger` or `not stronger` once the sequential probability ratio test (Wald 1945) of `elo1` against `elo0` has
    ended, else None. `error` is the rate of either error."""
    bound = np.log((1 - error) / error)
    ratio = log_likelihood_ratio(pairs, elo0, elo1)
    return "stronger" if ratio > bound else "not stronger" if ratio < -bound else None
