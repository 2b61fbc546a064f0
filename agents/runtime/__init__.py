"""Runtime services of all programs: device meshes, multiple processes, random keys, command lines and errors."""
