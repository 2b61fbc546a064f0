"""Solved positions: what is read from files, and how moves are counted."""

import gzip
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from agents.arena import solved_positions
from agents.players.spec import Player

# X to move wins in cell 2; O must block cell 2; X may take any cell.
POSITIONS = [
    {"board": [1, 1, 0, -1, -1, 0, 0, 0, 0], "to_move": 1, "terminal": False, "value": 1, "optimal": [2]},
    {"board": [1, 1, 0, -1, 0, 0, 0, 0, 0], "to_move": -1, "terminal": False, "value": 0, "optimal": [2]},
    {"board": [0] * 9, "to_move": 1, "terminal": False, "value": 0, "optimal": list(range(9))},
    {"board": [1, 1, 1, -1, -1, 0, 0, 0, 0], "to_move": -1, "terminal": True, "value": -1, "optimal": []},
]


def lowest(game) -> Player:
    act = lambda weights, key, states, plies: jax.vmap(game.mask)(states).argmax(-1).astype(jnp.int32)
    return Player("lowest", act)


@pytest.mark.parametrize("packed", [False, True])
def test_moves_are_counted_by_phase(tmp_path, packed):
    game, path = envs.make("tictactoe"), tmp_path / "positions"
    text = "\n".join(map(json.dumps, POSITIONS)).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    found = solved_positions.read_positions(path, game)
    assert found.right.sum(1).tolist() == [1, 1, 9]
    assert found.legal.sum(1).tolist() == [5, 6, 9]
    moves = solved_positions.choose(lowest(game), found)
    assert moves.tolist() == [2, 2, 0]
    kept = found.right[np.arange(3), [5, 2, 0]]  # one of them missed
    whole, parts = solved_positions.scores(kept, found.phases)
    assert (whole.positions, whole.kept, whole.share) == (3, 2, pytest.approx(2 / 3))
    assert {name: (s.positions, s.kept) for name, s in parts.items()} == {
        "05 empty": (1, 0), "06 empty": (1, 1), "09 empty": (1, 1)
    }  # fmt: skip


def test_phases():
    assert solved_positions.phase({"ripped": list(range(24)), "rows": 8, "cols": 9}) == "40 to 49 free"
    assert solved_positions.phase({"moves": [0] * 16}) == "16 to 23 moves"
    assert solved_positions.phase({"total": 3}) == "all"


def test_other_variants_in_the_file_are_passed_over(tmp_path, golden):
    lines = [*golden("foq_solved.jsonl.gz"), *golden("foq_variants_solved.jsonl.gz")]
    path = tmp_path / "all.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    for name in ("foq", "foq_single"):
        found = solved_positions.read_positions(path, envs.make(name))
        assert len(found.right) == sum(line["variant"] == name for line in lines) > 100
        assert (found.right & ~found.legal).sum() == 0
    with pytest.raises(ValueError, match="no solved position of foq_multi"):
        solved_positions.read_positions(path, envs.make("foq_multi"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 1"),
        ('{"board": [0], "to_move": 1}', "winning, optimal"),
        ('{"board": [1, 1, 1, 0, 0, 0, 0, 0, 0], "to_move": 1, "optimal": [4]}', "line 1.*stones"),
        ('{"board": [1, -1, 0, 0, 0, 0, 0, 0, 0], "to_move": 1, "optimal": [4, 1]}', "line 1: move 1 is not legal"),
        ('{"board": [1, 1, 1, -1, -1, 0, 0, 0, 0], "to_move": -1, "optimal": [8]}', "line 1: move 8 is not legal"),
        ("[1]", "line 1"),
        ("", "no solved position"),
    ],
)
def test_broken_files_are_refused(tmp_path, line, said):
    path = tmp_path / "broken.jsonl"
    path.write_text(line + "\n" if line else "")
    with pytest.raises(ValueError, match=said):
        solved_positions.read_positions(path, envs.make("tictactoe"))
    path.write_bytes(b"\x1f\x8b damaged")
    with pytest.raises(ValueError, match="damaged"):
        solved_positions.read_positions(path, envs.make("tictactoe"))


def test_wilson_by_hand():
    """(0.5 + z^2/200 -+ z sqrt(0.0025 + z^2/40000)) / (1 + z^2/100) with z = 1.96."""
    assert solved_positions.wilson(50, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert solved_positions.wilson(10, 10)[0] == pytest.approx(0.7225, abs=1e-4)
