"""Every game still answers what its golden playthrough says."""

from __future__ import annotations

import difflib

import playthroughs
import pytest

SHOWN = 60  # lines of a difference: the first one tells most, as the moves after it may be others


@pytest.mark.parametrize("name", playthroughs.NAMES)
def test_game_answers_as_before(name):
    path = playthroughs.path_of(name)
    before = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    now = playthroughs.playthrough(name).splitlines()
    if now != before:
        where = f"tests/golden/playthroughs/{path.name}"
        lines = list(difflib.unified_diff(before, now, where, "what the game answers now", lineterm=""))
        lines[SHOWN:] = [f"... and {len(lines) - SHOWN} lines more"] if len(lines) > SHOWN else []
        advice = f"if that is meant, write the files anew: {playthroughs.COMMAND}"
        pytest.fail("\n".join([f"{name} differs from {where}; {advice}", *lines]), pytrace=False)


def test_no_other_playthroughs_lie_there():
    assert {*playthroughs.FOLDER.iterdir()} == {playthroughs.path_of(name) for name in playthroughs.NAMES}
