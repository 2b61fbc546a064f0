"""A network of a run as one small file in half precision: python -m agents.storage.export runs/NAME models/GAME"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Literal

import tyro

from agents.runtime import cli
from agents.storage import weights as models


@dataclasses.dataclass(frozen=True)
class Export:
    """Writes a network of a run as one small file in half precision."""

    source: tyro.conf.Positional[Path]
    """Folder of a run, or one of its networks/ITERATION."""
    folder: tyro.conf.Positional[Path]
    """Folder of the model, such as models/foq."""
    play_value_scale: float | None = None
    """How much its values weigh in play, as for train.py; by default as in the run. Values that are often wrong deserve
    less: take what keeps the value of solved positions best."""
    leaf_symmetry: Literal["none", "random", "average"] | None = None
    """How its search looks at leaves in play, as for train.py; by default as in the run. The average over all
    symmetries of the game is better informed, for so many times the work."""


def main() -> None:
    with cli.errors():
        command = cli.parse(Export, sys.argv[1:])
        told = {"play_value_scale": command.play_value_scale, "leaf_symmetry": command.leaf_symmetry}
        options = {name: value for name, value in told.items() if value is not None}
        written = models.save(command.source, command.folder, **options)
        print(f"{written}: {written.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
