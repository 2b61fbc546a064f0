"""Command lines: parses options with tyro and reports errors as one line and exit code 2."""

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
    """Prints the error in one line and exits with code 2."""
    print("error:", " ".join(str(message).split()), file=sys.stderr)
    raise SystemExit(2)


@contextlib.contextmanager
def errors() -> Iterator[None]:
    """Reports user errors (ValueError, OSError) in one line and turns Ctrl-C into exit code 130. Any other exception is
    a bug and keeps its traceback."""
    try:
        yield
    except (ValueError, OSError) as error:
        fail(error)
    except KeyboardInterrupt:
        print(file=sys.stderr)  # the shell prompt starts on a new line
        raise SystemExit(130) from None


def keep_compiled() -> None:
    """Caches programs that compile slowly, in the user's cache folder or JAX_COMPILATION_CACHE_DIR."""
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(cache / "ripzero"))


def parse(kind: Any, arguments: Sequence[str], default: Any = tyro.MISSING, description: str | None = None) -> Any:
    """`tyro.cli` with option names as in the code and one-line errors."""
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
    # Strips tyro's frame, which is plain ASCII on terminals without box characters.
    framed = re.compile(r"^[\s│|╭╰+]+[─-]?\s|[\s│|╮╯+]+$|[─-]{3,}")
    lines = (framed.sub("", framed.sub("", line)).strip() for line in said.getvalue().splitlines())
    text = " ".join(line for line in lines if line).split("For full helptext")[0].split("Argument helptext:")[0]
    for heading in ("Value error", "Parsing error", "Unrecognized options "):
        text = text.removeprefix(heading)
    text = re.sub(r"^Error parsing \w+: ", "", text.strip())  # a class name means nothing to users
    fail(text or "wrong arguments")
