"""Nothing is lost: saving behind the training, and damaged files."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import pathlib
import resource
import shutil
import threading
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from agents.config import Config
from agents.network.network import make_network
from agents.run import diagnosis, loop
from agents.run.folder import open_folder
from agents.run.resume import load_run, save_run, snapshot
from agents.runtime import mesh, processes
from agents.storage import checkpoint, jsonl
from agents.storage import weights as models
from agents.storage.jsonl import Lines
from agents.training.iteration import make_iteration, run_specs, start_run

SMALL = Config(
    env="tictactoe", num_envs=16, plies_per_iteration=4, num_simulations=4, network="mlp", channels=16, blocks=1,
    replay_capacity=400, batch_size=32, warmup_positions=64, optimiser="adamw",
)  # fmt: skip


def same(a, b) -> bool:
    return all(jax.tree.leaves(jax.tree.map(lambda x, y: bool(np.array_equal(x, y, equal_nan=True)), a, b)))


@pytest.fixture(scope="module")
def parts():
    game, one = envs.make(SMALL.env), mesh.make_mesh(16, 32, 1)
    net = make_network(game, SMALL)
    start = mesh.laid_out(lambda: start_run(game, net, SMALL), run_specs, one)
    return start, jax.jit(make_iteration(game, net, SMALL, one), donate_argnums=0), one


@pytest.fixture(scope="module")
def original(parts, tmp_path_factory):
    start, iterate, _ = parts
    folder, run = tmp_path_factory.mktemp("saved"), start()
    save_run(folder, run, SMALL)
    save_run(folder, iterate(run, 0.0)[0], SMALL)
    return folder


@pytest.fixture
def saved(original, tmp_path):
    """A folder with checkpoints of iterations 0 and 1."""
    return shutil.copytree(original, tmp_path / "run")


# Saving


def test_training_goes_on_while_a_run_is_saved(parts, tmp_path, monkeypatch):
    """What is saved is the run as it was, although its buffers are written to before the disk has it."""
    start, iterate, one = parts
    run, before = start(), start()
    go_on = threading.Event()
    saver = checkpoint.Saver(tmp_path, SMALL, print)
    complete = saver._complete
    monkeypatch.setattr(saver, "_complete", lambda *arguments: go_on.wait(900) and complete(*arguments))
    assert saver.start(snapshot(run), minutes=1.0)
    for _ in range(3):
        run, _ = iterate(run, 0.0)
    jax.block_until_ready(run)
    assert not list(tmp_path.glob("*/0"))
    go_on.set()
    saver.wait()
    assert saver.saved == 0
    assert same(load_run(checkpoint.find_checkpoint(tmp_path, "resume"), SMALL, one), before)
    assert same(
        models.load_arrays(checkpoint.find_checkpoint(tmp_path, "networks"), SMALL), before.learning.ema_weights
    )
    assert sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.glob("*/*")) == ["networks/0", "resume/0"]


def test_where_another_process_has_no_room_nobody_saves(parts, tmp_path, monkeypatch):
    """The collective save of those who have would wait for ever."""
    said: list[str] = []
    saver = checkpoint.Saver(tmp_path, SMALL, said.append)
    answers = iter(
        [[[True], [True]], [[True], [False]]]
    )  # of both: whether the last save has ended, whether there is room
    monkeypatch.setattr(processes, "allgather", lambda *numbers: np.array(next(answers)))
    assert saver.start(snapshot(parts[0]()), minutes=1.0)
    assert saver.poll()
    assert saver.saved is None
    assert "could not be saved: another process has no room for it" in said[-1]
    assert not list(tmp_path.glob("resume/*"))


def test_a_disk_that_turns_read_only_while_it_is_asked_for_room(saved, parts):
    """The file that asks for room then stays until the next save."""
    start, iterate, _ = parts
    said, run = [], start()
    for _ in range(2):
        run, _ = iterate(run, 0.0)
    saver = checkpoint.Saver(saved, SMALL, said.append, 1)

    def refuse(path, **_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    with pytest.MonkeyPatch.context() as disk:
        disk.setattr(pathlib.Path, "unlink", refuse)
        assert saver.start(snapshot(run))
    assert len(said) == 1 and said[0].startswith("warning: iteration 2 could not be saved: Read-only file system: ")
    assert list(saved.glob("*/room.writing"))
    saver.finish(snapshot(run))
    assert saver.saved == 2
    assert not list(saved.glob("*/room.writing"))


def test_copies_are_not_the_buffers_that_training_writes_to(parts):
    start, _, _ = parts
    run = start()
    places = lambda tree: {x.unsafe_buffer_pointer() for x in jax.tree.leaves(tree)}
    assert not places(run) & places(checkpoint._copy(run))


def test_one_save_at_a_time(parts, tmp_path, monkeypatch):
    start, iterate, _ = parts
    first, said, go_on = start(), [], threading.Event()
    saver = checkpoint.Saver(tmp_path, SMALL, said.append)
    complete = saver._complete
    monkeypatch.setattr(saver, "_complete", lambda *arguments: go_on.wait(900) and complete(*arguments))
    assert saver.start(snapshot(first))
    second, _ = iterate(first, 0.0)
    assert not saver.start(snapshot(second))
    assert not saver.start(snapshot(second))
    assert said == ["the checkpoint before is still being written; the next one waits for it"]
    go_on.set()
    saver.finish(snapshot(second))
    assert [p.name for p in checkpoint.numbered(tmp_path / "resume")] == ["0", "1"]


def test_a_save_that_fails_leaves_the_ones_before(saved, parts):
    start, iterate, _ = parts
    said, run = [], start()
    saver = checkpoint.Saver(saved, SMALL, said.append, 1)
    for _ in range(2):
        run, _ = iterate(run, 0.0)
    (saved / "resume").rename(saved / "elsewhere")
    (saved / "resume").write_text("a file where a folder should be")
    assert saver.start(snapshot(run))
    saver.wait()
    assert saver.saved == 1
    assert len(said) == 1 and said[0].startswith("warning: iteration 2 could not be saved: ")
    assert said[0].endswith(f"the last intact checkpoint is {saved}/resume/1")
    with pytest.raises(checkpoint.CheckpointError, match="iteration 2 could not be saved: .*resume/1$"):
        saver.finish(snapshot(run))
    (saved / "resume").unlink()
    (saved / "elsewhere").rename(saved / "resume")
    assert checkpoint.find_checkpoint(saved, "resume") == saved / "resume/1"
    again = checkpoint.Saver(saved, SMALL, said.append, 1)
    again.finish(snapshot(run))
    assert [p.name for p in checkpoint.numbered(saved / "resume")] == ["1", "2"]


def test_as_many_checkpoints_are_kept_as_asked(parts, tmp_path):
    start, _, _ = parts
    for i in (3, 20, 100, 101):
        run = start()._replace(iteration=jnp.int32(i))
        save_run(tmp_path, run, dataclasses.replace(SMALL, keep_checkpoints=3))
    assert {p.name for p in (tmp_path / "resume").iterdir()} == {"20", "100", "101"}
    with pytest.raises(ValueError, match="--keep_checkpoints: expected 1 to"):
        dataclasses.replace(SMALL, keep_checkpoints=0)


def test_leftovers_of_killed_saves_are_removed(saved):
    for name in ("resume/7.writing", "resume/9.writing.orbax-checkpoint-tmp", "networks/7.writing"):
        (saved / name / "run").mkdir(parents=True)
    assert checkpoint.find_checkpoint(saved, "resume").name == checkpoint.find_checkpoint(saved, "networks").name == "1"
    checkpoint.Saver(saved, SMALL, print, 1)
    assert {p.name for kind in ("resume", "networks") for p in (saved / kind).iterdir()} == {"0", "1"}


def test_going_on_from_an_earlier_iteration_drops_the_later_ones(saved, parts):
    """Only once there is something in their place."""
    start, _, _ = parts
    run = start()
    checkpoint.forget_later(saved, 0)
    assert checkpoint.find_checkpoint(saved, "resume").name == checkpoint.find_checkpoint(saved, "networks").name == "0"
    assert (saved / "resume/1.old").is_dir()
    save_run(saved, run._replace(iteration=jnp.int32(1)), SMALL)
    assert {p.name for p in (saved / "resume").iterdir()} == {p.name for p in (saved / "networks").iterdir()}
    assert {p.name for p in (saved / "networks").iterdir()} == {"0", "1"}


def test_the_best_network_stays(saved):
    weights = models.load_arrays(saved / "networks/1", SMALL)
    for iteration in (0, 1, 0, 1):
        marked = checkpoint.mark_best(saved, iteration)
        assert marked == saved / f"best/{iteration}"
        assert [p.name for p in (saved / "best").iterdir()] == [str(iteration)]
    checkpoint.forget_later(saved, 0)
    assert models.find_network(saved / "best/1") == saved / "best/1"
    assert same(models.load_arrays(saved / "best/1", SMALL), weights)
    assert checkpoint.find_checkpoint(saved, "networks").name == "0"


# Damage


def spoil(path: pathlib.Path, how: str) -> None:
    file = max((p for p in path.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    changed = {"bit": bytes(data), "short": bytes(data[:-1]), "empty": b""}
    if how == "sums":
        (path / checkpoint.CHECKSUMS_FILE).write_text("{")
    elif how == "missing":
        file.unlink()
    else:
        file.write_bytes(changed[how])


@pytest.mark.parametrize("how", ["bit", "short", "empty", "missing", "sums"])
@pytest.mark.parametrize("kind", ["resume", "networks"])
def test_a_damaged_newest_checkpoint_is_passed_over(saved, capsys, kind, how):
    spoil(saved / kind / "1", how)
    assert checkpoint.find_checkpoint(saved, kind) == saved / kind / "0"
    warning = capsys.readouterr().err
    assert warning.startswith(f"warning: checkpoint {saved}/{kind}/1 is damaged: ")
    assert warning.endswith(f"; using {saved}/{kind}/0\n") and warning.count("\n") == 1
    with pytest.raises(checkpoint.CheckpointError, match=f"{kind}/1 is damaged: "):
        checkpoint.find_checkpoint(saved / kind / "1", kind)
    spoil(saved / kind / "0", how)
    with pytest.raises(checkpoint.CheckpointError, match=f"{kind}/1 is damaged: "):
        checkpoint.find_checkpoint(saved, kind)


def test_a_whole_checkpoint_of_other_arrays_is_not_called_damaged(saved, parts):
    """As after an update of the program. The same files without one of them are damaged."""
    path = checkpoint.find_checkpoint(saved, "resume")
    other = dataclasses.replace(SMALL, optimiser="muon")  # keeps other arrays
    with pytest.raises(
        checkpoint.CheckpointError, match="does not fit this version of the program or the game: "
    ) as refused:
        load_run(path, other, parts[2])
    assert "\n" not in str(refused.value)
    next(file for file in sorted((path / "run").rglob("*")) if file.is_file()).unlink()
    with pytest.raises(checkpoint.CheckpointError, match="is damaged or incomplete: "):
        load_run(path, other, parts[2])


def test_metrics_are_whole_whatever_happened(tmp_path):
    path = tmp_path / "metrics.jsonl"
    before = '{"iteration": 1}\n{"iteration": 2}\n{"iteration": 3}\n{"itera'
    path.write_text(before)
    lines = Lines(path, 2)
    assert path.read_text() == before
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = before.index('{"iteration": 3}')
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, hard))  # room for a line and a bit
    try:
        lines.add('{"iteration": 3}')
        for iteration in (4, 5):
            with pytest.raises(OSError, match="No space left"):
                lines.add(json.dumps({"iteration": iteration}))
        assert path.read_text().splitlines()[2:] == ['{"iteration": 3}']
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    lines.add('{"iteration": 6}')
    assert [json.loads(line)["iteration"] for line in path.read_text().splitlines()] == [1, 2, 3, 4, 5, 6]


def test_a_large_file_is_cut_where_it_has_to_be(tmp_path, monkeypatch):
    """Iterations of one, two and three games, of lines shorter and longer than what is read at a time; half a line at
    the end. Few of the lines are looked at."""
    iterations = [i for i in range(1, 301) for _ in range(i % 3 + 1)]
    games = "".join(json.dumps({"iteration": i, "moves": "x" * (i % 7 * 1000)}) + "\n" for i in iterations)
    path, parsed = tmp_path / "games.jsonl", []
    iteration_of = jsonl._iteration_of
    monkeypatch.setattr(jsonl, "_iteration_of", lambda line: parsed.append(line) or iteration_of(line))
    for upto in (0, 1, 2, 150, 299, 300):
        path.write_text(games + '{"iteration":300,"mo')
        parsed.clear()
        again = Lines(path, upto)
        again.add('{"iteration": 1000}')
        again.close()
        kept = [json.loads(line)["iteration"] for line in path.read_text().splitlines()]
        assert kept == [i for i in iterations if i <= upto] + [1000]
        assert len(parsed) <= 22  # of 600: a million and a half bytes, halved until one is left
    for text in ("", '{"itera', "\n", "damaged\n"):
        path.write_text(text)
        again = Lines(path, 5)
        again.add('{"iteration": 6}')
        again.close()
        assert path.read_text() == '{"iteration": 6}\n'
    between = '{"iteration": 4}\n' + "damaged\n" * 5 + '{"iteration": 5}\n'
    path.write_text(between + '{"iteration": 6}\n')
    again = Lines(path, 5)
    again.add('{"iteration": 6, "again": true}')
    again.close()
    assert path.read_text() == between + '{"iteration": 6, "again": true}\n'  # what is damaged costs nothing else


def test_a_diagnosis_that_cannot_be_written_does_not_hide_what_happened(parts, tmp_path):
    run = parts[0]()
    problem = diagnosis.write_diagnosis(tmp_path / "nowhere", run, SMALL)
    assert isinstance(problem, FileNotFoundError)
    said = str(diagnosis.NotFiniteError(problem, run, "there is no checkpoint yet"))
    assert "not finite in self-play; diagnosis.json with the details could not be written (No such file" in said
    assert said.endswith("there is no checkpoint yet")


def refusing(code, files=False):
    """os.rename on a file system that renames files alone, or nothing."""
    rename = os.rename

    def refuse(source, target, **more):
        if files or os.path.isdir(source):
            raise OSError(code, os.strerror(code), source)
        return rename(source, target, **more)

    return refuse


def test_a_folder_that_cannot_be_renamed_is_refused_before_training(monkeypatch, tmp_path):
    """gcsfuse answers "too many open files"; nothing is left behind."""
    monkeypatch.setattr(os, "rename", refusing(errno.EMFILE))
    config = dataclasses.replace(SMALL, out=str(tmp_path / "run"))
    with (
        pytest.raises(ValueError, match="cannot be renamed .*Too many open files.*--rename-dir-limit"),
        open_folder(config, None),
    ):
        pass
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    with open_folder(config, None) as folder:
        assert [path.name for path in folder.iterdir()] == ["metrics.jsonl"]


def test_a_run_name_with_an_at_sign_is_refused(tmp_path):
    with (
        pytest.raises(ValueError, match="--out: expected a name without @, .*, got run@home"),
        open_folder(dataclasses.replace(SMALL, out=str(tmp_path / "run@home")), None),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("files", [False, True])
def test_the_network_is_kept_where_the_last_checkpoint_fails(parts, monkeypatch, tmp_path, files):
    """As one file, which plays as the weights that were to be saved."""
    run, said = parts[0](), []
    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, refusing(errno.ENOTSUP, files))
    with pytest.raises(
        checkpoint.CheckpointError, match="iteration 0 could not be saved: .*there is no checkpoint yet"
    ):
        save_run(tmp_path / "run", run, SMALL)
    loop.keep_network(tmp_path / "run", run, SMALL, {"minutes": 1.0}, types.SimpleNamespace(say=said.append))
    (line,) = said
    assert (
        line == f"warning: of iteration 0 only the network is kept: {tmp_path / 'run' / 'last' / models.NETWORK_FILE}"
    )
    assert [path.name for path in (tmp_path / "run" / "last").iterdir()] == [models.NETWORK_FILE]
    found = models.load_network(tmp_path / "run" / "last")
    assert same(found.weights, run.learning.ema_weights)
