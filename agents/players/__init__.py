"""Players by name, for many positions at once or for one game at a time. People and programs that speak GTP are players
too.
"""
