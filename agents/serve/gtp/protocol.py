"""A Go engine for other programs: GTP version 2 on standard input and output.

It follows http://www.lysator.liu.se/~gunnar/gtp/gtp2-spec-draft2, with the analysis commands of Leela Zero.
"""

from __future__ import annotations

import copy
import queue
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np

import envs
from agents.serve import sgf
from agents.serve.gtp.engine import Clock, Engine
from agents.serve.options import Options
from envs import go, saved

COLOURS = {"b": 0, "black": 0, "w": 1, "white": 1}
EVERY = 100  # default centiseconds between two reports of an analysis
SHOWN = 30  # default maximum of moves in a report
WHOLE = re.compile(r"[0-9]{1,9}")


class Refusal(Exception):
    """A command that cannot be carried out; the message is the answer, in the words of the protocol."""


SYNTAX = Refusal("syntax error")


# Arguments


def _colour(word: str) -> int:
    if word.lower() not in COLOURS:
        raise SYNTAX
    return COLOURS[word.lower()]


def _whole(word: str) -> int:
    if not WHOLE.fullmatch(word):
        raise SYNTAX
    return int(word)


def _seconds(word: str) -> float:
    """Whole seconds in the protocol; some programs send fractions."""
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", word):
        raise SYNTAX
    return float(word)


def _vertex(engine: Engine, word: str) -> int:
    try:
        return go.parse_point(word, engine.size)
    except ValueError:
        raise Refusal("invalid coordinate") from None


def _path(words: list[str]) -> Path:
    """A path of one or more words, quoted or not: the protocol defines neither, and programs send both."""
    text = " ".join(words)
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    if not text:
        raise SYNTAX
    return Path(text)


def _wants(arguments: list[str], least: int, most: int | None = None) -> None:
    if not least <= len(arguments) <= (least if most is None else most):
        raise SYNTAX


# Commands: (engine, arguments) -> the answer


def protocol_version(engine: Engine, arguments: list[str]) -> str:
    return "2"


def name(engine: Engine, arguments: list[str]) -> str:
    return "ripzero"


def version(engine: Engine, arguments: list[str]) -> str:
    return engine.player_name


def known_command(engine: Engine, arguments: list[str]) -> str:
    _wants(arguments, 1)
    return "true" if arguments[0] in (*COMMANDS, *ANALYSES) else "false"


def list_commands(engine: Engine, arguments: list[str]) -> str:
    return "\n".join(sorted((*COMMANDS, *ANALYSES)))


def stop(engine: Engine, arguments: list[str]) -> str:
    return ""


def boardsize(engine: Engine, arguments: list[str]) -> str:
    _wants(arguments, 1)
    size = _whole(arguments[0])
    if size == engine.size:
        engine.clear()
        return ""
    try:
        engine.take_game(engine.other_game(size, engine.komi))
    except ValueError:
        raise Refusal("unacceptable size") from None
    return ""


def clear_board(engine: Engine, arguments: list[str]) -> str:
    engine.clear()
    return ""


def komi(engine: Engine, arguments: list[str]) -> str:
    _wants(arguments, 1)
    if not re.fullmatch(r"[-+]?[0-9]{1,4}(\.[0-9]{1,6})?", arguments[0]):
        raise SYNTAX
    engine.take_komi(float(arguments[0]))
    return ""


def play(engine: Engine, arguments: list[str]) -> str:
    _wants(arguments, 2)
    engine.play(_colour(arguments[0]), _vertex(engine, arguments[1]))
    return ""


def genmove(engine: Engine, arguments: list[str]) -> str:
    _wants(arguments, 1)
    player = _colour(arguments[0])
    return _made(engine, player, *engine.choose(player))


def _made(engine: Engine, player: int, action: int, value: float | None) -> str:
    """Plays a move, or resigns."""
    if engine.hopeless(player, value):
        return "resign"
    engine.play(player, action, value)
    return go.point_name(action, engine.size)


def reg_genmove(engine: Engine, arguments: list[str]) -> str:
    """Never resigns: the command is about a position, not about a game."""
    _wants(arguments, 1)
    return go.point_name(engine.choose(_colour(arguments[0]))[0], engine.size)


def undo(engine: Engine, arguments: list[str]) -> str:
    if len(engine.steps) < 2:
        raise Refusal("cannot undo")
    del engine.steps[-1]
    return ""


def showboard(engine: Engine, arguments: list[str]) -> str:
    return "\n" + engine.game.show(engine.now.state)


def time_settings(engine: Engine, arguments: list[str]) -> str:
    _wants(arguments, 3)
    clock = Clock(_seconds(arguments[0]), _seconds(arguments[1]), _whole(arguments[2]))
    engine.clock, engine.left = clock, [clock.full] * 2
    return ""


def time_left(engine: Engine, arguments: list[str]) -> str:
    _wants(arguments, 3)
    player, seconds, stones = _colour(arguments[0]), _seconds(arguments[1]), _whole(arguments[2])
    if engine.clock is None:
        engine.clock, engine.left = Clock(seconds, 0, 0), [(seconds, stones)] * 2
    engine.left[player] = seconds, stones
    return ""


def final_score(engine: Engine, arguments: list[str]) -> str:
    """All stones on the board count as alive: dead stones must be captured first."""
    return sgf.score(engine.now.state, engine.komi)


def final_status_list(engine: Engine, arguments: list[str]) -> str:
    _wants(arguments, 1)
    if arguments[0] not in ("alive", "dead", "seki"):
        raise SYNTAX
    stones = [go.point_name(p, engine.size) for p, cell in enumerate(engine.board()) if cell]
    return " ".join(stones) if arguments[0] == "alive" else ""


def loadsgf(engine: Engine, arguments: list[str]) -> str:
    """Loads the position before the given move, by default the last position."""
    path, most = _path(arguments), None
    if len(arguments) > 1 and WHOLE.fullmatch(arguments[-1]) and not path.is_file():
        path, most = _path(arguments[:-1]), int(arguments[-1])
    if not path.is_file():
        raise Refusal("cannot load file")
    with path.open("rb") as file:
        kifu = sgf.read(file.read(sgf.LARGEST_FILE + 1))
    trial = copy.copy(engine)
    komi = engine.komi if kifu.komi is None else kifu.komi
    if (kifu.size, komi) != (engine.size, engine.komi):
        trial.take_game(engine.other_game(kifu.size, komi))
    trial.set_up(sgf.set_up(trial.game, kifu.stones, kifu.first))
    for player, action in kifu.moves if most is None else kifu.moves[: max(most - 1, 0)]:
        trial.play(player, action)
    vars(engine).update(vars(trial))  # all or nothing
    return ""


def printsgf(engine: Engine, arguments: list[str]) -> str:
    result = final_score(engine, []) if engine.over else None
    text = sgf.write(engine.game, engine.steps[0].state, engine.moves(), result)
    if not arguments:
        return text.strip()
    saved.write(_path(arguments), text)
    return ""


def fixed_handicap(engine: Engine, arguments: list[str]) -> str:
    """Stones on the marked points in the order of the protocol's table."""
    _wants(arguments, 1)
    points = _fixed_points(engine.size, _whole(arguments[0]))
    _put(engine, points)
    return " ".join(go.point_name(p, engine.size) for p in points)


def place_free_handicap(engine: Engine, arguments: list[str]) -> str:
    """Stones on the marked points; the protocol lets the engine place fewer than requested."""
    _wants(arguments, 1)
    stones, size = _whole(arguments[0]), engine.size
    if not 2 <= stones < size**2:
        raise Refusal("invalid number of stones")
    points = _marked(size, min(stones, 4 if size % 2 == 0 or size <= 7 else 9))
    _put(engine, points)
    return " ".join(go.point_name(p, size) for p in points)


def set_free_handicap(engine: Engine, arguments: list[str]) -> str:
    points = [_vertex(engine, word) for word in arguments]
    if len(points) < 2 or len(set(points)) < len(points) or engine.size**2 in points:
        raise Refusal("bad vertex list")
    _put(engine, points)
    return ""


def _put(engine: Engine, points: list[int]) -> None:
    if any(engine.board()):
        raise Refusal("board not empty")
    try:
        engine.set_up(sgf.set_up(engine.game, (frozenset(points), frozenset()), 1))
    except ValueError:
        raise Refusal("bad vertex list") from None


def _fixed_points(size: int, stones: int) -> list[int]:
    """Section 4.1.1 of the protocol: corners, then sides, then the centre."""
    most = 0 if size < 7 else 4 if size % 2 == 0 or size == 7 else 9
    if not 2 <= stones <= most:
        raise Refusal("invalid number of stones")
    return _marked(size, stones)


def _marked(size: int, stones: int) -> list[int]:
    """The first marked points, in the same order; a board without marks uses corners one line further out."""
    near, middle = (3 if size > 12 else 2 if size > 6 else 1), size // 2
    far = size - 1 - near
    # (row from the top, column): lower left, upper right, upper left, lower right, left, right, lower, upper
    order = [(far, near), (near, far), (near, near), (far, far)]
    order += [(middle, near), (middle, far), (far, middle), (near, middle)]
    chosen = [*order[: stones - 1], (middle, middle)] if stones in (5, 7, 9) else order[:stones]
    return [row * size + col for row, col in chosen]


COMMANDS: dict[str, Callable[[Engine, list[str]], str]] = {
    "protocol_version": protocol_version,
    "name": name,
    "version": version,
    "known_command": known_command,
    "list_commands": list_commands,
    "quit": stop,
    "boardsize": boardsize,
    "clear_board": clear_board,
    "komi": komi,
    "play": play,
    "genmove": genmove,
    "reg_genmove": reg_genmove,
    "undo": undo,
    "showboard": showboard,
    "time_settings": time_settings,
    "time_left": time_left,
    "final_score": final_score,
    "final_status_list": final_status_list,
    "loadsgf": loadsgf,
    "printsgf": printsgf,
    "fixed_handicap": fixed_handicap,
    "place_free_handicap": place_free_handicap,
    "set_free_handicap": set_free_handicap,
}


# Analysis: reports until the next line of the controller


class Wish(NamedTuple):
    """Options of an analysis."""

    player: int
    interval: float  # seconds between two reports
    least: int  # minimum of moves in a report, even without visits
    most: int  # maximum of moves in a report
    among: frozenset[int] | None  # root moves to search; None for all


def _wish(engine: Engine, arguments: list[str]) -> Wish:
    """`[colour] [CENTISECONDS]`, then options; the protocol of Leela Zero with KataGo's `maxmoves`."""
    rest = list(arguments)
    player = _colour(rest.pop(0)) if rest and rest[0].lower() in COLOURS else engine.to_move
    numbers = {"interval": EVERY, "minmoves": 0, "maxmoves": SHOWN}
    if rest and WHOLE.fullmatch(rest[0]):
        numbers["interval"] = int(rest.pop(0))
    step = engine.turn_to(player)
    legal = frozenset(np.flatnonzero(engine.mask(step.state)).tolist())
    among = legal
    while rest:
        option, *words = rest
        if option in numbers:
            _wants(words[:1], 1)
            numbers[option], rest = _whole(words[0]), words[1:]
        elif option in ("avoid", "allow"):
            _wants(words[:3], 3)
            if (_colour(words[0]), _whole(words[2])) != (player, 1):
                raise Refusal(
                    f"{option} is known for the next move alone: expected the colour to move and a depth of 1"
                )
            named = {_vertex(engine, word) for word in words[1].split(",")}
            among, rest = among - named if option == "avoid" else among & named, words[3:]
        else:
            raise Refusal(f"unknown option '{option}'; known are {', '.join(numbers)}, avoid and allow")
    if not among:
        raise Refusal("no legal move is left to look at")
    least, most = numbers["minmoves"], max(1, numbers["minmoves"], numbers["maxmoves"])
    return Wish(player, max(1, numbers["interval"]) / 100, least, most, None if among == legal else among)


def info(engine: Engine, wish: Wish) -> str:
    """The moves with visits, in the format of Leela Zero: values in units of 1/10000, from the mover's view."""
    words = []
    for order, move in enumerate(engine.tree_player.report(wish.most)["moves"]):
        if move["visits"] or order < wish.least:
            winrate, prior = round(5000 * (move["value"] + 1)), round(10000 * move["prior"])
            words.append(
                f"info move {move['action']} visits {move['visits']} winrate {winrate} prior {prior} "
                f"order {order} pv {' '.join(move['line'])}"
            )
    return " ".join(words)


def lz_analyze(engine: Engine, arguments: list[str], interrupted: Callable[[], bool]) -> Iterator[str]:
    """Reports until the next command."""
    wish = _wish(engine, arguments)
    while not engine.over:
        began = time.monotonic()
        engine.think(wish.player, seconds=wish.interval, among=wish.among)
        yield info(engine, wish)
        while not interrupted() and time.monotonic() - began < wish.interval:
            time.sleep(0.01)  # the tree is full, or one more step would have taken too long
        if interrupted():
            return


def lz_genmove_analyze(engine: Engine, arguments: list[str], interrupted: Callable[[], bool]) -> Iterator[str]:
    """Reports during the search for a move, then plays it."""
    wish = _wish(engine, arguments)
    player = wish.player
    action, value = engine.size**2, None
    if not engine.over:
        began, (seconds, simulations) = time.monotonic(), engine.budget(player)
        passed, made = 0.0, 1
        while made and passed < seconds and (simulations is None or simulations > 0):
            made = engine.think(player, min(wish.interval, seconds - passed), simulations, wish.among)
            simulations = None if simulations is None else simulations - made // engine.options.trees
            passed = time.monotonic() - began
            yield info(engine, wish)
        engine.spend(player, passed)
        action, value = engine.tree_player.best()
    yield f"play {_made(engine, player, action, value)}"


Analysis = Callable[[Engine, list[str], Callable[[], bool]], Iterator[str]]
ANALYSES: dict[str, Analysis] = {"lz-analyze": lz_analyze, "lz-genmove_analyze": lz_genmove_analyze}


# The protocol


def parse(line: str) -> tuple[str, list[str]] | None:
    """Id and words of a line; None if the line needs no answer."""
    line = "".join(c for c in line.replace("\t", " ") if ord(c) >= 32 and ord(c) != 127)
    words = line.partition("#")[0].split()
    if not words:
        return None
    if re.fullmatch(r"[0-9]+", words[0]):
        return words[0], words[1:]
    return "", words


def respond(engine: Engine, line: str, out: TextIO, interrupted: Callable[[], bool] = lambda: True) -> bool:
    """Answers one line; False after quit. Any error still gives exactly one answer."""
    parsed = parse(line)
    if parsed is None:
        return True
    number, (*command,) = parsed
    word, arguments = (command[0], command[1:]) if command else ("", [])
    begun = False
    try:
        if word in ANALYSES:
            for text in ANALYSES[word](engine, arguments, interrupted):
                out.write(text + "\n" if begun else f"={number}\n{text}\n")
                out.flush()
                begun = True
            out.write("\n" if begun else f"={number}\n\n")
        elif word in COMMANDS:
            text = COMMANDS[word](engine, arguments)
            out.write(f"={number} {text}".rstrip() + "\n\n")
        else:
            raise Refusal("unknown command")
    except Exception as error:  # without an answer the controller would wait forever
        known = isinstance(error, Refusal | ValueError | OSError)
        if not known:
            traceback.print_exc()
        text = " ".join(str(error).split()) if known else f"internal error: {type(error).__name__}"
        out.write("\n" if begun else f"?{number} {text}\n\n")
    out.flush()
    return word != "quit"


def lines(source: TextIO) -> tuple[queue.SimpleQueue[str | None], Callable[[], bool]]:
    """The lines of the input, then None, and a function that tells whether a line waits. Lines are read ahead so that
    the next one can interrupt a search."""
    waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        for line in source:
            waiting.put(line)
        waiting.put(None)

    threading.Thread(target=read, daemon=True).start()
    return waiting, lambda: not waiting.empty()


def serve(options: Options) -> None:
    """Speaks GTP until quit or the end of the input. Compiles before it listens, since a clock may run later."""
    engine = Engine(options, envs.make(options.env))
    print(f"{engine.game.name}: {engine.tree_player.name} compiles its search", file=sys.stderr, flush=True)
    for player in range(2):
        engine.think(player, simulations=1)
        engine.play(player, engine.tree_player.best()[0])
    engine.clear()
    print("ready", file=sys.stderr, flush=True)
    source = open(sys.stdin.fileno(), encoding="utf-8", errors="replace", newline="\n", closefd=False)  # noqa: SIM115
    waiting, interrupted = lines(source)
    while (line := waiting.get()) is not None and respond(engine, line, sys.stdout, interrupted):
        pass
