"""Games in progress. Each session has an id that cannot be guessed, a lock, and a version that every change increments.
Of two simultaneous moves one is refused and none is lost."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import envs
from agents.players.spec import PERSON, UCT, PlayerSpec, parse_player
from agents.serve import levels
from agents.serve.options import MOST_SIMULATIONS, UNTRAINED, PlayOptions, opponent
from agents.serve.views import Position, can_be_taught, changed, look_at, way
from agents.serve.web.batched_search import Job, Thinker
from agents.solvers import proof_number
from agents.storage import checkpoint
from agents.storage import weights as models
from envs import saved
from envs.game import Game, first_player, seats, titles

PROOFS = 200_000  # positions of the proof search before the network, on the page; 100 MB for Flight of Queen
MOST_SESSIONS = 500
OLDEST = 24 * 3600.0  # seconds without a call before a session is closed
LEAST_THINKING_SECONDS, MOST_THINKING_SECONDS = 0.1, 60.0
LONGEST_MESSAGE = 400  # characters of a game's error message, which quotes the input
REVIEW_SHARE = 0.5  # simulations of each position of a review, as a share of those of a move
REVIEWS_AT_ONCE = 8  # positions; a width of `batched_search.WIDTHS`
MOST_VARIATIONS = 20  # lines that were left for another move; the oldest makes room
MARKS = ((0.4, "blunder"), (0.2, "mistake"), (0.1, "inaccuracy"))  # by the drop in expected score, 0 to 1


class Refused(Exception):
    """A request that is not possible, with an HTTP status; the message gives the reason."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


# Games and opponents


@dataclasses.dataclass(frozen=True)
class ServerContext:
    """The games of a server, and the thinker that they share."""

    options: PlayOptions
    own: Game  # the game of the command line
    thinker: Thinker

    def game(self, name: Any) -> Game:
        """The game that a browser requests: that of the command line, or a registered one with offered options."""
        if name in (self.options.env, self.own.name):
            return self.own
        if isinstance(name, str) and levels.offered(name):
            try:
                return envs.make(name)
            except ValueError as error:  # such as an option that is given twice
                raise Refused(400, str(error)) from error
        known = ", ".join(dict.fromkeys((self.own.name, *envs.list())))
        raise Refused(400, f"{str(name)[:60]} is not played here, only {known} with the usual options")

    def opponents(self, game: Game) -> list[str]:
        """Players to choose from, the default first. Networks are those of the command line, runs/ and models/; those
        of models/ are also offered with proofs."""
        shipped = models.shipped(game)
        found = [*([opponent(self.options, game)] if game is self.own else []), shipped, *_runs(game.name)]
        if shipped and proof_number.within_reach(game):
            found.append(f"prove:{PROOFS},{shipped}")
        found += [UNTRAINED, "uct:100", "uct:2000"]
        if game.hints.evaluate is not None and game.num_players == 2:
            found.append("greedy")
        found += ["random", PERSON]
        return list(dict.fromkeys(name for name in found if name))

    def player(self, game: Game, name: Any) -> str:
        """The player that a browser requests, if it is allowed."""
        if isinstance(name, str) and (name in self.opponents(game) or _is_uct(name)):
            return name
        known = ", ".join(self.opponents(game))
        raise Refused(400, f"player: expected uct:N with N up to {MOST_SIMULATIONS}, or one of {known}")

    def analyst(self, game: Game) -> PlayerSpec:
        """The player for analyses: a network if there is one, else MCTS."""
        own = [spec for name in self.opponents(game) if (spec := parse_player(name).base).searches]
        best = next((spec for spec in own if spec.kind != UCT), parse_player(UNTRAINED))
        return dataclasses.replace(best, number=None)


def _is_uct(name: str) -> bool:
    """Whether a browser asks for play-outs that are not too many."""
    try:
        spec = parse_player(name)
    except ValueError:
        return False
    return str(spec) == name and spec == PlayerSpec(UCT, number=spec.number) and (spec.number or 0) <= MOST_SIMULATIONS


@functools.lru_cache(maxsize=256)
def _game_of(folder: str, changed_at: float) -> str | None:
    del changed_at  # part of the cache key: a run with new networks is read again
    try:
        return models.about(models.find_network(Path(folder)))["config"].env
    except (ValueError, OSError, KeyError):
        return None  # not a run, or nothing is saved yet


def _runs(name: str) -> list[str]:
    """Runs of a game under runs/, newest first."""
    folders = [path for path in Path("runs").glob("*") if checkpoint.numbered(path / "networks")]
    times = {str(path): (path / "networks").stat().st_mtime for path in folders}
    newest = sorted(times, key=lambda folder: times[folder], reverse=True)[:20]
    return [folder for folder in newest if _game_of(folder, times[folder]) == name]


def budgeted(player: str, simulations: int) -> tuple[PlayerSpec, int]:
    """A player and the simulations of its search: its own number, or `simulations`."""
    spec = parse_player(player)
    if not spec.searches:
        return spec, simulations
    return dataclasses.replace(spec, number=None), simulations if spec.number is None else spec.number


# Sessions


@dataclasses.dataclass(frozen=True)
class Limits:
    """The budget of a search."""

    simulations: int
    seconds: float


class Line(NamedTuple):
    """Moves from the start of a game."""

    actions: tuple[int, ...]
    resigned: int | None


class Session:
    """One game and its analyses. Every public method takes the lock."""

    def __init__(
        self, context: ServerContext, game: Game, players: list[str], limits: Limits, start: dict[str, Any] | None
    ):
        self.id, self.version, self.used = secrets.token_urlsafe(18), 0, time.monotonic()
        self.context, self.game, self.players, self.limits, self.start = context, game, players, limits, start
        self.lock = threading.RLock()
        with context.thinker.turns.first():  # a board appears before engines are compiled
            self.positions = [look_at(game, game.init() if start is None else saved.position(game, start))]
        self.actions: list[int] = []
        self.undone: list[int] = []
        self.resigned: int | None = None
        self.lines: list[Line] = []  # left for another move, the newest first
        self.paused = False
        self.job: Job | None = None  # a move, a hint or an analysis
        self.kind = ""  # of that job: move, hint or analysis
        self.failure = ""
        self.hint = ""
        self.reports: dict[int, dict[str, Any]] = {}  # by ply, the longest search of each position
        self.review: Review | None = None

    # Queries

    def view(self, version: int | None = None) -> dict[str, Any]:
        """All that a page shows; only what changes without a move if `version` is current."""
        with self.lock:
            self.used = time.monotonic()
            return self._news() if version == self.version else self._all() | self._news()

    def preview(self, version: Any, action: Any, ply: Any) -> dict[str, Any]:
        """The picture after a move from the position after `ply` moves, and the cells that it changes."""
        with self.lock:
            self._current(version)
            now = self._at(ply)
            after = now.after(self._legal(action, now))
            return {"action": action, "svg": after.svg, "changed": changed(now, after), "status": after.status}

    def why(self, version: Any, ply: Any, cells: list[str]) -> dict[str, str]:
        """Why no legal move begins with these cells in the position after `ply` moves; "" if there is no reason."""
        with self.lock:
            self._current(version)
            if not cells:
                raise Refused(400, "cell: expected the names of the cells that were pointed at, in turn")
            return {"reason": self._at(ply).why_not(cells)}

    def past(self, version: Any, ply: Any) -> dict[str, Any]:
        """The position after `ply` moves: its picture, its legal moves, the move that led to it, and the cells of
        a better move if the review found one."""
        with self.lock:
            self._current(version)
            there, reviewed = self._at(ply), [] if self.review is None else self.review.moves()
            better = next((move["best"] for move in reviewed if move["ply"] == ply and move["mark"]), None)
            return {
                "ply": ply,
                "svg": there.svg,
                "status": there.status,
                "to_move": there.player,
                "legal": [dataclasses.asdict(one) for one in there.ways],
                "last": self._last(ply),
                "better": better,
                "advice": way(self.game, self.game.parse_action(better)).cells if better else (),
            }

    def save(self) -> dict[str, Any]:
        """The whole game, as `Sessions.create` takes it."""
        with self.lock:
            names = [self.game.action_name(a) for a in self.actions]
            file: dict[str, Any] = {"format": saved.FORMAT, "game": self.game.name, "actions": names}
            if self.start is not None:
                file["start"] = self.start
            if self.resigned is not None:
                file["resigned"] = self.resigned
            return file | {"position": self.game.to_record(self.positions[-1].state)}

    # Commands; the version is that of the position they are meant for

    def move(self, version: Any, action: Any) -> None:
        with self.lock:
            self._current(version)
            if self.over:
                raise Refused(409, "the game is over")
            if self.players[self.positions[-1].player] != PERSON:
                raise Refused(409, "it is not your turn")
            code = self._legal(action, self.positions[-1])
            with self.context.thinker.turns.first():  # as boards do
                self._play(code)

    def branch(self, version: Any, ply: Any, action: Any) -> None:
        """Another move, of any player, in the position after `ply` moves. The line that is left is kept."""
        with self.lock:
            self._current(version)
            code = self._legal(action, self._at(ply))
            self._follow(Line((*self.actions[:ply], code), None))
            self._changed()

    def switch(self, version: Any, index: Any) -> None:
        """Back to a line that was left; the present one is kept instead."""
        with self.lock:
            self._current(version)
            if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(self.lines):
                raise Refused(400, f"index: expected the number of a line, below {len(self.lines)}")
            self._follow(self.lines.pop(index))
            self._changed(go_on=False)

    def undo(self, version: Any) -> None:
        """Back to a person's last turn; without people, one move back."""
        with self.lock:
            self._current(version)
            if self.resigned is not None:
                self.resigned = None
            elif not self.actions:
                raise Refused(409, "there is nothing to take back")
            else:
                self._step_back()
                while self.actions and PERSON in self.players and not self._persons_turn():
                    self._step_back()
            self._changed(go_on=False)

    def redo(self, version: Any) -> None:
        with self.lock:
            self._current(version)
            if not self.undone or self.resigned is not None:
                raise Refused(409, "there is nothing to make again")
            self._append(self.undone.pop())
            while self.undone and PERSON in self.players and not self._persons_turn():
                self._append(self.undone.pop())
            self._changed(go_on=False)

    def resume(self, version: Any) -> None:
        """Starts the engine that has paused since a move was taken back."""
        with self.lock:
            self._current(version)
            self._changed()

    def resign(self, version: Any) -> None:
        with self.lock:
            self._current(version)
            if self.over:
                raise Refused(409, "the game is over")
            player = self.positions[-1].player
            people = [i for i, name in enumerate(self.players) if name == PERSON]
            if not people:
                raise Refused(409, "nobody plays who could resign")
            self.resigned = player if player in people else people[0]
            self._changed()

    def seat(self, version: Any, players: list[str], limits: Limits) -> None:
        """Other players or limits in the same game."""
        with self.lock:
            self._current(version)
            self.players, self.limits = players, limits
            self._changed()

    def analyse(self, version: Any, kind: str, limits: Limits) -> None:
        """Searches the position for a hint or an analysis, and keeps the report."""
        with self.lock:
            self._current(version)
            self._free()
            if self.positions[-1].over:
                raise Refused(409, "the game is over")
            player = self.context.analyst(self.game)
            self._think(kind, player, limits.simulations, limits.seconds, reports=kind == "analysis")

    def look_back(self, version: Any) -> None:
        """Reviews the whole game; all its positions are searched in parallel."""
        with self.lock:
            self._current(version)
            self._free()
            if not self.actions:
                raise Refused(409, "there is no move to review yet")
            self._drop()
            self.failure = ""
            self.review = Review(self)

    def stop(self) -> None:
        """Ends all running searches with their current results."""
        with self.lock:
            if self.job is not None:
                self.job.stopped = True
            if self.review is not None and not self.review.ended:
                self.review.stop()

    def close(self) -> None:
        with self.lock:
            self.version += 1
            self._drop()

    # Internals

    @property
    def over(self) -> bool:
        return self.positions[-1].over or self.resigned is not None

    def _persons_turn(self) -> bool:
        return self.players[self.positions[-1].player] == PERSON

    def _current(self, version: Any) -> None:
        self.used = time.monotonic()
        if isinstance(version, bool) or not isinstance(version, int):
            raise Refused(400, "version: expected the whole number of the position that this is meant for")
        if version != self.version:
            raise Refused(409, "the game has gone on meanwhile; this page shows an earlier position")

    def _at(self, ply: Any) -> Position:
        """The position after `ply` moves."""
        if isinstance(ply, bool) or not isinstance(ply, int) or not 0 <= ply <= len(self.actions):
            raise Refused(400, f"ply: expected a whole number from 0 to {len(self.actions)}")
        return self.positions[ply]

    def _legal(self, action: Any, position: Position) -> int:
        try:
            return self._code(action, position)
        except ValueError as error:
            raise Refused(400, f"action: {error}") from None

    def _code(self, action: Any, position: Position) -> int:
        """The code of a legal move; ValueError with the reason if it is none."""
        if not isinstance(action, str) or len(action) > 40:
            raise ValueError("expected the name of a move")
        code = self.game.parse_action(action)
        if code not in position.legal:
            raise ValueError(f"{self.game.action_name(code)} is not legal there")
        return code

    def _free(self) -> None:
        if self.kind == "move" and self.job is not None:
            raise Refused(409, "the other player is thinking")

    def _append(self, action: int) -> None:
        with self.context.thinker.turns.first():
            self.positions.append(self.positions[-1].after(action))
        self.actions.append(action)

    def _step_back(self) -> None:
        self.undone.append(self.actions.pop())
        self.positions.pop()
        self.reports = {ply: report for ply, report in self.reports.items() if ply <= len(self.actions)}

    def _follow(self, line: Line) -> None:
        """Replaces the moves of the game by those of another line, and keeps the old ones, with all undone moves."""
        old = (*self.actions, *self.undone[::-1])
        if line.actions[: len(old)] != old:
            self.lines = [Line(old, self.resigned), *self.lines][:MOST_VARIATIONS]
        for _ in range(len(self.actions) - self._shared(line)):
            self._step_back()
        for action in line.actions[len(self.actions) :]:
            self._append(action)
        self.undone, self.resigned = [], line.resigned

    def _play(self, action: int) -> None:
        if self.undone and self.undone[-1] == action:
            self.undone.pop()
            self._append(action)
        else:
            self._follow(Line((*self.actions, action), None))
        self._changed()

    def _changed(self, go_on: bool = True) -> None:
        """Increments the version, drops the search of the old position, and starts the engine to move."""
        self.version += 1
        self._drop()
        self.hint, self.failure, self.review = "", "", None
        position = self.positions[-1]
        self.paused = not go_on and not self.over and not self._persons_turn()
        if not self.over and not self._persons_turn() and not self.paused:
            player, simulations = budgeted(self.players[position.player], self.limits.simulations)
            self._think("move", player, simulations, self.limits.seconds, reports=True)

    def _drop(self) -> None:
        if self.job is not None:
            self.job.dropped = True
        if self.review is not None:
            self.review.stop()
        self.job, self.kind = None, ""

    def _think(self, kind: str, player: PlayerSpec, simulations: int, seconds: float, reports: bool) -> None:
        self._drop()
        done = functools.partial(self._thought, self.version, kind)
        state, plies = self.positions[-1].state, len(self.actions)
        self.kind, self.failure = kind, ""
        owners = kind == "analysis"
        self.job = Job(self.game, player, state, plies, simulations, seconds, done, reports, owners)
        self.context.thinker.submit(self.job)

    def _thought(self, version: int, kind: str, job: Job) -> None:
        with self.lock:
            if version != self.version or job is not self.job:
                return  # the game has gone on, or another search was started
            self.job, self.kind, self.failure = None, "", job.error
            if job.error:
                self.paused = kind == "move"
                return
            self.keep(len(self.actions), job.report)
            if kind == "hint":
                self.hint = self.game.action_name(job.choice)
            if kind == "move":
                self._play(job.choice)

    def keep(self, ply: int, report: dict[str, Any] | None) -> None:
        """Keeps the report of the longest search of a position, and the owners that any search reported."""
        if report is not None:
            known = self.reports.get(ply, {"simulations": 0})
            shorter, longer = sorted((known, report), key=lambda one: one["simulations"])
            self.reports[ply] = shorter | longer

    def values(self, ply: int) -> list[float] | None:
        """Value of a position for every player, from the end of the game or from its longest search. A resignation
        changes the result but not the values: a review would count it as a mistake of the last move."""
        if ply == len(self.actions) and self.positions[-1].over:
            return list(self.positions[-1].rewards)
        report = self.reports.get(ply)
        return None if report is None else report["values"]

    def _result(self) -> list[float]:
        if self.resigned is None:
            return list(self.positions[-1].rewards)
        return saved.after_resigning(self.game, self.resigned)

    def _last(self, ply: int) -> dict[str, Any] | None:
        """The move that led to the position after `ply` moves, and the cells that it changed."""
        if ply == 0:
            return None
        made = way(self.game, self.actions[ply - 1])
        cells = changed(self.positions[ply - 1], self.positions[ply])
        return {"action": made.action, "cells": made.cells, "changed": cells}

    def _all(self) -> dict[str, Any]:
        game, now = self.game, self.positions[-1]
        title, rules = titles(game)
        movers = [position.player for position in self.positions]
        return {
            "game": game.name,
            "title": title,
            "rules": rules,
            "seats": seats(game),
            "players": self.players,
            "limits": dataclasses.asdict(self.limits),
            "ply": len(self.actions),
            "to_move": now.player,
            "over": self.over,
            "result": self._result() if self.over else None,
            "resigned": self.resigned,
            "status": now.status,
            "reason": now.why,
            "lesson": can_be_taught(game),
            "svg": now.svg,
            "legal": [] if self.over else [dataclasses.asdict(one) for one in now.ways],
            "history": [
                {"action": game.action_name(a), "words": way(game, a).words, "player": player}
                for a, player in zip(self.actions, movers, strict=False)
            ],
            "last": self._last(len(self.actions)),
            "undo": bool(self.actions) or self.resigned is not None,
            "redo": bool(self.undone) and self.resigned is None,
            "lines": [self._line(line) for line in self.lines],
            "save": self.save(),
        }

    def _shared(self, line: Line) -> int:
        """Number of moves before the first one in which a line differs from the present one."""
        pairs = zip(self.actions, line.actions, strict=False)
        return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))

    def _line(self, line: Line) -> dict[str, Any]:
        """A line from its first move that is not in the present one."""
        start = self._shared(line)
        return {"from": start, "words": [way(self.game, action).words for action in line.actions[start:]]}

    def _news(self) -> dict[str, Any]:
        job, ply = self.job, len(self.actions)
        thinking = None
        if job is not None:
            thinking = {
                "kind": self.kind,
                "progress": round(job.budget.progress(), 3),
                "simulations": job.budget.done,
                "compiling": self.context.thinker.compiling(job),
            }
        elif self.review is not None and not self.review.ended:
            thinking = self.review.thinking
        live = job.report if job is not None else None
        return {
            "id": self.id,
            "version": self.version,
            "thinking": thinking,
            "paused": self.paused,
            "failure": self.failure,
            "hint": self.hint,
            "report": live or self.reports.get(ply),
            "values": [self.values(i) for i in range(ply + 1)],
            "review": None if self.review is None or self.failure else self.review.moves(),
        }


class Review:
    """A search of every position of a game, a few at a time, and the cost of each move."""

    def __init__(self, session: Session):
        self.session, self.version = session, session.version
        self.total = len(session.actions)
        self.left = [ply for ply, position in enumerate(session.positions) if not position.over]
        self.jobs: dict[int, Job] = {}  # by ply, those that run
        self.searched: set[int] = set()  # plies
        self._go_on()

    def _go_on(self) -> None:
        session = self.session
        player = session.context.analyst(session.game)
        simulations = max(1, int(session.limits.simulations * REVIEW_SHARE))
        while self.left and len(self.jobs) < REVIEWS_AT_ONCE:
            ply = self.left.pop(0)
            done = functools.partial(self._done, ply)
            state = session.positions[ply].state
            self.jobs[ply] = Job(session.game, player, state, ply, simulations, MOST_THINKING_SECONDS, done)
            session.context.thinker.submit(self.jobs[ply])

    @property
    def ended(self) -> bool:
        return not self.jobs

    @property
    def thinking(self) -> dict[str, Any]:
        """What the page shows of a review that is under way."""
        done = len(self.moves())
        progress = round(done / self.total, 3)
        return {"kind": "review", "progress": progress, "done": done, "total": self.total, "simulations": 0,
                "compiling": False}  # fmt: skip

    def stop(self) -> None:
        """Keeps what has been found."""
        for job in self.jobs.values():
            job.dropped = True
        self.left, self.jobs = [], {}

    def _done(self, ply: int, job: Job) -> None:
        session = self.session
        with session.lock:
            if session.review is not self or session.version != self.version or job.dropped:
                return
            del self.jobs[ply]
            if job.error:
                session.failure = job.error
                return self.stop()
            self.searched.add(ply)
            session.keep(ply, job.report)
            self._go_on()

    def moves(self) -> list[dict[str, Any]]:
        """Cost of every move that has been judged: the mover's expected share of the point, 0 to 1, before the move
        minus after it. With n players the winner has value 1 and each other player -1 / (n - 1)."""
        session = self.session
        point = 1 - 1 / session.game.num_players
        judged = []
        for ply, action in enumerate(session.actions):
            over = session.positions[ply + 1].over
            if ply not in self.searched or not (over or ply + 1 in self.searched):
                continue
            mover = session.positions[ply].player
            report, before, after = session.reports[ply], session.values(ply), session.values(ply + 1)
            assert before is not None and after is not None
            best, name = report["moves"][0]["action"], session.game.action_name(action)
            drop = 0.0 if best == name else max(0.0, before[mover] - after[mover]) * point
            mark = next((word for least, word in MARKS if drop >= least), "")
            judged.append({"ply": ply, "action": name, "drop": round(drop, 3), "mark": mark, "best": best})
        return judged


class Sessions:
    """All games of a server, limited in number and age."""

    def __init__(self, context: ServerContext):
        self.context = context
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, name: str) -> Session:
        session = self._sessions.get(name)
        if session is None:
            raise Refused(404, "no such game; it was closed, or the server has started anew")
        return session

    def create(self, request: dict[str, Any]) -> Session:
        """A new or saved game: `game`, and optionally `players`, `simulations` and `seconds`. A saved game may add
        `start` (a position), `actions` and `resigned`."""
        game = self.context.game(request.get("game"))
        start, actions, resigned = request.get("start"), request.get("actions", []), request.get("resigned")
        if not isinstance(actions, list) or len(actions) > game.max_plies:
            raise Refused(400, f"actions: expected a list of at most {game.max_plies} moves")
        players, limits = self.players(game, request), self.limits(request)
        try:
            session = Session(self.context, game, players, limits, start)
        except ValueError as error:
            raise Refused(400, f"position: {str(error)[:LONGEST_MESSAGE]}") from None
        for i, action in enumerate(actions):
            if session.over:
                raise Refused(400, f"move {i + 1}: the game was over before")
            try:
                session._append(session._code(action, session.positions[-1]))
            except ValueError as error:
                raise Refused(400, f"move {i + 1}: {error}") from None
        if resigned is not None:
            if session.over:
                raise Refused(400, "resigned: the game was over before")
            try:
                session.resigned = saved.player_of(game, resigned)
            except ValueError as error:
                raise Refused(400, str(error)) from None
        with self._lock:
            self._forget()
            self._sessions[session.id] = session
        with session.lock:
            session._changed(go_on=not actions)  # a loaded game pauses, to be looked at first
        return session

    def players(self, game: Game, request: dict[str, Any]) -> list[str]:
        """Players by seat; by default a person, who begins, against the best opponent."""
        players = request.get("players")
        if players is None:
            first, best = first_player(game), self.context.opponents(game)[0]
            players = [PERSON if i == first else best for i in range(game.num_players)]
        if not isinstance(players, list) or len(players) != game.num_players:
            raise Refused(400, f"players: expected a list of {game.num_players}")
        return [self.context.player(game, name) for name in players]

    def limits(self, request: dict[str, Any]) -> Limits:
        options = self.context.options
        simulations = request.get("simulations", options.num_simulations)
        seconds = request.get("seconds", options.seconds)
        whole = isinstance(simulations, int) and not isinstance(simulations, bool)
        if not whole or not 1 <= simulations <= MOST_SIMULATIONS:
            raise Refused(400, f"simulations: expected a whole number from 1 to {MOST_SIMULATIONS}")
        least, most = min(LEAST_THINKING_SECONDS, options.seconds), max(MOST_THINKING_SECONDS, options.seconds)
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not least <= seconds <= most:
            raise Refused(400, f"seconds: expected a number from {least:g} to {most:g}")
        return Limits(simulations, float(seconds))

    def remove(self, name: str) -> None:
        self.get(name).close()
        with self._lock:
            self._sessions.pop(name, None)

    def _forget(self) -> None:
        """Closes the sessions that are too old, and if there are too many, those idle the longest."""
        now = time.monotonic()
        by_age = sorted(self._sessions.values(), key=lambda session: session.used)
        many = len(by_age) - MOST_SESSIONS + 1
        for i, session in enumerate(by_age):
            if i < many or now - session.used > OLDEST:
                session.close()
                del self._sessions[session.id]


COMMANDS: dict[str, Callable[[Sessions, Session, dict[str, Any]], object]] = {
    "move": lambda all_, one, said: one.move(said.get("version"), said.get("action")),
    "undo": lambda all_, one, said: one.undo(said.get("version")),
    "branch": lambda all_, one, said: one.branch(said.get("version"), said.get("ply"), said.get("action")),
    "line": lambda all_, one, said: one.switch(said.get("version"), said.get("index")),
    "redo": lambda all_, one, said: one.redo(said.get("version")),
    "resume": lambda all_, one, said: one.resume(said.get("version")),
    "resign": lambda all_, one, said: one.resign(said.get("version")),
    "players": lambda all_, one, said: one.seat(said.get("version"), all_.players(one.game, said), all_.limits(said)),
    "hint": lambda all_, one, said: one.analyse(said.get("version"), "hint", one.limits),
    "analyse": lambda all_, one, said: one.analyse(said.get("version"), "analysis", all_.limits(said)),
    "review": lambda all_, one, said: one.look_back(said.get("version")),
    "stop": lambda all_, one, said: one.stop(),
}


def finite(text: str) -> float:
    """A JSON number; NaN and infinities are refused."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no number of JSON")
    return number
