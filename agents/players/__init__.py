"""Players by name, for batches of positions or one game at a time. People and GTP programs are players too."""

from agents.players.players import make_player
from agents.players.spec import Player, PlayerSpec, parse_player, register_player

__all__ = ["Player", "PlayerSpec", "make_player", "parse_player", "register_player"]
