"""Draws positions and games: python -m envs.draw foq --moves="d5 f4" --out=picture.png

An .svg or .png shows the last position, a .gif the whole game. Formats .png and .gif need: pip install -e '.[plots]'
"""

from __future__ import annotations

import argparse
import html
import io
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np

import envs
from envs import saved
from envs.game import Game, State
from envs.pictures import PAPER

KINDS = (".svg", ".png", ".gif")
INK, LAST = "#4a443b", "#e8590c"  # of captions, and of the frame around the last move
DRAWN_WIDTH = 480  # of a captioned picture, whatever its own units
LAST_FRAME = 3  # the end of a game is shown this many times as long


def random_moves(game: Game, start: State, plies: int, seed: int) -> list[str]:
    """Names of at most `plies` random legal moves; fewer if the game ends first."""
    rng, state, names = np.random.default_rng(seed), start, []
    mask, move = saved.compiled(game)
    while len(names) < plies and (legal := np.flatnonzero(mask(state))).size:
        action = int(rng.choice(legal))
        names.append(game.action_name(action))
        state = move(state, action)
    return names


def size(svg: str) -> tuple[float, float]:
    """Width and height of a picture in its own units."""
    box = re.search(r'viewBox="([-\d. ]+)"', svg)
    if box is None:
        raise ValueError("the picture of this game has no viewBox")
    return tuple(map(float, box[1].split()[2:]))  # type: ignore[return-value]


def with_caption(svg: str, text: str) -> str:
    """The picture with a line of text below it."""
    width, height = size(svg)
    strip, scale = width / 16, DRAWN_WIDTH / width
    letter = min(strip * 0.6, 1.7 * width / max(len(text), 1))  # a long line gets smaller letters
    inner = re.sub(r"<svg ([^>]*)>", lambda m: _placed(m[1], width, height), svg, count=1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height + strip:g}" '
        f'width="{width * scale:g}" height="{(height + strip) * scale:g}">'
        f'<rect width="100%" height="100%" fill="{PAPER}"/>{inner}'
        f'<text x="{width / 2:g}" y="{height + strip * 0.7:g}" font-family="sans-serif" font-size="{letter:g}" '
        f'text-anchor="middle" fill="{INK}">{html.escape(text)}</text></svg>'
    )


def _placed(attributes: str, width: float, height: float) -> str:
    rest = re.sub(r'\b(width|height|xmlns)="[^"]*"', "", attributes)
    return f'<svg x="0" y="0" width="{width:g}" height="{height:g}" {" ".join(rest.split())}>'


def mark(svg: str, cells: Iterable[str]) -> str:
    """The picture with a frame around these cells, none of them inside another, drawn on top."""
    frames, width = [], size(svg)[0] / 130
    for name in dict.fromkeys(cells):
        group = re.search(rf'<g data-cell="{re.escape(html.escape(name))}"( transform="[^"]*")?>', svg)
        shape = group and re.compile(r"<(rect|circle|polygon|path) ([^>]*)/>").search(svg, group.end())
        if group and shape:
            place = re.sub(r'\b(class|fill|stroke|opacity)(-\w+)?="[^"]*"', "", shape[2])
            paint = f'fill="none" stroke="{LAST}" stroke-width="{width:g}"'
            frames.append(f"<g{group[1] or ''}><{shape[1]} {' '.join(place.split())} {paint}/></g>")
    return svg.removesuffix("</svg>") + "".join(frames) + "</svg>"


def describe(svg: str, last: str | None, ply: int) -> str:
    """The title of a picture, and the move that led there."""
    title = re.search(r"<title>(.*?)</title>", svg)
    words = [html.unescape(title[1])] if title else []
    return " · ".join([*words, f"move {ply}: {last}"] if last else words)


def png(svg: str, width: int) -> bytes:
    """The picture as a PNG. It is drawn by resvg, which needs no system libraries, with matplotlib's fonts, which look
    the same everywhere."""
    try:
        import matplotlib
        import resvg_py
    except ImportError as error:
        raise ValueError(
            f"{error.name} is missing, which draws .png and .gif: pip install matplotlib pillow resvg_py"
        ) from None
    fonts = Path(matplotlib.get_data_path(), "fonts", "ttf")
    files = [str(fonts / f"DejaVuSans{style}.ttf") for style in ("", "-Bold")]
    return bytes(
        resvg_py.svg_to_bytes(
            svg_string=svg, width=width, font_files=files, sans_serif_family="DejaVu Sans", skip_system_fonts=True
        )
    )


def gif(frames: Sequence[str], width: int, seconds: float) -> bytes:
    """A looping animation. All frames share one palette, taken from the first and the last frame."""
    shots = [png(frame, width) for frame in frames]
    from PIL import Image  # after png(), whose error names a missing library

    images = [Image.open(io.BytesIO(shot)).convert("RGB") for shot in shots]
    ends = Image.new("RGB", (images[0].width, 2 * images[0].height))
    ends.paste(images[0], (0, 0))
    ends.paste(images[-1], (0, images[0].height))
    palette = ends.quantize(128)
    reduced = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    times = [round(1000 * seconds)] * (len(images) - 1) + [round(1000 * seconds * LAST_FRAME)]
    out = io.BytesIO()
    reduced[0].save(out, "GIF", save_all=True, append_images=reduced[1:], duration=times, loop=0, optimize=True)
    return out.getvalue()


def draw(game: Game, start: State, moves: Sequence[str], kind: str, width: int, seconds: float, caption: bool) -> bytes:
    """The bytes of a picture file; `kind` is one of KINDS.

    Raises:
        ValueError: an illegal move or a missing library.
    """
    states, actions = saved.replay(game, start, moves)
    shown = range(len(states)) if kind == ".gif" else [len(states) - 1]
    pictures = []
    for ply in shown:
        svg = game.svg(states[ply])
        if ply and game.view.cells is not None:
            svg = mark(svg, game.view.cells(actions[ply - 1]))
        pictures.append(with_caption(svg, describe(svg, moves[ply - 1] if ply else None, ply)) if caption else svg)
    if kind == ".gif":
        return gif(pictures, width, seconds)
    return png(pictures[0], width) if kind == ".png" else pictures[0].encode()


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        fail(message)


def fail(message: object) -> NoReturn:
    print("error:", " ".join(str(message).split()), file=sys.stderr)
    raise SystemExit(2)


def options() -> argparse.Namespace:
    parser = Parser(prog="python -m envs.draw", description=__doc__, allow_abbrev=False)
    parser.add_argument("game", help="as in --env: foq:rows=6,cols=7")
    parser.add_argument("--out", type=Path, required=True, help="picture.svg, .png or .gif")
    parser.add_argument("--record", type=Path, help="begin with a file: a position or a saved game")
    parser.add_argument("--moves", default="", help='names with spaces between them: "d5 f4"')
    parser.add_argument("--random_plies", type=int, default=0, help="random moves to play after --moves")
    parser.add_argument("--seed", type=int, default=0, help="random seed of --random_plies")
    parser.add_argument("--width", type=int, default=480, help="pixels of a .png or .gif")
    parser.add_argument("--seconds", type=float, default=0.8, help="time of each position in a .gif")
    parser.add_argument("--caption", action="store_true", help="the last move and who is to move below the board")
    given = parser.parse_args()
    if given.out.suffix not in KINDS:
        parser.error(f"--out={given.out}: expected a name that ends in {', '.join(KINDS)}")
    if not 16 <= given.width <= 4096:
        parser.error(f"--width: expected 16 to 4096 pixels, got {given.width}")
    if not 0.02 <= given.seconds <= 60:
        parser.error(f"--seconds: expected 0.02 to 60, got {given.seconds}")
    if given.random_plies < 0 or given.seed < 0:
        parser.error("--random_plies and --seed: expected 0 or more")
    return given


def main() -> None:
    given = options()
    try:
        game = envs.make(given.game)
        text = given.record.read_text(encoding="utf-8") if given.record else "{}"
        start, moves = saved.from_file(game, text) if given.record else (game.init(), [])
        moves = [*moves, *given.moves.split()]
        last = saved.replay(game, start, moves)[0][-1]
        moves += random_moves(game, last, given.random_plies, given.seed)
        picture = draw(game, start, moves, given.out.suffix, given.width, given.seconds, given.caption)
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_bytes(picture)
    except (ValueError, OSError) as error:
        fail(error)


if __name__ == "__main__":
    main()
