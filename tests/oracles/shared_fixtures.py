"""Fixtures that several files of tests use; a file may define its own of the same name.

They import what they need when they are asked for: every test process loads this file, also where packages of an extra
are missing.
"""

from __future__ import annotations

import io
import sys

import pytest


@pytest.fixture
def sit(monkeypatch, capsys):
    """sit(options, lines): all that the terminal prints, the lines being typed through a pipe."""

    import play

    def run(options, *lines):
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        play.main(["--ui=text", *options.split()])
        return capsys.readouterr().out

    return run


@pytest.fixture
def draws(tmp_path, monkeypatch):
    """draws(*arguments): `python -m envs.draw` with these arguments, in the folder of the test."""
    from envs import draw

    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["draw", *arguments])
        draw.main()

    return run


@pytest.fixture(scope="module")
def thinking():
    """A GTP engine whose search is compiled."""
    from gtp_dialogue import SPEC, ask

    import envs
    from agents.serve.gtp.engine import Engine
    from agents.serve.options import PlayOptions

    engine = Engine(PlayOptions(env=SPEC, ui="gtp", opponent="uct:16", resign_threshold=-1), envs.make(SPEC))
    assert ask(engine, "genmove b")
    return engine


@pytest.fixture
def engine(thinking):
    """The same with an empty board and no clock."""
    thinking.clear()
    thinking.clock = None
    assert (thinking.size, thinking.komi) == (5, 24.5)
    return thinking


@pytest.fixture(scope="module")
def thinker():
    """The searches of the page."""
    from agents.serve.web.thinker import Thinker

    thinker = Thinker()
    yield thinker
    thinker.close()


@pytest.fixture(scope="module")
def context(thinker):
    """The page of tic-tac-toe."""
    from web_client import OPTIONS

    from agents.serve.web import server as web

    return web.make_context(OPTIONS, thinker)


@pytest.fixture(scope="module")
def client(context):
    """Calls the page on a real server."""
    from web_client import served

    with served(context) as client:
        yield client
