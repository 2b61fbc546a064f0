"""The web page: its server, the games in progress, and the batched searches of all sessions."""
