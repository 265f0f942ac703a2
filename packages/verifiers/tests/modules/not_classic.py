"""A module without load_environment."""
