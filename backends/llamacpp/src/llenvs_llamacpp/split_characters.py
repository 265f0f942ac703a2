"""Tokens that end inside a character.

A byte-level vocabulary spells many characters with several tokens, "🦊" with three. llama.cpp sends nothing for a
token after which the text ends inside a character: no id in a stream, no logprob in any answer. What was left
    out is
found here: ids from the bytes of the text, logprobs by asking for the distribution at that position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llenvs.inference.errors import ProviderFailed
from llenvs_llamacpp.client import NAME, EngineClient
from llenvs_llamacpp.completion import Sample

_FIRST_LOOK = 64  # alternatives; the chosen token is seldom less likely than so many others


class Vocabulary:
    """Bytes of every token, as the engine writes them."""

    def __init__(self, spelling: Mapping[int, bytes]) -> None:
        self.spelling = spelling
        self._ids: dict[bytes, list[int]] = {}
        for token, data in spelling.items():
            if data:
                self._ids.setdefault(data, []).append(token)
        self._longest = max(map(len, self._ids), default=0)

    def left_out(self, sample: Sample) -> dict[int, int] | None:
        """All token ids of `sample` by position; None unless the bytes of its text allow exactly one reading."""
        data = sample.text.encode("utf-8")
        ids: dict[int, int] = {}
        offset = position = 0
        while position < sample.length:
            if position in sample.token_ids:
                ids[position] = sample.token_ids[position]
                # (past the text's end: the tokens of a stop string, which the text leaves out)
                offset += len(self.spelling.get(ids[position], b""))
                position += 1
                continue
            following = position
            while following < sample.length and following not in sample.token_ids:
                following += 1
            if following == sample.length:
                return None
            end = self.spelling.get(sample.token_ids[following], b"")
            readings = self._readings(data, offset, following - position, end)
            if len(readings) != 1:
                return None
            for token in readings[0]:
                ids[position] = token
                offset += len(self.spelling[token])
                position += 1
        whole = b"".join(self.spelling.get(ids[each], b"") for each in range(sample.length))
        return ids if whole.startswith(data) else None

    def _readings(self, data: bytes, offset: int, count: int, end: bytes) -> list[list[int]]:
        """Ways to read `count` tokens at `offset`, each ending inside a character, so that `end` follows them and
        completes it."""
        if count == 0:
            after = offset + len(end)
            return [[]] if data.startswith(end, offset) and not _inside_character(data, after) else []
        readings = []
        for stop in range(offset + 1, min(offset + self._longest, len(data)) + 1):
            if not _inside_character(data, stop):
                continue
            for token in self._ids.get(data[offset:stop], ()):
                readings += [[token, *rest] for rest in self._readings(data, stop, count - 1, end)]
        return readings


async def read_vocabulary(client: EngineClient, size: int) -> Vocabulary:
    """The bytes of all `size` tokens: the alternatives of one forced token are the whole vocabulary."""
    entries = await _distribution(client, [await _ordinary_token(client)], size)
    return Vocabulary({entry["id"]: bytes(entry["bytes"]) for entry in entries})


async def distribution_of(
    client: EngineClient, prompt: Sequence[int], token: int, top: int, vocabulary_size: int
) -> Mapping[str, Any]:
    """The entry of `token` after `prompt`: its logprob in the raw distribution and the `top` most likely ones."""
    for count in (max(top, _FIRST_LOOK), vocabulary_size):
        entries = await _distribution(client, prompt, count)
        for entry in entries:
            if entry["id"] == token:
                return {**entry, "top_logprobs": entries[:top]}
    raise ProviderFailed(NAME, f"token {token} is not among the {vocabulary_size} alternatives of its position")


async def _distribution(client: EngineClient, prompt: Sequence[int], count: int) -> list[Mapping[str, Any]]:
    # logprobs are of the distribution before the bias, and are given only for a token that completes a character
    forced = await _ordinary_token(client)
    body = {
        "prompt": list(prompt),
        "n_predict": 1,
        "n_probs": count,
        "temperature": 0.0,
        "logit_bias": [[forced, 1000.0]],
    }
    answer = await client.post("/completion", body)
    entries: list[Mapping[str, Any]] = answer["completion_probabilities"][0]["top_logprobs"]
    return entries


async def _ordinary_token(client: EngineClient) -> int:
    answer = await client.post("/tokenize", {"content": "a", "add_special": False})
    return int(answer["tokens"][-1])


def _inside_character(data: bytes, offset: int) -> bool:
    return offset < len(data) and data[offset] & 0xC0 == 0x80
