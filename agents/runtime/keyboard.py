"""The keyboard of a terminal while nobody listens to it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def ignored() -> Iterator[None]:
    """What is typed meanwhile is neither shown nor kept; Ctrl-C works. Without a terminal, and on systems without
    termios, nothing changes."""
    try:
        import termios
    except ImportError:
        yield
        return
    if not sys.stdin.isatty():
        yield
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    silent = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    termios.tcsetattr(keyboard, termios.TCSANOW, silent)
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSAFLUSH, before)  # drops what was typed
