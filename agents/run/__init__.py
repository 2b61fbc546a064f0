"""The host side of a training run: options, folder, loop, saving and resuming, reports and checks. The device side is
`agents.training`."""
