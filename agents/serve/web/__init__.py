"""The page in a browser: its server, the games in progress, and the searches of all sessions in lockstep."""
