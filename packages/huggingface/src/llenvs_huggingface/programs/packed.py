"""LiveCodeBench's packed test cases, read without unpickling anything."""

from __future__ import annotations

import base64
import binascii
import pickletools
import zlib

LARGEST = 512 << 20
"""Bytes that may come out of the compression."""
_TEXT = {"BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"}
_FRAMING = {"PROTO", "FRAME", "MEMOIZE", "BINPUT", "LONG_BINPUT", "STOP"}


def unpacked_text(packed: str) -> str:
    """The one text in a base64 of a zlib of a pickle.

    The pickle is only scanned for its operations, none of which is carried out: a text, its framing, and nothing
    else.

    Raises:
        ValueError: it is anything else, or larger than `LARGEST`.
    """
    try:
        inflater = zlib.decompressobj()
        data = inflater.decompress(base64.b64decode(packed, validate=True), LARGEST)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"packed test cases are damaged: {error}") from None
    if inflater.unconsumed_tail:
        raise ValueError(f"packed test cases of more than {LARGEST >> 20} MiB")
    texts = []
    try:
        for operation, argument, _ in pickletools.genops(data):
            if operation.name in _TEXT:
                texts.append(argument)
            elif operation.name not in _FRAMING:
                raise ValueError(f"it holds more than a text (pickle operation {operation.name})")
    except ValueError as error:
        raise ValueError(f"packed test cases are refused: {error}") from None
    if len(texts) != 1 or not isinstance(texts[0], str):
        raise ValueError(f"packed test cases hold {len(texts)} texts instead of one")
    return texts[0]
