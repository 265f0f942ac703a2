"""Which Python an adapter runs on, read from the metadata of its distribution."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

VERSIONS = ("3.12", "3.13", "3.11", "3.14")
"""Pythons to choose from, the preferred first. Nearly everything has wheels for 3.12."""


@dataclass(frozen=True, slots=True)
class PythonNeeds:
    """What the metadata of a distribution says about Python.

    Attributes:
        requires_python: e.g. ">=3.11"; "" for any.
        dependencies: requirements with their markers.
    """

    requires_python: str
    dependencies: tuple[str, ...]

    @classmethod
    def from_project(cls, folder: Path) -> PythonNeeds:
        """Read the ``pyproject.toml`` in `folder`."""
        project: Mapping[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))[
            "project"
        ]
        return cls(project.get("requires-python", ""), tuple(project.get("dependencies", ())))

    @classmethod
    def from_metadata(cls, text: str) -> PythonNeeds:
        """Read the text of a ``METADATA`` file (the core metadata of Python packaging)."""
        headers = HeaderParser().parsestr(text)
        return cls(headers.get("Requires-Python", ""), tuple(headers.get_all("Requires-Dist", [])))

    def suitable_versions(self, candidates: Sequence[str] | None = None) -> list[str]:
        """Versions that the distribution allows and on which most of its dependencies are installed.

        A marker such as ``harbor; python_version >= '3.12'`` says that on older Pythons the upstream is left out;
        such a Python can import the adapter but not run it.

        Args:
            candidates: "3.x" in order of preference, which is kept; None for this interpreter's and `VERSIONS`.
        """
        if candidates is None:
            candidates = list(dict.fromkeys([f"{sys.version_info.major}.{sys.version_info.minor}", *VERSIONS]))
        allowed = [v for v in candidates if SpecifierSet(self.requires_python).contains(f"{v}.99")]
        active = {version: self._active(version) for version in allowed}
        return [version for version in allowed if active[version] == max(active.values())]

    def _active(self, version: str) -> int:
        environment: dict[str, Any] = {
            **default_environment(),
            "python_version": version,
            "python_full_version": f"{version}.99",
            "extra": "",
        }
        markers = [Requirement(text).marker for text in self.dependencies]
        return sum(marker is None or marker.evaluate(environment) for marker in markers)
