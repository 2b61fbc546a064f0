"""JSON-lines files that grow with a run and that neither a crash nor a full disk can tear."""

from __future__ import annotations

import bisect
import errno
import json
import math
import os
from collections.abc import Iterator
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Any


class Lines:
    """A file of JSON lines that a full disk cannot tear: lines that do not fit wait until there is room."""

    def __init__(self, path: Path, iteration: int):
        """Continues after `iteration`. Later lines, and half a line left by a crash, are dropped at the first write."""
        self.path, self.iteration = path, iteration
        self.file: FileIO | None = None
        self.written, self.waiting = 0, b""

    def add(self, *lines: str) -> None:
        """Writes lines; raises OSError if some have to wait."""
        self.waiting += b"".join(line.encode() + b"\n" for line in lines)
        file = self.file = self.file or self._open()
        count = 0
        try:
            count = file.write(self.waiting) or 0
        finally:
            whole = self.waiting[:count].rfind(b"\n") + 1
            self.written, self.waiting = self.written + whole, self.waiting[whole:]
            if count > whole:
                os.ftruncate(file.fileno(), self.written)
        if self.waiting:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _open(self) -> FileIO:
        """Iterations never decrease from line to line, so a binary search finds the cut even in a large file."""
        if self.path.exists():
            with self.path.open("rb") as lines:
                size = self.path.stat().st_size
                kept = bisect.bisect_right(range(size), self.iteration, key=lambda at: _iteration_at(lines, at))
            if kept < size:
                os.truncate(self.path, kept)
        file = self.path.open("ab", buffering=0)
        self.written = self.path.stat().st_size
        return file

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file, without a last line that a crash cut off.

    Raises:
        ValueError: a line is something else; the message names file and line.
    """
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.endswith(b"\n"):
                try:
                    found = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise damaged(path, number, error) from None
                if not isinstance(found, dict):
                    raise damaged(path, number, "expected an object")
                yield found


def damaged(path: Path, line: int, why: object) -> ValueError:
    """An error for the user that names a file and the number of a line."""
    return ValueError(f"{path}, line {line} is damaged: {why}")


BLOCK = 4096  # bytes per read when looking for the beginning of a line


def _iteration_at(file: BufferedReader, at: int) -> float:
    """The iteration of the line that contains the byte `at`. A complete line without an iteration counts as the next
    one, so that damage in the middle is not taken for the end."""
    begin = at
    while begin > 0:
        upto, begin = begin, max(begin - BLOCK, 0)
        file.seek(begin)
        if (end := file.read(upto - begin).rfind(b"\n")) >= 0:
            begin += end + 1
            break
    file.seek(begin)
    iteration = math.inf
    while iteration == math.inf and (line := file.readline()).endswith(b"\n"):
        iteration = _iteration_of(line)
    return iteration


def _iteration_of(line: bytes) -> float:
    """The iteration of a line; infinity for an incomplete line or one without an iteration."""
    try:
        return json.loads(line)["iteration"] if line.endswith(b"\n") else math.inf
    except (ValueError, KeyError, TypeError):
        return math.inf
