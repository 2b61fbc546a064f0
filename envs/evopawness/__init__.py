"""EvoPawness: pieces wound each other, promote for mana and collect runes; losing the king or all pawns loses.

Cell (y, x) of the 9x9 board has the number 9 y + x. Player 0, White, starts at the bottom and moves up. Player 1,
Black, starts at the top and moves first:

     0  1  2  3  4  5  6  7  8       .  .  .  .  k  .  .  .  .       k, K   kings, never move
     9 10 11 12 13 14 15 16 17       s  .  s  .  s  .  s  .  s       s, S   soldiers
     :  :  :  :  :  :  :  :  :       :  :  :  :  :  :  :  :  :
    36                      44       +  .  .  .  +  .  .  .  +       +      rune cells 36 (atk), 40 (hp), 44 (step)
     :  :  :  :  :  :  :  :  :       :  :  :  :  :  :  :  :  :
    63 64 65 66 67 68 69 70 71       S  .  S  .  S  .  S  .  S
    72 73 74 75 76 77 78 79 80       .  .  .  .  K  .  .  .  .

An action is `37 cell + k` for the acting piece's cell: k = 0 activates, 1 to 4 promote, 5 to 36 are the 32 shifts of a
move or attack. Action 2997 is the skip.
"""

from __future__ import annotations

import numpy as np

from envs.evopawness.actions import action_name, flip_actions, parse_action
from envs.evopawness.hints import points, strength, urge
from envs.evopawness.observation import observe, observe_history
from envs.evopawness.records import from_record, to_record
from envs.evopawness.rules import (
    CODES,
    LARGEST_CAP,
    MAX_LEGAL,
    MAX_PLIES,
    SHIFTS,
    SKIP,
    State,
    init,
    mask,
    move,
    over,
    player,
    rewards,
    step,
)
from envs.evopawness.view import LEGEND, SEATS, action_cells, action_label, lesson, picture, show, why_illegal, why_over
from envs.game import Game, Hints, View, no_symmetries, with_history

__all__ = [
    "MAX_LEGAL", "MAX_PLIES", "SKIP", "State", "action_name", "from_record", "init", "make", "mask", "move", "observe",
    "over", "parse_action", "player", "points", "rewards", "show", "step", "strength", "to_record", "urge",
]  # fmt: skip


def make(max_plies: int = MAX_PLIES, history: int = 5) -> Game:
    """EvoPawness, a draw after `max_plies` actions, observed through its last `history` positions.

    Raises:
        ValueError: `max_plies` not from 1 to 30000, or `history` not from 1 to 16.
    """
    if not 1 <= max_plies <= LARGEST_CAP:
        raise ValueError(f"evopawness: max_plies: expected 1 to {LARGEST_CAP}, got {max_plies}")
    if not 1 <= history <= 16:
        raise ValueError(f"evopawness: history: expected 1 to 16, got {history}")
    same = np.arange(SKIP + 1, dtype=np.int32)
    game = Game(
        name=f"evopawness:max_plies={max_plies},history={history}",
        num_players=2,
        num_actions=SKIP + 1,
        max_plies=max_plies,
        max_legal=MAX_LEGAL,
        init=init,
        step=lambda s, action: step(s, action, max_plies),
        move=move,
        mask=lambda s: mask(s, max_plies),
        over=lambda s: over(s, max_plies),
        player=player,
        rewards=rewards,
        observe=lambda s: observe(s, max_plies),
        # Mirroring the columns would exchange the atk and step runes.
        symmetries=no_symmetries(SKIP + 1),
        show=lambda s: show(s, max_plies),
        action_name=action_name,
        parse_action=parse_action,
        to_record=to_record,
        from_record=lambda record: from_record(record, max_plies),
        to_mover_frame=np.stack([same, flip_actions()]),
        actions_per_cell=CODES,
        offsets=np.array([(0, 0)] * (CODES - len(SHIFTS)) + list(SHIFTS), np.int32),
        hints=Hints(evaluate=lambda s: strength(s, max_plies), urge=urge, moves_are_cheap=False),
        view=View(
            about=(__doc__ or "").partition("\n")[0],
            seats=SEATS,
            picture=picture(max_plies),
            cells=action_cells,
            label=action_label,
            legend=LEGEND,
            lesson=lesson(max_plies),
            why_illegal=why_illegal,
            why_over=lambda s: why_over(s, max_plies),
        ),
    )
    if history == 1:
        return game
    return with_history(game, history, lambda now, past, played: observe_history(now, past, played, max_plies))
