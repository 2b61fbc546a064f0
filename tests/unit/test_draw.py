"""Pictures of positions and games, as people ask for them."""

import io
import itertools
import json
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from PIL import Image, ImageSequence

import envs
from envs import draw, saved


def pixels(data):
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)


@pytest.mark.parametrize("name", envs.list())
def test_every_game_has_pictures(name):
    """Each is a document of its own, begins and goes on in the same size, and is no empty sheet."""
    game = envs.make(name)
    start = game.init()
    states, _ = saved.replay(game, start, draw.random_moves(game, start, 4, seed=1))
    pictures = [game.svg(state) for state in (states[0], states[-1])]
    for svg in pictures:
        assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert draw.size(pictures[0]) == draw.size(pictures[1])
    before, after = (pixels(draw.png(svg, 240)) for svg in pictures)
    assert before.shape == after.shape
    assert before.shape[1] == 240
    assert len(np.unique(before.reshape(-1, 3), axis=0)) > 4
    assert (before != after).any()


def test_a_stone_is_drawn_where_it_lies():
    """The middle of tic-tac-toe's upper left cell turns dark when X is put there, all other cells stay."""
    game = envs.make("tictactoe")
    svg = lambda moves: game.svg(saved.replay(game, game.init(), moves)[0][-1])
    before, after = (pixels(draw.png(svg(moves), 228)) for moves in ([], ["a3"]))
    changed = np.argwhere((before != after).any(-1))
    # 228 units wide: 32 for the labels, cells of 64, 4 above
    assert (changed >= [4, 32]).all()
    assert (changed < [4 + 64, 32 + 64]).all()
    assert (after[20:52, 48:80] < 60).all(-1).any()


def test_the_last_move_is_framed():
    """The frame lies on the edges of the cell, in a colour that nothing else has, whatever the shape of the cell."""
    for name, move, cells in (("tictactoe", "a3", 9), ("hex", "f6", 121), ("go:size=5", "C3", 25)):
        game = envs.make(name)
        states, (action,) = saved.replay(game, game.init(), [move])
        svg = game.svg(states[-1])
        assert svg.count("<g data-cell") == cells
        framed, plain = (pixels(draw.png(x, 300)) for x in (draw.mark(svg, game.view.cells(action)), svg))
        where = np.argwhere((framed != plain).any(-1))
        assert len(where) > 50
        assert (np.abs(framed[tuple(where.T)] - [0xE8, 0x59, 0x0C]).max(-1) < 8).sum() > 20
        middle = (where.min(0) + where.max(0)) // 2
        assert (framed[tuple(middle)] == plain[tuple(middle)]).all()


def test_letters_are_drawn_with_fonts_that_come_along():
    """Without any fonts a picture of labels would be blank."""
    svg = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 40" width="40" height="40" font-family="sans-serif">'
    for sign in "a♛":
        assert (pixels(draw.png(f'{svg}<rect width="40" height="40" fill="#fff"/><text y="30">{sign}</text></svg>', 40))
                < 128).any()  # fmt: skip


def test_an_animation_has_a_frame_for_every_position(draws, tmp_path):
    draws("tictactoe", "--moves=b2 a1 c3", "--seconds=0.5", "--out=game.gif")
    with Image.open(tmp_path / "game.gif") as film:
        frames = [(frame.info["duration"], np.asarray(frame.convert("RGB"))) for frame in ImageSequence.Iterator(film)]
    assert [time for time, _ in frames] == [500, 500, 500, 1500]
    assert all((a != b).any() for (_, a), (_, b) in itertools.pairwise(frames))


def test_a_saved_game_and_a_position_are_drawn(draws, tmp_path):
    game = envs.make("tictactoe")
    states, actions = saved.replay(game, game.init(), ["b2", "a3"])
    state = states[-1]
    (tmp_path / "game.json").write_text(saved.to_file(game, states, actions))
    (tmp_path / "position.json").write_text(json.dumps(game.to_record(state)))
    for name in ("game", "position"):
        draws("tictactoe", f"--record={name}.json", f"--out={name}.svg")
        text = (tmp_path / f"{name}.svg").read_text()
        assert text == (draw.mark(game.svg(state), ["a3"]) if name == "game" else game.svg(state))


def test_the_same_seed_draws_the_same_game(draws, tmp_path):
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        draws("go:size=5", "--random_plies=9", f"--seed={seed}", f"--out={name}.svg")
    a, b, c = ((tmp_path / f"{name}.svg").read_text() for name in "abc")
    assert a == b != c


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tictactoe"], "--out"),
        (["tictactoe", "--out=a.jpg"], "expected a name that ends in .svg, .png, .gif"),
        (["chess960", "--out=a.svg"], "unknown game 'chess960'"),
        (
            ["tictactoe", "--out=a.svg", "--moves=b2 b2"],
            "move 2: 'b2' is not legal here: b2 is taken; legal: a3, b3, c3",
        ),
        (["tictactoe", "--out=a.svg", "--moves=z9"], "move 1:"),
        (["tictactoe", "--out=a.svg", "--record=none.json"], "No such file"),
        (["tictactoe", "--out=a.png", "--width=0"], "--width: expected 16"),
        (["tictactoe", "--out=a.gif", "--seconds=nan"], "--seconds: expected 0.02"),
        (["tictactoe", "--out=a.svg", "--colour=red"], "--colour=red"),
    ],
)
def test_bad_input_is_one_line(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["draw", *arguments])
    with pytest.raises(SystemExit) as stopped:
        draw.main()
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert words in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "this is no JSON"),
        ("[" * 100_000, "this is no JSON"),
        ("[]", "expected a JSON object"),
        ('{"game": "foq"}', "a game of foq, not of tictactoe"),
        ('{"actions": "b2", "game": "tictactoe"}', "expected a list of names"),
        (
            '{"game": "tictactoe", "actions": ["a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2", "c3", "c3"]}',
            "more than a",
        ),
        ('{"game": "tictactoe", "start": {}, "mood": 1}', "a game with the fields actions, format, game"),
        ('{"game": "tictactoe", "start": {"board": 3}}', "tictactoe record"),
        ('{"format": "chess"}', "format: expected 'ripzero game 1', got 'chess'"),
        ('{"board": 3}', "tictactoe record"),
    ],
)
def test_broken_files_are_refused(text, words):
    with pytest.raises(ValueError, match=words):
        saved.from_file(envs.make("tictactoe"), text)


@pytest.mark.parametrize("name", envs.list())
def test_games_come_back_from_their_files(name):
    game = envs.make(name)
    start = game.init()
    states, actions = saved.replay(game, start, draw.random_moves(game, start, 6, seed=2))
    first, names = saved.from_file(game, saved.to_file(game, states, actions))
    again, same = saved.replay(game, first, names)
    assert same == actions
    assert game.to_record(again[-1]) == game.to_record(states[-1])
