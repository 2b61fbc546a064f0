"""Go from 5x5 to 19x19: area scoring, no suicide, simple ko or positional superko, ended by two passes or by a cap.

Points are numbered row by row from the top left and named as usual, without the letter I. The last action is the pass.
On 9x9:

      0  1  2 ...  8        A9 B9 C9 ... J9
      9 10 11 ... 17        A8 B8 C8 ... J8
      :            :         :            :
     72 73 74 ... 80        A1 B1 C1 ... J1       81  pass
"""

from __future__ import annotations

from typing import Any

import numpy as np

from envs.game import Game, Hints, board_view, with_history
from envs.go.observation import LAST_MOVES, observe, observe_history, observe_liberties, observed, tactics
from envs.go.points import parse_point, point_name
from envs.go.records import from_record, to_record
from envs.go.rules import (
    LARGEST,
    SMALLEST,
    State,
    area,
    init,
    known_result,
    mask,
    move,
    over,
    owners,
    player,
    rewards,
    step,
)
from envs.go.symmetries import symmetries
from envs.go.view import SEATS, lesson, picture, show, why_illegal, why_over

__all__ = [
    "LARGEST", "SMALLEST", "State", "area", "from_record", "init", "known_result", "make", "mask", "move", "observe",
    "over", "owners", "parse_point", "player", "point_name", "rewards", "show", "step", "symmetries", "to_record",
]  # fmt: skip

LONGEST_HISTORY = 100  # boards that an observation may show


def make(size: int = 9, komi: float = 7.5, ko: str = "simple", history: int = 0) -> Game:
    """Go on `size` x `size` points with `komi` points for White; `ko` is `simple` or `psk` (positional superko).

    Observations show liberties, the ko and the last two moves, see `observe_liberties`. With `history` they show the
    last `history` boards instead, see `observe_history`; 8 gives the 17 planes of AlphaGo Zero.

    Raises:
        ValueError: `size` not from 5 to 19, an unknown ko rule, `komi` not finite, or `history` not from 0 to 100.
    """
    init(size, ko)  # rejects other sizes and ko rules
    if not np.isfinite(komi):
        raise ValueError(f"go: komi: expected a finite number, got {komi}")
    if not 0 <= history <= LONGEST_HISTORY:
        raise ValueError(f"go: history: expected 0 to {LONGEST_HISTORY} boards, got {history}")
    komi = float(komi) + 0.0  # without the sign of -0.0

    def from_own_record(record: dict[str, Any]) -> State:
        s = from_record(record)
        for field, own in (("size", size), ("komi", komi), ("ko", ko)):
            if isinstance(record[field], bool) or record[field] != own:
                raise ValueError(f"go record: {field} is {record[field]!r}, but {own!r} in this game")
        return s

    name = lambda action: point_name(int(action), size)
    game = Game(
        name=f"go:size={size},komi={komi},ko={ko},history={history}",
        num_players=2,
        num_actions=size * size + 1,
        max_plies=2 * size * size,
        max_legal=size * size + 1,  # at the start
        init=lambda key=None: init(size, ko),
        step=step,
        move=move,
        mask=mask,
        over=over,
        player=player,
        rewards=lambda s: rewards(s, komi),
        observe=observe,
        symmetries=symmetries(size),
        show=lambda s: show(s, komi),
        action_name=name,
        parse_action=lambda text: parse_point(text, size),
        to_record=lambda s: to_record(s, komi, ko),
        from_record=from_own_record,
        observation_state=observed if history else tactics,
        hints=Hints(owners=owners, known_result=lambda s: known_result(s, komi), moves_are_cheap=False),
        view=board_view(
            f"Go {size}x{size}: the larger area wins; stones that lose their last free neighbour are taken.",
            SEATS,
            picture(size, komi),
            name,
            {size * size: "Pass"},
            legend="X Black, O White, . empty, + empty, a marked point",
            lesson=lesson(komi, ko),
            why_illegal=why_illegal,
            why_over=lambda s: why_over(s, komi),
        ),
    )
    if history == 0:
        return with_history(game, LAST_MOVES + 1, observe_liberties, keep=observed)
    return game if history == 1 else with_history(game, history, observe_history)
