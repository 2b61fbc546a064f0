"""The commands `match` and `gate` of evaluate.py, and the choice of game and players for all of its commands."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import Annotated, Any

import numpy as np
import tyro
from rich.progress import MofNCompleteColumn, Progress
from rich.table import Column

import envs
from agents import config
from agents.arena import elo, host_match, match, tables
from agents.arena.host_match import Anyone
from agents.arena.match import opening_plies_of
from agents.config import LONGEST_TIME, Range
from agents.players.human import coloured, person
from agents.players.players import Guest, choose_game, make_player
from agents.players.program import program_of
from agents.players.spec import PERSON, PROGRAMS, UCT, Player, PlayerSpec, parse_player
from agents.players.stateful import make_mover
from agents.runtime import cli


@dataclasses.dataclass(frozen=True)
class Match(config.Options):
    """A match between two players. Players: random, greedy (one move ahead), uct:N, minimax:D (two-player games), exact
    (perfect play in small games), the folder of a run or model, or person (asked in the terminal). In Go, Othello and
    Hex "gtp:COMMAND" is another program, in chess "uci:depth 4,COMMAND". FOLDER@N searches with N simulations,
    FOLDER@0 is the network alone. FOLDER@2s and uct:2s search for two seconds a move. prove:N,PLAYER plays moves proven
    by a search of N positions, otherwise as PLAYER. In a game for more than two players A has one seat and B all
    others."""

    a: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="A")]
    """First player."""
    b: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="B")]
    """Second player."""
    games: Annotated[int | None, Range(least=1, most=10**6)] = None
    """Games in total; by default 400, or 399 for three players, and with a person one for each seat. Every sampled
    opening is played from all seats."""
    num_simulations: Annotated[int, Range(least=0, most=10**6)] = 32
    """Simulations of a network without @N."""
    opening_plies: Annotated[int | None, Range(least=0, most=30_000)] = None
    """Random moves of an opening; by default two, or more if the openings of the match need more to differ, up to
    symmetry. Without them two deterministic players repeat the same two games. If the game has too few openings they
    repeat, which is reported and does not narrow the interval."""
    fair: bool = True
    """Replace openings that are already decided, by uct:100 or by a short proof: they say nothing about the players."""
    env: str | None = None
    """Game; by default that of the networks, or foq."""
    seed: Annotated[int, Range(least=0, most=2**32 - 1)] = 0
    """Seed of the openings and of all randomness in the players."""
    sprt: Annotated[tuple[float, float] | None, Range(least=-4000, most=4000)] = None
    """Stop as soon as a sequential test decides between these two Elo differences, with 5% errors of either kind.
    --games is then the maximum; fewer are played if openings and games run out."""
    timeout: Annotated[float, Range(above=0, most=LONGEST_TIME)] = host_match.TIMEOUT
    """Seconds that another program may take for one answer."""
    json: bool = False
    """Print the result as one JSON line."""


@dataclasses.dataclass(frozen=True)
class Gate(config.Options):
    """Whether a new network replaces the best one: it needs the share --threshold of the points in a match. The exit
    code is 0 if it replaces the best one, else 1."""

    new: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NEW")]
    """The challenger; players as in `match`."""
    best: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="BEST")]
    """The current best player."""
    games: Annotated[int | None, Range(least=1, most=10**6)] = None
    """Games in total, as in `match`."""
    threshold: Annotated[float, Range(least=0, most=1)] = 0.55
    """Required share of the points (Silver et al. 2017). With more than two players the challenger has one seat and
    needs the share that means the same Elo difference."""
    num_simulations: Annotated[int, Range(least=0, most=10**6)] = 32
    """Simulations of a network without @N."""
    opening_plies: Annotated[int | None, Range(least=0, most=30_000)] = None
    """Random moves of an opening; by default as in `match`."""
    fair: bool = True
    """Replace openings that are already decided."""
    env: str | None = None
    """Game; by default that of the networks, or foq."""
    seed: Annotated[int, Range(least=0, most=2**32 - 1)] = 0
    """Seed of the openings and of all randomness in the players."""
    json: bool = False
    """Print the result as one JSON line."""


def run_match(command: Match | Gate) -> tuple[match.Result, str | None]:
    """The result, and the verdict of the gate or of the sequential test, if any."""
    is_gate = isinstance(command, Gate)
    specs = [parse_player(name) for name in ((command.new, command.best) if is_gate else (command.a, command.b))]
    game = choose_game(command.env, *specs)
    a, b = (contestant(spec, game, command.num_simulations, command.seed) for spec in specs)
    sprt = None if is_gate else command.sprt
    if sprt and sprt[0] >= sprt[1]:
        raise ValueError(f"--sprt: expected the smaller difference first, got {sprt[0]} {sprt[1]}")
    if game.num_players != 2 and sprt:
        raise ValueError(f"--sprt is for two players; {game.name} has {game.num_players}")
    stop = (lambda pairs: elo.decided(pairs, *sprt) is not None) if sprt else None
    start = time.monotonic()
    even = game.num_players if PERSON in (a.name, b.name) else 400 // game.num_players * game.num_players
    timeout = host_match.TIMEOUT if is_gate else command.timeout
    games = even if command.games is None else command.games
    plies = opening_plies_of(game, games, command.opening_plies)
    played = play_on_either(
        game, a, b, timeout, games=games, opening_plies=plies, fair=command.fair, seed=command.seed, stop=stop
    )
    result = match.result(a, b, played)
    if note := tables.openings_note(result, plies):
        cli.console(stderr=True).print(note, soft_wrap=True)
    verdict = (elo.decided(match.evidence(played), *sprt) or "not decided") if sprt else None
    if is_gate:
        verdict = (
            "accepted" if result.score >= match.equivalent_score(command.threshold, game.num_players) else "rejected"
        )
    if command.json:
        record = {"game": game.name, "seconds": time.monotonic() - start, "seed": command.seed}
        verdicts = {} if verdict is None else {"verdict": verdict}
        print(
            json.dumps(record | {"opening_plies": plies, "fair": command.fair} | dataclasses.asdict(result) | verdicts)
        )
    return result, verdict


def contestant(spec: PlayerSpec, game: envs.Game, num_simulations: int, seed: int) -> Anyone:
    """The player of a spec, see `Match`."""
    if spec.kind == PERSON:
        return Guest(PERSON, person(game, cli.console(stderr=True)))
    if spec.kind in PROGRAMS:
        return program_of(spec)
    if spec.seconds is not None:
        return Guest(str(spec), make_mover(spec, game, num_simulations, spec.seconds, seed), spec.kind == UCT)
    return make_player(spec, game, num_simulations)


def play_on_either(game: envs.Game, a: Anyone, b: Anyone, timeout: float, **options: Any) -> match.Games:
    """A match between any two players: in lockstep on the device, or on the host if either of them needs it."""
    console, words = cli.console(stderr=True), f"{game.name}: {a.name} against {b.name}, {options['games']} games"
    if not console.is_terminal:  # there is no progress bar
        console.print(words, soft_wrap=True)
    bar = cli.progress(console, MofNCompleteColumn(table_column=Column(no_wrap=True)))
    if isinstance(a, Player) and isinstance(b, Player):
        return play_in_lockstep(game, a, b, bar, words, **options)
    if PERSON in (a.name, b.name):
        if console.is_terminal:
            console.print(words)
        results = {0.0: f"{b.name} wins", 0.5: "a draw", 1.0: f"{a.name} wins"}

        def show(done: int, lane: host_match.Lane) -> None:
            assert lane.score is not None
            said = f"game {done} of {options['games']}: {results[lane.score]} after {len(lane.moves)} moves"
            console.print("", coloured(game.show(lane.state), game.view.cased), said, sep="\n", soft_wrap=True)

        return host_match.play_host_games(game, a, b, timeout=timeout, tell=show, **options)
    with bar:
        task = bar.add_task(words, total=options["games"])
        tell = lambda done, lane: bar.update(task, completed=done)
        return host_match.play_host_games(game, a, b, timeout=timeout, tell=tell, **options)


def play_in_lockstep(game: envs.Game, a: Player, b: Player, bar: Progress, words: str, **options: Any) -> match.Games:
    """A match on the device. Ctrl-C prints the score of the finished games."""
    points = np.empty(0)
    with bar:
        task = bar.add_task(f"{words}, compiling", total=options["games"])

        def tell(so_far: np.ndarray) -> None:
            nonlocal points
            points = so_far
            bar.update(task, completed=len(points), description=f"{words}, {tally(points)}")

        try:
            return match.play_games(game, a, b, tell=tell, **options)
        except KeyboardInterrupt:
            bar.stop()
            said = f"stopped after {len(points)} of {options['games']} games"
            said += f", of which short ones end first: {tally(points)}" if len(points) else ""
            bar.console.print(said, soft_wrap=True)
            raise


def tally(points: np.ndarray) -> str:
    """Wins, draws and losses of player A, as text."""
    wins, losses = int((points == 1).sum()), int((points == 0).sum())
    return f"{wins} won, {len(points) - wins - losses} drawn, {losses} lost"
