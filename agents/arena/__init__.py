"""Matches between players: openings, matches in lockstep or on the host, ratings, solved positions, result tables. The
commands of evaluate.py are here.
"""
