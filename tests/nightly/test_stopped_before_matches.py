"""A run that is stopped before and in its matches ends as one that was not."""

from __future__ import annotations

import os
import signal

import jax
import numpy as np
from programs import TINY

from agents.run import loop
from agents.run.options import training
from agents.run.resume import load_run
from agents.runtime import mesh
from agents.storage import checkpoint


def same(a, b) -> bool:
    return all(jax.tree.leaves(jax.tree.map(lambda x, y: bool(np.array_equal(x, y, equal_nan=True)), a, b)))


RATED = [*TINY[:-1], "--rating_games=4", "--rating_positions=1", "--gate", "--gate_share=0.01", "--iterations=4"]


def test_a_run_stopped_before_a_match_plays_it_when_it_goes_on(tmp_path, monkeypatch):
    """Asked to stop in its second iteration, it saves without the match that is due. Later it begins with that match,
    is asked to stop in it, and does so without another iteration; then in the match after its third iteration. In the
    end it is the run that was not stopped, bit for bit. With a gate matches decide who plays."""
    import train

    iterate, rate = loop.iterate, loop.make_rating
    stops: list[tuple[str, int]] = []  # still to come: in which iteration or in the match after which
    matches: list[int] = []

    def stop(*where):
        if where in stops:
            stops.remove(where)
            os.kill(os.getpid(), signal.SIGTERM)

    def noted(match):
        def noting(run, rating):
            stop("match", int(run.iteration))
            matches.append(int(run.iteration))
            return match(run, rating)

        return noting

    def iterating(programs, config, run, *others):
        stop("iteration", int(run.iteration) + 1)
        return iterate(programs, config, run, *others)

    def outcome(folder):
        path = checkpoint.find_checkpoint(folder, "resume")
        about = checkpoint.about(path)
        devices = mesh.make_mesh(16, about["config"].batch_size, about["config"].devices)
        return load_run(path, about["config"], devices), about["rating"]

    monkeypatch.setattr(loop, "iterate", iterating)
    monkeypatch.setattr(loop, "make_rating", lambda *given: noted(rate(*given)))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        train.train(*training([*RATED, f"--out={tmp_path / 'whole'}"]))
        assert matches == [2, 3, 4]  # the first iteration has too few results to learn from
        matches.clear()
        stops += [("iteration", 2), ("match", 2), ("match", 3)]
        train.train(*training([*RATED, f"--out={tmp_path / 'parts'}"]))
        assert matches == []
        train.train(*training([f"--resume={tmp_path / 'parts'}"]))
        assert matches == [2]
        assert outcome(tmp_path / "parts")[0].iteration == 2
        train.train(*training([f"--resume={tmp_path / 'parts'}"]))
        assert matches == [2, 2, 3]
        assert outcome(tmp_path / "parts")[0].iteration == 3
        train.train(*training([f"--resume={tmp_path / 'parts'}"]))
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert matches == [2, 2, 3, 3, 4] and not stops  # two were broken off and begun anew
    (whole, rating), (parts, rating_of_parts) = outcome(tmp_path / "whole"), outcome(tmp_path / "parts")
    assert rating == rating_of_parts and rating["taken"] > 0
    assert same(whole, parts)
