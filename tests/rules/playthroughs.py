"""Golden playthroughs: one game as text for each of `NAMES`, with all that its record answers along the way.

python tests/rules/playthroughs.py

writes tests/golden/playthroughs/ anew. Run it after a change that is meant to alter what a game answers, and read the
difference before it is committed: tests/rules/test_playthroughs.py makes the same texts and compares.
"""

from __future__ import annotations

import json
import os
import sys
import textwrap
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # before the first import of jax

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import envs
from envs.game import Game

FOLDER = Path(__file__).parents[1] / "golden" / "playthroughs"
COMMAND = "python tests/rules/playthroughs.py"

NAMES = [
    *envs.list(),
    "chess:size=5",
    "connect_four:rows=3,cols=9,connect=3",
    "foq:rows=4,cols=6,planes=article",
    "foq_multi:rows=5,cols=6,players=4",
    "foq_single:rows=5,cols=5",
    "go:size=5,ko=psk,history=8",
    "gomoku:size=7,exact=true",
    "hex:size=4",
    "hex:size=4,swap=false",
]
# Where the game of seed 0 lacks something rare: another seed, and the ply where it happens or can be seen.
CHOSEN = {
    "evopawness": (2, 151),  # the king is taken
    "go": (21, 80),  # a ko that may not be retaken
    "go:size=5,ko=psk,history=8": (156, 17),  # a point that only superko forbids
    "gomoku:size=7,exact=true": (3, 49),  # a draw
    "hex": (6, 0),  # a short game
    "hex:size=4": (6, 1),  # the second player swaps
    "othello": (5, 59),  # a player must pass
}

WIDTH = 120
WHOLE = 8  # a longer game shows about so many positions in whole, and a line for each of the others
FIRST = 3  # plies shown in whole before the first gap
NAMED = 30  # legal actions given by name
DRAWN = 600  # numbers of an observation that is drawn; of a larger one the planes are summed
LONG = 90  # characters of a record's value that is written out


class Answers(NamedTuple):
    """What a game says of one position, as numpy arrays."""

    mask: Any
    over: Any
    player: Any
    rewards: Any
    observe: Any
    evaluate: Any  # None where the game has no such function


class Playthrough:
    """One game played at random, with its compiled functions."""

    def __init__(self, name: str):
        self.name = name
        self.seed, self.rare = CHOSEN.get(name, (0, 0))
        self.game = game = envs.make(name)
        self.step = jax.jit(game.step)
        self.answers = jax.jit(lambda s: _answers(game, s))
        self.states, self.found, self.actions = self._play()
        self.last = len(self.actions)

    def look(self, s: Any) -> Answers:
        return jax.device_get(self.answers(s))

    def _play(self) -> tuple[list[Any], list[Answers], list[int]]:
        bits = np.random.PCG64(self.seed)  # raw bits, whose sequence numpy promises for all its versions
        states, found, actions = [self.game.init()], [], []
        while True:
            found.append(self.look(states[-1]))
            legal = np.flatnonzero(found[-1].mask)
            if not len(legal):
                return states, found, actions
            assert len(actions) < self.game.max_plies, f"{self.name} does not end"
            actions.append(int(legal[int(bits.random_raw()) % len(legal)]))
            states.append(self.step(states[-1], np.int32(actions[-1])))

    def whole(self) -> list[int]:
        """Plies whose positions are shown in whole."""
        last, every = self.last, -(-self.last // WHOLE)
        return sorted({*range(min(FIRST, last)), *range(0, last, every), min(self.rare, last), last - 1, last})


def _answers(game: Game, s: Any) -> Answers:
    value = None if game.hints.evaluate is None else game.hints.evaluate(s)
    return Answers(game.mask(s), game.over(s), game.player(s), game.rewards(s), game.observe(s), value)


# The parts of a text


def playthrough(name: str) -> str:
    """The text of one game."""
    p = Playthrough(name)
    blocks, done = [header(p)], 0
    for ply in p.whole():
        if done < ply:
            blocks.append("\n".join(short_ply(p, i) for i in range(done, ply)))
        blocks.append(whole_ply(p, ply))
        done = ply + 1
    blocks += [*illegal_actions(p), after_the_end(p)]
    return "\n".join(line.rstrip() for line in "\n\n".join(blocks).splitlines()) + "\n"


def header(p: Playthrough) -> str:
    game, plies = p.game, ", ".join(str(i) for i in p.whole())
    names = "\n".join(game.action_name(a) for a in range(game.num_actions))
    view = "none" if game.to_mover_frame is None else digest(game.to_mover_frame)
    turned = digest(*(symmetry.actions for symmetry in game.symmetries))
    about = f"""\
        Playthrough of {p.name}: {p.last} random moves, seed {p.seed}, with what the game's record answers at every ply.
        Written by `{COMMAND}`, compared by tests/rules/test_playthroughs.py. Whole positions stand at plies {plies};
        any other ply has one line, with a digest of its legal mask and its observation. A digest is a CRC-32, in a
        record it stands for a long value."""
    return f"""\
{wrap("", textwrap.dedent(about))}

name         {game.name}
num_players  {game.num_players}
num_actions  {game.num_actions} (names {digest(names)}, to_view {view})
max_plies    {game.max_plies}
max_legal    {game.max_legal}
observation  {" x ".join(str(n) for n in p.found[0].observe.shape)}
{wrap("symmetries  ", f"{', '.join(s.name for s in game.symmetries)} (images of the actions {turned})")}"""


def whole_ply(p: Playthrough, ply: int) -> str:
    answers = p.found[ply]
    title = "the end" if ply == p.last else f"player {answers.player} to move"
    lines = [f"=== ply {ply}: {title}", "", whole_position(p.game, p.states[ply], answers)]
    lines += [*observation(answers.observe), *([] if ply == p.last else [f"move {action(p.game, p.actions[ply])}"])]
    return "\n".join(lines)


def short_ply(p: Playthrough, ply: int) -> str:
    answers, move = p.found[ply], action(p.game, p.actions[ply])
    seen = digest(answers.mask, answers.observe)
    return f"ply {ply:3}  player {answers.player}  legal {answers.mask.sum():3}  answers {seen}  move {move}"


def illegal_actions(p: Playthrough) -> list[str]:
    """What the first code that is not legal, and the first out of range, do in the middle of the game."""
    ply = p.last // 2
    mover, mask = p.found[ply].player, p.found[ply].mask
    plays: dict[str, list[str]] = {}  # by the position that follows, which should be the same one
    for code in [*np.flatnonzero(~mask)[:1].tolist(), len(mask)]:
        after = p.step(p.states[ply], np.int32(code))
        name = action(p.game, code) if code < len(mask) else f"what is out of range ({code})"
        plays.setdefault(whole_position(p.game, after, p.look(after)), []).append(name)
    return [f"=== illegal at ply {ply}: player {mover} plays {' or '.join(n)}\n\n{text}" for text, n in plays.items()]


def after_the_end(p: Playthrough) -> str:
    end = p.states[-1]
    pairs = zip(jax.tree.leaves(end), jax.tree.leaves(p.step(end, np.int32(0))), strict=True)
    same = all(np.array_equal(x, y) for x, y in pairs)
    return f"=== after the end {action(p.game, 0)} changes {'nothing' if same else 'the position'}"


# The parts of a position


def whole_position(game: Game, s: Any, answers: Answers) -> str:
    legal = np.flatnonzero(answers.mask)
    more = f" ... and {len(legal) - NAMED} more" if len(legal) > NAMED else ""
    names = ", ".join(game.action_name(int(a)) for a in legal[:NAMED])
    lines = [
        game.show(s),
        "",
        f"over {bool(answers.over)}, player {answers.player}, rewards {' '.join(map(number, answers.rewards))}",
        wrap(f"legal {len(legal)}{':' if len(legal) else ''}", names + more),
        f"record {json.dumps(shortened(game.to_record(s)), separators=(',', ':'))}",
    ]
    return "\n".join(lines if answers.evaluate is None else [*lines, f"evaluate {number(answers.evaluate)}"])


def observation(planes: np.ndarray) -> list[str]:
    """Small ones are drawn, planes of one value throughout apart; of others the sums that are not 0 are given."""
    planes = np.moveaxis(planes, -1, 0)
    if planes.size > DRAWN or not np.isin(planes, range(10)).all():
        sums = [f"{i}:{number(plane.sum(dtype=np.float64))}" for i, plane in enumerate(planes) if plane.any()]
        return [wrap(f"observe, digest {digest(planes)}, sums of planes", " ".join(sums) or "all 0")]
    same = {i: plane.flat[0] for i, plane in enumerate(planes) if (plane == plane.flat[0]).all()}
    lines = [f"observe, planes of one value {' '.join(f'{i}:{number(v)}' for i, v in same.items()) or 'none'}"]
    drawn = [i for i in range(len(planes)) if i not in same]
    column = max(planes.shape[2], len("plane 10")) + 2
    for band in chunks(drawn, max(1, WIDTH // column)):
        pictures = [[f"plane {i}", *("".join(".123456789"[int(x)] for x in row) for row in planes[i])] for i in band]
        lines += ["  " + "".join(cell.ljust(column) for cell in row) for row in zip(*pictures, strict=True)]
    return lines


def action(game: Game, code: int) -> str:
    return f"{game.action_name(code)} ({code})"


def number(value: Any) -> str:
    """At most four digits. What would be a tie is pushed upwards, as its last bit may differ between machines."""
    return f"{round(float(value) + 1e-6, 4) + 0.0:g}"


def shortened(record: Any) -> Any:
    """The record with digests for its long values."""
    text = lambda value: json.dumps(value, separators=(",", ":"))
    return {k: v if len(text(v)) <= LONG else f"digest {digest(text(v))}" for k, v in record.items()}


def digest(*parts: Any) -> str:
    """CRC-32 of texts and of arrays, of which the thousandths count."""
    raw = lambda part: part.encode() if isinstance(part, str) else np.rint(1000.0 * part).astype("<i8").tobytes()
    return f"{zlib.crc32(b';'.join(map(raw, parts))):08x}"


def wrap(label: str, text: str) -> str:
    indent = "  " if label else ""
    return textwrap.fill(f"{label} {text}".strip(), WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def chunks(items: list[int], size: int) -> Iterable[list[int]]:
    return (items[i : i + size] for i in range(0, len(items), size))


def path_of(name: str) -> Path:
    return FOLDER / f"{name.translate(str.maketrans(':=,', '---'))}.txt"


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in {*FOLDER.glob("*.txt")} - {path_of(name) for name in NAMES}:
        path.unlink()
    for name in NAMES:
        path_of(name).write_text(playthrough(name), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
