"""Where the characters of a text are among its tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from llenvs.inference.local.chat_tokenizer import ChatTokenizer
from llenvs.integrations.masked_trajectory import TokenSource


class Labelled(NamedTuple):
    """Neighbouring tokens of one source; `content` is the number of the content they belong to, if any."""

    source: TokenSource
    token_ids: tuple[int, ...]
    content: int | None


def token_ends(tokenizer: ChatTokenizer, ids: Sequence[int]) -> tuple[str, list[int]]:
    """The text of `ids`, and for each of them how many characters of it stand before the token's end.

    A token that ends inside a character ends where the character begins.
    """
    text, ends = "", []
    pending: list[int] = []  # tokens of a character that is not complete
    for position, token in enumerate(ids):
        pending.append(token)
        piece = tokenizer.decode(ids[: position + 1 - len(pending)], pending, special=True)
        if piece.endswith("\ufffd") and len(pending) < 4 and position + 1 < len(ids):
            ends.append(len(text))
            continue
        text += piece
        pending = []
        ends.append(len(text))
    return text, ends


def labelled(
    tokenizer: ChatTokenizer, ids: Sequence[int], contents: Sequence[tuple[str, TokenSource]]
) -> Iterator[Labelled]:
    """`ids` in spans: the tokens of the `contents`, looked for in their order, and the template's between them.

    A token that holds both a character of a content and one of the template counts as the content's.
    """
    if not ids:
        return
    text, ends = token_ends(tokenizer, ids)
    places: list[tuple[int, int, int]] = []
    position = 0
    for number, (content, _) in enumerate(contents):
        # templates strip contents; what they rewrite beyond that is the template's
        found = next((c for c in (content, content.strip()) if c and text.find(c, position) >= 0), None)
        if found is not None:
            start = text.index(found, position)
            position = start + len(found)
            places.append((start, position, number))
    belonging: list[int | None] = []
    begin, at = 0, 0
    for end in ends:
        while at < len(places) and places[at][1] <= begin:
            at += 1
        inside = at < len(places) and places[at][0] < max(end, begin + 1) and begin < places[at][1]
        belonging.append(places[at][2] if inside else None)
        begin = end
    first = 0
    for number in range(1, len(ids) + 1):
        if number == len(ids) or belonging[number] != belonging[first]:
            content_number = belonging[first]
            label: TokenSource = "template" if content_number is None else contents[content_number][1]
            yield Labelled(label, tuple(ids[first:number]), content_number)
            first = number
