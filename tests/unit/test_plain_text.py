"""Words of people and names of files reach a console as they are, whatever rich would make of them."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import sys
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from fuzzing import MARKUP, TEXT, budget
from rich.text import Text

import envs
import play
from agents.arena import tables
from agents.arena.match import Result
from agents.players.human import person
from agents.run.metrics import Report
from agents.runtime import cli

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "agents").rglob("*.py"))


def test_a_console_without_a_reader_falls_silent():
    """As behind `| head`, or `| tee` after Ctrl-C: the program goes on."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", buffering=1) as file:
        console = cli.console(file=file)
        for _ in range(3):
            console.print("words")
        assert console.quiet
        with contextlib.suppress(BrokenPipeError):
            file.close()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_consoles_and_bars_are_made_in_one_place(path):
    """Whoever makes one elsewhere gets rich's markup."""
    if path.name == "cli.py":
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            assert name not in ("Console", "from_markup", "get_default_columns"), node.lineno
            if name == "Progress":  # the rows of a run, not rich's bar
                assert path.name == "metrics.py"
            if name == "TextColumn" and ast.unparse(node.args[0]) == "'{task.description}'":
                assert any(key.arg == "markup" and not ast.literal_eval(key.value) for key in node.keywords)
            if name == "status" and "console" in ast.unparse(node.func):
                assert isinstance(node.args[0], ast.Constant) or ast.unparse(node.args[0]).startswith("Text("), (
                    node.lineno
                )


@budget(60)
@hypothesis.given(MARKUP | TEXT)
def test_a_console_prints_text_as_it_is(words):
    out = io.StringIO()
    console = cli.console(file=out, width=1000, soft_wrap=True)
    console.print(words)
    expected = io.StringIO()
    cli.console(file=expected, width=1000, soft_wrap=True).print(Text(words))
    assert out.getvalue() == expected.getvalue()
    with cli.progress(cli.console(file=io.StringIO(), force_terminal=True)) as bar:
        bar.add_task(words)


def test_without_a_terminal_progress_is_a_line_each_minute(monkeypatch):
    """At 0, 70, 100 and 180 s, with 0, 5, 6 and 30 of 40 done: lines at the second and the last."""
    out, now = io.StringIO(), [0.0]
    monkeypatch.setattr(cli.time, "monotonic", lambda: 1000 + now[0])
    with cli.progress(cli.console(file=out)) as bar:
        bar.get_time = lambda: now[0]
        task = bar.add_task("games [/b]", total=40)
        for now[0], done in ((0, 0), (70, 5), (100, 6), (180, 30)):
            bar.update(task, completed=done)
    assert out.getvalue().splitlines() == ["games [/b]: 5 of 40 after 1 min", "games [/b]: 30 of 40 after 3 min"]


class Screen(io.StringIO):
    """A terminal."""

    isatty = lambda self: True


@pytest.mark.parametrize("kernel", [False, True])
def test_in_a_notebook_nothing_is_drawn_over(kernel, monkeypatch):
    """The kernel of a notebook sets these for the commands of its cells, and gives them a terminal."""
    for name in ("TERM", "CLICOLOR", "FORCE_COLOR", "GIT_PAGER"):
        monkeypatch.delenv(name, raising=False)
    told = {"TERM": "xterm-color", "CLICOLOR": "1", "FORCE_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat"}
    for name, value in told.items() if kernel else [("TERM", "xterm-256color")]:
        monkeypatch.setenv(name, value)
    out = Screen()
    shown_on = cli.console(file=out)
    with cli.progress(shown_on) as bar:
        bar.add_task("games", total=40)
    assert ("games" in out.getvalue()) == (not kernel)
    shown_on.print(Text("red", "red"))
    assert out.getvalue().endswith("\x1b[31mred\x1b[0m\n")  # it has colours


def test_colours_forced_into_a_file_come_without_progress(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = io.StringIO()
    shown_on = cli.console(file=out)
    with cli.progress(shown_on) as bar:
        bar.add_task("games", total=40)
    shown_on.print(Text("red", "red"))
    assert out.getvalue() == "\x1b[31mred\x1b[0m\n"


@budget(40)
@hypothesis.given(MARKUP)
def test_tables_show_names_as_they_are(words):
    result = Result(
        a=words, b=words, players=2, games=2, openings=1, repeated=1, wins=1, draws=0, losses=1, score=0.5,
        score_interval=(0.1, 0.9), elo=0.0, elo_interval=(-1.0, 1.0), mean_plies=3.0,
    )  # fmt: skip
    row = {"player": words, "elo": 1.0, "interval": [0, 1]}
    for made in (
        tables.match_table([result]),
        tables.ladder_table(words, [row]),
        tables.verdict_table(words, 1.0, {words: 1.0}),
        tables.solved_table(words, {}, np.array(["all"]), np.ones(1)),
    ):
        out = io.StringIO()
        cli.console(file=out, width=200).print(made)
        assert words in out.getvalue()


@budget(20)
@hypothesis.given(MARKUP)
def test_a_run_says_names_as_they_are(tmp_path_factory, words):
    report = Report(tmp_path_factory.mktemp("run"), 0, 0.0)
    report.console.file = out = io.StringIO()
    report.say(f"run in {words}")
    report.phase(words)
    report.console.print(report.progress.rows(), width=1000)
    report.close()
    assert f"run in {words}" in out.getvalue()


@budget(20)
@hypothesis.given(MARKUP)
def test_a_person_types_what_they_like(words):
    """In the terminal and in a match: the game goes on, and the words are quoted."""
    out, before = io.StringIO(), (sys.stdin, sys.stdout)
    sys.stdin, sys.stdout = io.StringIO(f"{words}\nmoves\n"), out
    try:
        play.main(["--env=tictactoe", "--ui=text", "--opponent=person"])
    finally:
        sys.stdin, sys.stdout = before
    assert "played: none" in out.getvalue()
    assert f"no cell '{words}'" in out.getvalue()
    game, output = envs.make("tictactoe"), io.StringIO()
    sys.stdin = io.StringIO(f"{words}\nb2\n")
    try:
        assert person(game, cli.console(file=output, width=400))(game.init(), [], game.init()) == 4
    finally:
        sys.stdin = before[0]
    assert f"no cell '{words}'" in output.getvalue()
