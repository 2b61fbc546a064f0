"""Players by name, for batches of positions or one game at a time. People and GTP programs are players too."""
