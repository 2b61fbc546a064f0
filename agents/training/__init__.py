"""Self-play and learning as pure functions on the device: lanes of games, the replay ring, the learner, one iteration.
What happens on the host around them is in `agents.run`.
"""
