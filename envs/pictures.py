"""What the SVG pictures of all games have in common, so that a page can show and play any of them.

Whatever can be pointed at is a group `<g data-cell="c4"><title>c4: queen</title>...</g>`: the name of the cell, what is
there in words, first a shape that covers the cell, then what stands on it. The classes `paper` (the ground around the
board), `label` (writing on it), `key` (coloured writing on it) and `legal` (marks where the player to move may go) can
be styled anew, say for a dark screen; all colours are in the picture itself, so that it needs no page.
"""

from __future__ import annotations

from html import escape

PAPER, LABEL = "#f7f3ea", "#655c50"


def head(width: float, height: float, title: str) -> str:
    """Beginning of a picture, up to its ground; `</svg>` ends it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="sans-serif" text-anchor="middle"><title>{escape(title)}</title>'
        f'<rect class="paper" width="100%" height="100%" fill="{PAPER}"/>'
    )


def cell(name: str, says: str, *shapes: str) -> str:
    """A cell; the first shape covers it."""
    return f'<g data-cell="{escape(name)}"><title>{escape(name)}: {escape(says)}</title>{"".join(shapes)}</g>'


def square(x: float, y: float, side: float, paint: str = 'fill-opacity="0"') -> str:
    """A square; unpainted it can only be pointed at."""
    return f'<rect x="{x:g}" y="{y:g}" width="{side:g}" height="{side:g}" {paint}/>'


def disc(x: float, y: float, radius: float, paint: str) -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" {paint}/>'


def legal(x: float, y: float, radius: float, colour: str = "#2f7d4f") -> str:
    """Mark of a cell where the player to move may go."""
    return disc(x, y, radius, f'class="legal" fill="{colour}" fill-opacity="0.75"')


def text(x: float, y: float, size: float, words: object, paint: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" {paint}>{escape(str(words))}</text>'


def label(x: float, y: float, size: float, words: object) -> str:
    """Writing beside the board."""
    return text(x, y, size, words, f'class="label" fill="{LABEL}"')
