"""The engine, in the order the data flows: each file imports only files above it in the README's folder map."""
