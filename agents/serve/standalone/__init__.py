"""A game, its network and its page as one HTML file that needs no server."""
