"""Images of rows, as observations hold them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llenvs.core.errors import InvalidOption
from llenvs.core.message import ImageContent

_KINDS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)


def image_contents(images: Any, column: str) -> tuple[ImageContent, ...]:
    """The images of a row.

    Args:
        images: one or a list of: a PIL image, encoded bytes, ``{"bytes": ..., "path": ...}`` as ``datasets``
            stores them, or the path of a file.
        column: where they stand, for errors.

    Raises:
        InvalidOption: one of them is no image.
    """
    if images is None:
        return ()
    return tuple(_content(each, column) for each in (images if isinstance(images, list | tuple) else [images]))


def _content(image: Any, column: str) -> ImageContent:
    if isinstance(image, Mapping):
        image = image.get("bytes") or image.get("path")
    if isinstance(image, str | Path):
        try:
            image = Path(image).read_bytes()
        except OSError as error:
            raise InvalidOption(column, str(image), f"cannot be read ({error.strerror})") from None
    if isinstance(image, bytes):
        for magic, media_type in _KINDS:
            if image.startswith(magic):
                return ImageContent(image, media_type=media_type)
        if image[:4] == b"RIFF" and image[8:12] == b"WEBP":
            return ImageContent(image, media_type="image/webp")
    elif hasattr(image, "save"):  # PIL
        buffer = io.BytesIO()
        image.save(buffer, format="PNG")
        return ImageContent(buffer.getvalue())
    valid = "PNG, JPEG, GIF or WebP: bytes, a path, or a PIL image"
    raise InvalidOption(column, type(image).__name__, "is no image", valid=valid)
