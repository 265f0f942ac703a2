"""Images in rows: shown to the model, and kept out of the hidden state."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from llenvs.core.message import ImageContent

_MAGIC = ((b"\x89PNG", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"), (b"BM", "image/bmp"))


def images_of(value: Any) -> tuple[ImageContent, ...]:
    """The images in a cell: encoded bytes, ``{"bytes": ..., "path": ...}``, an address, or a list of these.

    Raises:
        ValueError: it holds something else, or the path of a file (only bytes travel).
    """
    if value is None or value == "":
        return ()
    if isinstance(value, list | tuple):
        return tuple(image for each in value for image in images_of(each))
    if isinstance(value, Mapping) and "bytes" in value:
        value = value["bytes"]
    if isinstance(value, bytes | bytearray):
        return (ImageContent(data=bytes(value), media_type=_media_type(bytes(value))),)
    if isinstance(value, str) and value.startswith(("http://", "https://", "data:")):
        return (ImageContent(url=value),)
    raise ValueError(f"no image can be read from a {type(value).__name__} without bytes")


def _media_type(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC if data.startswith(magic)), "image/png")


def without_bytes(value: Any) -> Any:
    """`value` with all bytes in it replaced by their number and hash, and data URLs likewise."""
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    if isinstance(value, str) and value.startswith("data:") and len(value) > 1000:
        return {"characters": len(value), "sha256": hashlib.sha256(value.encode()).hexdigest()}
    if isinstance(value, Mapping):
        return {key: without_bytes(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_bytes(each) for each in value]
    return value
