"""Command lines: options through tyro, errors as one line and exit code 2."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import jax
import tyro

T = TypeVar("T")


def fail(message: Any) -> NoReturn:
    """Says what was wrong in one line and ends the program with exit code 2."""
    print("error:", " ".join(str(message).split()), file=sys.stderr)
    raise SystemExit(2)


@contextlib.contextmanager
def errors() -> Iterator[None]:
    """Turns errors of use (ValueError, OSError) into one line, and Ctrl-C into exit code 130; anything else is a bug
    and keeps its traceback."""
    try:
        yield
    except (ValueError, OSError) as error:
        fail(error)
    except KeyboardInterrupt:
        print(file=sys.stderr)  # the prompt of the shell begins on a line of its own
        raise SystemExit(130) from None


def keep_compiled() -> None:
    """Programs that took long to compile are kept for the next start in the user's cache folder, or in that of
    JAX_COMPILATION_CACHE_DIR."""
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(cache / "ripzero"))


def parse(kind: Any, arguments: Sequence[str], default: Any = tyro.MISSING, description: str | None = None) -> Any:
    """`tyro.cli` with names written as in the code, and errors as one line."""
    known = {} if default is tyro.MISSING else {"default": default}
    if {"-h", "--help"} & set(arguments):
        return tyro.cli(kind, args=arguments, use_underscores=True, description=description, **known)
    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            return tyro.cli(kind, args=arguments, use_underscores=True, description=description, **known)
        except SystemExit as stop:
            refused = stop
    if refused.code == 0:
        raise refused
    # What remains when the frame is taken off, which is of plain characters where a terminal has no others.
    framed = re.compile(r"^[\s│|╭╰+]+[─-]?\s|[\s│|╮╯+]+$|[─-]{3,}")
    lines = (framed.sub("", framed.sub("", line)).strip() for line in said.getvalue().splitlines())
    text = " ".join(line for line in lines if line).split("For full helptext")[0].split("Argument helptext:")[0]
    for heading in ("Value error", "Parsing error", "Unrecognized options "):
        text = text.removeprefix(heading)
    text = re.sub(r"^Error parsing \w+: ", "", text.strip())  # the name of a class tells people nothing
    fail(text or "wrong arguments")
