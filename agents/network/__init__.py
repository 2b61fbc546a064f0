"""Policy and value networks, and their evaluation of positions. A network can start from the weights of a smaller
network, or of a network for another board size.
"""

from agents.network.equivariant import equivariant
from agents.network.network import Network, make_network, register_network

register_network("equivariant", equivariant)

__all__ = ["Network", "make_network", "register_network"]
