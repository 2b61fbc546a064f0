"""The engine. What a user needs is here: load a network, search, make players, play a match, analyse a position.

Packages are listed in the order in which data flows; each imports only earlier ones.
"""

from agents.arena.match import play_match
from agents.players.analysis import analyse_position
from agents.players.players import make_player
from agents.search.policies import make_search
from agents.storage.weights import TrainedNetwork, load_network

__all__ = ["TrainedNetwork", "analyse_position", "load_network", "make_player", "make_search", "play_match"]
