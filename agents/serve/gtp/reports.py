"""Analysis commands of Leela Zero and KataGo: reports on a search, until the next line of the controller."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from agents.players.ownership import ExpectedOwners, average_owners
from agents.serve.gtp.arguments import COLOUR_WORDS, WHOLE, Refusal, expect, read_colour, read_vertex, read_whole
from agents.serve.gtp.engine import Engine

EVERY = 100  # default centiseconds between two reports of an analysis
SHOWN = 30  # default maximum of moves in a report
FLAGS = ("ownership", "rootInfo", "movesOwnership", "ownershipStdev", "pvVisits", "pvEdgeVisits")  # of KataGo


class Wish(NamedTuple):
    """Options of an analysis."""

    player: int
    interval: float  # seconds between two reports
    least: int  # minimum of moves in a report, even without visits
    most: int  # maximum of moves in a report
    among: frozenset[int] | None  # root moves to search; None for all
    ownership: bool  # with the expected owner of every point


def read_wish(engine: Engine, arguments: list[str]) -> Wish:
    """`[colour] [CENTISECONDS]`, then options; the protocol of Leela Zero with `maxmoves` and `ownership` of KataGo."""
    rest = list(arguments)
    player = read_colour(rest.pop(0)) if rest and rest[0].lower() in COLOUR_WORDS else engine.to_move
    numbers = {"interval": EVERY, "minmoves": 0, "maxmoves": SHOWN}
    if rest and WHOLE.fullmatch(rest[0]):
        numbers["interval"] = int(rest.pop(0))
    step = engine.turn_to(player)
    legal = frozenset(np.flatnonzero(engine.mask(step.state)).tolist())
    among, ownership = legal, False
    while rest:
        option, *words = rest
        if option in numbers:
            expect(words[:1], 1)
            numbers[option], rest = read_whole(words[0]), words[1:]
        elif option in FLAGS:
            expect(words[:1], 1)
            ownership, rest = _flag(option, words[0], ownership), words[1:]
        elif option in ("avoid", "allow"):
            expect(words[:3], 3)
            if (read_colour(words[0]), read_whole(words[2])) != (player, 1):
                raise Refusal(
                    f"{option} is known for the next move alone: expected the colour to move and a depth of 1"
                )
            named = {read_vertex(word, engine.size) for word in words[1].split(",")}
            among, rest = among - named if option == "avoid" else among & named, words[3:]
        else:
            raise Refusal(f"unknown option '{option}'; known are {', '.join(numbers)}, ownership, avoid and allow")
    if not among:
        raise Refusal("no legal move is left to look at")
    least, most = numbers["minmoves"], max(1, numbers["minmoves"], numbers["maxmoves"])
    limited = None if among == legal else among
    return Wish(player, max(1, numbers["interval"]) / 100, least, most, limited, ownership)


def _flag(option: str, word: str, ownership: bool) -> bool:
    """Whether ownership is wanted after this option. The other options of KataGo can only be turned off."""
    if word not in ("true", "false"):
        raise Refusal(f"{option}: expected true or false, got '{word}'")
    if option != "ownership" and word == "true":
        raise Refusal(f"{option} is not supported")
    return word == "true" if option == "ownership" else ownership


Info = Callable[[Engine, Wish], str]


def leela_info(engine: Engine, wish: Wish) -> str:
    """The moves with visits, in the format of Leela Zero: values in units of 1/10000, from the mover's view."""
    words = []
    for order, move in enumerate(_moves(engine, wish)):
        winrate, prior = round(5000 * (move["value"] + 1)), round(10000 * move["prior"])
        words.append(
            f"info move {move['action']} visits {move['visits']} winrate {winrate} prior {prior} "
            f"order {order} pv {' '.join(move['line'])}"
        )
    return " ".join(words)


def kata_info(engine: Engine, wish: Wish) -> str:
    """The moves with visits, in the format of KataGo: shares and points, from the mover's view. Score and ownership are
    there if the network knows owners."""
    moves = _moves(engine, wish)
    owners, words = expected_owners(engine, wish.player, moves), []
    for order, move in enumerate(moves):
        lead = "" if owners is None else f"scoreMean {owners.leads[order]:.3f} scoreLead {owners.leads[order]:.3f} "
        words.append(
            f"info move {move['action']} visits {move['visits']} winrate {(move['value'] + 1) / 2:.6f} {lead}"
            f"prior {move['prior']:.6f} order {order} pv {' '.join(move['line'])}"
        )
    if wish.ownership and owners is not None:
        words.append("ownership " + " ".join(f"{x:.4f}" for x in owners.mean))
    return " ".join(words)


def _moves(engine: Engine, wish: Wish) -> list[dict[str, Any]]:
    moves = engine.tree_player.report(wish.most)["moves"]
    return [move for order, move in enumerate(moves) if move["visits"] or order < wish.least]


def expected_owners(engine: Engine, player: int, moves: list[dict[str, Any]]) -> ExpectedOwners | None:
    """Points from row 19 on; None without a network that knows owners, or without moves."""
    rows = engine.tree_player.owners_after(moves) if moves else None
    if rows is None:
        return None
    return average_owners(rows, [move["visits"] for move in moves], engine.komi, player)


Analysis = Callable[[Engine, list[str], Callable[[], bool]], Iterator[str]]


def analyze(info: Info) -> Analysis:
    def reports(engine: Engine, arguments: list[str], interrupted: Callable[[], bool]) -> Iterator[str]:
        """Reports until the next command."""
        wish = read_wish(engine, arguments)
        while not engine.over:
            began = time.monotonic()
            engine.think(wish.player, seconds=wish.interval, among=wish.among)
            yield info(engine, wish)
            while not interrupted() and time.monotonic() - began < wish.interval:
                time.sleep(0.01)  # the tree is full, or one more step would have taken too long
            if interrupted():
                return

    return reports


def genmove_analyze(info: Info) -> Analysis:
    def reports(engine: Engine, arguments: list[str], interrupted: Callable[[], bool]) -> Iterator[str]:
        """Reports during the search for a move, then plays it."""
        wish = read_wish(engine, arguments)
        player = wish.player
        action, value = engine.size**2, None
        if not engine.over:
            began, (seconds, simulations) = time.monotonic(), engine.budget(player)
            passed, made = 0.0, 1
            while made and passed < seconds and (simulations is None or simulations > 0):
                made = engine.think(player, min(wish.interval, seconds - passed), simulations, wish.among)
                simulations = None if simulations is None else simulations - made // engine.options.trees
                passed = time.monotonic() - began
                yield info(engine, wish)
            engine.spend(player, passed)
            action, value = engine.tree_player.best()
        yield f"play {engine.make_move(player, action, value)}"

    return reports


ANALYSES: dict[str, Analysis] = {
    "lz-analyze": analyze(leela_info),
    "lz-genmove_analyze": genmove_analyze(leela_info),
    "kata-analyze": analyze(kata_info),
    "kata-genmove_analyze": genmove_analyze(kata_info),
}
