from __future__ import annotations

import os
import sys

import envs
from envs import check


def main() -> None:
    if not __debug__:
        print("error: python -O leaves the checks out; run it without", file=sys.stderr)
        raise SystemExit(2)
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(check.__doc__)
        return
    if len(sys.argv) != 2:
        print("error: expected one argument, a game: python -m envs.check foq", file=sys.stderr)
        raise SystemExit(2)
    try:
        game = envs.make(sys.argv[1])
    except (ValueError, OSError) as error:
        print("error:", error, file=sys.stderr)
        raise SystemExit(2) from None
    try:
        holds = check.report(game)
    except KeyboardInterrupt:
        os._exit(130)  # a function of the game may never return
    if not holds:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
