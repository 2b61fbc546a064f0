"""The commands `solved` and `prove` of evaluate.py: accuracy on solved positions, and the proof of one position."""

from __future__ import annotations

import dataclasses
import functools
import json
import signal
import threading
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.progress import Progress, TaskID
from rich.text import Text

import envs
from agents import config
from agents.arena import solved_positions, tables
from agents.config import LONGEST_TIME, Range, for_play
from agents.network.inference import make_evaluate
from agents.players.players import choose_game, config_of, make_player, simulations_of
from agents.players.spec import NETWORK, Player, parse_player
from agents.runtime import cli
from agents.solvers import proof_number, retrograde
from agents.solvers.solve import make_solver
from agents.storage.weights import load_network
from envs import saved
from envs.game import seats


@dataclasses.dataclass(frozen=True)
class Solved(config.Options):
    """How often a player keeps the value of solved positions, in total and by phase of the game. A network that
    searches is also measured alone and without proofs."""

    player: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="PLAYER")]
    """As in `match`, except people, other programs and searches by the clock."""
    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="POSITIONS")]
    """JSON lines of records that list the right moves in `winning` or `optimal`, such as
    tests/golden/foq_solved.jsonl.gz."""
    num_simulations: Annotated[int, Range(least=0, most=10**6)] = 32
    """Simulations of a network without @N."""
    env: str | None = None
    """Game; by default that of the network, or foq."""
    seed: Annotated[int, Range(least=0, most=2**32 - 1)] = 0
    """Seed of all randomness in the player."""
    json: bool = False
    """Print the result as one JSON line."""


@dataclasses.dataclass(frozen=True)
class Prove(config.Options):
    """Who wins a position with best play, by a search to the ends of the game. Ctrl-C prints what is known so far."""

    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="GAME")]
    """Game, such as foq:rows=6,cols=6."""
    position: Path | None = None
    """File with a position or a game, as saved by the page or by `play.py`; by default the start."""
    moves: str = ""
    """Moves from there, by name: "d5 f4"."""
    network: str | None = None
    """Folder of a network of exactly this game that guides the search: fewer positions, each of which takes longer."""
    all_moves: bool = False
    """Also find the value of every move, not only of one that keeps the value."""
    minutes: Annotated[float, Range(above=0, most=LONGEST_TIME)] = 10.0
    """Maximum time."""
    positions: Annotated[int, Range(least=2 * proof_number.LANES, most=2**30)] = 2_000_000
    """Maximum number of positions in memory for each question; a million of Flight of Queen takes about half a GB."""
    json: bool = False
    """Print the result as one JSON line."""


def run_solved(command: Solved) -> None:
    game = choose_game(command.env, command.player)
    positions, start = solved_positions.read_positions(command.file, game), time.monotonic()
    found, players = {}, looks(command, game)
    if parse_player(command.player).kind == "exact":
        unknown = int((np.asarray(retrograde.index_in_table(players["player"].weights, positions.states)) < 0).sum())
        if unknown:
            many = f"{unknown} position{'s' if unknown > 1 else ''}"
            raise ValueError(f"exact: {many} of {command.file} cannot come up from the start of {game.name}")
    many = len(positions.right)
    with cli.progress(cli.console(stderr=True)) as bar:
        task = bar.add_task("", total=many * len(players))
        for number, (name, player) in enumerate(players.items()):
            words, before = f"{game.name}: {many} positions, {name.replace('_', ' ')}", number * many
            tell = functools.partial(advance, bar, task, words, before)
            bar.update(task, description=f"{words}, compiling")
            moves = solved_positions.choose(player, positions, command.seed, tell)
            right = positions.right[np.arange(len(moves)), moves]
            found[name] = player.name, *solved_positions.scores(right, positions.phases)
    if command.json:
        record = {"game": game.name, "file": str(command.file), "seconds": time.monotonic() - start}
        as_json = lambda name, whole, parts: {"player": name} | dataclasses.asdict(whole) | {
            "phases": {part: dataclasses.asdict(score) for part, score in parts.items()}
        }  # fmt: skip
        main, *others = found
        print(json.dumps(record | as_json(*found[main]) | {name: as_json(*found[name]) for name in others}))
    else:
        by_chance = positions.right.sum(1) / positions.legal.sum(1)
        tables.show(tables.solved_table(game.name, found, positions.phases, by_chance))


def advance(bar: Progress, task: TaskID, words: str, before: int, done: int) -> None:
    bar.update(task, completed=before + done, description=words)


def looks(command: Solved, game: envs.Game) -> dict[str, Player]:
    """The player first; for a network that searches also the network alone and, if it proves, its search without
    proofs."""
    n = command.num_simulations
    spec = parse_player(command.player)
    players, network = {"player": make_player(spec, game, n)}, spec.base
    if spec.kind == NETWORK and simulations_of(network, n):
        players["alone"] = make_player(dataclasses.replace(network, number=0), game)
        if for_play(config_of(network), game, n).proofs:
            players["without_proofs"] = make_player(network, game, n, proofs=False)
    return players


def load_evaluation(folder: str | None, game: envs.Game) -> tuple[Any, Any]:
    """Evaluation function and weights of a network; (None, None) without one."""
    if folder is None:
        return None, None
    trained = load_network(folder, game)
    return make_evaluate(game, trained.net), trained.weights


def run_prove(command: Prove) -> None:
    game = choose_game(command.env, *([command.network] if command.network else []))
    start, played = game.init(), []
    if command.position:
        try:
            start, played = saved.from_file(game, command.position.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{command.position}: {error}") from None
    state = saved.replay(game, start, [*played, *command.moves.split()])[0][-1]
    solve = make_solver(game, command.positions, *load_evaluation(command.network, game))
    stop = threading.Event()
    usual = signal.signal(signal.SIGINT, lambda *_: stop.set())
    try:
        with cli.console(stderr=True).status(Text(game.name)) as status:
            tell = lambda words: status.update(Text(words))
            verdict = solve(state, command.all_moves, 60 * command.minutes, tell, stop.is_set)
    finally:
        signal.signal(signal.SIGINT, usual)
    moves = {game.action_name(action): value for action, value in verdict.moves.items()}
    if command.json:
        record = {"game": game.name, "position": game.to_record(state), "to_move": int(game.player(state))}
        print(json.dumps(record | dataclasses.asdict(verdict) | {"moves": moves}))
    else:
        print(game.show(state))
        mover = seats(game)[int(game.player(state))]
        tables.show(tables.verdict_table(mover, verdict.value, moves))
        print(f"{verdict.positions:,} positions in {verdict.seconds:.1f} s")
        if verdict.stopped:
            print(verdict.stopped)
