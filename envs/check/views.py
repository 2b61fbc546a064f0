"""Rules about what people see: records, names of actions, pictures and lessons."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import jax
import numpy as np

import envs
from envs import saved
from envs.check.bench import Bench
from envs.check.rule import refused, rule, same

LONGEST_STEP = 300  # characters, see `Step`


@rule
def records_come_back_unchanged_along_a_game(bench: Bench) -> None:
    last = int(bench.plies.over[:, 0].argmax())  # the ply at which game 0 is over
    for ply in sorted({*range(0, last, 5), 1, last}):
        s = bench.position(ply)
        record = bench.game.to_record(s)
        assert "forfeit" not in record, "to_record: expected `forfeit` after a forfeit only, see records.with_forfeit"
        same(bench.game.from_record(record), s)
        text = json.dumps(record)
        same(bench.game.from_record(json.loads(text)), s)


@rule
def records_keep_a_forfeit(bench: Bench) -> None:
    s = jax.jit(bench.game.step)(bench.position(1), -1)
    record = json.loads(json.dumps(bench.game.to_record(s)))
    assert "forfeit" in record, "to_record: expected `forfeit` after a forfeit, see records.with_forfeit"
    assert record["forfeit"] == int(bench.game.player(s))
    same(bench.game.from_record(record), s)


@rule
def action_names_can_be_read_back(bench: Bench) -> None:
    game = bench.game
    names = [game.action_name(a) for a in range(game.num_actions)]
    assert [game.parse_action(name) for name in names] == list(range(game.num_actions))
    assert len(set(names)) == game.num_actions


@rule
def bad_action_names_are_refused(bench: Bench) -> None:
    names = {bench.game.action_name(a) for a in range(bench.game.num_actions)}
    for name in {"", "no such move", "-1", "99999999", "a0"} - names:
        refused(bench.game.parse_action, name)


@rule
def pictures_of_all_stages(bench: Bench) -> None:
    last = int(bench.plies.over[:, 0].argmax())
    start = bench.position(0)
    forfeited = jax.jit(bench.game.step)(start, -1)
    for s in (start, bench.position(last // 2), bench.position(last), forfeited):
        assert bench.game.show(s).strip()
        assert ElementTree.fromstring(bench.game.svg(s)).tag.endswith("svg")


@rule
def every_legal_action_can_be_pointed_at(bench: Bench) -> None:
    """Its cells are in the picture, and actions with the same cells have different labels."""
    game, last = bench.game, int(bench.plies.over[:, 0].argmax())
    for s in (bench.position(0), bench.position(last // 3), bench.position(last * 2 // 3)):
        picture = ElementTree.fromstring(game.svg(s))
        there = [x.get("data-cell") for x in picture.iter() if x.get("data-cell")]
        assert len(set(there)) == len(there), "two cells have the same name"
        cells, label = game.view.cells or (lambda action: ()), game.view.label or game.action_name
        ways = [(cells(a), label(a)) for a in map(int, np.flatnonzero(np.asarray(game.mask(s))))]
        lost = {name for names, _ in ways for name in names} - set(there)
        assert not lost, f"the picture has no cell {min(lost)}"
        assert len(set(ways)) == len(ways), "two actions have the same cells and words"


@rule
def lesson_is_short_and_its_moves_are_legal(bench: Bench) -> None:
    for step in bench.game.view.lesson:
        assert 0 < len(step.text) <= LONGEST_STEP, f"a step of the lesson has {len(step.text)} characters"
        game = envs.make(step.board) if step.board else bench.game
        states, _ = saved.replay(game, game.init(), step.moves)
        assert game.svg(states[-1])


@rule
def what_is_no_record_is_refused(bench: Bench) -> None:
    for record in (None, 5, [], "text", {}):
        refused(bench.game.from_record, record)
