"""Proof targets from a file: what is written, drawn and refused."""

import dataclasses
import gzip
import json
from pathlib import Path

import jax
import numpy as np
import pytest

import envs
from agents.arena.solved_positions import read_positions
from agents.config import Config
from agents.network.network import make_network
from agents.runtime import mesh
from agents.training import proof_file, proof_targets
from agents.training.iteration import make_iteration, run_specs, start_run

GOLDEN = Path(__file__).parents[1] / "golden" / "tictactoe_solved.jsonl.gz"
SMALL = Config(
    env="tictactoe", num_envs=16, plies_per_iteration=4, num_simulations=2, network="mlp", channels=16, blocks=1,
    replay_capacity=400, batch_size=32, warmup_positions=0, proof_share=0.5,
)  # fmt: skip


@pytest.fixture(scope="module")
def golden():
    """Positions, and the result of each by its cells, from the view of its mover."""
    lines = [json.loads(line) for line in gzip.decompress(GOLDEN.read_bytes()).splitlines()]
    values = {tuple(np.array(x["board"]) * x["to_move"]): x["value"] for x in lines if not x["terminal"]}
    positions = read_positions(GOLDEN, envs.make("tictactoe"))
    return positions, [x["value"] for x in lines if not x["terminal"]], values


def fed(path: Path, **options):
    """A run before its first iteration, and the function that adds rows of the file."""
    game, config = envs.make("tictactoe"), dataclasses.replace(SMALL, proof_file=str(path), **options)
    net, one = make_network(game, config), mesh.make_mesh(16, 32, 1)
    run = mesh.laid_out(lambda: start_run(game, net, config), run_specs, one)()
    feed = proof_file.make_feed(game, config, mesh.shardings(one, run_specs(run)).proof_targets)
    return run, feed, jax.jit(make_iteration(game, net, config, one))


def cells(targets: proof_targets.ProofTargets, row: tuple[int, int]) -> tuple[int, ...]:
    """The cells of a row in the ring from the view of its mover: 1 own, -1 the other's."""
    planes = envs.make("tictactoe").observe(jax.tree.map(lambda x: x[row], targets.observation_state))
    return tuple(np.asarray(planes[..., 0] - planes[..., 1]).ravel().astype(int).tolist())


def test_rows_are_those_of_the_file(golden, tmp_path):
    positions, values, by_cells = golden
    proof_file.write(tmp_path / "t.npz", envs.make("tictactoe"), positions.states, values, positions.right)
    run, feed, iterate = fed(tmp_path / "t.npz")
    first = jax.device_get(feed(run).proof_targets)
    again = jax.device_get(feed(fed(tmp_path / "t.npz")[0]).proof_targets)
    assert jax.tree.all(jax.tree.map(np.array_equal, first, again))
    count = proof_targets.rows_per_iteration(SMALL)
    assert first.there[:count].all() and not first.there[count:].any() and first.cursor == count
    best = dict(zip(by_cells, positions.right, strict=True))
    for row in np.ndindex(count, 16):
        key = cells(first, row)
        assert first.value[row] == by_cells[key]
        assert set(first.actions[row][first.actions[row] >= 0]) == {i for i, x in enumerate(key) if not x}
        assert set(first.actions[row][first.right[row]]) == set(np.flatnonzero(best[key]))
    run = feed(fed(tmp_path / "t.npz")[0])
    run, figures = iterate(run, 0.0)
    assert int(figures["proof_rows"]) == count * 16
    assert np.isnan(figures["proved"])
    second = jax.device_get(feed(run).proof_targets)
    assert not np.array_equal(second.value[count : 2 * count], first.value[:count])


def test_weights_say_how_often_a_row_is_drawn(golden, tmp_path):
    positions, values, by_cells = golden
    lost = np.array(values) == -1
    weights = np.where(lost, 1.0, 0.0)
    proof_file.write(tmp_path / "t.npz", envs.make("tictactoe"), positions.states, values, weights=weights)
    run, feed, _ = fed(tmp_path / "t.npz")
    targets = jax.device_get(feed(run).proof_targets)
    count = proof_targets.rows_per_iteration(SMALL)
    assert (targets.value[:count] == -1).all()
    assert not targets.right.any()
    assert len({cells(targets, row) for row in np.ndindex(count, 16)}) > 40
    assert all(by_cells[cells(targets, row)] == -1 for row in np.ndindex(count, 16))


def test_what_cannot_be_is_refused(golden, tmp_path):
    positions, values, _ = golden
    game, path = envs.make("tictactoe"), tmp_path / "t.npz"
    put = lambda *rest, **more: proof_file.write(path, game, positions.states, *rest, **more)
    with pytest.raises(ValueError, match="expected arrays of one length, got 4519, 4520"):
        put(values[1:])
    for wrong in (2, 0.5, 300):
        with pytest.raises(ValueError, match="expected the result -1, 0 or 1, got another in row 3"):
            put([*values[:3], wrong, *values[4:]])
    with pytest.raises(ValueError, match="expected right moves that are legal, got others in row "):
        put(values, ~positions.legal)
    with pytest.raises(ValueError, match="expected a positive weight in some row, got none"):
        put(values, weights=np.zeros(4520))
    with pytest.raises(ValueError, match="expected finite weights of 0 or more, got another in row 1"):
        put(values, weights=np.array([1, np.inf, *[1] * 4518]))
    over = jax.tree.map(lambda x: x[None], game.init())
    for action in (0, 3, 1, 4, 2):
        over = jax.vmap(game.step, (0, None))(over, action)
    with pytest.raises(ValueError, match="expected positions with a legal move, got another in row 0"):
        proof_file.write(path, game, over, np.array([-1]))
    assert not path.exists()
    put(values)
    with pytest.raises(ValueError, match="expected positions of connect_four.*, got tictactoe"):
        proof_file.read(path, envs.make("connect_four"))
    arrays = dict(np.load(path))
    slots = arrays[".actions"] < 0
    np.savez(path, **arrays | {".right": arrays[".right"] | slots})
    row = slots.any(1).argmax()
    with pytest.raises(ValueError, match=f"expected right moves that are legal, got another in row {row}"):
        proof_file.read(path, game)
    np.savez(path, **arrays | {".value": arrays[".value"].astype(np.int32)})
    with pytest.raises(ValueError, match=r"t.npz: expected \.value of .*int8.*, got .*int32"):
        proof_file.read(path, game)
    np.savez(path, **{name: x if name == "game" else x[:0] for name, x in arrays.items()})
    with pytest.raises(ValueError, match="t.npz: expected positions, got none"):
        proof_file.read(path, game)
    np.savez(path, **{name: x for name, x in arrays.items() if name != ".right"})
    with pytest.raises(ValueError, match=r"t.npz: .*\.right"):
        proof_file.read(path, game)
    np.savez(path, **arrays | {".value": np.int8(0)})
    with pytest.raises(ValueError, match=r"t.npz: expected \.observation_state"):
        proof_file.read(path, game)
    put(values)
    whole = path.read_bytes()
    entry = whole.index(b"PK\x01\x02")  # of the directory: version, flags and method follow
    for at in (6, 8, 10):
        path.write_bytes(whole[: entry + at] + b"\x7f" + whole[entry + at + 1 :])
        with pytest.raises(ValueError, match="t.npz: "):
            proof_file.read(path, game)
    path.write_bytes(whole[:200])
    with pytest.raises(ValueError, match="t.npz: "):
        proof_file.read(path, game)
    with path.open("wb") as stream:
        np.save(stream, np.zeros(3))
    with pytest.raises(ValueError, match="t.npz: File is not a zip file"):
        proof_file.read(path, game)
    with pytest.raises(ValueError, match="--proof_file needs --proof_share, for example 0.5"):
        Config(env="tictactoe", proof_file="t.npz")
