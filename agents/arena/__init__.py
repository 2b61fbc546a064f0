"""Matches between players: openings, lockstep and host matches, ratings, solved positions, result tables. The commands
of evaluate.py are here too."""
