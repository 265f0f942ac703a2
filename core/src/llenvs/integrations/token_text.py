"""Where the characters of a text are among its tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
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


def token_range(ends: Sequence[int], start: int, end: int) -> tuple[int, int]:
    """The tokens of the characters from `start` to before `end`: the first, and the one after the last.

    A token that holds a character of them and one before or behind them is among them.

    Args:
        ends: see `token_ends`.
        start: index of a character.
        end: not less.
    """
    # a token inside a character begins and ends where the character begins
    first = next((n for n, (a, b) in enumerate(pairwise((0, *ends))) if b > start or a >= start), len(ends))
    return first, next((n for n, begin in enumerate((0, *ends)) if n >= first and begin >= end), len(ends))


def labelled(
    tokenizer: ChatTokenizer, ids: Sequence[int], contents: Sequence[tuple[str, TokenSource]]
) -> Iterator[Labelled]:
    """`ids` in spans: the tokens of the `contents`, looked for in their order, and the template's between them.

    A token that holds both a character of a content and one of the template counts as the content's.
    """
    if not ids:
        return
    text, ends = token_ends(tokenizer, ids)
    added = {number: str(token.content) for number, token in tokenizer.tokenizer.added_tokens_decoder.items()}
    bodies = _bodies(text, [(end, token in added) for token, end in zip(ids, ends, strict=True)])
    places = _places(text, bodies, contents, added.values())
    belonging: list[int | None] = []
    begin, at = 0, 0
    for end in ends:
        while at < len(places) and places[at].end <= begin:
            at += 1
        inside = at < len(places) and places[at].start < max(end, begin + 1) and begin < places[at].end
        belonging.append(places[at].content if inside else None)
        begin = end
    first = 0
    for number in range(1, len(ids) + 1):
        if number == len(ids) or belonging[number] != belonging[first]:
            content_number = belonging[first]
            label: TokenSource = "template" if content_number is None else contents[content_number][1]
            yield Labelled(label, tuple(ids[first:number]), content_number)
            first = number


class _Place(NamedTuple):
    """Where the content with the number `content` stands: from character `start` to before `end`."""

    start: int
    end: int
    content: int


_ROLE = re.compile(r"(?:system|developer|user|assistant|model|tool|function|ipython|observation)(?=\n|\Z)")


def _bodies(text: str, tokens: Iterable[tuple[int, bool]]) -> list[tuple[int, int]]:
    """The stretches of `text` in which contents can stand: between added tokens, the name of a role left out.

    Args:
        text: of all tokens.
        tokens: of each where it ends, and whether it is an added one (control tokens, tags).
    """
    bodies, begin, start = [], 0, 0
    for end, is_added in tokens:
        if is_added:
            bodies.append((begin, start))
            begin = end
        start = end
    bodies.append((begin, start))
    for number, (begin, end) in enumerate(bodies):
        role = _ROLE.match(text, begin, end)
        if role is not None:
            bodies[number] = (role.end(), end)
    return [(begin, end) for begin, end in bodies if text[begin:end].strip()]


def _places(
    text: str,
    bodies: Sequence[tuple[int, int]],
    contents: Sequence[tuple[str, TokenSource]],
    added: Iterable[str],
) -> list[_Place]:
    """Where the contents stand, in order; those that the template rewrites are left out."""
    places: list[_Place] = []
    position = 0
    for number, (content, _) in enumerate(contents):
        wanted = content.strip()  # templates strip contents
        start = _place(text, [(max(a, position), b) for a, b in bodies if b > position], wanted) if wanted else -1
        if start < 0 and any(each in wanted for each in added):  # then it may be more than one body
            start = text.find(wanted, position)
        if start < 0:
            continue
        before, after = content[: content.index(wanted)], content[content.index(wanted) + len(wanted) :]
        end = start + len(wanted)
        if text.endswith(before, position, start):
            start -= len(before)
        if text.startswith(after, end):
            end += len(after)
        places.append(_Place(start, end, number))
        position = end
    return places


def _place(text: str, bodies: Sequence[tuple[int, int]], wanted: str) -> int:
    """Where `wanted` begins, -1 for nowhere: where it is a whole body, else the beginning or the end of one, else
    inside of one; a short content occurs in words of the template, too."""
    for whole in (True, False):
        for begin, end in bodies:
            body = text[begin:end].strip()
            if body == wanted or (not whole and body.startswith(wanted)):
                return text.index(wanted, begin)
            if not whole and body.endswith(wanted):
                return text.rindex(wanted, begin, end)
    return next((found for begin, end in bodies if (found := text.find(wanted, begin, end)) >= 0), -1)
