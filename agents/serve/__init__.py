"""Play with people and programs: the terminal, a web page, and GTP."""
