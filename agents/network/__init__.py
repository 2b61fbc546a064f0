"""Policy and value networks, and what they say of positions. A network can begin with the weights of a smaller one, or
of one for another board.
"""
