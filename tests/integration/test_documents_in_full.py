"""The pictures of the documents can be drawn, and their Python runs."""

import re
import shlex
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import envs
from envs import saved

ROOT = Path(__file__).parents[2]


def drawn_in(path):
    """The arguments of every picture that a document or script draws; of a script's own `draw` the second word is the
    name of the file."""
    lines = re.findall(r"^(python -m envs\.draw|draw) (\S.*)$", (ROOT / path).read_text(), re.MULTILINE)
    for program, words in ((program, shlex.split(line)) for program, line in lines):
        yield [words[0], f"--out=docs/pictures/games/{words[1]}", *words[2:]] if program == "draw" else words


@pytest.mark.parametrize("path", ["docs/playing.md", "docs/pictures/games.sh"])
def test_pictures_of_the_documents_can_be_drawn(path, draws, tmp_path):
    game = envs.make("tictactoe")
    (tmp_path / "game.json").write_text(saved.to_file(game, *saved.replay(game, game.init(), ["b2"])))
    lines = list(drawn_in(path))
    assert len(lines) >= 3
    for number, words in enumerate(lines):
        name = next(word for word in words if word.startswith("--out="))
        words = [f"--out={number}.svg" if word == name else word for word in words]  # its pixels are tested above
        draws(*words)
        ElementTree.parse(tmp_path / f"{number}.svg")
        if path.endswith(".sh"):
            assert (ROOT / name.removeprefix("--out=")).exists()


@pytest.mark.nightly
def test_the_python_of_the_documents_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    rules, depth = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/start.md").read_text(), re.MULTILINE | re.DOTALL)
    names = {}
    exec(rules, names)
    assert names["reached"].shape == (1024, 8, 9)
    assert names["torn"].shape == (1024, 8, 9)
    assert depth.count("games=20") == 1
    exec(depth.replace("games=20", "games=4"), names)  # most of the time is that of the games
    game, moves = names["network"].game, names["found"]["moves"]
    assert moves
    assert all(game.mask(game.init())[game.parse_action(move["action"])] for move in moves)
