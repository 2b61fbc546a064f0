"""The GTP engine on boards of several sizes, by the clock, and against broken input."""

import contextlib
import dataclasses
import json
import re

import jax
import numpy as np
import pytest
from gtp_dialogue import SPEC, ask, looked_at, raw, refused, stones
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import envs
from agents.config import Config
from agents.network.network import make_network
from agents.serve.gtp.engine import Engine
from agents.serve.gtp.protocol import ANALYSES, COMMANDS
from agents.serve.options import PlayOptions
from agents.storage import weights as models


def test_a_network_looks_at_some_moves_alone():
    """Black has all the board: of all his moves only the one that is asked about is looked at, won as it may be."""
    engine = Engine(PlayOptions(env=SPEC, ui="gtp", num_simulations=32, seconds=60), envs.make(SPEC))
    assert engine.tree_player.network
    (info,) = looked_at(raw(engine, "lz-genmove_analyze b allow b A1 1"))
    assert (info["move"], info["prior"]) == ("A1", "10000")
    assert stones(engine, 1) == {"A1"}


def test_a_time_limit_is_kept(engine):
    import time

    ask(engine, "time_settings 10 0 0")
    began = time.monotonic()
    ask(engine, "genmove b")
    assert time.monotonic() - began < 2 * 10 / 10
    assert engine.left[0][0] < 10


WORDS = [*COMMANDS, *ANALYSES, "b", "w", "black", "A1", "c3", "E5", "J9", "pass", "resign", "0", "5", "-1", "x" * 300]
WORDS += ["1e9", "nan", "99999999999999999999", "24.5", "interval", "#", "\t", "\x00", "é", "１", "alive", "."]
WORDS += ["avoid", "allow", "minmoves", "maxmoves"]
NEW_PROGRAMS = re.compile(r"^\s*\d*\s*(komi|quit)\b")  # other komis compile another search


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.one_of(st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join), st.text(max_size=40)), max_size=8)
)
@example(["play b A1", "lz-analyze w", "undo", "genmove b", "final_score"])
def test_broken_input_is_answered_in_the_protocol(thinking, tmp_path_factory, lines):
    """Whatever comes, there is exactly one answer to each line that asks something, and the engine plays on."""
    with contextlib.chdir(tmp_path_factory.mktemp("cwd")):
        thinking.clear()
        thinking.clock = None
        for line in lines:
            line = line.replace("\n", " ")
            if NEW_PROGRAMS.match(line) or "/" in line:
                continue
            said = raw(thinking, line)
            words = re.sub(r"[\x00-\x08\x0a-\x1f\x7f]", "", line).replace("\t", " ").partition("#")[0].split()
            assert (said == "") == (not words)
            if words:
                number = words[0] if re.fullmatch("[0-9]+", words[0]) else ""
                assert said.startswith((f"={number}", f"?{number}"))
                assert said.endswith("\n\n")
                assert "\n\n" not in said[:-2].rstrip("\n")
                assert "internal error" not in said
        assert ask(thinking, "protocol_version") == "2"


def test_a_network_plays_its_own_size_with_any_komi(tmp_path):
    game, config = envs.make(SPEC), Config(env=envs.make(SPEC).name, channels=8, blocks=1, num_simulations=2)
    weights = jax.tree_util.tree_leaves_with_path(make_network(game, config).init(jax.random.key(0)))
    about = {models.ABOUT: json.dumps({"config": dataclasses.asdict(config)})}
    arrays = {jax.tree_util.keystr(where): np.asarray(x, np.float16) for where, x in weights}
    np.savez(tmp_path / models.NETWORK_FILE, **about, **arrays)
    spec = str(tmp_path)
    engine = Engine(PlayOptions(env=SPEC, ui="gtp", opponent=spec, num_simulations=8), envs.make(SPEC))
    assert ask(engine, "version").endswith(tmp_path.name)
    ask(engine, "komi 6.5")
    assert ask(engine, "genmove b") != "resign"
    assert engine.tree_player.game.name == envs.make("go:size=5,komi=6.5").name
    assert refused(engine, "boardsize 7") == "unacceptable size"
    assert (engine.size, engine.komi) == (5, 6.5)
    with pytest.raises(ValueError, match="got one for go:size=5"):
        Engine(PlayOptions(env="go:size=7", ui="gtp", opponent=spec), envs.make("go:size=7"))


def test_each_board_is_played_with_the_network_that_comes_along_for_it():
    engine = Engine(PlayOptions(env="go:size=6", ui="gtp"), envs.make("go:size=6"))
    assert engine.plays_with.kind == "uct"
    ask(engine, "boardsize 5")
    assert engine.plays_with.path.endswith("go_5x5")  # trained with another komi
    ask(engine, "komi 24.5")
    assert engine.plays_with.path.endswith("go_5x5")
    ask(engine, "boardsize 6")
    assert engine.plays_with.kind == "uct"
    stubborn = Engine(PlayOptions(env="go:size=6", ui="gtp", opponent="uct:50"), envs.make("go:size=6"))
    ask(stubborn, "boardsize 5")
    ask(stubborn, "komi 24.5")
    assert str(stubborn.plays_with) == "uct:50"
