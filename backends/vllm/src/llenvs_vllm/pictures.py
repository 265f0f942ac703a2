"""Images of a chat in the form that vLLM takes."""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Sequence
from typing import Any

from llenvs.core.message import ChatMessage, ImageContent
from llenvs.inference.errors import BadRequest
from llenvs_vllm.engine import NAME


def pictures_of(messages: Sequence[ChatMessage]) -> list[Any]:
    """The images of a chat in their order, as ``PIL.Image.Image`` in RGB.

    Raises:
        BadRequest: bytes that are no image, or an address: nothing is downloaded here.
    """
    return [_picture(image) for message in messages for image in message.images]


def _picture(image: ImageContent) -> Any:
    from PIL import Image, UnidentifiedImageError

    try:
        return Image.open(io.BytesIO(_bytes(image))).convert("RGB")
    except (UnidentifiedImageError, OSError, binascii.Error) as error:
        raise BadRequest(NAME, f"an image of type {image.media_type} cannot be read: {error}") from error


def _bytes(image: ImageContent) -> bytes:
    if image.data is not None:
        return image.data
    head, comma, data = (image.url or "").partition(";base64,")
    if not comma or not head.startswith("data:"):
        raise BadRequest(
            NAME, f"images are given as bytes, not as an address to download: {(image.url or '')[:80]}"
        )
    return base64.b64decode(data, validate=True)
