"""Players by name, for batches of positions or one game at a time. People and GTP programs are players too."""

from agents.players.players import make_player
from agents.players.spec import Player, PlayerSpec, parse, register_player

__all__ = ["Player", "PlayerSpec", "make_player", "parse", "register_player"]
