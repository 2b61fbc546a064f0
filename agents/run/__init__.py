"""The host side of a training run: its options, folder and loop, what is saved and resumed, reports, and checks. The
device side is `agents.training`.
"""
