"""The folder of a run: created or found, and locked for one run at a time."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from agents.config import RunOptions
from agents.run import game_log
from agents.run.metrics import METRICS, TENSORBOARD
from agents.runtime import processes
from agents.storage import checkpoint


@contextlib.contextmanager
def open_folder(config: RunOptions, resume: Path | None) -> Iterator[Path]:
    """The run's folder, created or found, and locked while the run lasts. All processes share it. A saved run is never
    overwritten; files of an unsaved run, or of somebody else, are set aside.

    Raises:
        ValueError: it holds a run, its name contains @, another process trains there, or it is not shared.
    """
    name = f"{Path(config.env.split(':')[0]).stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder = resume.parent.parent if resume else Path(processes.broadcast_str(config.out or f"runs/{name}"))
    if resume is None and "@" in folder.name:
        raise ValueError(
            f"--out: expected a name without @, which separates a network from its strength, got {folder.name}"
        )
    trouble = ""
    with contextlib.ExitStack() as claim:
        if processes.is_main_process():
            if folder.exists() and not folder.is_dir():
                raise ValueError(f"--out: expected a folder, got the file {folder}")
            folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(folder, os.O_RDONLY)
            claim.callback(os.close, lock)
            if not lock_folder(lock):
                trouble = f"another process trains in {folder}"
            elif resume is None and any(checkpoint.numbered(folder / kind) for kind in ("networks", "resume")):
                trouble = f"{folder} holds a run already: continue it with --resume={folder}, or choose another --out"
            elif trouble := cannot_rename(folder):
                with contextlib.suppress(OSError):  # it holds files
                    folder.rmdir()
        if trouble := processes.broadcast_str(trouble):
            raise ValueError(trouble)
        if resume is None and processes.is_main_process():
            set_aside(folder)
            (folder / METRICS).touch()
        processes.broadcast_str("it is there")
        if resume is None and not (folder / METRICS).exists():
            raise ValueError(f"{folder} of the first process is not seen here: --out must be a folder all hosts share")
        yield folder


PROBED = 64  # files in a renamed folder, about as many as in a checkpoint


def cannot_rename(folder: Path) -> str:
    """Why checkpoints cannot be published in a folder, tried before hours of training; empty if they can. Buckets
    mounted as folders may refuse to rename folders, or only those with many files."""
    probe, renamed = folder / f"probe{checkpoint.WRITING}", folder / f"probe{checkpoint.OLD}"
    try:
        (probe / "inside").mkdir(parents=True, exist_ok=True)
        for number in range(PROBED):
            (probe / "inside" / str(number)).touch()
        try:
            probe.rename(renamed)
        except OSError as error:
            help = "a bucket mounted with gcsfuse needs --rename-dir-limit=100000"
            return f"{folder}: a folder cannot be renamed there, as every save does ({error.strerror}); {help}"
    finally:
        for path in (probe, renamed):
            shutil.rmtree(path, ignore_errors=True)
    return ""


def lock_folder(folder: int) -> bool:
    """Locks an open folder for this process. False if another process holds it; True also where locks do not work."""
    try:
        import fcntl

        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # Windows, some network file systems
        pass
    return True


UNSAVED = (METRICS, game_log.GAMES_FILE, TENSORBOARD)  # files of a run before its first save


def set_aside(folder: Path) -> None:
    """Renames existing files that have the names of a run's own, so that nobody's data are lost."""
    for name in UNSAVED:
        if (folder / name).exists():
            asides = (folder / f"{name}.old{number or ''}" for number in itertools.count())
            aside = next(path for path in asides if not path.exists())
            (folder / name).rename(aside)
            print(f"warning: {folder / name} was there before this run; it was renamed to {aside}", file=sys.stderr)


def discard(folder: Path) -> None:
    """Removes the files of a run that cannot begin."""
    if not processes.is_main_process():
        return
    for name in (METRICS, game_log.GAMES_FILE):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / TENSORBOARD, ignore_errors=True)
    with contextlib.suppress(OSError):  # it holds other files
        folder.rmdir()
