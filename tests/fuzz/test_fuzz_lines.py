"""Lines from programs and people: the GTP engine answers each exactly once, the terminal goes on."""

from __future__ import annotations

import io
import sys

import hypothesis
import hypothesis.strategies as st
import pytest
from fuzzing import TEXT, budget
from gtp_dialogue import SPEC

import envs
import play
from agents.serve.gtp import protocol
from agents.serve.gtp.engine import Engine
from agents.serve.options import PlayOptions
from agents.serve.terminal import COMMANDS

SLOW = {"genmove", "reg_genmove", "lz-analyze", "lz-genmove_analyze", "loadsgf", "printsgf", "quit", "boardsize"}
QUICK = sorted({*protocol.COMMANDS, *protocol.ANALYSES} - SLOW)
WORDS = st.sampled_from(
    ["b", "w", "black", "B", "A1", "e5", "pass", "I9", "resign", "0", "7", "-1", "1e9", "nan", "9" * 30, "1", "2"]
)
GTP = st.tuples(
    st.sampled_from(["", "1", "007", "-3"]), st.sampled_from(QUICK) | TEXT, st.lists(WORDS | TEXT, max_size=4)
)


@pytest.fixture(scope="module")
def engine():
    return Engine(PlayOptions(env=SPEC, ui="gtp", opponent="uct:16"), envs.make(SPEC))


@budget(400)
@hypothesis.given(st.lists(GTP.map(lambda said: f"{said[0]} {said[1]} {' '.join(said[2])}"), min_size=1, max_size=5))
def test_gtp_answers_every_line_once(engine, capsys, lines):
    for line in lines:
        line = line.replace("\n", " ")
        parsed, out = protocol.parse_line(line), io.StringIO()
        if parsed is not None and parsed[1][:1] and parsed[1][0] in SLOW:
            continue
        assert protocol.respond(engine, line, out)
        said = out.getvalue()
        assert (said == "") if parsed is None else (said[0] in "=?" and said.endswith("\n\n")), line
        assert said.count("\n\n") == (parsed is not None), (line, said)
        assert "internal error" not in said, (line, capsys.readouterr().err)
    engine.clear()
    engine.clock = None


TYPED = st.sampled_from(sorted({*COMMANDS} - {"hint", "eval", "save", "load"})) | TEXT
FILES = st.tuples(st.sampled_from(["save", "load"]), TEXT).map(lambda pair: f"{pair[0]} /proc/none/{pair[1]}")


@budget(100)
@hypothesis.given(
    st.lists(TYPED | FILES | st.sampled_from(["b2", "a1", "c3"]), max_size=6),
    st.sampled_from(["tictactoe", "sum_to_100"]),
)
def test_the_terminal_goes_on(lines, name):
    out, before = io.StringIO(), (sys.stdin, sys.stdout)
    text = "".join(" ".join(line.splitlines()) + "\n" for line in lines)
    sys.stdin, sys.stdout = io.StringIO(text), out
    try:
        play.main([f"--env={name}", "--ui=text", "--opponent=person"])
    finally:
        sys.stdin, sys.stdout = before
    asked = out.getvalue().count("your move>") + out.getvalue().count("new, undo, save FILE or quit>")
    assert asked == 1 + len(lines) or "quit" in text
