"""The command `llenvs`: a thin layer over the core for people at a terminal."""
