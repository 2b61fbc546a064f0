"""The GTP 2 engine for other programs."""
