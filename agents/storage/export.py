"""Exports a network of a run: python -m agents.storage.export runs/NAME models/GAME

A folder gets one small half-precision file. A file NAME.stablehlo or NAME.onnx gets the network as a function for
programs that do not know ripzero, see exchange.py.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Annotated, Literal

import tyro

import envs
from agents import config
from agents.config import Range
from agents.runtime import cli
from agents.storage import exchange
from agents.storage import weights as models
from envs import saved

FORMATS = {".stablehlo": exchange.stablehlo, ".onnx": exchange.onnx}


@dataclasses.dataclass(frozen=True)
class Export(config.Options):
    """Writes a network of a run as one small half-precision file, or as StableHLO or ONNX."""

    source: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """Folder of a run, or one of its networks/ITERATION."""
    folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="TARGET")]
    """Folder of the model, such as models/foq, or a file NAME.stablehlo or NAME.onnx."""
    play_value_scale: Annotated[float | None, Range(above=0)] = None
    """Weight of the network's values in play, as for train.py; by default as in the run. Unreliable values deserve
    less: use the scale that best preserves the value of solved positions."""
    play_considered_actions: Annotated[int | None, Range(least=1, most=2**16)] = None
    """The most root actions that play considers, as for train.py; by default as in the run. Measure it:
    benchmarks/considered.py."""
    env: str | None = None
    """Game of your own that the network is for; others need no name."""
    leaf_symmetry: Literal["none", "random", "average"] | None = None
    """How the search evaluates leaves in play, as for train.py; by default as in the run. The average over all
    symmetries of the game is more accurate, but costs one evaluation per symmetry."""


def main() -> None:
    with cli.errors():
        command = cli.parse_command(Export, sys.argv[1:])
        if command.env is not None:
            envs.make(command.env)
        named = ("play_value_scale", "play_considered_actions", "leaf_symmetry")
        options = {name: getattr(command, name) for name in named if getattr(command, name) is not None}
        suffix = command.folder.suffix
        if suffix in FORMATS:
            given = ", ".join(f"--{name}" for name in options)
            config.demand(not options, f"expected no options with a {suffix} file, got {given}")
            saved.write(command.folder, FORMATS[suffix](models.load_network(command.source)))
            print(f"{command.folder}: {command.folder.stat().st_size / 1024:.0f} KiB")
            return
        written = models.export_network(command.source, command.folder, **options)
        print(f"{written}: {written.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
