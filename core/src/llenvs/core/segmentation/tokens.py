"""Segments of a number of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from llenvs.core.errors import InvalidOption
from llenvs.core.segmentation.segmenter import Segmenter

_PART = "\ufffd"  # what is written for a part of a character
_WANTED = (
    "a tokenizer of transformers, tokenizers or tiktoken, a backend with tokenize and detokenize, "
    "or a function from a text to the texts of its tokens"
)


class TokenSegmenter(Segmenter):
    """Segments of `size` tokens each, the last one shorter.

    A character that several tokens spell is not cut: its segment ends with the last of them. The tokens are those
    of the whole text as the tokenizer makes them. While a text is being written all boundaries but the last count
    as settled, since the tokens at its end may still change.

    Args:
        tokenizer: of transformers, tokenizers or tiktoken (``encode`` and ``decode``); a backend (``tokenize`` and
            ``detokenize``); or a function that gives the texts of the tokens of a text.
        size: tokens of a segment, >= 1.
    """

    name = "token"
    blank_segments = True

    def __init__(self, tokenizer: Any, size: int = 64) -> None:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InvalidOption("size", size, "must be a positive integer")
        self.tokenizer = tokenizer
        self.size = size
        self._ends = _ends_of(tokenizer)

    def _boundaries(self, text: str, complete: bool) -> Iterable[int]:
        found = sorted({b for b in self._ends(text, self.size) if 0 < b < len(text)})
        return found if complete else found[:-1]

    def __repr__(self) -> str:
        return f"TokenSegmenter({type(self.tokenizer).__name__}, size={self.size})"


def _ends_of(tokenizer: Any) -> Callable[[str, int], list[int]]:
    """A function of a text and a size: the offsets at which every `size` tokens end."""
    if getattr(tokenizer, "is_fast", None) is True:

        def by_offsets(text: str, size: int) -> list[int]:
            encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
            return _every(size, [end for _, end in encoded["offset_mapping"]])

        return by_offsets
    if hasattr(tokenizer, "is_fast"):  # of transformers, in Python
        return _by_decoding(
            lambda text: tokenizer.encode(text, add_special_tokens=False),
            lambda ids: tokenizer.decode(ids, clean_up_tokenization_spaces=False),
        )
    if hasattr(tokenizer, "get_vocab_size") and hasattr(tokenizer, "encode"):  # tokenizers.Tokenizer
        return lambda text, size: _every(
            size, [end for _, end in tokenizer.encode(text, add_special_tokens=False).offsets]
        )
    if hasattr(tokenizer, "encode") and hasattr(tokenizer, "decode"):
        return _by_decoding(getattr(tokenizer, "encode_ordinary", tokenizer.encode), tokenizer.decode)
    if hasattr(tokenizer, "tokenize") and hasattr(tokenizer, "detokenize"):
        return _by_decoding(tokenizer.tokenize, tokenizer.detokenize)
    if callable(tokenizer):

        def by_texts(text: str, size: int) -> list[int]:
            ends, position = [], 0
            for piece in _texts(tokenizer(text)):
                position += len(piece)
                ends.append(position)
            if ends and ends[-1] != len(text):
                raise InvalidOption("tokenizer", tokenizer, "gave tokens that do not concatenate to the text")
            return _every(size, ends)

        return by_texts
    raise InvalidOption("tokenizer", tokenizer, f"must be {_WANTED}")


def _texts(given: Any) -> Iterable[str]:
    """What a function from a text to its tokens gave, if it is that."""
    pieces = None if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    if pieces is None or not all(isinstance(piece, str) for piece in pieces):
        raise InvalidOption("tokenizer", given, "must be a function that gives a list of the texts of the tokens")
    return pieces


def _every(size: int, ends: Sequence[int]) -> list[int]:
    """Every `size`-th of the ends, later where tokens share a character (they then have the same end)."""
    return [ends[i] for i in range(size - 1, len(ends), size)]


def _by_decoding(
    encode: Callable[[str], Sequence[int]], decode: Callable[[list[int]], str]
) -> Callable[[str, int], list[int]]:
    def end_of(text: str, ids: list[int], count: int, begin: int, position: int) -> int | None:
        """Where the first `count` tokens end, of which the first `begin` end at `position`; None inside of a
        character."""
        piece = decode(ids[begin:count])
        if piece.strip() and text.startswith(piece, position):
            return position + len(piece)
        if piece.endswith(_PART) and text[position + len(piece) - 1 : position + len(piece)] != _PART:
            return None
        written = decode(ids[:count])  # by themselves tokens may be written otherwise, without their first space
        return len(written) if text.startswith(written) else None

    def ends(text: str, size: int) -> list[int]:
        ids = list(encode(text))
        found: list[int] = []
        count, begin, position = size, 0, 0
        while count < len(ids):
            end = end_of(text, ids, count, begin, position)
            if end is None:
                count += 1  # the next token may complete the character
                continue
            found.append(end)
            begin, position = count, end
            count += size
        return found

    return ends
