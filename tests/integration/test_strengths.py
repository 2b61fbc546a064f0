"""Players that search beat those that play at random."""

import pytest

import envs
from agents.arena import match
from agents.players.players import make_player


def test_one_who_thinks_beats_two_at_random():
    game = envs.make("foq_multi:rows=5,cols=6")
    uct, random = make_player("uct:60", game, 1), make_player("random", game, 1)
    strong = match.result(uct, random, match.play_games(game, uct, random, games=99, opening_plies=1, seed=2))
    assert strong.score > 0.55  # even would be a third


@pytest.mark.parametrize("strong", ["uct:60", "minimax:3"])
@pytest.mark.parametrize("spec", ["tictactoe", "foq:rows=4,cols=5"])
def test_thinking_players_beat_the_random_one(strong, spec):
    game = envs.make(spec)
    a, b = make_player(strong, game, 1), make_player("random", game, 1)
    result = match.result(a, b, match.play_games(game, a, b, games=100, opening_plies=1, seed=2))
    assert result.score > 0.75
    assert result.losses < 25
