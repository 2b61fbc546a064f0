"""Othello with GRhino, an independent program that speaks GTP (Debian package grhino)."""

import re
from pathlib import Path

import jax

import envs
from agents.arena.host_match import HostGame, Lane
from agents.players import gtp_client
from agents.players.program import program_of
from agents.players.spec import parse_player

ROOT = Path(__file__).parents[2]
GRHINO = "gtp:gtp-rhino --level=3"


def cells(text):
    """The 64 squares of a printed board; ours marks legal moves with a star."""
    return re.findall(r"[.XO]", text.partition("g h")[2].replace("*", "."))[:64]


def test_whole_games_with_passes_are_the_same(golden):
    """After every move of recorded games GRhino has our discs; it refuses passes, which it makes itself."""
    table, passes = HostGame(envs.make("othello")), 0
    names = [[table.game.action_name(a) for a in game["moves"]] for game in golden("othello.jsonl.gz")]
    for moves in [moves for moves in names if "pass" in moves][:3]:
        process = gtp_client.GtpProcess(program_of(parse_player(GRHINO)), 20.0)
        state = table.game.init()
        lane = Lane(0, 0, 0, [process, None], state, state, [])
        try:
            process.begin(table.game)
            for name in moves:
                table.play(lane, table.game.parse_action(name), None)
                passes += name == "pass"
                ours = cells(table.game.show(lane.state))
                assert len(ours) == 64
                assert cells(process.ask("showboard")) == ours, f"after {len(lane.moves)} moves"
            assert bool(jax.device_get(table.game.over(lane.state)))
        finally:
            lane.close()
    assert passes >= 3
