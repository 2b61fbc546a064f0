"""A game in the terminal: moves by name and a few commands, from a keyboard or through a pipe."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

import envs
from agents.players.human import coloured, demand_playable
from agents.players.players import Mover
from agents.players.spec import NETWORK, PERSON, UCT, PlayerSpec, parse_player
from agents.players.stateful import TreePlayer, make_mover, words
from agents.runtime import advice, cli, keyboard
from agents.serve import options as settings
from agents.serve.options import PlayOptions
from agents.storage import weights
from envs import saved
from envs.game import Game, first_player, seats, titles


class TerminalGame:
    """A series of games at a terminal."""

    def __init__(self, options: PlayOptions, game: Game, console: Console):
        self.options, self.game, self.console = options, game, console
        self.spec = parse_player(settings.opponent(options, game))
        self.name = self.spec.short_name
        if not 0 <= options.seat <= game.num_players:
            raise ValueError(f"--seat: expected 1 to {game.num_players}, or 0 to watch, got {options.seat}")
        self.mover: Mover | None = None
        if self.spec.kind != PERSON:
            limits = options.limits
            self.mover = make_mover(self.spec, game, limits.simulations, limits.seconds, trees=options.trees)
        self.tree_player: TreePlayer | None = None  # made for the first hint or evaluation
        self.thoughts: dict[tuple[int, ...], dict[str, Any]] = {}  # by the moves so far: hint and eval agree
        self.warm: set[str] = set()  # what has searched before, and so is compiled
        self.mask, self.move = saved.compiled(game)
        self.begin(game.init(), [])

    def begin(self, start: Any, names: list[str], resigned: int | None = None) -> None:
        states, actions = saved.replay(self.game, start, names)
        if resigned is not None and not self.mask(states[-1]).any():
            raise ValueError("resigned: the game was over before")
        self.states, self.actions, self.resigned = states, actions, resigned
        self.thoughts.clear()

    @property
    def state(self) -> Any:
        return self.states[-1]

    @property
    def over(self) -> bool:
        return self.resigned is not None or not self.legal.size

    @property
    def legal(self) -> np.ndarray:
        """Codes of the legal moves."""
        return np.flatnonzero(self.mask(self.state))

    def of_a_person(self, state: Any) -> bool:
        return self.mover is None or seat(self.game, int(self.game.player(state))) == self.options.seat

    def play(self, action: int) -> None:
        self.states.append(self.move(self.state, action))
        self.actions.append(action)

    def say(self, text: str | Text = "") -> None:
        """Prints a line; a terminal breaks sentences between words, and boards not at all."""
        self.console.print(text, soft_wrap=isinstance(text, Text) or not self.console.is_terminal)

    def show(self) -> None:
        self.say()
        self.say(coloured(self.game.show(self.state), self.game.view.cased))

    def turn_of_the_opponent(self) -> None:
        assert self.mover is not None
        with self.waiting(self.name, f"{self.name} thinks"):
            action = self.mover(self.states[0], self.actions, self.state)
        self.say(f"{self.name} plays {self.game.action_name(action)}")
        self.play(action)
        self.show()

    def result(self) -> str:
        gone = self.resigned
        rewards = np.asarray(self.game.rewards(self.state) if gone is None else saved.after_resigning(self.game, gone))
        if not rewards.any():
            return "a draw"
        best = sorted(map(int, np.flatnonzero(rewards == rewards.max())), key=lambda i: seat(self.game, i))
        names = seats(self.game)
        winners, win = " and ".join(names[i] for i in best), "wins" if len(best) == 1 else "win"
        count = len(self.actions)
        said = f"{winners} {win} after {count} move{'s' * (count != 1)}"
        return said if gone is None else f"{said}: {names[gone]} resigned"

    def worth(self, said: dict[str, Any]) -> str:
        """The value of a position or a move, as text."""
        return words(said["value"], said["proven"], self.game.num_players)

    @contextlib.contextmanager
    def waiting(self, who: str, words: str) -> Iterator[None]:
        """Shows on a terminal what is going on; the first search of `who` has to be compiled."""
        text = words if who in self.warm else f"{words}; compiling first, once, up to a minute"
        self.warm.add(who)
        with show_waiting(self.console, text):
            yield

    def thought(self) -> dict[str, Any]:
        """Analysis of the position by the opponent's network, else the shipped one, else MCTS with playouts. A
        position is searched once."""
        if not self.legal.size:
            raise ValueError("the game is over")
        moves = tuple(self.actions)
        if moves not in self.thoughts:
            with self.waiting("analysis", "thinking"):
                self.thoughts[moves] = self.think()
        return self.thoughts[moves]

    def think(self) -> dict[str, Any]:
        limits = self.options.limits
        if self.tree_player is None:
            folder = self.spec.path if self.spec.kind == NETWORK else weights.shipped(self.game)
            spec = PlayerSpec(NETWORK, folder) if folder else PlayerSpec(UCT)
            spec = dataclasses.replace(spec, number=limits.simulations)
            self.tree_player = TreePlayer(spec, self.game, seed=1, trees=self.options.trees)
        self.tree_player.place(self.states[0], self.actions, self.state)
        self.tree_player.think(limits.seconds, limits.simulations)
        return self.tree_player.report()


@contextlib.contextmanager
def show_waiting(console: Console, text: str) -> Iterator[None]:
    """A spinner with the text, on a terminal only; what is typed meanwhile is neither shown nor kept."""
    if not console.is_terminal:
        yield
        return
    with keyboard.ignored(), console.status(Text(text)):
        yield


def seat(game: Game, player: int) -> int:
    """A player's place in the order of moves, from 1: in some games player 0 does not begin."""
    return (player - first_player(game)) % game.num_players + 1


Command: TypeAlias = Callable[[TerminalGame, list[str]], None]


def hint(session: TerminalGame, arguments: list[str]) -> None:
    """the best move of the search, and the line it expects"""
    best = session.thought()["moves"][0]
    session.say(f"{best['action']} ({session.worth(best)}), expects {' '.join(best['line'])}")


def show_evaluation(session: TerminalGame, arguments: list[str]) -> None:
    """the value of the position for the player to move, and the best moves"""
    said = session.thought()
    assert session.tree_player is not None
    mover = seats(session.game)[int(session.game.player(session.state))]
    worth = session.worth(said)
    session.say(f"{mover}: {worth} ({session.tree_player.name}, {said['simulations']} simulations)")
    table = Table(box=None, pad_edge=False)
    for name in ("move", "visits", "value", "prior"):
        table.add_column(name, justify="left" if name == "move" else "right", no_wrap=True)
    table.add_column("line")  # the only column that shrinks in a narrow window: it is cut, not wrapped
    for move in said["moves"]:
        value = session.worth(move)
        line = Text(" ".join(move["line"][:10]), no_wrap=True, overflow="ellipsis")
        table.add_row(move["action"], str(move["visits"]), value, f"{100 * move['prior']:.0f}%", line)
    session.console.print(table)


def take_back(session: TerminalGame, arguments: list[str]) -> None:
    """takes back moves to your last one, or a resignation"""
    if session.resigned is not None:
        session.resigned = None
        return session.show()
    mine = [ply for ply, state in enumerate(session.states[:-1]) if session.of_a_person(state)]
    if not mine:
        raise ValueError("there is nothing to take back")
    del session.states[mine[-1] + 1 :], session.actions[mine[-1] :]
    session.show()


def resign(session: TerminalGame, arguments: list[str]) -> None:
    """resigns the game"""
    if session.over:
        raise ValueError("the game is over")
    session.resigned = int(session.game.player(session.state))


def moves(session: TerminalGame, arguments: list[str]) -> None:
    """the moves so far, and all legal ones"""
    names = [session.game.action_name(a) for a in session.actions]
    session.say(f"played: {' '.join(names) or 'none'}")
    legal = [] if session.over else [session.game.action_name(int(a)) for a in session.legal]
    session.say(f"legal: {' '.join(legal) or 'none, the game is over'}")


def board(session: TerminalGame, arguments: list[str]) -> None:
    """shows the position again"""
    session.show()


def rules(session: TerminalGame, arguments: list[str]) -> None:
    """the rules in brief, and the signs of the board"""
    title, text = titles(session.game)
    session.say(f"{title}: {text}" if text else title)
    if signs := session.game.view.legend:
        session.say(f"Signs: {signs}")


def new(session: TerminalGame, arguments: list[str]) -> None:
    """starts another game"""
    session.begin(session.game.init(), [])
    session.show()


def save_game(session: TerminalGame, arguments: list[str]) -> None:
    """FILE: saves the game; for Go, a name that ends in .sgf selects SGF"""
    path = _file(arguments)
    if path.suffix == ".sgf":
        text = _sgf().of_game(session.game, session.states, session.actions, session.resigned)
    else:
        text = saved.to_file(session.game, session.states, session.actions, session.resigned)
    saved.write(path, text)
    session.say(f"saved {len(session.actions)} moves in {path}")


def load_game(session: TerminalGame, arguments: list[str]) -> None:
    """FILE: continues a saved game, or starts from a saved position"""
    path = _file(arguments)
    if path.suffix == ".sgf":
        session.begin(*_sgf().start_from_sgf(session.game, path.read_bytes()))
    else:
        session.begin(*saved.read(session.game, path.read_text(encoding="utf-8")))
    session.show()


def _file(arguments: list[str]) -> Path:
    if len(arguments) != 1:
        raise ValueError("expected the name of one file")
    try:
        path = Path(arguments[0]).expanduser()
    except RuntimeError:  # no such user
        raise ValueError(f"expected a file, got {arguments[0]}") from None
    if not path.name:
        raise ValueError(f"expected a file, got the folder {path}")
    return path


def _sgf() -> Any:
    try:
        from agents.serve import sgf
    except ModuleNotFoundError as missing:
        raise ValueError(f".sgf needs {missing.name}: {advice.extra('play')}") from None
    return sgf


def explain_commands(session: TerminalGame, arguments: list[str]) -> None:
    """this list"""
    named = saved.legal_names(session.game, session.legal)
    session.say("the game is over" if session.over else f"a move by its name, {named}")
    for name, command in COMMANDS.items():
        session.say(f"{name:6}  {command.__doc__}")
    session.say("quit    ends; so does the end of the input")


COMMANDS: dict[str, Command] = {
    "hint": hint,
    "eval": show_evaluation,
    "undo": take_back,
    "resign": resign,
    "moves": moves,
    "board": board,
    "rules": rules,
    "save": save_game,
    "load": load_game,
    "new": new,
    "help": explain_commands,
}


def answer_line(session: TerminalGame, line: str) -> None:
    """Carries out one line of input: a command or a move. Invalid input is explained and changes nothing."""
    try:
        word, *rest = shlex.split(line) or [""]
        if word.lower() in COMMANDS:
            word = word.lower()
            if rest and word not in ("save", "load"):
                raise ValueError(f"{word} takes nothing else")
            COMMANDS[word](session, rest)
        elif word:
            if session.resigned is not None:
                raise ValueError(f"'{word}': the game is over")
            action = saved.action_of(session.game, session.state, line.strip())
            session.play(action)
            session.show()
    except OSError as error:
        session.say(f"{error.filename}: {error.strerror}")
    except ValueError as error:
        session.say(f"{error}; 'help' lists the commands")


def ask(prompt: str) -> str | None:
    """A line from the keyboard or the pipe; None at the end of the input."""
    try:
        if sys.stdin.isatty():
            return input(prompt)
        print(prompt, flush=True)
        line = sys.stdin.readline()
        return line if line else None
    except EOFError:
        print()
        return None


def run(session: TerminalGame) -> None:
    """Plays games until the person leaves; without a person, one game to its end."""
    session.show()
    while True:
        if not session.over and not session.of_a_person(session.state):
            session.turn_of_the_opponent()
            continue
        if session.over:
            session.say(session.result())
            if session.mover is not None and session.options.seat == 0:
                return
        line = ask("new, undo, save FILE or quit> " if session.over else "your move> ")
        if line is None or line.strip().lower() == "quit":
            return
        answer_line(session, line)


def serve(options: PlayOptions) -> None:
    """Plays in this terminal, see `COMMANDS`."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # a pipe may carry bytes that are not text
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  arrow keys, if the system has readline
    console = cli.console()
    game = demand_playable(envs.make(options.env))
    with show_waiting(console, f"compiling {game.name}"):
        session = TerminalGame(dataclasses.replace(options, env=game.name), game, console)
        first = saved.legal_names(game, session.legal)
    rules(session, [])
    session.say(f"A move is its name; {first}")
    whom = "two people" if session.mover is None else f"against {session.name}"
    session.say(f"{game.name}, {whom}; 'help' lists the commands")
    run(session)
