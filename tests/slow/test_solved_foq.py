"""The solver that makes positions for `--proof_file`: against golden data and against our own proofs."""

import gzip
import json
import subprocess
from pathlib import Path

import jax
import pytest
from proved_foq import SOLVED, SOLVER, held_out, place, write

import envs
from agents.solvers.solve import make_solver
from agents.training import proof_file

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("solver") / "solve_foq"
    subprocess.run(["cc", "-O3", "-o", path, SOLVER], check=True)
    return path


def ask(program: Path, records: list[dict], *numbers: str) -> list[list[str]]:
    lines = []
    for record in records:
        queens, mover = record["queens"], record["to_move"]
        mine, other = (queens[0], 0) if len(queens) == 1 else (queens[mover], queens[1 - mover])
        lines.append(f"{sum(1 << square for square in record['ripped']):x} {mine} {other}\n")
    given = [program, str(len(records[0]["queens"])), *numbers]
    done = subprocess.run(given, input="".join(lines), capture_output=True, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines()]


def golden(variant: str, file: str) -> list[dict]:
    lines = map(json.loads, gzip.decompress((GOLDEN / file).read_bytes()).splitlines())
    return [line for line in lines if line["variant"] == variant]


@pytest.mark.parametrize(
    ("variant", "file"), [("foq_single", "foq_variants_solved.jsonl.gz"), ("foq", "foq_solved.jsonl.gz")]
)
def test_winning_moves_are_those_of_golden_data(program, variant, file):
    records = golden(variant, file)[::16]
    found = [int(answer, 16) for (answer,) in ask(program, records, "20000000")]
    assert found == [sum(1 << square for square in record["winning"]) for record in records]
    assert ask(program, records[:1], "1") == [["?"]]


@pytest.mark.parametrize(
    ("variant", "file"), [("foq_single", "foq_variants_solved.jsonl.gz"), ("foq", "foq_solved.jsonl.gz")]
)
def test_sampled_positions_have_the_results_that_our_own_proofs_find(program, variant, file, tmp_path):
    """A result for the mover, and the winning moves where they are listed; through the file of `--proof_file`."""
    game = envs.make(variant)
    lines = ask(program, golden(variant, file)[:12], "20000", "16")
    easy = [line for line in lines if int(line[4]) <= 300]
    assert len(easy) > 100
    assert {line[3] for line in easy} == {"1", "-1"}
    write(tmp_path / "s.npz", game, easy)
    rows, solve = proof_file.read(tmp_path / "s.npz", game), make_solver(game, 1 << 16)
    seen = 0
    for i in range(0, len(easy), len(easy) // 30):
        listed = easy[i][5] != "-" and easy[i][3] == "1"
        answer = solve(jax.tree.map(lambda x: x[i], rows.observation_state), all_moves=listed)
        assert answer.value == rows.value[i]
        assert rows.right[i].any() == listed
        if listed:
            seen += 1
            assert set(rows.actions[i][rows.right[i]]) == {a for a, value in answer.moves.items() if value == 1}
    assert seen > 5


@pytest.mark.parametrize("variant", SOLVED)
def test_positions_that_measure_are_left_out(program, variant):
    """Of those met on the way from a golden position: itself and those after its moves, and nothing that is deeper."""
    measured = held_out(envs.make(variant), SOLVED[variant])
    record = min(golden(variant, SOLVED[variant].name), key=lambda record: len(record["ripped"]))
    met = {place(line) for line in ask(program, [record], "20000", "10000")}
    queens, mover = record["queens"], record["to_move"]
    ripped, mine = sum(1 << square for square in record["ripped"]), queens[mover if len(queens) > 1 else 0]
    known = met & measured
    assert {position[:2] for position in known if position[0] == ripped} == {(ripped, mine)}
    assert 1 < len(known) <= 1 + 40  # no position has more moves
    assert len(met - measured) > 100
    cols = 8 if variant == "foq_single" else 9
    mirrored = lambda square: square // cols * cols + cols - 1 - square % cols
    turned = sum(1 << mirrored(square) for square in record["ripped"])
    assert any(position[:2] == (turned, mirrored(mine)) for position in measured)
