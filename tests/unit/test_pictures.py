"""Pictures as data: codes, words, nesting, who is to move; rows of stones; games without a picture of their own."""

import dataclasses
import xml.etree.ElementTree as ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs import draw, pictures, saved
from envs.lines import in_rows
from envs.pictures import Layer, Part, Picture, Place

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def shelf():
    """Two boxes with a drawer in the second; the state holds the codes of both layers at the boxes."""
    boxes = Place("box 1", 10, 20), Place("box 2", 30, 20)
    layers = Layer(("<rect/>", "<path/>"), ("open", "shut & locked")), Layer("<text>{}</text>", ", {} kg")
    drawer = Part((Place("drawer", 0, 5, inside="box 2"), Place("", 1, 1)), (Layer("<circle/>"),))
    look = lambda s: ((s[0, 0],), s, (0,))
    return Picture("Shelf", 40, 30, "<line/>", (Layer(words=("first", "second")),), (Part(boxes, layers), drawer), look)


def test_a_picture_is_drawn_place_by_place_and_layer_by_layer(shelf):
    svg = pictures.svg(shelf, jnp.array([[1, 0], [-1, 12]]))
    body = svg[svg.index("<line/>") :]
    assert "<title>Shelf, second</title>" in svg
    assert body == (
        '<line/><g data-cell="box 1" transform="translate(10 20)"><title>box 1: shut &amp; locked</title><path/></g>'
        '<g data-cell="box 2" transform="translate(30 20)"><title>box 2: open, 12 kg</title><rect/><text>12</text>'
        '<g data-cell="drawer" transform="translate(0 5)"><title>drawer</title><circle/></g></g>'
        '<g transform="translate(1 1)"><circle/></g></svg>'
    )


def test_contents_are_the_words_of_innermost_cells(shelf):
    codes = shelf.compiled(jnp.array([[1, 0], [-1, 12]]))
    assert pictures.contents(shelf, codes) == {"box 1": "shut & locked", "drawer": ""}
    assert pictures.status(shelf, codes) == "second"


def test_a_picture_of_states_that_hold_a_position(shelf):
    state = {"now": jnp.zeros((2, 2), jnp.int8)}
    assert pictures.svg(shelf.of(lambda s: s["now"]), state) == pictures.svg(shelf, state["now"])


@pytest.mark.parametrize("name", envs.list())
def test_codes_have_entries_and_places_have_names_of_their_own(name):
    game = envs.make(name)
    states, _ = saved.replay(game, game.init(), draw.random_moves(game, game.init(), 12, seed=3))
    picture = game.drawing
    look = jax.jit(picture.codes)
    layers = [picture.status, *(part.layers for part in picture.parts)]
    for s in (states[0], states[-1], jax.jit(game.step)(states[-1], -1)):
        for codes, own, n in zip(look(s), layers, [1, *(len(p.places) for p in picture.parts)], strict=True):
            assert codes.dtype == jnp.int16
            assert codes.shape == (len(own), n)
            for layer, row in zip(own, np.asarray(codes), strict=True):
                tuples = [p for p in (layer.shapes, layer.words) if isinstance(p, tuple)]
                assert all(row.max() < len(palette) for palette in tuples)
    names = [place.name for part in picture.parts for place in part.places if place.name]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("over", "player", "rewards", "words"),
    [
        (False, 2, (0, 0, 0), "C to move"),
        (True, 0, (-0.5, 1, -0.5), "B wins"),
        (True, 1, (0.5, -1, 0.5), "A and C win"),
        (True, 1, (0, 0, 0), "draw"),
        (True, 0, (1, -1, 0), "A wins"),
        (True, 0, (0, -1, 0), "the game is over"),
    ],
)
def test_who_is_to_move_or_has_won(over, player, rewards, words):
    assert pictures.standing_words("ABC", jnp.bool_(over), jnp.int32(player), jnp.array(rewards)) == words


def test_a_game_without_a_picture_shows_its_planes():
    """Tic-tac-toe after a3, seen by O: nothing of O's, X on the upper left cell in plane 1."""
    game = envs.make("tictactoe")
    game = dataclasses.replace(game, view=dataclasses.replace(game.view, picture=None))
    root = ElementTree.fromstring(game.svg(game.step(game.init(), 0)))
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert titles[0] == "Tic-tac-toe, O to move"
    assert titles[1:3] == ["a3: planes 1", "b3: planes"]
    cells = [group.get("data-cell") for group in root.iter(f"{SVG}g")]
    assert {game.view.cells(action)[0] for action in range(9)} <= set(cells)


@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray])
def test_rows_of_stones(kind):
    board = kind([[1, 1, 1, 1, 0], [-1, 1, -1, 1, -1], [-1, 0, 1, 0, 0], [-1, -1, 0, 0, 0]])
    want = [[1, 1, 1, 1, 0], [1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [1, 0, 0, 0, 0]]
    np.testing.assert_array_equal(in_rows(board, 3), np.array(want, bool))
    without = [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [1, 0, 0, 0, 0]]  # the row of four is too long
    np.testing.assert_array_equal(in_rows(board, 3, exact=True), np.array(without, bool))
