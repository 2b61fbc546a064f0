"""Shared parts of the games' SVG pictures, so that a page can show and play any game.

Every selectable cell is a group `<g data-cell="c4"><title>c4: queen</title>...</g>`. The title gives the cell's name
and contents in words; the first shape covers the cell, and the contents follow. A style sheet may restyle the classes
`paper` (the background around the board), `label` (text on it), `key` (coloured text on it) and `legal` (marks of legal
targets), say for a dark screen. All colours are in the picture itself, so it needs no page.
"""

from __future__ import annotations

from html import escape

PAPER, LABEL = "#f7f3ea", "#655c50"


def head(width: float, height: float, title: str) -> str:
    """Beginning of a picture, including its background; `</svg>` ends it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="sans-serif" text-anchor="middle"><title>{escape(title)}</title>'
        f'<rect class="paper" width="100%" height="100%" fill="{PAPER}"/>'
    )


def cell(name: str, says: str, *shapes: str) -> str:
    """A cell; the first shape covers it."""
    return f'<g data-cell="{escape(name)}"><title>{escape(name)}: {escape(says)}</title>{"".join(shapes)}</g>'


def square(x: float, y: float, side: float, paint: str = 'fill-opacity="0"') -> str:
    """A square; unpainted it is invisible but selectable."""
    return f'<rect x="{x:g}" y="{y:g}" width="{side:g}" height="{side:g}" {paint}/>'


def disc(x: float, y: float, radius: float, paint: str) -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" {paint}/>'


def legal(x: float, y: float, radius: float, colour: str = "#2f7d4f") -> str:
    """Mark of a cell where the player to move may play."""
    return disc(x, y, radius, f'class="legal" fill="{colour}" fill-opacity="0.75"')


def text(x: float, y: float, size: float, words: object, paint: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" {paint}>{escape(str(words))}</text>'


def label(x: float, y: float, size: float, words: object) -> str:
    """Text beside the board."""
    return text(x, y, size, words, f'class="label" fill="{LABEL}"')
