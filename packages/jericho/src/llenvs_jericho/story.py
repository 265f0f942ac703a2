"""Story files: what their headers say (The Z-Machine Standards Document 1.1, section 11)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from llenvs.core.errors import InvalidOption

SUFFIXES = (".z3", ".z4", ".z5", ".z8")
"""Of story files that the engine runs."""
_SCALE = {3: 2, 4: 4, 5: 4, 8: 8}  # version -> bytes that one unit of the length in the header stands for
_HEADER = 64


@dataclass(frozen=True, slots=True)
class Story:
    """A story file that can be run.

    Attributes:
        path: absolute.
        name: the file's name without its ending.
        version: of the Z-machine: 3, 4, 5 or 8.
        sha256, md5: of the file; the engine knows games by the latter.
    """

    path: Path
    name: str
    version: int
    sha256: str
    md5: str

    @classmethod
    def read(cls, path: Path, field: str) -> Story:
        """The story in the file `path`.

        The engine ends its process for a file that is no story, so this is checked before.

        Raises:
            InvalidOption: naming `field`: no such file, or no story of a version that the engine runs.
        """
        try:
            data = path.read_bytes()
        except OSError as error:
            raise InvalidOption(field, str(path), f"cannot be read ({error.strerror})") from None
        version = data[0] if len(data) >= _HEADER else 0
        if version not in _SCALE:
            raise InvalidOption(field, str(path), "is no Z-machine story", valid="stories of version 3, 4, 5 or 8")
        length = int.from_bytes(data[26:28], "big") * _SCALE[version]
        if length > len(data):
            raise InvalidOption(field, str(path), f"is cut short: {len(data)} bytes of {length}")
        dynamic = int.from_bytes(data[14:16], "big")
        if not _HEADER <= dynamic <= len(data):
            raise InvalidOption(field, str(path), "is no Z-machine story: its header makes no sense")
        md5 = hashlib.md5(data, usedforsecurity=False).hexdigest()
        return cls(path.resolve(), path.stem, version, hashlib.sha256(data).hexdigest(), md5)
