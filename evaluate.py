"""Says how good a player is: python evaluate.py match runs/NAME uct:100 --games=400

Without arguments it takes the newest run and plays it against the baselines.
"""

from __future__ import annotations

import dataclasses
import json
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress

import envs
from agents.arena import elo as ratings
from agents.arena import host_match, ladder, openings, tables
from agents.arena import match as arena
from agents.arena import solved_positions as solved
from agents.arena.host_match import Anyone, Guest
from agents.config import Config
from agents.network.inference import make_evaluate
from agents.network.network import make_network
from agents.players import gtp_client, stateful
from agents.players.players import Player, for_play, game_of, inner, make_player, proved, usual_simulations
from agents.run import report
from agents.runtime import cli, mesh
from agents.serve import terminal
from agents.solvers import proof_number, retrograde
from agents.storage import checkpoint
from agents.storage import weights as models
from envs import saved

BASELINES = ("random", "minimax:2", "uct:100")
HUMAN = "human"


@dataclasses.dataclass(frozen=True)
class Match:
    """A match between two players: random, greedy (one move ahead), uct:N, minimax:D (for two), exact (perfect play in
    small games), the folder of a run or model, human (asked in the terminal), or for Go another program as
    "gtp:COMMAND". FOLDER@N searches with N simulations, FOLDER@0 is the network alone, FOLDER@2s and uct:2s think for
    two seconds about each move; prove:N,PLAYER plays what a search of N positions proves, else as PLAYER. In a game for
    more than two A has one seat and B all others."""

    a: tyro.conf.Positional[str]
    """First player."""
    b: tyro.conf.Positional[str]
    """Second player."""
    games: int | None = None
    """Games in all; every sampled opening is played from all seats. By default 400, or 399 for three players, with
    somebody in the terminal two."""
    num_simulations: int = 32
    """Simulations of a network without @N."""
    opening_plies: int | None = None
    """Random moves that make an opening: without them two deterministic players know only two games. By default two, or
    as many more as it takes that the openings of the match are different positions, up to symmetry; where the game has
    fewer they come again, which is said and does not narrow the interval."""
    fair: bool = True
    """Draw others for openings that are decided already, as uct:100 sees them or a short search proves: they tell
    nothing of the players."""
    env: str | None = None
    """Game; by default that of the networks, or foq."""
    seed: int = 0
    """Openings and all chance in the players follow from it."""
    sprt: tuple[float, float] | None = None
    """Stop as soon as a sequential test decides between these two Elo differences, with 5 % errors of either kind;
    --games is then the most that are played, fewer where there are no other openings and no other games."""
    timeout: float = host_match.TIMEOUT
    """Seconds that another program may take for one answer."""
    json: bool = False
    """Print the result as one JSON line."""


@dataclasses.dataclass(frozen=True)
class Gate:
    """Whether a new network takes the place of the best one: with at least that share of the points in a match. The
    exit code is 0 if it does and 1 if not."""

    new: tyro.conf.Positional[str]
    """The challenger; players as in a match."""
    best: tyro.conf.Positional[str]
    """The one to beat."""
    games: int | None = None
    """As in a match, and so on."""
    threshold: float = 0.55
    """Share of the points that is asked for (Silver et al. 2017); of more than two players, against whom the challenger
    has one seat, the share that tells of the same difference."""
    num_simulations: int = 32
    opening_plies: int | None = None
    fair: bool = True
    env: str | None = None
    seed: int = 0
    json: bool = False


@dataclasses.dataclass(frozen=True)
class Ladder:
    """Ratings of the networks of a run and of baselines, who play in lockstep: each network meets the two before it,
    the baselines meet the first, the middle and the last of them. The first baseline has rating 0. Matches that ended
    are kept in RUN/matches.jsonl: the same command goes on after a stop, and another plays only what is new. Move that
    file away to play all of them again, as after a change of the engine."""

    run: tyro.conf.Positional[Path]
    """Folder of a run."""
    baselines: tuple[str, ...] | None = None
    """Players beside the networks; the first one is the anchor. By default random, minimax:2, which is for two players
    only, and uct:100."""
    games: int | None = None
    """Games of every match; by default 100, or the multiple of the players below."""
    networks: int = 12
    """Networks at most, spread evenly over the run, the last one among them."""
    solved: Path | None = None
    """Also how often each network keeps the value of the solved positions in this file, alone and with its search."""
    num_simulations: int = 32
    opening_plies: int | None = None
    fair: bool = True
    seed: int = 0
    json: bool = False
    """Print the result as one JSON line."""
    plot: Path | None = None
    """Draw the ratings over games and minutes into this file (.png or .svg), with --solved the share of values kept
    besides; needs matplotlib."""


@dataclasses.dataclass(frozen=True)
class Solved:
    """How often a player keeps the value of solved positions, in all and by phase of the game; a network that searches
    also alone, and without proofs."""

    player: tyro.conf.Positional[str]
    """As in a match, but for people, other programs and searches by the clock."""
    file: tyro.conf.Positional[Path]
    """JSON lines of records with a list `winning` or `optimal` of the right moves, such as
    tests/golden/foq_solved.jsonl.gz."""
    num_simulations: int = 32
    """Simulations of a network without @N."""
    env: str | None = None
    """Game; by default that of the network, or foq."""
    seed: int = 0
    """All chance in the player follows from it."""
    json: bool = False
    """Print the result as one JSON line."""


@dataclasses.dataclass(frozen=True)
class Prove:
    """Who wins a position with best play, proved by a search to the ends of the game. Ctrl-C tells what is known."""

    env: tyro.conf.Positional[str]
    """Game, such as foq:rows=6,cols=6."""
    position: Path | None = None
    """File with a position or a game, as pages and `play.py` save them; by default the start."""
    moves: str = ""
    """Moves from there, by name: "d5 f4"."""
    network: str | None = None
    """Folder of a network of exactly this game that says where to look first: fewer positions, each of which takes
    longer."""
    all_moves: bool = False
    """Also what every single move is worth, not only one that keeps the value."""
    minutes: float = 10.0
    """Time at most."""
    positions: int = 2_000_000
    """Positions remembered at most for each question; a million of Flight of Queen takes about half a GB."""
    json: bool = False
    """Print the result as one JSON line."""


Command = (
    Annotated[Match, tyro.conf.subcommand("match")]
    | Annotated[Gate, tyro.conf.subcommand("gate")]
    | Annotated[Ladder, tyro.conf.subcommand("ladder")]
    | Annotated[Solved, tyro.conf.subcommand("solved")]
    | Annotated[Prove, tyro.conf.subcommand("prove")]
    | Annotated[None, tyro.conf.subcommand("baselines")]
)


def usual_baselines(game: envs.Game) -> tuple[str, ...]:
    return tuple(name for name in BASELINES if game.num_players == 2 or not name.startswith("minimax:"))


def choose_game(env: str | None, *players: str) -> envs.Game:
    """The one game that all players know."""
    known = {spec: game for spec in players if (game := game_of(spec)) is not None}
    name = envs.make(env or next(iter(known.values()), "foq")).name
    for spec, game in known.items():
        if game != name:
            raise ValueError(f"{spec} is a network for {game}, not for {name}")
    return envs.make(name)


def run_match(command: Match | Gate) -> tuple[arena.Result, str | None]:
    """The result, and what the sequential test says where one was asked for."""
    is_gate = isinstance(command, Gate)
    names = (command.new, command.best) if is_gate else (command.a, command.b)
    game = choose_game(command.env, *names)
    a, b = (player(spec, game, command.num_simulations, command.seed) for spec in names)
    sprt = None if is_gate else command.sprt
    if sprt and sprt[0] >= sprt[1]:
        raise ValueError(f"--sprt: want the smaller difference first, not {sprt[0]} {sprt[1]}")
    if game.num_players != 2 and sprt:
        raise ValueError(f"--sprt is for two players; {game.name} has {game.num_players}")
    stop = (lambda pairs: ratings.decided(pairs, *sprt) is not None) if sprt else None
    start, even = time.monotonic(), game.num_players if HUMAN in names else 400 // game.num_players * game.num_players
    timeout = host_match.TIMEOUT if is_gate else command.timeout
    games = even if command.games is None else command.games
    plies = opening_plies(game, games, command.opening_plies)
    played = play(
        game, a, b, timeout, games=games, opening_plies=plies, fair=command.fair, seed=command.seed, stop=stop
    )
    result = arena.result(a, b, played)
    if note := tables.openings_note(result, plies):
        Console(stderr=True).print(note, highlight=False, soft_wrap=True)
    verdict = (ratings.decided(arena.evidence(played), *sprt) or "not decided") if sprt else None
    if is_gate:
        verdict = "accepted" if result.score >= arena.as_hard(command.threshold, game.num_players) else "rejected"
    if command.json:
        record = {"game": game.name, "seconds": time.monotonic() - start, "seed": command.seed}
        verdicts = {} if verdict is None else {"verdict": verdict}
        print(
            json.dumps(record | {"opening_plies": plies, "fair": command.fair} | dataclasses.asdict(result) | verdicts)
        )
    return result, verdict


def opening_plies(game: envs.Game, games: int, asked: int | None) -> int:
    """Random moves of the openings of a match; raises ValueError for a match that cannot be played."""
    arena.check_match(game, games, asked)
    return openings.enough_plies(game, games // game.num_players) if asked is None else asked


def player(spec: str, game: envs.Game, num_simulations: int, seed: int) -> Anyone:
    """See `Match`."""
    if spec == HUMAN:
        return Guest(HUMAN, terminal.person(game, Console(stderr=True, highlight=False)))
    if spec.startswith(gtp_client.SPEC):
        return gtp_client.program(spec)
    room, otherwise = proved(spec)
    if (clock := stateful.clocked(otherwise)) is not None:
        name, seconds = clock
        if room is None:
            return Guest(spec, stateful.searcher(name, game, seconds, None, seed))
        searcher = stateful.searcher(name, game, seconds / 2, None, seed)
        return Guest(spec, stateful.proving(searcher, game, room, seconds / 2))
    return make_player(spec, game, num_simulations)


def play(game: envs.Game, a: Anyone, b: Anyone, timeout: float, **options: Any) -> arena.Games:
    """A match between any two players: in lockstep on the device, or one of them on the host."""
    console, words = Console(stderr=True), f"{game.name}: {a.name} against {b.name}, {options['games']} games"
    bar = Progress(*Progress.get_default_columns(), MofNCompleteColumn(), console=console, transient=True)
    if isinstance(a, Player) and isinstance(b, Player):
        return play_in_lockstep(game, a, b, bar, words, **options)
    if not timeout > 0:
        raise ValueError(f"--timeout must be more than 0, not {timeout}")
    if HUMAN in (a.name, b.name):
        console.print(words, highlight=False)
        results = {0.0: f"{b.name} wins", 0.5: "a draw", 1.0: f"{a.name} wins"}

        def show(done: int, lane: host_match.Lane) -> None:
            assert lane.score is not None
            said = f"game {done} of {options['games']}: {results[lane.score]} after {len(lane.moves)} moves"
            console.print("", terminal.coloured(game.show(lane.state)), said, sep="\n", highlight=False, soft_wrap=True)

        return host_match.play_match(game, a, b, timeout=timeout, tell=show, **options)
    with bar:
        task = bar.add_task(words, total=options["games"])
        tell = lambda done, lane: bar.update(task, completed=done)
        return host_match.play_match(game, a, b, timeout=timeout, tell=tell, **options)


def play_in_lockstep(game: envs.Game, a: Player, b: Player, bar: Progress, words: str, **options: Any) -> arena.Games:
    """A match on the device. Where it is stopped, what the games that were over brought is said."""
    points = np.empty(0)
    with bar:
        task = bar.add_task(words, total=options["games"])

        def tell(so_far: np.ndarray) -> None:
            nonlocal points
            points = so_far
            bar.update(task, completed=len(points), description=f"{words}, {tally(points)}")

        try:
            return arena.play_match(game, a, b, tell=tell, **options)
        except KeyboardInterrupt:
            bar.stop()
            said = f"stopped after {len(points)} of {options['games']} games, the shorter ones first: {tally(points)}"
            bar.console.print(said, highlight=False, soft_wrap=True)
            raise


def tally(points: np.ndarray) -> str:
    """What the games brought to player A."""
    wins, losses = int((points == 1).sum()), int((points == 0).sum())
    return f"{wins} won, {len(points) - wins - losses} drawn, {losses} lost"


def run_ladder(command: Ladder) -> None:
    networks = ladder.spread(checkpoint.numbered(command.run / "networks"), command.networks)
    if not networks:
        checkpoint.find(command.run, "networks")  # says what is wrong
    game = choose_game(None, str(networks[-1]))
    baselines = usual_baselines(game) if command.baselines is None else command.baselines
    if not baselines or command.networks < 1:
        raise ValueError("ladder: want at least one baseline and one network")
    positions = solved.read(command.solved, game) if command.solved else None
    specs = [*baselines, *map(str, networks)]
    players = [make_player(spec, game, command.num_simulations) for spec in specs]
    wanted = ladder.schedule(len(baselines), len(networks))
    games = 100 // game.num_players * game.num_players if command.games is None else command.games
    plies = opening_plies(game, games, command.opening_plies)
    options = {"games": games, "opening_plies": plies, "fair": command.fair}
    meetings = meet(game, command, list(zip(specs, players, strict=True)), wanted, options)
    elo = ratings.fit(meetings, len(players), 0, game.num_players)
    intervals = np.stack(ratings.bootstrap(meetings, len(players), 0, game.num_players), axis=1)
    rows = [
        {"player": player.name, "elo": round(rating, 1), "interval": np.round(interval, 1).tolist()} | games_of(spec)
        for player, spec, rating, interval in zip(players, specs, elo.tolist(), intervals, strict=True)
    ]
    if positions is not None:
        for row, spec, player in list(zip(rows, specs, players, strict=True))[len(baselines) :]:
            searched = {"kept": player} if simulations_of(spec, command.num_simulations) else {}
            for name, who in ({"kept_alone": make_player(spec, game, 0)} | searched).items():
                row[name], row[f"{name}_interval"] = kept(who, positions)
    record = {"game": game.name, "games_per_match": games, "anchor": players[0].name, "ratings": rows}
    record["passed"] = ratings.passed(rows)
    saved.write(command.run / report.LADDER, json.dumps(record) + "\n")
    best = max(range(len(networks)), key=lambda i: elo[len(baselines) + i])
    checkpoint.mark_best(command.run, int(networks[best].name))
    if command.json:
        print(json.dumps(record))
    else:
        tables.show(tables.ladder_table(game.name, rows))
        for line in tables.passing_lines(record["passed"]):
            print(line)
    if command.plot:
        tables.plot_ladder(rows, command.plot)


def meet(
    game: envs.Game, command: Ladder, players: list[tuple[str, Player]], wanted: list[tuple[int, int]], options: Any
) -> list[ratings.Meeting]:
    """Plays the matches of a ladder that are not known yet. One that is stopped loses the match under way, no more."""
    names = [ladder.identity(spec, player) for spec, player in players]
    known, meetings = ladder.Matches(command.run / ladder.FILE), []
    matches = [{"game": game.name, "a": names[a], "b": names[b]} | options for a, b in wanted]
    for match in matches:
        match["seed"] = ladder.seed_of(command.seed, match["a"], match["b"])
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if before := sum(known.find(match) is not None for match in matches):
        console.print(f"{before} of {len(wanted)} matches were played before: {known.path}")
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(f"{game.name}: {len(wanted)} matches", total=len(wanted) * options["games"])
        for done, ((a, b), match) in enumerate(zip(wanted, matches, strict=True)):
            tell = lambda points, done=done: bar.update(task, completed=done * options["games"] + len(points))
            if (pairs := known.find(match)) is None:
                try:
                    sides = players[a][1], players[b][1]
                    played = arena.play_match(game, *sides, seed=match["seed"], tell=tell, **options)
                except KeyboardInterrupt:
                    bar.stop()
                    console.print(f"stopped after {done} of {len(wanted)} matches; the same command goes on from there")
                    raise
                pairs = arena.evidence(played)
                known.add(match, pairs)
            bar.update(task, completed=(done + 1) * options["games"])
            meetings.append(ratings.Meeting(a, b, pairs))
    return meetings


def kept(player: Player, positions: solved.Solved) -> tuple[float, list[float]]:
    """Share of the positions whose value the player's moves keep, and its 95 % interval."""
    moves = solved.choose(player, positions)
    hits = int(positions.right[np.arange(len(moves)), moves].sum())
    return round(hits / len(moves), 4), np.round(solved.wilson(hits, len(moves)), 4).tolist()


def games_of(spec: str) -> dict[str, float]:
    """How much a network has played and how long it was trained."""
    if game_of(spec) is None:
        return {}
    about = models.about(models.find(Path(spec)))
    return {"games": about["total_games"], "minutes": round(about["minutes"], 2)}


def run_solved(command: Solved) -> None:
    game = choose_game(command.env, command.player)
    if command.num_simulations < 0:
        raise ValueError(f"--num_simulations must not be negative, not {command.num_simulations}")
    positions, start = solved.read(command.file, game), time.monotonic()
    found, players = {}, looks(command, game)
    if inner(command.player) == "exact":
        unknown = int((np.asarray(retrograde.find(players["player"].weights, positions.states)) < 0).sum())
        if unknown:
            many = f"{unknown} position{'s' if unknown > 1 else ''}"
            raise ValueError(f"exact: {many} of {command.file} cannot come up from the start of {game.name}")
    with Console(stderr=True).status(f"{game.name}: {len(positions.right)} positions"):
        for name, player in players.items():
            moves = solved.choose(player, positions, command.seed)
            right = positions.right[np.arange(len(moves)), moves]
            found[name] = player.name, *solved.scores(right, positions.phases)
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


def looks(command: Solved, game: envs.Game) -> dict[str, Player]:
    """The player first; of a network that searches also the network alone and, if it proves, its search without."""
    n = command.num_simulations
    players = {"player": make_player(command.player, game, n)}
    network = inner(command.player)
    if game_of(network) is not None and simulations_of(network, n):
        players["alone"] = make_player(network.partition("@")[0], game, 0)
        if for_play(config_of(network), game, n).proofs:
            players["without_proofs"] = make_player(network, game, n, proofs=False)
    return players


def config_of(network: str) -> Config:
    return models.about(models.find(Path(network.partition("@")[0])))["config"]


def simulations_of(network: str, usual: int) -> int:
    """Of a network by the name of its player, FOLDER or FOLDER@N."""
    _, at, simulations = network.partition("@")
    return int(simulations) if at else usual_simulations(config_of(network), usual)


def opinion(folder: str | None, game: envs.Game) -> tuple[Any, Any]:
    """What a network thinks of positions, with its weights; None without one."""
    if folder is None:
        return None, None
    path = models.find(Path(folder))
    config = models.about(path)["config"]
    return make_evaluate(game, make_network(game, config)), models.load(path, config)


def run_prove(command: Prove) -> None:
    game = choose_game(command.env, *([command.network] if command.network else []))
    if command.positions < 2 * proof_number.LANES:
        raise ValueError(f"--positions must be at least {2 * proof_number.LANES}, not {command.positions}")
    start, played = game.init(), []
    if command.position:
        start, played = saved.from_file(game, command.position.read_text(encoding="utf-8"))
    state = saved.replay(game, start, [*played, *command.moves.split()])[0][-1]
    solve = proof_number.make_solver(game, command.positions, *opinion(command.network, game))
    stop = threading.Event()
    usual = signal.signal(signal.SIGINT, lambda *_: stop.set())
    with Console(stderr=True).status(game.name) as status:
        verdict = solve(state, command.all_moves, 60 * command.minutes, status.update, stop.is_set)
    signal.signal(signal.SIGINT, usual)
    moves = {game.action_name(action): value for action, value in verdict.moves.items()}
    if command.json:
        record = {"game": game.name, "position": game.to_record(state), "to_move": int(game.player(state))}
        print(json.dumps(record | dataclasses.asdict(verdict) | {"moves": moves}))
    else:
        print(game.show(state))
        mover = game.seats[int(game.player(state))] if game.seats else f"player {int(game.player(state)) + 1}"
        tables.show(tables.verdict_table(mover, verdict.value, moves))
        print(f"{verdict.positions:,} positions in {verdict.seconds:.1f} s")
        if verdict.stopped:
            print(verdict.stopped)


def main() -> None:
    with cli.errors():
        mesh.claim_cores()
        cli.keep_compiled()
        command = cli.parse(Command, sys.argv[1:], description=__doc__) if sys.argv[1:] else None
        if isinstance(command, Solved):
            run_solved(command)
        elif isinstance(command, Ladder):
            run_ladder(command)
        elif isinstance(command, Prove):
            run_prove(command)
        elif command is None:
            newest = str(checkpoint.newest_run(Path("runs")))
            baselines = usual_baselines(choose_game(None, newest))
            tables.show(tables.match_table([run_match(Match(newest, baseline))[0] for baseline in baselines]))
        else:
            result, verdict = run_match(command)
            if not command.json:
                tables.show(tables.match_table([result]))
                if verdict:
                    print(verdict)
            raise SystemExit(int(verdict == "rejected"))


if __name__ == "__main__":
    main()
