"""A client of the page's JSON interface, on a real server in this process."""

import contextlib
import socket
import threading
import time

import httpx
import uvicorn

from agents.serve.options import PlayOptions
from agents.serve.web import server as web

OPTIONS = PlayOptions(env="tictactoe", opponent="uct:16", num_simulations=64, seconds=20.0, open=False)
PEOPLE = ["person", "person"]


@contextlib.contextmanager
def served(context, timeout=120):
    """Calls a real server in this process, each of at most `timeout` seconds."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        config = uvicorn.Config(web.make_app(context), log_level="warning", timeout_keep_alive=web.KEEP_ALIVE)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [door]})
        thread.start()
        limits = httpx.Limits(max_connections=100)
        try:
            with httpx.Client(
                base_url=f"http://127.0.0.1:{door.getsockname()[1]}", timeout=timeout, limits=limits
            ) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join()


def ask(client, session, command, status=200, **more):
    reply = client.post(f"/api/sessions/{session['id']}/{command}", json={"version": session["version"], **more})
    assert reply.status_code == status, reply.text
    return session | reply.json() if status == 200 else reply.json()["error"]


def begin(client, **request):
    reply = client.post("/api/sessions", json=request)
    assert reply.status_code == 201, reply.text
    return reply.json()


def rested(client, session, pause=0.02):
    """Waits until nobody thinks, with `pause` seconds between two looks."""
    while session["thinking"] is not None:
        time.sleep(pause)
        session |= client.get(f"/api/sessions/{session['id']}", params={"version": session["version"]}).json()
    return session
