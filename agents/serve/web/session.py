"""One game in progress. It has an id that cannot be guessed, a lock, and a version that every change increments. Of two
simultaneous moves one is refused and none is lost."""

from __future__ import annotations

import dataclasses
import functools
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

from agents.players.spec import PERSON, PlayerSpec
from agents.serve.options import Limits
from agents.serve.views import can_be_taught, changed, way
from agents.serve.web.context import ServerContext, budgeted
from agents.serve.web.lanes import Job
from agents.serve.web.played_game import Line, PlayedGame
from agents.serve.web.requests import Refused, is_whole
from agents.serve.web.review import Review
from envs.game import Game, seats, titles

MOST_THINKING_SECONDS = 60.0
REVIEW_SHARE = 0.5  # simulations of each position of a review, as a share of those of a move


class Session:
    """A game with its players and searches. Every public method takes the lock."""

    def __init__(
        self, context: ServerContext, game: Game, players: list[str], limits: Limits, start: dict[str, Any] | None
    ):
        self.id, self.version, self.used = secrets.token_urlsafe(18), 0, time.monotonic()
        self.context, self.players, self.limits = context, players, limits
        self.lock = threading.RLock()
        self.played = PlayedGame(game, start, context.thinker.turns.first)
        self.paused = False
        self.job: Job | None = None  # a move, a hint or an analysis
        self.kind = ""  # of that job: move, hint or analysis
        self.failure = ""
        self.hint = ""
        self.review: Review | None = None

    @property
    def game(self) -> Game:
        return self.played.game

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
            now = self.played.at(ply)
            after = now.after(self.played.legal(action, now))
            return {"action": action, "svg": after.svg, "changed": changed(now, after), "status": after.status}

    def why(self, version: Any, ply: Any, cells: list[str]) -> dict[str, str]:
        """Why no legal move begins with these cells in the position after `ply` moves; "" if there is no reason."""
        with self.lock:
            self._current(version)
            if not cells:
                raise Refused(400, "cell: expected the names of the cells that were pointed at, in turn")
            return {"reason": self.played.at(ply).why_not(cells)}

    def past(self, version: Any, ply: Any) -> dict[str, Any]:
        """The position after `ply` moves: its picture, its legal moves, the move that led to it, and the cells of
        a better move if the review found one."""
        with self.lock:
            self._current(version)
            self.played.at(ply)
            better = None if self.review is None else self.review.better(ply)
            advice = way(self.game, self.game.parse_action(better)).cells if better else ()
            return self.played.look(ply) | {"better": better, "advice": advice}

    # Commands; the version is that of the position they are meant for

    def move(self, version: Any, action: Any) -> None:
        with self.lock:
            self._current(version)
            self._in_progress()
            if not self._persons_turn():
                raise Refused(409, "it is not your turn")
            code = self.played.legal(action, self.played.now)
            with self.context.thinker.turns.first():  # as boards do
                self._play(code)

    def branch(self, version: Any, ply: Any, action: Any) -> None:
        """Another move, of any player, in the position after `ply` moves. The line that is left is kept."""
        with self.lock:
            self._current(version)
            code = self.played.legal(action, self.played.at(ply))
            self.played.follow(Line((*self.played.actions[:ply], code), None))
            self._changed()

    def switch(self, version: Any, index: Any) -> None:
        """Back to a line that was left; the present one is kept instead."""
        with self.lock:
            self._current(version)
            lines = self.played.lines
            if not is_whole(index) or not 0 <= index < len(lines):
                raise Refused(400, f"index: expected the number of a line, below {len(lines)}")
            self.played.follow(lines.pop(index))
            self._changed(go_on=False)

    def undo(self, version: Any) -> None:
        """Back to a person's last turn; without people, one move back."""
        with self.lock:
            self._current(version)
            played = self.played
            if played.resigned is not None:
                played.resigned = None
            elif not played.actions:
                raise Refused(409, "there is nothing to take back")
            else:
                played.undo()
                while played.actions and PERSON in self.players and not self._persons_turn():
                    played.undo()
            self._changed(go_on=False)

    def redo(self, version: Any) -> None:
        with self.lock:
            self._current(version)
            played = self.played
            if not played.undone or played.resigned is not None:
                raise Refused(409, "there is nothing to make again")
            played.redo()
            while played.undone and PERSON in self.players and not self._persons_turn():
                played.redo()
            self._changed(go_on=False)

    def resume(self, version: Any) -> None:
        """Starts the engine that has paused since a move was taken back."""
        with self.lock:
            self._current(version)
            self._changed()

    def resign(self, version: Any) -> None:
        with self.lock:
            self._current(version)
            self._in_progress()
            player = self.played.now.player
            people = [i for i, name in enumerate(self.players) if name == PERSON]
            if not people:
                raise Refused(409, "nobody plays who could resign")
            self.played.resigned = player if player in people else people[0]
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
            if self.played.now.over:
                raise Refused(409, "the game is over")
            self._think(kind, self.context.analyst(self.game), limits)

    def look_back(self, version: Any) -> None:
        """Reviews the whole game; all its positions are searched in parallel."""
        with self.lock:
            self._current(version)
            self._free()
            if not self.played.actions:
                raise Refused(409, "there is no move to review yet")
            self._drop()
            self.failure = ""
            self.review = Review(self.played, self._search_for_review)

    def stop(self) -> None:
        """Ends all running searches with their current results."""
        with self.lock:
            if self.job is not None:
                self.job.stopped = True
            if self.review is not None and not self.review.ended:
                self.review.stop()

    def open(self, go_on: bool) -> None:
        """Starts the engine to move, or with `go_on` false pauses it."""
        with self.lock:
            self._changed(go_on)

    def close(self) -> None:
        with self.lock:
            self.version += 1
            self._drop()

    # Checks

    def _current(self, version: Any) -> None:
        self.used = time.monotonic()
        if not is_whole(version):
            raise Refused(400, "version: expected the whole number of the position that this is meant for")
        if version != self.version:
            raise Refused(409, "the game has gone on meanwhile; this page shows an earlier position")

    def _in_progress(self) -> None:
        if self.played.over:
            raise Refused(409, "the game is over")

    def _free(self) -> None:
        if self.kind == "move" and self.job is not None:
            raise Refused(409, "the other player is thinking")

    def _persons_turn(self) -> bool:
        return self.players[self.played.now.player] == PERSON

    # Searches

    def _play(self, action: int) -> None:
        self.played.play(action)
        self._changed()

    def _changed(self, go_on: bool = True) -> None:
        """Increments the version, drops the search of the old position, and starts the engine to move."""
        self.version += 1
        self._drop()
        self.hint, self.failure, self.review = "", "", None
        engine_moves = not self.played.over and not self._persons_turn()
        self.paused = engine_moves and not go_on
        if engine_moves and go_on:
            player, simulations = budgeted(self.players[self.played.now.player], self.limits.simulations)
            self._think("move", player, Limits(simulations, self.limits.seconds))

    def _drop(self) -> None:
        if self.job is not None:
            self.job.dropped = True
        if self.review is not None:
            self.review.stop()
        self.job, self.kind = None, ""

    def _think(self, kind: str, player: PlayerSpec, limits: Limits) -> None:
        self._drop()
        done = functools.partial(self._thought, self.version, kind)
        self.kind, self.failure = kind, ""
        reports, owners = kind != "hint", kind == "analysis"
        self.job = self._submit(player, self.played.ply, limits, done, reports, owners)

    def _submit(
        self,
        player: PlayerSpec,
        ply: int,
        limits: Limits,
        done: Callable[[Job], None],
        reports: bool = False,
        owners: bool = False,
    ) -> Job:
        state = self.played.positions[ply].state
        job = Job(self.game, player, state, ply, limits.simulations, limits.seconds, done, reports, owners)
        return self.context.thinker.submit(job)

    def _thought(self, version: int, kind: str, job: Job) -> None:
        with self.lock:
            if version != self.version or job is not self.job:
                return  # the game has gone on, or another search was started
            self.job, self.kind, self.failure = None, "", job.error
            if job.error:
                self.paused = kind == "move"
                return
            self.played.keep(self.played.ply, job.report)
            if kind == "hint":
                self.hint = self.game.action_name(job.choice)
            if kind == "move":
                self._play(job.choice)

    def _search_for_review(self, ply: int, done: Callable[[Job], None]) -> Job:
        simulations = max(1, int(self.limits.simulations * REVIEW_SHARE))
        player = self.context.analyst(self.game)
        reviewed = functools.partial(self._reviewed, self.version, done)
        return self._submit(player, ply, Limits(simulations, MOST_THINKING_SECONDS), reviewed)

    def _reviewed(self, version: int, done: Callable[[Job], None], job: Job) -> None:
        with self.lock:
            if version != self.version or job.dropped or self.review is None:
                return  # the game has gone on, or the review was stopped
            if job.error:
                self.failure = job.error
                self.review.stop()
            else:
                done(job)

    # What the page shows

    def _all(self) -> dict[str, Any]:
        played, game = self.played, self.game
        title, rules = titles(game)
        view = {
            "game": game.name,
            "title": title,
            "rules": rules,
            "seats": seats(game),
            "players": self.players,
            "limits": dataclasses.asdict(self.limits),
            "over": played.over,
            "result": played.result if played.over else None,
            "resigned": played.resigned,
            "reason": played.now.why,
            "lesson": can_be_taught(game),
            "history": played.history(),
            "undo": bool(played.actions) or played.resigned is not None,
            "redo": bool(played.undone) and played.resigned is None,
            "lines": played.variations(),
            "save": played.save(),
        }
        return view | played.look(played.ply) | ({"legal": []} if played.over else {})

    def _news(self) -> dict[str, Any]:
        played, job = self.played, self.job
        live = job.report if job is not None else None
        return {
            "id": self.id,
            "version": self.version,
            "thinking": self._thinking(),
            "paused": self.paused,
            "failure": self.failure,
            "hint": self.hint,
            "report": live or played.reports.get(played.ply),
            "values": [played.values(i) for i in range(played.ply + 1)],
            "review": None if self.review is None or self.failure else self.review.moves(),
        }

    def _thinking(self) -> dict[str, Any] | None:
        job = self.job
        if job is not None:
            return {
                "kind": self.kind,
                "progress": round(job.budget.progress(), 3),
                "simulations": job.budget.done,
                "compiling": self.context.thinker.compiling(job),
            }
        return self.review.thinking if self.review is not None and not self.review.ended else None
