from __future__ import annotations

import struct
from pathlib import Path

import pytest

from llenvs_llamacpp.gguf import NotGGUF, control_tokens, read_metadata, trained_context


def test_metadata_of_the_default_model(model_path: Path) -> None:
    metadata = read_metadata(model_path)
    assert metadata["general.architecture"] == "llama"
    assert trained_context(metadata) == 8192
    assert len(metadata["tokenizer.ggml.tokens"]) == 49152
    assert metadata["tokenizer.ggml.merges"] is None  # an array that was not asked for
    assert {"<|im_start|>", "<|im_end|>", "<|endoftext|>"} <= set(control_tokens(metadata))
    assert metadata["tokenizer.ggml.bos_token_id"] == 1


def test_every_value_type(tmp_path: Path) -> None:
    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    values: list[tuple[str, int, bytes, object]] = [
        ("u8", 0, struct.pack("<B", 200), 200),
        ("i16", 3, struct.pack("<h", -5), -5),
        ("f32", 6, struct.pack("<f", 0.5), 0.5),
        ("bool", 7, b"\x01", True),
        ("text", 8, text("żółć"), "żółć"),
        ("words", 9, struct.pack("<IQ", 8, 2) + text("a") + text("b"), ["a", "b"]),
        ("numbers", 9, struct.pack("<IQ", 5, 3) + struct.pack("<3i", 1, -2, 3), [1, -2, 3]),
        ("left", 9, struct.pack("<IQ", 4, 1) + struct.pack("<I", 9), None),
        ("f64", 12, struct.pack("<d", 1e300), 1e300),
    ]
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, len(values))
    body = b"".join(text(key) + struct.pack("<I", kind) + data for key, kind, data, _ in values)
    file = tmp_path / "a.gguf"
    file.write_bytes(head + body)
    assert read_metadata(file, ("words", "numbers")) == {key: value for key, _, _, value in values}
    for cut in range(4, len(head + body)):
        file.write_bytes((head + body)[:cut])
        with pytest.raises(NotGGUF):
            read_metadata(file)


def test_other_versions_are_named(tmp_path: Path) -> None:
    file = tmp_path / "a.gguf"
    file.write_bytes(b"GGUF" + struct.pack("<IQQ", 9, 0, 0))
    with pytest.raises(NotGGUF, match="version 9"):
        read_metadata(file)
