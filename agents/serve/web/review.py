"""A search of every position of a game, a few at a time, and the cost of each move."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from agents.serve.web.lanes import Job
from agents.serve.web.played_game import PlayedGame

REVIEWS_AT_ONCE = 8  # positions; a width of `engines.WIDTHS`
MARKS = ((0.4, "blunder"), (0.2, "mistake"), (0.1, "inaccuracy"))  # by the drop in expected score, 0 to 1

# search(ply, done): begins a search of the position after `ply` moves, which ends with done(job).
Search = Callable[[int, Callable[[Job], None]], Job]


class Review:
    """The review of one game, whose moves must not change meanwhile."""

    def __init__(self, played: PlayedGame, search: Search):
        self.played, self.search = played, search
        self.left = [ply for ply, position in enumerate(played.positions) if not position.over]
        self.jobs: dict[int, Job] = {}  # by ply, those that run
        self.searched: set[int] = set()  # plies
        self._go_on()

    def _go_on(self) -> None:
        while self.left and len(self.jobs) < REVIEWS_AT_ONCE:
            ply = self.left.pop(0)
            self.jobs[ply] = self.search(ply, functools.partial(self._done, ply))

    def _done(self, ply: int, job: Job) -> None:
        del self.jobs[ply]
        self.searched.add(ply)
        self.played.keep(ply, job.report)
        self._go_on()

    @property
    def ended(self) -> bool:
        return not self.jobs

    def stop(self) -> None:
        """Keeps what has been found."""
        for job in self.jobs.values():
            job.dropped = True
        self.left, self.jobs = [], {}

    @property
    def thinking(self) -> dict[str, Any]:
        """What the page shows of a review that is under way."""
        done, total = len(self.moves()), self.played.ply
        progress = round(done / total, 3)
        return {"kind": "review", "progress": progress, "done": done, "total": total, "simulations": 0,
                "compiling": False}  # fmt: skip

    def moves(self) -> list[dict[str, Any]]:
        """Cost of every move that has been judged: the mover's expected share of the point, 0 to 1, before the move
        minus after it. With n players the winner has value 1 and each other player -1 / (n - 1)."""
        played = self.played
        point = 1 - 1 / played.game.num_players
        judged = []
        for ply, action in enumerate(played.actions):
            over = played.positions[ply + 1].over
            if ply not in self.searched or not (over or ply + 1 in self.searched):
                continue
            mover = played.positions[ply].player
            report, before, after = played.reports[ply], played.values(ply), played.values(ply + 1)
            assert before is not None and after is not None
            best, name = report["moves"][0]["action"], played.game.action_name(action)
            drop = 0.0 if best == name else max(0.0, before[mover] - after[mover]) * point
            mark = next((word for least, word in MARKS if drop >= least), "")
            judged.append({"ply": ply, "action": name, "drop": round(drop, 3), "mark": mark, "best": best})
        return judged

    def better(self, ply: int) -> str | None:
        """The best move in a position, if the one made there is marked."""
        return next((move["best"] for move in self.moves() if move["ply"] == ply and move["mark"]), None)
