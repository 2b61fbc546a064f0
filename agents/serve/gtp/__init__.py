"""The engine for programs that speak GTP 2."""
