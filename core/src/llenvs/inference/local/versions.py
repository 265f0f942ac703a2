"""Versions of an engine's packages: another one may give other answers."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def versions_of(*distributions: str) -> dict[str, str | None]:
    """Versions of installed distributions; None where one is missing."""

    def installed(distribution: str) -> str | None:
        try:
            return version(distribution)
        except PackageNotFoundError:
            return None

    return {distribution: installed(distribution) for distribution in distributions}
