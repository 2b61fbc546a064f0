"""Self-play and learning as pure functions on the device: lanes of games, the replay ring, the learner, one iteration.
The host side of a run is `agents.run`."""
