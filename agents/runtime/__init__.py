"""What programs need from the machine: device meshes, several processes, random keys, command lines and errors."""
