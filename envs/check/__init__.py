"""Checks one game against the rules that every game must satisfy: python -m envs.check GAME

GAME is a registry name with options, or a file of your own; see `envs.make`. Positions come from random games, played
in one compiled scan. The project's tests run the same rules over the whole registry.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

import envs
from envs.check import form, play, views
from envs.check.bench import Bench
from envs.check.rule import FORM, RULES, Rule
from envs.game import Game

MODULES = form, play, views  # their import fills `RULES`, in this order


def broken(name: str, holds: Rule, bench: Bench) -> str | None:
    """The violation of a rule in one line, or None if the rule holds."""
    return judged(name, holds, bench)[0]


def judged(name: str, holds: Rule, bench: Bench) -> tuple[str | None, str | None]:
    """The violation of a rule in one line, if there is one, and why it could not be checked, if so."""
    try:
        return None, holds(bench)
    except Exception as error:  # any exception is a violation, and its message is the answer
        said = envs.in_words(error)
        frames = traceback.extract_tb(error.__traceback__)
        kind = "" if isinstance(error, AssertionError) and said else f" ({type(error).__name__})"
        return f"{name}: {said or frames[-1].line}{kind}{_place(bench.game, error)}", None


def _place(game: Game, error: Exception) -> str:
    """The innermost line of the game's own file on the way to an error, as words."""
    file = Path(game.name.partition(".py")[0] + ".py")
    line = envs.line_of(file, error)
    return f", in line {line} of {file}" if line else ""


def demand_form(game: Game) -> None:
    """Raises a ValueError that names the first rule of `FORM` that the game breaks. A game from a file must also end
    with rewards that make sense, which random games show: otherwise a run would learn nothing."""
    bench = Bench(game)
    played = (
        play.mask_is_empty_exactly_when_the_game_is_over,
        play.every_game_ends_within_the_longest,
        play.rewards_are_zero_until_the_end_and_sum_to_zero,
    )
    more = {name: holds for name, holds in RULES.items() if holds in played and ".py" in game.name}
    for name, holds in (FORM | more).items():
        wrong = broken(name, holds, bench)
        if wrong:
            raise ValueError(f"{game.name} breaks the rule {wrong}")


def report(game: Game) -> bool:
    """Prints whether each rule holds; returns True if none is broken."""
    bench, wrongs, reasons = Bench(game), 0, []
    for number, (name, holds) in enumerate((FORM | RULES).items(), 1):
        if sys.stderr.isatty():  # a rule that hangs has a name
            print(f"...     {name}", end="\r", file=sys.stderr, flush=True)
        wrong, reason = judged(name, holds, bench)
        wrongs += wrong is not None
        reasons += [reason] if reason else []
        said = f"BROKEN  {wrong}" if wrong else f"skipped {name}: {reason}" if reason else f"holds   {name}"
        print(said, flush=True)
        if number == len(FORM) and wrongs:
            print(f"{game.name}: {len(RULES) - number} more rules are checked once these hold")
            return False
    if not wrongs:
        print(play.a_random_game(bench))
    skipped = f", {len(reasons)} skipped" if reasons else ""
    print(f"{game.name}: {len(RULES) - wrongs - len(reasons)} of {len(RULES)} rules hold{skipped}")
    return not wrongs
