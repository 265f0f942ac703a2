"""Metadata of a GGUF file, read without loading the model.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (version 2 and 3, little-endian).
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from pathlib import Path
from typing import Any, BinaryIO

MAGIC = b"GGUF"
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING = 8
_ARRAY = 9
_LONGEST = 1 << 28  # of a string or array; a file that says more is damaged

TOKENS = "tokenizer.ggml.tokens"
TOKEN_TYPES = "tokenizer.ggml.token_type"
CONTROL_TYPES = (2, 3)
"""Token types (unknown, control) that llama.cpp makes of text only when told to parse special tokens."""


class NotGGUF(ValueError):
    """The file is no GGUF file, or a damaged one."""


def read_metadata(path: Path, arrays: Collection[str] = (TOKENS, TOKEN_TYPES)) -> dict[str, Any]:
    """Key -> value of the file's header; of arrays only those named in `arrays`, as lists.

    Raises:
        NotGGUF: with what is wrong.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        start = file.read(4)
        if start != MAGIC:
            raise NotGGUF(f"it begins with {start!r}, not with {MAGIC!r}")
        try:
            version = _scalar(file, "I")
            if version not in (2, 3):
                raise NotGGUF(f"GGUF version {version} is not known; valid: 2, 3")
            _scalar(file, "Q")  # number of tensors
            return dict(_entry(file, arrays) for _ in range(_scalar(file, "Q")))
        except (struct.error, UnicodeDecodeError) as error:
            raise NotGGUF(f"its header is damaged ({error})") from None


def control_tokens(metadata: dict[str, Any]) -> tuple[str, ...]:
    """Texts of the vocabulary's control tokens, longest first."""
    tokens, types = metadata.get(TOKENS, []), metadata.get(TOKEN_TYPES, [])
    found = {token for token, kind in zip(tokens, types, strict=False) if kind in CONTROL_TYPES and token}
    return tuple(sorted(found, key=lambda token: (-len(token), token)))


def trained_context(metadata: dict[str, Any]) -> int | None:
    """Tokens of context that the model was trained with, or None when the file does not say."""
    value = metadata.get(f"{metadata.get('general.architecture')}.context_length")
    return value if isinstance(value, int) and value > 0 else None


def _entry(file: BinaryIO, arrays: Collection[str]) -> tuple[str, Any]:
    key = _string(file)
    return key, _value(file, _scalar(file, "I"), key in arrays)


def _value(file: BinaryIO, kind: int, keep: bool) -> Any:
    if kind in _SCALARS:
        return _scalar(file, _SCALARS[kind])
    if kind == _STRING:
        return _string(file)
    if kind != _ARRAY:
        raise NotGGUF(f"its header is damaged (value type {kind})")
    item, count = _scalar(file, "I"), _length(file)
    if item in _SCALARS:
        size = struct.calcsize(f"<{_SCALARS[item]}")
        data = file.read(size * count)
        return list(struct.unpack(f"<{count}{_SCALARS[item]}", data)) if keep else None
    values = [_value(file, item, keep) for _ in range(count)]
    return values if keep else None


def _scalar(file: BinaryIO, code: str) -> Any:
    size = struct.calcsize(f"<{code}")
    return struct.unpack(f"<{code}", file.read(size))[0]


def _length(file: BinaryIO) -> int:
    length: int = _scalar(file, "Q")
    if length > _LONGEST:
        raise NotGGUF(f"its header is damaged (a length of {length})")
    return length


def _string(file: BinaryIO) -> str:
    length = _length(file)
    data = file.read(length)
    if len(data) != length:
        raise NotGGUF("it ends in the middle of its header")
    return data.decode("utf-8")
