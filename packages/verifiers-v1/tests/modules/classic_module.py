"""A module of the classic API."""


def load_environment():
    return None
