"""Which tokens of a generation spell which part of its text."""

from __future__ import annotations

from collections.abc import Sequence

from llenvs.core.generation import Generation

_PART = "\ufffd"  # what a token is written as that spells a part of a character


def token_ends(generation: Generation) -> list[int] | None:
    """For each completion token the offset in the generation's text at which it ends, ascending.

    None when the generation does not tell the ids and the texts of its tokens (logprobs do).
    """
    ids, logprobs = generation.completion_token_ids, generation.logprobs
    if ids is None or logprobs is None or len(ids) != len(logprobs):
        return None
    return ends_of_pieces(generation.text, [each.token for each in logprobs])


def ends_of_pieces(text: str, pieces: Sequence[str]) -> list[int]:
    """Where each of `pieces`, the tokens that spell `text` one after the other, ends in it.

    Tokens that are no part of the text (the end of the turn, what follows a stop string) end where the text does.
    Tokens in a row that spell parts of characters are spread evenly over what they spell together.
    """
    ends: list[int] = []
    position = parts = 0
    for piece in pieces:
        if not parts and text.startswith(piece, position):
            position += len(piece)
            ends.append(position)
        elif _PART in piece:
            parts += 1
        else:
            found = text.find(piece, position + 1) if parts and piece else -1
            if found < 0:
                break
            ends += _spread(position, found, parts)
            parts = 0
            position = found + len(piece)
            ends.append(position)
    left = len(pieces) - len(ends)
    return ends + _spread(position, len(text), parts) + [len(text)] * (left - parts)


def _spread(begin: int, end: int, count: int) -> list[int]:
    """`count` ends, the last one `end`, at even distances."""
    return [begin + (end - begin) * (i + 1) // count for i in range(count)]
