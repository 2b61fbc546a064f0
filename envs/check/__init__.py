"""Checks one game against the rules that every game must satisfy: python -m envs.check GAME

GAME is a registry name with options, or a file of your own; see `envs.make`. Positions come from random games, played
in one compiled scan. The project's tests run the same rules over the whole registry.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from envs.check import form, play, views
from envs.check.bench import Bench
from envs.check.rule import FORM, RULES, Rule
from envs.game import Game

MODULES = form, play, views  # their import fills `RULES`, in this order


def broken(name: str, holds: Rule, bench: Bench) -> str | None:
    """The violation of a rule in one line, or None if the rule holds."""
    try:
        holds(bench)
    except Exception as error:  # any exception is a violation, and its message is the answer
        said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        frames = traceback.extract_tb(error.__traceback__)
        kind = "" if isinstance(error, AssertionError) and said else f" ({type(error).__name__})"
        return f"{name}: {said or frames[-1].line}{kind}{_place(bench.game, frames)}"
    return None


def _place(game: Game, frames: traceback.StackSummary) -> str:
    """The innermost line of the game's own file on the way to an error, as words."""
    file = game.name.partition(".py")[0] + ".py"
    inside = [frame for frame in frames if Path(frame.filename).resolve() == Path(file).resolve()]
    return f", in line {inside[-1].lineno} of {file}" if inside else ""


def demand_form(game: Game) -> None:
    """Raises a ValueError that names the first rule of `FORM` that the game breaks. A game from a file must also end
    with rewards that make sense, which random games show: otherwise a run would learn nothing."""
    bench = Bench(game)
    played = (play.every_game_ends_within_the_longest, play.rewards_are_zero_until_the_end_and_sum_to_zero)
    more = {name: holds for name, holds in RULES.items() if holds in played and ".py" in game.name}
    for name, holds in (FORM | more).items():
        wrong = broken(name, holds, bench)
        if wrong:
            raise ValueError(f"{game.name} breaks the rule {wrong}")


def report(game: Game) -> bool:
    """Prints whether each rule holds; returns True if all do."""
    bench, wrongs = Bench(game), 0
    for number, (name, holds) in enumerate((FORM | RULES).items(), 1):
        if sys.stderr.isatty():  # a rule that hangs has a name
            print(f"...     {name}", end="\r", file=sys.stderr, flush=True)
        wrong = broken(name, holds, bench)
        wrongs += wrong is not None
        print(f"BROKEN  {wrong}" if wrong else f"holds   {name}", flush=True)
        if number == len(FORM) and wrongs:
            print(f"{game.name}: {len(RULES) - number} more rules are checked once these hold")
            return False
    if not wrongs:
        print(play.a_random_game(bench))
    print(f"{game.name}: {len(RULES) - wrongs} of {len(RULES)} rules hold")
    return not wrongs
