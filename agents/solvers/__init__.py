"""Proofs of who wins: proof-number search of a position, and a table of all positions for small games."""
