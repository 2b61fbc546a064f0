"""What a GTP engine of ours answers, checked for the form of the protocol."""

import io

from agents.serve.gtp.protocol import respond

SPEC = "go:size=5,komi=24.5"


def raw(engine, *lines):
    """All that the engine writes."""
    out = io.StringIO()
    for line in lines:
        respond(engine, line + "\n", out)
    return out.getvalue()


def ask(engine, line):
    """The answer to a command that succeeds."""
    said = raw(engine, line)
    assert said.startswith("="), said
    assert said.endswith("\n\n")
    return said[1:].strip()


def refused(engine, line):
    said = raw(engine, line)
    assert said.startswith("? "), said
    assert said.endswith("\n\n")
    return said[2:].strip()


def stones(engine, colour):
    return {go_name(p) for p, cell in enumerate(engine.board()) if cell == colour}


def go_name(point):
    return f"{'ABCDE'[point % 5]}{5 - point // 5}"


def looked_at(said):
    """The infos of the last line of a report: word -> what follows it."""
    line = [line for line in said.split("\n") if line.startswith("info ")][-1]
    infos = [part.split(" pv ")[0].split() for part in line.split("info ")[1:]]
    return [dict(zip(words[::2], words[1::2], strict=True)) for words in infos]
