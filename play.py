"""Play a game: python play.py --env=foq

The interface is a page (--ui=web), the terminal (--ui=text) or GTP 2 for another program (--ui=gtp). --help shows the
options in short, --help-all in full.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from agents.runtime import advice, cli, mesh
from agents.serve.options import PlayOptions


def interface(name: str) -> Any:
    """The module of an interface. The others are not imported: they may need packages that are not installed."""
    if name == "web":
        from agents.serve.web import server

        return server
    if name == "gtp":
        from agents.serve.gtp import protocol

        return protocol
    from agents.serve import terminal

    return terminal


def write_pages(options: PlayOptions) -> None:
    from agents.serve.standalone.export import export

    for path in export(options):
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB, opens in any browser")


def main(arguments: Sequence[str] | None = None) -> None:
    with cli.errors():
        options = cli.parse_command(PlayOptions, sys.argv[1:] if arguments is None else arguments, description=__doc__)
        cli.collect_rarely()
        cli.keep_compiled()
        if options.export:
            return write_pages(options)
        if options.env == "all" or " " in options.env:
            cli.fail(f"--env: expected one game, several only with --export, got {options.env}")
        if options.trees > 1:
            mesh.claim_cores()
        try:
            ui = interface(options.ui)
        except ModuleNotFoundError as missing:
            if missing.name and missing.name.partition(".")[0] in ("agents", "envs"):
                raise
            cli.fail(f"--ui={options.ui} needs {missing.name}: {advice.extra('play')}")
        ui.serve(options)


if __name__ == "__main__":
    main()
