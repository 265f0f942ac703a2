"""Images as PNG."""

from __future__ import annotations

import io
from typing import Any

import numpy as np


def png(pixels: np.ndarray[Any, Any]) -> bytes:
    """`pixels` (uint8, height x width x 3) as a PNG file."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels, "RGB").save(file, "PNG", compress_level=6)
    return file.getvalue()
