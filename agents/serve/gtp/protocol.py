"""A Go engine for other programs: GTP version 2 on standard input and output.

It follows http://www.lysator.liu.se/~gunnar/gtp/gtp2-spec-draft2, with commands of Leela Zero and of KataGo
(https://github.com/lightvector/KataGo/blob/master/docs/GTP_Extensions.md).
"""

from __future__ import annotations

import copy
import queue
import re
import sys
import threading
import traceback
from collections.abc import Callable
from typing import TextIO

import envs
from agents.players.human import demand_playable
from agents.serve import sgf
from agents.serve.gtp import rules
from agents.serve.gtp.arguments import (
    SYNTAX,
    WHOLE,
    Refusal,
    expect,
    read_colour,
    read_path,
    read_seconds,
    read_vertex,
    read_whole,
)
from agents.serve.gtp.engine import Clock, Engine
from agents.serve.gtp.reports import ANALYSES
from agents.serve.options import PlayOptions
from envs import go, saved

# Commands: (engine, arguments) -> the answer


def protocol_version(engine: Engine, arguments: list[str]) -> str:
    return "2"


def name(engine: Engine, arguments: list[str]) -> str:
    return engine.options.gtp_name


def version(engine: Engine, arguments: list[str]) -> str:
    return engine.player_name


def known_command(engine: Engine, arguments: list[str]) -> str:
    expect(arguments, 1)
    return "true" if arguments[0] in (*COMMANDS, *ANALYSES) else "false"


def list_commands(engine: Engine, arguments: list[str]) -> str:
    return "\n".join(sorted((*COMMANDS, *ANALYSES)))


def stop(engine: Engine, arguments: list[str]) -> str:
    return ""


def boardsize(engine: Engine, arguments: list[str]) -> str:
    expect(arguments, 1)
    size = read_whole(arguments[0])
    if size == engine.size:
        return clear_board(engine, arguments)
    try:
        engine.take_game(engine.other_game(size, engine.komi))
    except ValueError:
        raise Refusal("unacceptable size") from None
    engine.restart_clocks()
    return ""


def clear_board(engine: Engine, arguments: list[str]) -> str:
    engine.restart_clocks()
    engine.clear()
    return ""


def komi(engine: Engine, arguments: list[str]) -> str:
    expect(arguments, 1)
    if not re.fullmatch(r"[-+]?[0-9]{1,4}(\.[0-9]{1,6})?", arguments[0]):
        raise SYNTAX
    engine.take_komi(float(arguments[0]))
    return ""


def play(engine: Engine, arguments: list[str]) -> str:
    expect(arguments, 2)
    engine.play(read_colour(arguments[0]), read_vertex(arguments[1], engine.size))
    return ""


def genmove(engine: Engine, arguments: list[str]) -> str:
    expect(arguments, 1)
    player = read_colour(arguments[0])
    return engine.make_move(player, *engine.choose(player))


def reg_genmove(engine: Engine, arguments: list[str]) -> str:
    """Never resigns: the command is about a position, not about a game."""
    expect(arguments, 1)
    return go.point_name(engine.choose(read_colour(arguments[0]))[0], engine.size)


def undo(engine: Engine, arguments: list[str]) -> str:
    if len(engine.steps) < 2:
        raise Refusal("cannot undo")
    del engine.steps[-1]
    return ""


def showboard(engine: Engine, arguments: list[str]) -> str:
    return "\n" + engine.game.show(engine.now.state)


def time_settings(engine: Engine, arguments: list[str]) -> str:
    expect(arguments, 3)
    engine.take_clock(Clock(read_seconds(arguments[0]), read_seconds(arguments[1]), read_whole(arguments[2])))
    return ""


def time_left(engine: Engine, arguments: list[str]) -> str:
    expect(arguments, 3)
    player, seconds, stones = read_colour(arguments[0]), read_seconds(arguments[1]), read_whole(arguments[2])
    if engine.clock is None:
        engine.take_clock(Clock(seconds, 0, 0))
        engine.left = [(seconds, stones)] * 2
    engine.left[player] = seconds, stones
    return ""


def final_score(engine: Engine, arguments: list[str]) -> str:
    """All stones on the board count as alive: dead stones must be captured first."""
    return sgf.score(engine.now.state, engine.komi)


def final_status_list(engine: Engine, arguments: list[str]) -> str:
    expect(arguments, 1)
    if arguments[0] not in ("alive", "dead", "seki"):
        raise SYNTAX
    stones = [go.point_name(p, engine.size) for p, cell in enumerate(engine.board()) if cell]
    return " ".join(stones) if arguments[0] == "alive" else ""


def loadsgf(engine: Engine, arguments: list[str]) -> str:
    """Loads the position before the given move, by default the last position."""
    path, most = read_path(arguments), None
    if len(arguments) > 1 and WHOLE.fullmatch(arguments[-1]) and not path.is_file():
        path, most = read_path(arguments[:-1]), int(arguments[-1])
    if not path.is_file():
        raise Refusal("cannot load file")
    with path.open("rb") as file:
        kifu = sgf.read_sgf(file.read(sgf.LARGEST_FILE + 1))
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
    text = sgf.write_sgf(engine.game, engine.steps[0].state, engine.moves(), result)
    if not arguments:
        return text.strip()
    saved.write(read_path(arguments), text)
    return ""


def fixed_handicap(engine: Engine, arguments: list[str]) -> str:
    """Stones on the marked points in the order of the protocol's table."""
    expect(arguments, 1)
    points = _fixed_points(engine.size, read_whole(arguments[0]))
    _put(engine, points)
    return " ".join(go.point_name(p, engine.size) for p in points)


def place_free_handicap(engine: Engine, arguments: list[str]) -> str:
    """Stones on the marked points; the protocol lets the engine place fewer than requested."""
    expect(arguments, 1)
    stones, size = read_whole(arguments[0]), engine.size
    if not 2 <= stones < size**2:
        raise Refusal("invalid number of stones")
    points = _marked(size, min(stones, 4 if size % 2 == 0 or size <= 7 else 9))
    _put(engine, points)
    return " ".join(go.point_name(p, size) for p in points)


def set_free_handicap(engine: Engine, arguments: list[str]) -> str:
    points = [read_vertex(word, engine.size) for word in arguments]
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


def kata_get_rules(engine: Engine, arguments: list[str]) -> str:
    return rules.as_json(engine.ko)


def kata_set_rules(engine: Engine, arguments: list[str]) -> str:
    """The position keeps its moves."""
    engine.take_ko(rules.ko_of(" ".join(arguments)))
    return ""


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
    "kata-get-rules": kata_get_rules,
    "kata-set-rules": kata_set_rules,
}


# The protocol


def parse_line(line: str) -> tuple[str, list[str]] | None:
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
    parsed = parse_line(line)
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


def serve(options: PlayOptions) -> None:
    """Speaks GTP until quit or the end of the input. Compiles before it listens, since a clock may run later."""
    engine = Engine(options, demand_playable(envs.make(options.env)))
    engine.compile()
    source = open(sys.stdin.fileno(), encoding="utf-8", errors="replace", newline="\n", closefd=False)  # noqa: SIM115
    waiting, interrupted = lines(source)
    while (line := waiting.get()) is not None and respond(engine, line, sys.stdout, interrupted):
        pass
