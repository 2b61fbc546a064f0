"""Files: checkpoints of pytrees, networks as small files, and JSON lines that a crash cannot tear. Nothing here knows
how a run is trained."""
