"""Limits of the Linux control groups that this process is in, as containers set them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/")


def memory(root: Path = ROOT) -> Iterator[int]:
    """Limits in bytes; version 1 writes a huge number for none."""
    for folder, version_2 in _groups("memory", root):
        (limit,) = _words(folder / ("memory.max" if version_2 else "memory.limit_in_bytes")) or [""]
        if limit.isdecimal():
            yield int(limit)


def cpus(root: Path = ROOT) -> Iterator[float]:
    """Limits in CPUs, which need not be whole: `docker run --cpus=1.5`."""
    for folder, version_2 in _groups("cpu", root):
        if version_2:
            words = _words(folder / "cpu.max")
        else:
            words = _words(folder / "cpu.cfs_quota_us") + _words(folder / "cpu.cfs_period_us")
        if len(words) == 2 and all(word.isdecimal() and int(word) > 0 for word in words):  # else "max" or -1
            yield int(words[0]) / int(words[1])


def _groups(controller: str, root: Path) -> Iterator[tuple[Path, bool]]:
    """Folders of the groups that limit this process, innermost first, and whether they are of version 2. A group's
    limit holds for all below it. In a container the path may be the host's; only the top is visible."""
    groups = root / "proc/self/cgroup"
    for line in groups.read_text().splitlines() if groups.exists() else []:
        _, controllers, path = line.split(":", 2)
        version_2 = not controllers
        if not version_2 and controller not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / ("" if version_2 else controller)
        inside = top / path.lstrip("/")
        yield from ((folder, version_2) for folder in (inside, *inside.parents) if folder.is_relative_to(top))


def _words(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []
