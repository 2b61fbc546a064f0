"""Chess: attack the king so that no move saves it; on 8 x 8 squares, or Gardner's chess on 5 x 5.

Without a legal move the game is lost in check and drawn otherwise. It is also drawn when a position occurs for the
third time, after fifty moves of each player without a capture or a pawn move, with too few pieces for any checkmate,
and when the longest game is over. Gardner's chess has no castling and no double step.
"""

from __future__ import annotations

from envs.chess.fen import MAX_PLIES
from envs.chess.rules import Rules
from envs.chess.view import ChessView
from envs.game import Game, Hints, no_symmetries, on_usual_board

# The largest known number of moves in a legal position. On 5 x 5 ten pieces have at most 16 moves each.
MAX_LEGAL = {8: 218, 5: 160}


def make(size: int = 8) -> Game:
    """Chess on `size` x `size` squares, 8, or 5 for Gardner's chess.

    Raises:
        ValueError: another size.
    """
    if size not in MAX_PLIES:
        raise ValueError(f"chess: expected size=8 or size=5, got {size}")
    rules = Rules(size)
    people = ChessView(rules)
    actions = rules.board.squares * rules.kinds
    return Game(
        name=f"chess:size={size}",
        num_players=2,
        num_actions=actions,
        max_plies=MAX_PLIES[size],
        max_legal=MAX_LEGAL[size],
        init=rules.init,
        step=rules.step,
        move=rules.move,
        mask=rules.mask,
        over=rules.over,
        player=rules.player,
        rewards=rules.rewards,
        observe=rules.observe,
        symmetries=no_symmetries(actions),
        show=people.show,
        action_name=rules.action_name,
        parse_action=rules.parse_action,
        to_record=rules.to_record,
        from_record=rules.from_record,
        to_mover_frame=rules.to_mover_frame,
        actions_per_cell=rules.kinds,
        offsets=rules.steps[0],
        observation_state=lambda s: s._replace(hashes=s.hashes[:1]),  # replay holds no empty arrays
        hints=Hints(evaluate=rules.evaluate, moves_are_cheap=False),
        view=people.view(),
    )


__getattr__ = on_usual_board(make)
