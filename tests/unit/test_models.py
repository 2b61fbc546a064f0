"""Networks as small files: the same play as the run they come from, in half precision."""

import dataclasses
import gc
import json
import shutil
import sys
import tracemalloc
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from in_process import in_process
from small_model import SPEC, run_and_model

import envs
from agents.config import for_play
from agents.network.network import make_network
from agents.players.players import choose_game, game_of, make_player
from agents.storage import export
from agents.storage import weights as models
from agents.storage.checkpoint import CheckpointError


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A run and the model made of it."""
    return run_and_model(tmp_path_factory.mktemp("models"))


def test_a_model_plays_as_its_run(folders):
    game = envs.make(SPEC)
    states = jax.vmap(lambda _: game.init())(jnp.arange(4))
    found = []
    for folder in folders:
        path = models.find_network(folder)
        config = models.about(path)["config"]
        found.append(make_network(game, config).apply(models.load_arrays(path, config), jax.vmap(game.observe)(states)))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=0.02)  # half precision has eleven bits
        assert np.abs(theirs).max() > 0.05
    assert game_of(str(folders[1])) == game.name
    assert make_player(f"{folders[1]}@0", game, 8).name == f"{folders[1]}@0"
    of_run, of_model = (models.about(models.find_network(folder)) for folder in folders)
    assert of_model["total_games"] == 7
    assert of_model["config"] == dataclasses.replace(of_run["config"], out="")


def test_a_model_says_how_it_plays(folders, tmp_path, monkeypatch, capsys):
    options = ["--play_value_scale=0.1", "--play_considered_actions=4", "--leaf_symmetry=average"]
    monkeypatch.setattr(sys, "argv", ["export", str(folders[0]), str(tmp_path / "model"), *options])
    export.main()
    assert "KiB" in capsys.readouterr().out
    config = models.about(tmp_path / "model")["config"]
    search = for_play(config, envs.make(SPEC), 32)
    assert (search.gumbel_value_scale, search.leaf_symmetry) == (0.1, "average")
    assert search.max_num_considered_actions == 4
    usual = for_play(models.about(folders[1])["config"], envs.make(SPEC), 32)
    assert (usual.gumbel_value_scale, usual.leaf_symmetry) == (0.3, "none")
    assert usual.max_num_considered_actions == 16


def test_it_is_small_and_leaves_nothing_beside(folders):
    assert [path.name for path in folders[1].iterdir()] == [models.NETWORK_FILE]
    config = models.about(folders[1])["config"]
    count = sum(x.size for x in jax.tree.leaves(models.load_arrays(folders[1], config)))
    assert (folders[1] / models.NETWORK_FILE).stat().st_size < 2 * count + 20_000


def test_damaged_or_foreign_files_are_refused(folders, tmp_path):
    whole = (folders[1] / models.NETWORK_FILE).read_bytes()
    for content in (b"", b"nonsense", whole[: len(whole) // 2]):
        (tmp_path / models.NETWORK_FILE).write_bytes(content)
        with pytest.raises(CheckpointError, match="damaged"):
            models.about(tmp_path)
    (tmp_path / models.NETWORK_FILE).write_bytes(whole)
    with pytest.raises(CheckpointError, match="does not fit"):
        models.load_arrays(tmp_path, dataclasses.replace(models.about(tmp_path)["config"], channels=16))
    with pytest.raises(CheckpointError, match="no checkpoint"):
        models.find_network(tmp_path / "nowhere")


def test_what_half_precision_cannot_hold_is_refused(folders, tmp_path, monkeypatch):
    huge = lambda path, config: {"params": {"kernel": np.full(3, 1e6, np.float32)}}
    monkeypatch.setattr(models, "load_arrays", huge)
    with pytest.raises(ValueError, match="half precision"):
        models.export_network(folders[0], tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_config_of_another_version(folders, tmp_path):
    with np.load(folders[1] / models.NETWORK_FILE) as file:
        arrays = dict(file)
    arrays[models.ABOUT] = np.array('{"config": {"unheard_of": 1}}')
    np.savez(tmp_path / models.NETWORK_FILE, **arrays)
    with pytest.raises(CheckpointError, match="another version"):
        models.about(tmp_path)


def test_shipped_networks_are_found_from_any_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    models.shipped.cache_clear()
    assert models.shipped(envs.make("tictactoe")) == "models/tictactoe"
    assert models.find_network(Path("models/tictactoe")) == models.SHIPPED / "tictactoe"
    assert game_of("models/tictactoe@8") == envs.make("tictactoe").name
    with pytest.raises(CheckpointError, match="does not exist"):
        models.find_network(Path("models/nowhere"))


def test_a_network_of_ones_own_comes_before_a_shipped_one_of_the_same_name(folders, monkeypatch, tmp_path):
    shutil.copytree(folders[1], tmp_path / "models" / "tictactoe")
    monkeypatch.chdir(tmp_path)
    models.shipped.cache_clear()
    assert game_of("models/tictactoe") == envs.make(SPEC).name
    assert models.shipped(envs.make("tictactoe")) == str(models.SHIPPED / "tictactoe")
    models.shipped.cache_clear()


def rewritten(folder, to, **arrays):
    """A copy of a network's file with some arrays replaced; None removes one."""
    with np.load(folder / models.NETWORK_FILE) as file:
        kept = {**file, **arrays}
    np.savez_compressed(to / models.NETWORK_FILE, **{name: x for name, x in kept.items() if x is not None})


def record_of(folder, **options):
    with np.load(folder / models.NETWORK_FILE) as file:
        record = json.loads(str(file[models.ABOUT]))
    record["config"] |= options
    return np.array(json.dumps(record))


def test_a_ladder_of_one_network_is_refused(folders, monkeypatch, capsys):
    """The folder of a network in place of that of its run."""
    path = models.find_network(folders[0])
    code, said = in_process("evaluate.py", ["ladder", str(path)], monkeypatch, capsys)
    assert (code, said.count("\n")) == (2, 1)
    assert f"one network; its run is {folders[0]}" in said


@pytest.fixture
def name_of_kernel(folders):
    with np.load(folders[1] / models.NETWORK_FILE) as file:
        return next(name for name, x in file.items() if x.ndim == 4)


def test_a_file_cannot_choose_code_to_run(folders, tmp_path, monkeypatch):
    """The game of a network lies beside it and leaves a mark when it runs. Only when it is named does it run."""
    monkeypatch.chdir(tmp_path)
    evil = "from pathlib import Path\nPath('mark').touch()\nfrom envs.tictactoe import make\n"
    (tmp_path / "evil.py").write_text(evil)
    rewritten(folders[1], tmp_path, about=record_of(folders[1], env="evil.py"))
    for use in (
        lambda: models.about(tmp_path),
        lambda: models.load_network(tmp_path),
        lambda: choose_game(None, str(tmp_path)),
        lambda: make_player(str(tmp_path), envs.make("tictactoe")),
    ):
        with pytest.raises(CheckpointError, match=r"expected --env=evil.py, since it is for a game of your own, got "):
            use()
    assert not (tmp_path / "mark").exists()
    assert choose_game("evil.py", str(tmp_path)).name == "evil.py"
    assert (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"channels": True}, "--channels cannot be 'True'"),
        ({"channels": 8.0}, "--channels cannot be '8.0'"),
        ({"channels": 10**30}, "--channels: expected 1 to"),
        ({"c_puct": float("nan")}, "--c_puct: expected more than 0"),
        ({"search": "alphabeta"}, "--search cannot be 'alphabeta'"),
        ({"env": ["foq"]}, "--env cannot be"),
    ],
)
def test_options_of_a_file_have_types_and_ranges(folders, tmp_path, options, words):
    rewritten(folders[1], tmp_path, about=record_of(folders[1], **options))
    with pytest.raises(CheckpointError, match=words):
        models.about(tmp_path)


def test_arrays_are_judged_before_they_are_read(folders, tmp_path, name_of_kernel):
    """Zeros compress a thousandfold: 64 MiB in a file of 64 KiB, once as an array nobody asked for and once in the
    place of a kernel. Neither takes memory."""
    config = models.about(folders[1])["config"]
    huge = np.zeros(2**26, np.uint8)
    rewritten(folders[1], tmp_path, stranger=huge)
    tracemalloc.start()
    models.load_arrays(tmp_path, config)
    rewritten(folders[1], tmp_path, **{name_of_kernel: huge})
    tracemalloc.reset_peak()
    with pytest.raises(CheckpointError, match="does not fit its game"):
        models.load_arrays(tmp_path, config)
    assert tracemalloc.get_traced_memory()[1] < 2**23
    tracemalloc.stop()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, "text", None])
def test_weights_are_finite_numbers(folders, tmp_path, name_of_kernel, wrong):
    config = models.about(folders[1])["config"]
    with np.load(folders[1] / models.NETWORK_FILE) as file:
        kernel = file[name_of_kernel]
    array = None if wrong is None else np.full(kernel.shape, wrong)
    rewritten(folders[1], tmp_path, **{name_of_kernel: array})
    with pytest.raises(CheckpointError, match="is missing|finite numbers|bytes of <U"):
        models.load_arrays(tmp_path, config)


@pytest.mark.parametrize(
    "header",
    ["{'descr': '<f3', 'fortran_order': False, 'shape': (4,), }",
     "{'descr': '<f4', 'fortran_order': 0, 'shape': (4,), }",
     "{'descr': '<f4', 'fortran_order': False, 'shape': (-4,), }",
     "{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1" * 60_000, "(" * 1000, ""],
)  # fmt: skip
def test_headers_that_numpy_did_not_write(folders, tmp_path, name_of_kernel, header):
    config = models.about(folders[1])["config"]
    with (
        zipfile.ZipFile(folders[1] / models.NETWORK_FILE) as old,
        zipfile.ZipFile(tmp_path / models.NETWORK_FILE, "w") as new,
    ):
        for name in set(old.namelist()) - {f"{name_of_kernel}.npy"}:
            new.writestr(name, old.read(name))
        text = header.encode() + b"\n"
        new.writestr(f"{name_of_kernel}.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(16))
    with pytest.raises(CheckpointError, match="unknown format"):
        models.load_arrays(tmp_path, config)


@pytest.fixture
def busy_threads():
    """Threads take turns often, and inside of calls of Python's own as well, when garbage is collected."""
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(20)
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*threshold)


def test_threads_of_a_server_read_networks_together(folders, busy_threads):
    """As guests do who open the page at the same time."""
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda _: models.about(folders[1])["iteration"], range(200)))
    assert found == [models.about(folders[1])["iteration"]] * 200


def test_objects_are_never_unpickled(folders, tmp_path, name_of_kernel):
    config = models.about(folders[1])["config"]
    with np.load(folders[1] / models.NETWORK_FILE) as file:
        shape = file[name_of_kernel].shape
    rewritten(folders[1], tmp_path, **{name_of_kernel: np.full(shape, object())})
    with pytest.raises(CheckpointError, match="cannot have|finite"):
        models.load_arrays(tmp_path, config)
