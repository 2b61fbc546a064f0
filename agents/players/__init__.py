"""Players by name, for batches of positions or one game at a time. People and GTP programs are players too."""

from agents.players.players import Player, make_player
from agents.players.spec import PlayerSpec, parse, register_player

__all__ = ["Player", "PlayerSpec", "make_player", "parse", "register_player"]
