"""Command lines: parses options with tyro, reports errors as one line and exit code 2, prints text as it is."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import io
import os
import re
import shutil
import sys
import textwrap
import time
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NoReturn, TextIO, TypeVar

import docstring_parser
import jax
import tyro
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column

from agents.runtime import advice

T = TypeVar("T")

FULL_HELP = "--help-all"
HELP = {"-h", "--help", FULL_HELP}
HEARTBEAT = 60.0  # seconds between two lines of progress where there is no terminal
SENTENCE_END = re.compile(r"(?<=[.)])(?<!al\.)\s+(?=[A-Z0-9`])")


def fail(message: Any) -> NoReturn:
    """Prints the error in one line and exits with code 2."""
    print("error:", " ".join(str(message).split()), file=sys.stderr)
    raise SystemExit(2)


@functools.cache
def note(text: str) -> None:
    """Prints a line on standard error, the same line once in a process."""
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def errors() -> Iterator[None]:
    """Reports user errors (ValueError, OSError) and too little memory in one line and turns Ctrl-C into exit code 130.
    Any other exception is a bug and keeps its traceback."""
    try:
        yield
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else error)
    except ValueError as error:
        fail(error)
    except (MemoryError, jax.errors.JaxRuntimeError) as error:
        if not isinstance(error, MemoryError) and "RESOURCE_EXHAUSTED" not in str(error):
            raise
        fail(f"out of memory; smaller numbers of games, positions or simulations need less: {str(error)[:200]}")
    except KeyboardInterrupt:
        print(file=sys.stderr)  # the shell prompt starts on a new line
        raise SystemExit(130) from None


def keep_compiled() -> None:
    """Caches compiled programs in the user's cache folder or JAX_COMPILATION_CACHE_DIR. Small ones count too: a page
    needs dozens of them before its first move."""
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(cache / "ripzero"))


def collect_rarely() -> None:
    """Makes Python look for unreachable objects after 20,000 new ones; Python 3.11 does so after 700. While JAX traces
    a program, millions of objects are made and kept, and looking through them so often takes a fifth of the time."""
    gc.set_threshold(20_000)


def explain(kind: Any, brief: bool, overview: bool = False) -> None:
    """Gives tyro the help texts of all options of a command in one paragraph each, or only their first sentences. tyro
    itself keeps the line breaks of the source. In an overview of commands each has one sentence."""
    for part in typing.get_args(kind):
        explain(part, brief, overview)
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        return
    hints = typing.get_type_hints(kind, include_extras=True)
    texts = {param.arg_name: param.description or "" for param in docstring_parser.parse_from_object(kind).params}
    whole = " ".join((kind.__doc__ or "").split())
    kind.__doc__ = SENTENCE_END.split(whole)[0] if overview else whole
    for name, hint in hints.items():
        explain(hint, brief, overview)
        if text := " ".join(texts.get(name, "").split()):
            text = SENTENCE_END.split(text)[0] if brief else text
            kind.__annotations__[name] = Annotated[hint, tyro.conf.arg(help=text)]


class PatientConsole(Console):
    """A console that falls silent once nobody reads it, as after `| head`. That of rich ends the program."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


def in_notebook() -> bool:
    """Whether a cell of a notebook runs this program. IPython's kernel, and so Colab, gives it a terminal, but keeps
    every line that a terminal would overwrite."""
    told = {"TERM": "xterm-color", "CLICOLOR": "1", "GIT_PAGER": "cat"}  # ipykernel, zmqshell.py, init_environment
    return all(os.environ.get(name) == value for name, value in told.items())


def console(stderr: bool = False, **options: Any) -> Console:
    """A console that prints every string as it is. Names of folders, typed words and messages may hold what rich takes
    for markup, such as [/b], or for the name of an emoji. In a notebook, and where FORCE_COLOR asks for colours in a
    file, it has colours but overwrites nothing."""
    shown_on = options.get("file") or (sys.stderr if stderr else sys.stdout)
    if in_notebook() or (os.environ.get("FORCE_COLOR") and not shown_on.isatty()):
        options = {"force_terminal": False, "color_system": "standard"} | options
    return PatientConsole(stderr=stderr, markup=False, emoji=False, highlight=False, **options)


class Bar(Progress):
    """A progress bar that disappears at its end. Without a terminal it is a line each minute."""

    said = 0.0  # reading of the clock at the last line

    def update(self, task_id: TaskID, **fields: Any) -> None:
        super().update(task_id, **fields)
        (task,) = (task for task in self.tasks if task.id == task_id)
        now = time.monotonic()
        self.said = self.said or now
        if self.console.is_terminal or now - self.said < HEARTBEAT or task.total is None:
            return
        self.said, minutes = now, (task.elapsed or 0.0) / 60
        # Without an estimate of the time left: games in lockstep end nearly together.
        words = f"{task.description}: {task.completed:g} of {task.total:g} after {minutes:.0f} min"
        self.console.print(words, soft_wrap=True)


def progress(shown_on: Console, *more: ProgressColumn) -> Bar:
    """A progress bar whose descriptions are printed as they are."""
    # On a narrow terminal the words go on in the next line. No number is cut.
    words = TextColumn("{task.description}", markup=False, table_column=Column())
    left = TimeRemainingColumn(table_column=Column(no_wrap=True))
    columns = (words, BarColumn(bar_width=20), TaskProgressColumn(), left, *more)
    return Bar(*columns, console=shown_on, transient=True, disable=not shown_on.is_terminal)


def demand_values(arguments: Sequence[str]) -> None:
    """Refuses empty arguments, such as --resume=$RUN where the variable is not set: they never mean the default.

    Raises:
        ValueError: an argument is empty.
    """
    for before, argument in zip(("", *arguments), arguments, strict=False):
        if not argument.strip() or re.fullmatch(r"--[\w-]+=\s*", argument):
            raise ValueError(f"expected a value after {argument.strip() or before or 'the command'}, got nothing")


class Page(io.TextIOWrapper):
    """Keeps what is printed, in the form that suits another stream."""

    def __init__(self, beyond: TextIO):
        super().__init__(io.BytesIO(), encoding=beyond.encoding, errors="replace")
        self.isatty = beyond.isatty


@contextlib.contextmanager
def printing_wrapped() -> Iterator[None]:
    """Breaks printed lines between words where they do not fit the terminal. tyro does so only in its boxes."""
    page, width = Page(sys.stdout), max(40, shutil.get_terminal_size().columns)
    try:
        with contextlib.redirect_stdout(page):
            yield
    finally:
        page.seek(0)
        fold = functools.partial(textwrap.fill, width=width, break_on_hyphens=False)
        print("\n".join(x if len(COLOUR.sub("", x)) <= width else fold(x) for x in page.read().splitlines()))


def program() -> str | None:
    """The command that runs a module of the project, for its help; None for a file, which tyro names itself."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return f"python -m {spec.name}" if spec is not None and spec.name.startswith("agents.") else None


def parse_command(
    kind: Any,
    arguments: Sequence[str],
    default: Any = tyro.MISSING,
    description: str | None = None,
    meant: Mapping[str, str] = MappingProxyType({}),
) -> Any:
    """`tyro.cli` with option names as in the code and one-line errors. --help shows the first sentence on each option,
    --help-all the whole text. `meant` has the options that are meant by usual names of others."""
    demand_values(arguments)
    known = {} if default is tyro.MISSING else {"default": default}
    if HELP & set(arguments):
        explain(kind, brief=FULL_HELP not in arguments, overview=set(arguments) == {"--help"})
        asked = ["--help" if argument in HELP else argument for argument in arguments]
        description = description and advice.with_program_commands(description)
        with printing_wrapped():
            return tyro.cli(kind, prog=program(), args=asked, use_underscores=True, description=description, **known)
    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            return tyro.cli(kind, args=arguments, use_underscores=True, description=description, **known)
        except SystemExit as stop:
            refused = stop
    if refused.code == 0:
        raise refused
    # Strips tyro's frame, which is plain ASCII on terminals without box characters.
    framed = re.compile(r"^[\s│|╭╰+]+[─-]?\s|[\s│|╮╯+]+$|[─-]{3,}")
    plain = COLOUR.sub("", said.getvalue())
    lines = (framed.sub("", framed.sub("", line)).strip() for line in plain.splitlines())
    text = " ".join(line for line in lines if line).split("For full helptext")[0].split("Argument helptext:")[0]
    for heading in ("Value error", "Parsing error", "Unrecognized options "):
        text = text.removeprefix(heading)
    text = re.sub(r"^Error parsing \w+: ", "", text.strip())  # a class name means nothing to users
    for theirs, plain in PLAIN_ERRORS.items():
        text = re.sub(theirs, plain, text)
    if (unknown := re.match(r"unknown option --(\w+)", text)) and unknown[1] in meant:
        text = f"unknown option --{unknown[1]}; perhaps --{meant[unknown[1]]} is meant"
    for switch in filter(None, map(SWITCH.fullmatch, arguments)):
        if text == f"expected options such as --env=foq, got '{switch[2]}'":  # tyro saw the value as a word of its own
            text = f"--{switch[1]}: expected no value, got {switch[2]}; --{switch[1]} is yes, --no_{switch[1]} is no"
    fail(text or "wrong arguments")


COLOUR = re.compile(r"\x1b\[[\d;]*m")  # tyro colours its text if standard output is a terminal
SWITCH = re.compile(r"--(\w+)=(true|false|yes|no|on|off)", re.IGNORECASE)


# tyro's words for what users get wrong most, and ours.
PLAIN_ERRORS = {
    r"^Error parsing (\S+): no type matching {None}\|{FLOAT FLOAT} .*?from \[(.*?)\]\..*": (
        r"\1: expected two numbers with a space between them, got \2"
    ),
    r"^Error parsing (\S+): no type matching {None}\|FLOAT .*from \['?(.*?)'?\]\..*": r"\1: expected a number, got \2",
    r"^Error parsing (\S+): no type matching {None}\|INT .*from \['?(.*?)'?\]\..*": (
        r"\1: expected a whole number, got \2"
    ),
    r"^Error parsing (\S+): invalid literal for int.*: '(.*)'$": r"\1: expected a whole number, got \2",
    r"^Error parsing (\S+): could not convert string to float: '(.*)'$": r"\1: expected a number, got \2",
    r"^Invalid choice invalid choice '(.*)' for argument '(.*?)'\. Expected one of \((.*)\)\.": (
        r"\2: expected one of \3, got '\1'"
    ),
    r"^Missing argument Missing value for argument '(.*?)'\..*": r"\1: expected a value, got nothing",
    r"^Required options Missing from (.*?): (\S+) .*?\(required\) (\S+) .*": r"\1: expected \2 and \3, got neither",
    r"^Required options Missing from (.*?): (\S+) .*": r"\1: expected \2, got nothing",
    r"^Unrecognized options: (.*) Available subcommands: (.*)": r"expected one of the commands \2, got \1",
    r"^Unrecognized options: (-.*?) Perhaps you meant: (\S+) .*": r"unknown option \1; perhaps \2 is meant",
    r"^Unrecognized options: (-.*)": r"unknown option \1; --help lists all",
    r"^Unrecognized options: (.*)": r"expected options such as --env=foq, got '\1'",
}
