"""Pictures of positions as data, so that Python and pages with or without a server draw the same.

A `Picture` is a frame that never changes (board and coordinates) with parts on top. A part has places and layers.
`Picture.codes`, a jnp function of the state, gives a small integer for every layer at every place. The drawing is:

    for part, codes in zip(picture.parts, picture.codes(s)[1:]):
        for p, place in enumerate(part.places):
            shapes = "".join(entry(layer.shapes, code) for layer, code in zip(part.layers, codes[:, p]))
            words = "".join(entry(layer.words, code) for layer, code in zip(part.layers, codes[:, p]))
            <g data-cell="{name}" transform="translate({x} {y})"><title>{name}: {words}</title>{shapes}{inner}</g>

`entry` is nothing for a code below 0, else `palette[code]`, or where the palette is one string, this string with the
code in place of `{}`. `inner` are the groups of the places inside this one. A place without a name is no cell: its
group has neither `data-cell` nor a title. The document's title is `{title}, {words}`, with the words of the status's
layers at `codes(s)[0]`. `draw` does all of this; words are plain text and escaped there.

The first shape of a cell covers it, and no shape has a `transform` of its own, because a page turns them around their
place. A style sheet may restyle the classes `paper` (the background around the board),
`label` (text on it), `key` (coloured text on it) and `legal` (marks of legal targets), say for a dark screen. All
colours are in the picture itself, so it needs no page.
"""

from __future__ import annotations

import dataclasses
import functools
import string
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

PAPER, LABEL = "#f7f3ea", "#655c50"
MARGIN = 4  # of a board, where it has no labels
CELL, SIDE, SHADES = 48, 46, 8  # pictures of planes: distance of cells, their side, shades from 0 to 1

# A tuple has an entry for each code. A string serves all codes; `{}` in it stands for the code. A code below 0 draws
# and says nothing.
Palette: TypeAlias = tuple[str, ...] | str


@dataclasses.dataclass(frozen=True)
class Layer:
    """What a code means at a place."""

    shapes: Palette = ""  # SVG, with its origin at the place
    words: Palette = ""  # what the title of the place says


@dataclasses.dataclass(frozen=True)
class Place:
    name: str  # of the cell, as in `Game.view.cells`; empty for a place that is no cell
    x: float  # in units of the picture, from the left and the top; from `inside`, if there is one
    y: float
    inside: str = ""  # name of the cell around this one, which belongs to an earlier part


@dataclasses.dataclass(frozen=True)
class Part:
    """Places that are drawn from the same layers, in this order."""

    places: tuple[Place, ...]
    layers: tuple[Layer, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Picture:
    """The picture of any position of one game. All fields except `look` are text and numbers, ready for JSON."""

    title: str
    width: float
    height: float
    frame: str  # SVG below the parts
    status: tuple[Layer, ...]  # words after the title: who is to move, or the result
    parts: tuple[Part, ...]
    # State -> codes of the status's layers, then of every part's layers. Each is one integer or bool for all places, or
    # an array of any shape with one for each place.
    look: Callable[[Any], Sequence[Sequence[Any]]]

    def codes(self, s: Any) -> tuple[jax.Array, ...]:
        """int16[layers, 1] of the status, then int16[layers, places] of every part. A pure jnp function."""
        places = [1, *(len(part.places) for part in self.parts)]
        row = lambda code, n: jnp.broadcast_to(jnp.asarray(code).astype(jnp.int16).ravel(), (n,))
        return tuple(jnp.stack([row(code, n) for code in rows]) for rows, n in zip(self.look(s), places, strict=True))

    def of(self, position: Callable[[Any], Any]) -> Picture:
        """The same picture for states that contain a `position` of this game."""
        return dataclasses.replace(self, look=lambda s: self.look(position(s)))

    @functools.cached_property
    def compiled(self) -> Callable[[Any], tuple[np.ndarray, ...]]:
        """`codes`, compiled, with arrays on the host."""
        codes = jax.jit(self.codes)
        return lambda s: jax.device_get(codes(s))


def svg(picture: Picture, s: Any) -> str:
    """A position as an SVG document."""
    return draw(picture, picture.compiled(s))


def words(layers: Sequence[Layer], codes: Iterable[Any]) -> str:
    """What the title of a place says for the codes of its layers."""
    return "".join(_entry(layer.words, int(code)) for layer, code in zip(layers, codes, strict=True))


def status(picture: Picture, codes: Sequence[np.ndarray]) -> str:
    """Who is to move, or the result, in words."""
    return words(picture.status, codes[0][:, 0])


def contents(picture: Picture, codes: Sequence[np.ndarray]) -> dict[str, str]:
    """What every innermost cell says of its contents; a move changed the cells whose words differ."""
    outer = {place.inside for part in picture.parts for place in part.places}
    return {
        place.name: words(part.layers, row[:, p])
        for part, row in zip(picture.parts, codes[1:], strict=True)
        for p, place in enumerate(part.places)
        if place.name and place.name not in outer
    }


def draw(picture: Picture, codes: Sequence[np.ndarray]) -> str:
    """The SVG document of these codes."""
    within = {"": ""}  # what is drawn inside each cell, from the last part to the first
    for part, rows in zip(picture.parts[::-1], codes[:0:-1], strict=True):
        groups: dict[str, str] = {}
        for p, place in enumerate(part.places):
            group = _group(place, part.layers, rows[:, p], within.get(place.name, "") if place.name else "")
            groups[place.inside] = groups.get(place.inside, "") + group
        within |= {name: group + within.get(name, "") for name, group in groups.items()}
    title = ", ".join(filter(None, (picture.title, status(picture, codes))))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {picture.width:g} {picture.height:g}" '
        f'width="{picture.width:g}" height="{picture.height:g}" font-family="sans-serif" text-anchor="middle">'
        f'<title>{escape(title)}</title><rect class="paper" width="100%" height="100%" fill="{PAPER}"/>'
        f"{picture.frame}{within['']}</svg>"
    )


def _group(place: Place, layers: Sequence[Layer], codes: np.ndarray, inner: str) -> str:
    title, name = "", ""
    if place.name:
        said = ": ".join(filter(None, (place.name, words(layers, codes))))
        name, title = f' data-cell="{escape(place.name)}"', f"<title>{escape(said)}</title>"
    shapes = "".join(_entry(layer.shapes, int(code)) for layer, code in zip(layers, codes, strict=True))
    return placed(place.x, place.y, title + shapes + inner, name)


def _entry(palette: Palette, code: int) -> str:
    if code < 0:
        return ""
    return palette.replace("{}", str(code)) if isinstance(palette, str) else palette[code]


def _letters(cols: int) -> list[str]:
    """Beginnings of the names of cells: letters, or numbers if there are not enough letters."""
    return [*string.ascii_lowercase[:cols]] if cols <= 26 else [f"{c + 1}," for c in range(cols)]


def cell_names(rows: int, cols: int) -> list[str]:
    """Names of the cells of a board, row by row: a1 is in the lower left corner."""
    return [f"{letter}{rows - r}" for r in range(rows) for letter in _letters(cols)]


def planes(title: str, game: Any) -> Picture:
    """A picture for a game that has none: every cell shows its planes as small squares, from 0, pale, to 1, dark.

    Cells are called a1, b1, ... from the lower left corner; after z they are numbered.
    """
    rows, cols, count = jax.eval_shape(lambda: game.observe(game.init())).shape
    across = int(np.ceil(np.sqrt(count)))
    small = SIDE / across
    names = cell_names(rows, cols)
    shades = [f'fill="#20242a" fill-opacity="{level / SHADES:g}"' for level in range(SHADES + 1)]

    def layer(plane: int) -> Layer:
        y, x = (small * (i + 0.5) - SIDE / 2 for i in divmod(plane, across))
        return Layer(tuple(rect(small, small, shade, x, y) for shade in shades), ("", *[f" {plane}"] * SHADES))

    def look(s: Any) -> tuple[Sequence[Any], ...]:
        levels = jnp.clip(jnp.round(game.observe(s) * SHADES), 0, SHADES)
        return (standing_code(game.over(s), game.player(s), game.rewards(s)),), (0, *jnp.moveaxis(levels, -1, 0))

    cells = Layer(square(SIDE, 'fill="#e9dcc0"'), "planes")
    seats = game.view.seats or string.ascii_uppercase[: game.num_players]
    columns, numbers = [x.strip(",") for x in _letters(cols)], range(rows, 0, -1)
    return board(title, names, columns, numbers, CELL, standing(seats), (cells, *map(layer, range(count))), look)


# Parts of pictures


def grid(names: Sequence[str], cols: int, side: float, left: float, top: float) -> tuple[Place, ...]:
    """Middles of square cells, row by row, on a board whose upper left corner is (left, top)."""
    middle = lambda i: (left + (i % cols + 0.5) * side, top + (i // cols + 0.5) * side)
    return tuple(Place(name, *middle(i)) for i, name in enumerate(names))


def placed(x: float, y: float, shapes: str, attributes: str = "") -> str:
    return f'<g{attributes} transform="translate({x:g} {y:g})">{shapes}</g>'


def board(
    title: str,
    names: Sequence[str],
    columns: Sequence[object],
    rows: Sequence[object],
    cell: float,
    status: Layer | tuple[Layer, ...],
    layers: tuple[Layer, ...],
    look: Callable[[Any], Sequence[Sequence[Any]]],
    frame: str = "",
    above: bool = False,
    edge: float = 0.5,
    size: float = 0.27,
) -> Picture:
    """A picture that is one board of square cells.

    Args:
        title: of the game.
        names: of the cells, row by row.
        columns: their labels, below the board or `above` it.
        rows: their labels, on its left.
        cell: side of a cell.
        status, layers, look: as in `Picture`, of the one part.
        frame: SVG below the cells, in units from the upper left corner of the board.
        above: see `columns`.
        edge: room for labels, in cells.
        size: of the labels, in cells.
    """
    left, top = edge * cell, edge * cell if above else MARGIN
    width, height = left + len(columns) * cell + MARGIN, top + len(rows) * cell + (MARGIN if above else left)
    labelled = coordinates(columns, rows, cell, left, top, left, size * cell, above)
    part = Part(grid(names, len(columns), cell, left, top), layers)
    status = (status,) if isinstance(status, Layer) else status
    return Picture(title, width, height, placed(left, top, frame) + labelled, status, (part,), look)


def coordinates(
    columns: Sequence[object],
    rows: Sequence[object],
    cell: float,
    left: float,
    top: float,
    edge: float,
    size: float,
    above: bool = False,
) -> str:
    """Labels of columns and rows, in the middle of an `edge` around the board from (left, top) on."""
    drop = 0.35 * size  # from the middle of a letter to its foot
    y = top - edge / 2 if above else top + len(rows) * cell + edge / 2
    of_rows = labels(size, rows, left - edge / 2, top + cell / 2 + drop, down=cell)
    return of_rows + labels(size, columns, left + cell / 2, y + drop, cell)


def rect(width: float, height: float, paint: str, x: float = 0, y: float = 0) -> str:
    """A rectangle around (x, y)."""
    return f'<rect x="{x - width / 2:g}" y="{y - height / 2:g}" width="{width:g}" height="{height:g}" {paint}/>'


def square(side: float, paint: str = 'fill-opacity="0"', x: float = 0, y: float = 0) -> str:
    """A square around (x, y); unpainted it is invisible but selectable."""
    return rect(side, side, paint, x, y)


def disc(radius: float, paint: str, x: float = 0, y: float = 0) -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" {paint}/>'


def legal(radius: float, colour: str = "#2f7d4f") -> Layer:
    """Marks places where the player to move may play: code 1."""
    return Layer(("", disc(radius, f'class="legal" fill="{colour}" fill-opacity="0.75"')))


def stones(seats: Sequence[str], first: str, second: str) -> Layer:
    """The stones of two players: code 0 for an empty place, 1 or 2 for the player's stone."""
    return Layer(("", first, second), ("empty", *seats))


def text(size: float, words: object, paint: str = "", x: float = 0, y: float = 0) -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" {paint}>{escape(str(words))}</text>'


def labels(size: float, words: Iterable[object], x: float, y: float, right: float = 0, down: float = 0) -> str:
    """Coordinates beside the board: each label is `right` and `down` of the one before."""
    return texts(size, words, f'class="label" fill="{LABEL}"', x, y, right, down)


def texts(
    size: float, words: Iterable[object], paint: str, x: float, y: float, right: float = 0, down: float = 0
) -> str:
    """A row of texts: each is `right` and `down` of the one before."""
    return "".join(text(size, word, paint, x + i * right, y + i * down) for i, word in enumerate(words))


# The status


def standing(seats: Sequence[str]) -> Layer:
    """Who is to move or has won, by `standing_code`."""
    alone = [[seat for seat in seats if seat != loser] for loser in seats]
    return Layer(
        words=(
            *(f"{seat} to move" for seat in seats),
            *(f"{seat} wins" for seat in seats),
            "draw",
            *(f"{' and '.join(winners)} win" for winners in alone),
            "the game is over",
        )
    )


def standing_code(over: jax.Array, player: jax.Array, rewards: jax.Array) -> jax.Array:
    """int32[]: the player to move, n + the only winner, 2n for a draw, 2n + 1 + the only loser, or 3n + 1."""
    n, won = rewards.size, rewards > 0
    cases = [~over, won.sum() == 1, (rewards == 0).all(), won.sum() == n - 1]
    return jnp.select(cases, [player, n + won.argmax(), 2 * n, 2 * n + 1 + won.argmin()], 3 * n + 1)


def standing_words(seats: Sequence[str], over: jax.Array, player: jax.Array, rewards: jax.Array) -> str:
    """The same for one position, in words."""
    return standing(seats).words[int(standing_code(over, player, rewards))]
