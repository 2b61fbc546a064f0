"""All games of a server, and the commands that a browser may send to one of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from agents.players.spec import PERSON
from agents.serve.options import MOST_SIMULATIONS, Limits
from agents.serve.web.context import ServerContext
from agents.serve.web.requests import Refused, is_whole
from agents.serve.web.session import MOST_THINKING_SECONDS, Session
from envs import saved
from envs.game import Game, first_player

MOST_SESSIONS = 500
OLDEST = 24 * 3600.0  # seconds without a call before a session is closed
LEAST_THINKING_SECONDS = 0.1
LONGEST_MESSAGE = 400  # characters of a game's error message, which quotes the input


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
        if request.get("format", saved.FORMAT) != saved.FORMAT:
            raise Refused(400, f"format: expected '{saved.FORMAT}'")
        game = self.context.game(request.get("game"))
        start, actions, resigned = request.get("start"), request.get("actions", []), request.get("resigned")
        if not isinstance(actions, list) or len(actions) > game.max_plies:
            raise Refused(400, f"actions: expected a list of at most {game.max_plies} moves")
        players, limits = self.players(game, request), self.limits(request)
        try:
            session = Session(self.context, game, players, limits, start)
        except ValueError as error:
            raise Refused(400, f"position: {str(error)[:LONGEST_MESSAGE]}") from None
        played = session.played
        for i, action in enumerate(actions):
            if played.over:
                raise Refused(400, f"move {i + 1}: the game was over before")
            try:
                played.append(played.code(action, played.now))
            except ValueError as error:
                raise Refused(400, f"move {i + 1}: {error}") from None
        if resigned is not None:
            if played.over:
                raise Refused(400, "resigned: the game was over before")
            try:
                played.resigned = saved.player_of(game, resigned)
            except ValueError as error:
                raise Refused(400, str(error)) from None
        with self._lock:
            self._forget()
            self._sessions[session.id] = session
        session.open(go_on=not actions)  # a loaded game pauses, to be looked at first
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
        usual = self.context.options.limits
        simulations = request.get("simulations", usual.simulations)
        seconds = request.get("seconds", usual.seconds)
        if not is_whole(simulations) or not 1 <= simulations <= MOST_SIMULATIONS:
            raise Refused(400, f"simulations: expected a whole number from 1 to {MOST_SIMULATIONS}")
        least, most = min(LEAST_THINKING_SECONDS, usual.seconds), max(MOST_THINKING_SECONDS, usual.seconds)
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
