"""A network of a run as one small file in half precision: python -m agents.export runs/NAME models/GAME"""

from __future__ import annotations

import sys
from pathlib import Path

from agents import cli, models


def main() -> None:
    with cli.errors():
        if len(sys.argv) != 3:
            raise ValueError("want two arguments: the folder of a run and the one of the model, such as models/foq")
        written = models.save(Path(sys.argv[1]), Path(sys.argv[2]))
        print(f"{written}: {written.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
