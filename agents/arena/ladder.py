"""Ladders: the matches between the networks of a run and baselines, and the record of finished matches.

A match is stored in the folder of the run, under its players and options. A stopped ladder therefore resumes, and a
ladder with more networks or baselines plays only the new matches. Only a change of the engine itself goes unnoticed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

import envs
from agents import config
from agents.arena import elo, solved_positions, tables
from agents.arena import match as arena
from agents.arena.match import opening_plies_of
from agents.config import Range
from agents.players.players import choose_game, make_player, simulations_of, usual_baselines
from agents.players.spec import NETWORK, Player, parse_player
from agents.runtime import cli
from agents.storage import checkpoint, weights
from envs import saved

MATCHES_FILE = "matches.jsonl"
LADDER = "ladder.json"  # result of `evaluate.py ladder`, in the folder of a run


def evenly_spaced(found: list[Path], most: int) -> list[Path]:
    """At most `most` items of the list, evenly spread and including the last."""
    places = np.linspace(len(found) - 1, 0, min(most, len(found))).round().astype(int)
    return [found[i] for i in sorted(places)]


def schedule(baselines: int, networks: int) -> list[tuple[int, int]]:
    """The pairs that play each other; baselines are numbered first, then networks by age."""
    first, last = baselines, baselines + networks - 1
    by_age = [(i, i - back) for i in range(first, last + 1) for back in (1, 2) if i - back >= first]
    between = [(i + 1, i) for i in range(baselines - 1)]
    return between + [(i, b) for b in range(baselines) for i in sorted({first, (first + last) // 2, last})] + by_age


def identity(spec: str, player: Player) -> str:
    """The player's name, with the path of its network replaced by a digest of the file."""
    known = parse_player(spec)
    if known.kind != NETWORK:
        return player.name
    folder = weights.locate(Path(known.path))
    before, _, after = player.name.rpartition(str(folder))
    return before + weights.digest(weights.find_network(folder)) + after


def seed_of(seed: int, a: str, b: str) -> int:
    """A different seed for each pair of identities: `elo.bootstrap` treats the openings of matches as independent."""
    return int.from_bytes(hashlib.blake2s(f"{seed} {a} {b}".encode(), digest_size=4).digest()) >> 1


class Matches:
    """The finished matches of a run, in a file of one JSON line each: the match, and `pairs`, the evidence."""

    def __init__(self, path: Path):
        """Raises ValueError if the file exists and is something else."""
        self.path = path
        self.known = self._read()

    def _read(self) -> dict[str, list[float]]:
        known = {}
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
            for line in lines:
                record = json.loads(line)
                if not all(type(score) in (int, float) and 0 <= score <= 1 for score in record["pairs"]):
                    raise ValueError("pairs: expected shares of a point")
                known[_key(record["match"])] = [float(score) for score in record["pairs"]]
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"{self.path} is not a file of matches; move it away to play them anew") from error
        return known

    def find(self, match: dict[str, Any]) -> np.ndarray | None:
        """The scores of this match, float[openings], if it was played."""
        pairs = self.known.get(_key(match))
        return None if pairs is None else np.array(pairs)

    def add(self, match: dict[str, Any], pairs: np.ndarray) -> None:
        # Another ladder of the run may have added matches since.
        self.known |= self._read() | {_key(match): pairs.tolist()}
        lines = [json.dumps({"match": json.loads(key), "pairs": pairs}) for key, pairs in self.known.items()]
        saved.write(self.path, "".join(f"{line}\n" for line in lines))


def _key(match: dict[str, Any]) -> str:
    return json.dumps(match, sort_keys=True)


@dataclasses.dataclass(frozen=True)
class Ladder(config.Options):
    """Ratings of the networks of a run and of baselines, from matches in lockstep. Each network plays the two before
    it; the baselines play the first, the middle and the last network. The first baseline has rating 0. Finished matches
    are kept in RUN/matches.jsonl: the same command resumes after a stop, and another plays only new matches. Move that
    file away to play all of them again, as after a change of the engine."""

    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """Folder of a run."""
    baselines: tuple[str, ...] | None = None
    """Players in addition to the networks; the first is the anchor. By default random, minimax:2 (two-player games
    only) and uct:100."""
    games: Annotated[int | None, Range(least=1, most=10**6)] = None
    """Games of every match; by default 100, or the next lower multiple of the number of players."""
    networks: Annotated[int, Range(least=1, most=1000)] = 12
    """Maximum number of networks, spread evenly over the run and including the last."""
    solved: Path | None = None
    """Also measure how often each network keeps the value of the solved positions in this file, alone and with its
    search."""
    num_simulations: Annotated[int, Range(least=0, most=10**6)] = 32
    """Simulations of a network without @N."""
    opening_plies: Annotated[int | None, Range(least=0, most=30_000)] = None
    """Random moves of an opening; by default as in `match`."""
    fair: bool = True
    """Replace openings that are already decided."""
    env: str | None = None
    """Game; by default that of the networks. A game of your own has to be named."""
    seed: Annotated[int, Range(least=0, most=2**32 - 1)] = 0
    """Seed of the openings and of all randomness in the players."""
    json: bool = False
    """Print the result as one JSON line."""
    plot: Path | None = None
    """Plot the ratings over games and minutes to this file (.png or .svg), with --solved also the share of values kept;
    needs matplotlib."""


def run_ladder(command: Ladder) -> None:
    if command.plot:
        tables.demand_plots(command.plot)
    networks = evenly_spaced(checkpoint.numbered(command.run / "networks"), command.networks)
    if not networks:
        found = checkpoint.find_checkpoint(command.run, "networks")  # usually raises the specific error
        raise ValueError(f"expected the folder of a run, got {command.run}, one network; its run is {found.parents[1]}")
    game = choose_game(command.env, str(networks[-1]))
    baselines = usual_baselines(game) if command.baselines is None else command.baselines
    if not baselines:
        raise ValueError("ladder: expected at least one baseline, got none")
    positions = solved_positions.read_positions(command.solved, game) if command.solved else None
    specs = [*baselines, *map(str, networks)]
    players = [make_player(spec, game, command.num_simulations) for spec in specs]
    wanted = schedule(len(baselines), len(networks))
    games = 100 // game.num_players * game.num_players if command.games is None else command.games
    plies = opening_plies_of(game, games, command.opening_plies)
    options = {"games": games, "opening_plies": plies, "fair": command.fair}
    meetings = meet(game, command, list(zip(specs, players, strict=True)), wanted, options)
    points = elo.fit(meetings, len(players), 0, game.num_players)
    intervals = np.stack(elo.bootstrap(meetings, len(players), 0, game.num_players), axis=1)
    rows: list[dict[str, Any]] = [
        {"player": player.name, "elo": round(rating, 1), "interval": np.round(interval, 1).tolist()}
        for player, rating, interval in zip(players, points.tolist(), intervals, strict=True)
    ]
    of_run = list(zip(rows, specs, players, strict=True))[len(baselines) :]
    for (row, *_), network in zip(of_run, networks, strict=True):
        row.update(games_of(network))
    if positions is not None:
        for row, spec, player in of_run:
            searched = {"kept": player} if simulations_of(spec, command.num_simulations) else {}
            for name, who in ({"kept_alone": make_player(spec, game, 0)} | searched).items():
                row[name], row[f"{name}_interval"] = kept(who, positions)
    record = {"game": game.name, "games_per_match": games, "anchor": players[0].name, "ratings": rows}
    record["passed"] = elo.passed(rows)
    saved.write(command.run / LADDER, json.dumps(record) + "\n")
    best = max(range(len(networks)), key=lambda i: points[len(baselines) + i])
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
) -> list[elo.Meeting]:
    """Plays the matches of a ladder that are not known yet. A stop loses only the match in progress."""
    names = [identity(spec, player) for spec, player in players]
    known, meetings = Matches(command.run / MATCHES_FILE), []
    matches = [{"game": game.name, "a": names[a], "b": names[b]} | options for a, b in wanted]
    for match in matches:
        match["seed"] = seed_of(command.seed, match["a"], match["b"])
    console = cli.console(stderr=True, soft_wrap=True)
    if before := sum(known.find(match) is not None for match in matches):
        console.print(f"{before} of {len(wanted)} matches were played before: {known.path}")
    with cli.progress(console) as bar:
        task = bar.add_task(f"{game.name}: {len(wanted)} matches", total=len(wanted) * options["games"])
        for done, ((a, b), match) in enumerate(zip(wanted, matches, strict=True)):
            tell = lambda points, done=done: bar.update(task, completed=done * options["games"] + len(points))
            if (pairs := known.find(match)) is None:
                try:
                    sides = players[a][1], players[b][1]
                    played = arena.play_games(game, *sides, seed=match["seed"], tell=tell, **options)
                except KeyboardInterrupt:
                    bar.stop()
                    console.print(f"stopped after {done} of {len(wanted)} matches; the same command goes on from there")
                    raise
                pairs = arena.evidence(played)
                known.add(match, pairs)
            bar.update(task, completed=(done + 1) * options["games"])
            meetings.append(elo.Meeting(a, b, pairs))
    return meetings


def kept(player: Player, positions: solved_positions.SolvedPositions) -> tuple[float, list[float]]:
    """Share of the positions whose value the player's moves keep, and its 95% interval."""
    moves = solved_positions.choose(player, positions)
    hits = int(positions.right[np.arange(len(moves)), moves].sum())
    return round(hits / len(moves), 4), np.round(solved_positions.wilson(hits, len(moves)), 4).tolist()


def games_of(network: Path) -> dict[str, float]:
    """Self-play games and training minutes of a network of the run."""
    about = weights.about(network)
    return {"games": about["total_games"], "minutes": round(about["minutes"], 2)}
