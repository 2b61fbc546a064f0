"""The page and its JSON interface, served to browsers on this machine.

    GET    /                                 the page: index.html, and beside it the other files of agents/serve/page
    GET    /api/games                        games that can be chosen, each with its opponents and options, or ?game=
    GET    /api/lesson                       how to play a ?game=: steps with a text and a picture
    POST   /api/sessions                     a new or saved game, see `Sessions.create`
    GET    /api/sessions/ID?version=N        what a page shows; all of it unless N is the current version
    GET    /api/sessions/ID/preview          the picture after ?ply= moves and ?action=, changed cells
    GET    /api/sessions/ID/why              why no legal move begins with each ?cell= in turn, after ?ply= moves
    GET    /api/sessions/ID/past             the position after ?ply= moves
    POST   /api/sessions/ID/COMMAND          see `sessions.COMMANDS`; answers like GET
    DELETE /api/sessions/ID
    GET    /api/status                       counts of sessions, steps of batches and searches

Invalid calls are answered with `{"error": "why"}` and a 4xx status.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import logging
import os
import re
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import envs
from agents.players.human import demand_playable
from agents.players.players import make_player
from agents.players.spec import PERSON, PlayerSpec, parse_player
from agents.serve.levels import dialog_entry
from agents.serve.options import PlayOptions, loopback, opponent
from agents.serve.views import lesson, look_at
from agents.serve.web.context import ServerContext, budgeted
from agents.serve.web.lanes import Job, step_of
from agents.serve.web.requests import Refused, finite
from agents.serve.web.session import Session
from agents.serve.web.sessions import COMMANDS, Sessions
from agents.serve.web.thinker import Thinker
from envs import saved
from envs.game import first_player, titles

PAGE = Path(__file__).parents[1] / "page"
# Seconds that an idle connection stays open. Longer than people pause between two calls: a call sent during closing
# is lost.
KEEP_ALIVE = 300
LARGEST_BODY = 2**20  # bytes; a saved game is far smaller
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}

log = logging.getLogger(__name__)


def answer(content: Any, status: int = 200) -> JSONResponse:
    return JSONResponse(content, status, HEADERS)


async def body(request: Request) -> dict[str, Any]:
    """The JSON object of a request.

    Raises:
        Refused: the body is too long, malformed or not an object.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "expected a body of type application/json")
    read = b""
    async for chunk in request.stream():
        read += chunk
        if len(read) > LARGEST_BODY:
            raise Refused(413, f"the body is longer than {LARGEST_BODY} bytes")
    try:
        said = json.loads(read or b"{}", parse_float=finite, parse_constant=finite)
        saved.refuse_half_characters(said)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"this is no JSON: {str(error)[:100]}") from None
    if not isinstance(said, dict):
        raise Refused(400, "expected a JSON object")
    return said


async def refused(request: Request, error: Exception) -> Response:
    return answer({"error": str(error)}, error.status if isinstance(error, Refused) else 500)


async def http_error(request: Request, error: Exception) -> Response:
    status, words = (error.status_code, error.detail) if isinstance(error, HTTPException) else (500, "failed")
    return answer({"error": words.lower()}, status)


async def gone(request: Request, error: Exception) -> Response:
    return answer({"error": "the call was broken off"}, 400)


async def failed(request: Request, error: Exception) -> Response:
    log.error("a call failed", exc_info=error)
    return answer({"error": "internal server error; see the server log"}, 500)


ERRORS = {Refused: refused, HTTPException: http_error, ClientDisconnect: gone, Exception: failed}


def file(name: str) -> Callable[[Request], Any]:
    async def serve_file(request: Request) -> Response:
        return FileResponse(PAGE / name, headers=HEADERS)

    return serve_file


def known_version(request: Request) -> int | None:
    return whole_number(request, "version")


def whole_number(request: Request, name: str) -> int | None:
    """A whole number of the query; None if it is missing or malformed."""
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def preview(session: Session, request: Request) -> dict[str, Any]:
    action = request.query_params.get("action")
    return session.preview(known_version(request), action, whole_number(request, "ply"))


def why(session: Session, request: Request) -> dict[str, Any]:
    return session.why(known_version(request), whole_number(request, "ply"), request.query_params.getlist("cell"))


def past(session: Session, request: Request) -> dict[str, Any]:
    return session.past(known_version(request), whole_number(request, "ply"))


def make_app(context: ServerContext) -> Starlette:
    """The application; all slow work is done in threads."""
    sessions = Sessions(context)

    def games(spec: str | None) -> list[dict[str, Any]]:
        usual = (context.own.name, *(envs.make(name).name for name in envs.list()))
        chosen = [context.game(name) for name in ([spec] if spec else dict.fromkeys(usual))]
        return [dialog_entry(game, context.opponents(game)) for game in chosen]

    async def list_games(request: Request) -> Response:
        return answer(await run_in_threadpool(games, request.query_params.get("game")))

    async def teach(request: Request) -> Response:
        steps = lambda: lesson(context.game(request.query_params.get("game", context.own.name)))
        return answer({"steps": await run_in_threadpool(steps)})

    async def status(request: Request) -> Response:
        thinker = context.thinker
        return answer({"sessions": len(sessions), "steps": thinker.steps, "searches": thinker.searches})

    async def create(request: Request) -> Response:
        said = await body(request)
        said.setdefault("game", context.own.name)
        return answer(await run_in_threadpool(lambda: sessions.create(said).view()), 201)

    async def one(request: Request) -> Response:
        name = request.path_params["id"]
        if request.method == "DELETE":
            await run_in_threadpool(sessions.remove, name)
            return answer({})
        return answer(await run_in_threadpool(lambda: sessions.get(name).view(known_version(request))))

    def look(at: Callable[[Session, Request], dict[str, Any]]) -> Callable[[Request], Any]:
        async def reply(request: Request) -> Response:
            return answer(await run_in_threadpool(lambda: at(sessions.get(request.path_params["id"]), request)))

        return reply

    async def command(request: Request) -> Response:
        name, word = request.path_params["id"], request.path_params["command"]
        if word not in COMMANDS:
            raise Refused(404, f"unknown command; known: {', '.join(COMMANDS)}")
        said = await body(request)

        def run() -> dict[str, Any]:
            session = sessions.get(name)
            COMMANDS[word](sessions, session, said)
            return session.view(said.get("version") if isinstance(said.get("version"), int) else None)

        return answer(await run_in_threadpool(run))

    app = Starlette(
        routes=[
            Route("/", file("index.html")),
            *(Route(f"/{path.name}", file(path.name)) for path in PAGE.iterdir()),
            Route("/api/games", list_games),
            Route("/api/lesson", teach),
            Route("/api/status", status),
            Route("/api/sessions", create, methods=["POST"]),
            Route("/api/sessions/{id}", one, methods=["GET", "DELETE"]),
            Route("/api/sessions/{id}/preview", look(preview)),
            Route("/api/sessions/{id}/why", look(why)),
            Route("/api/sessions/{id}/past", look(past)),
            Route("/api/sessions/{id}/{command}", command, methods=["POST"]),
        ],
        middleware=[Middleware(OwnName, host=context.options.host)],
        exception_handlers=ERRORS,
    )
    app.router.redirect_slashes = False  # a wrong path gets 404
    return app


class OwnName:
    """Accepts only calls that address this machine by its own name, and forbids frames. This refuses pages that point
    their own name at the loopback address, or embed the game. If the server is open to others, both checks are off: a
    notebook shows the page in a frame, under any name."""

    def __init__(self, app: ASGIApp, host: str):
        self.app, self.names = app, {"localhost", "127.0.0.1", "::1", host} if loopback(host) else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self.names is None:
            return await self.app(scope, receive, send)
        host = Headers(scope=scope).get("host", "")
        if re.sub(r":\d*$", "", host).strip("[]") not in self.names:
            return await answer({"error": "this server does not go by that name"}, 400)(scope, receive, send)

        async def unframed(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Frame-Options"] = "DENY"
            await send(message)

        return await self.app(scope, receive, unframed)


LONGEST_COMPILATION = 120.0  # seconds; the list of games waits no longer


def make_context(options: PlayOptions, thinker: Thinker) -> ServerContext:
    """The context of a server with these options. The opponent is tried here, so that a wrong one is refused at once.

    Raises:
        ValueError: unknown game or opponent.
    """
    game = demand_playable(envs.make(options.env))
    player = parse_player(opponent(options, game))
    if player.kind != PERSON:
        make_player(player, game, 0)
    return ServerContext(options, game, thinker)


def warm(context: ServerContext) -> None:
    """Compiles for the first moves while people look at the board: the search and the rules at the same time, then the
    analysis. Lesson and list of games are prepared last, since they would slow down the others."""
    game, ready = context.own, threading.Event()
    step = step_of(context.options.limits.simulations)
    job = Job(game, context.analyst(game), game.init(), 0, step, 1.0, done=lambda _: ready.set())
    player = budgeted(context.opponents(game)[0], step)[0]
    if player not in (PlayerSpec(PERSON), job.player):  # the analysis waits until the opponent has its programs
        job = dataclasses.replace(job, player=player, done=lambda _, then=job: context.thinker.submit(then))
    context.thinker.submit(job)
    start = look_at(game, game.init())
    _ = start.svg, start.after(start.legal[0]).svg  # the first picture and the first move are the slowest
    ready.wait(timeout=LONGEST_COMPILATION)
    lesson(game)
    for name in envs.list():
        first_player(envs.make(name))  # seconds in total, which would delay the list of games


def listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        hint = "; --port=0 takes a free port" if error.errno == errno.EADDRINUSE else ""
        raise ValueError(f"--host={host} --port={port}: {error.strerror or error}{hint}") from None


def serve(options: PlayOptions) -> None:
    """Serves the page until Ctrl-C.

    Raises:
        ValueError: unknown game or opponent, or an address that cannot be taken.
    """
    context = make_context(options, Thinker())
    with listen(options.host, options.port) as door:
        app = make_app(context)
        warming = threading.Thread(target=warm, args=(context,), daemon=True)
        warming.start()
        host = f"[{options.host}]" if ":" in options.host else options.host
        address = f"http://{host}:{door.getsockname()[1]}"
        print(f"{titles(context.own)[0]}: {address}   (Ctrl-C ends it)", flush=True)
        if not loopback(options.host):
            print("everyone who reaches this address can play", file=sys.stderr)
        if options.open and (sys.platform in ("darwin", "win32") or {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ)):
            webbrowser.open(address)
        server = uvicorn.Server(
            uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2, timeout_keep_alive=KEEP_ALIVE)
        )
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[door])
    if not context.thinker.close() or warming.is_alive():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # a compilation may take half a minute more, for nothing
