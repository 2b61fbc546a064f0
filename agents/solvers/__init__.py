"""Exact results: proof-number search of a position, and retrograde analysis of all positions of a small game."""
