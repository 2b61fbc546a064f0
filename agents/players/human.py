"""People at a terminal as players, and coloured text pictures of positions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from agents.players.players import Mover
from envs import saved
from envs.game import Game, seats

LABELS = re.compile(r"\s*(\d+|[A-Za-z])(\s+(\d+|[A-Za-z]))+\s*")  # possibly a line of column names

STYLES = {
    r"(?<![^\s(])[AX](?![^\s)])|(?<!\S)Q(?!\S)|(?<!\S)[PSKNRBQ]\d+/\S+": "bold cyan",  # first player
    r"(?<![^\s(])[BO](?![^\s)])|(?<!\S)[a-z]\d+/\S+": "bold red",
    r"(?<![^\s(])C(?![^\s)])": "bold blue",
    r"(?<![^\s(])D(?![^\s)])": "bold yellow",
    r"(?<!\S)\*(?!\S)": "green",
    r"(?<!\S)\+\w*": "magenta",
    r"(?<!\S)[#.](?!\S)|^\s*\d+(?=\s)|(?<=\S\s)\s*\d+$": "bright_black",
}


CASED = {  # see `View.cased`
    r"(?<!\S)\+?[A-Z](?!\S)": "bold cyan",
    r"(?<!\S)\+?[a-z](?!\S)": "bold red",
    r"(?<!\S)\.(?!\S)|^(\d+|[a-z])(?=\s)": "bright_black",
}


def demand_playable(game: Game) -> Game:
    """The game itself.

    Raises:
        ValueError: people cannot play it.
    """
    if game.view.for_training:
        raise ValueError(game.view.for_training)
    return game


def coloured(picture: str, cased: bool = False) -> Text:
    """A text picture of a position: pieces in the colours of their players, everything neutral in grey.

    Args:
        picture: see `Game.show`.
        cased: see `View.cased`.
    """
    text = Text()
    for line in picture.split("\n"):
        part = Text(line)
        if _names_columns(line):
            part.stylize("bright_black")
        else:
            for pattern, style in (CASED if cased else STYLES).items():
                part.highlight_regex(pattern, style)
        text.append_text(part).append("\n")
    text.rstrip()
    return text


def _names_columns(line: str) -> bool:
    """Whether a line holds letters or numbers in order, as above and below boards."""
    names = line.split()
    if not LABELS.fullmatch(line):
        return False
    keys = [int(name) if name.isdigit() else ord(name) for name in names if name.isdigit() == names[0].isdigit()]
    return len(keys) == len(names) and keys in (sorted(set(keys)), sorted(set(keys), reverse=True))


def person(game: Game, console: Console) -> Mover:
    """A person at this terminal, prompted for each move.

    The mover raises ValueError at the end of the input.

    Raises:
        ValueError: people cannot play the game.
    """
    demand_playable(game)

    def move(start: Any, actions: Sequence[int], state: Any) -> int:
        names = [game.action_name(action) for action in actions]
        console.print()
        console.print(coloured(game.show(state), game.view.cased), soft_wrap=True)
        console.print(f"played: {' '.join(names) or 'nothing yet'}", soft_wrap=True)
        while True:
            try:
                prompt = f"your move as {seats(game)[int(game.player(state))]}> "
                line = console.input(prompt, markup=False, emoji=False)
            except EOFError:
                raise ValueError("the input ended before the match did") from None
            try:
                return saved.action_of(game, state, line.strip())
            except ValueError as error:
                console.print(str(error), soft_wrap=True)

    return move
