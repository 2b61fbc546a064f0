"""Playing with people and other programs: a web page, the terminal, GTP."""
