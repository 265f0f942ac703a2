"""One message of a model, written by as many requests as it takes and handed out segment by segment."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from llenvs.core.generation import FinishReason, Generation, TokenLogprob, Usage
from llenvs.core.segmentation.control import without_control
from llenvs.core.segmentation.generations import APART, SPLIT
from llenvs.core.segmentation.segmenter import Segmenter
from llenvs.core.tools import ToolCall
from llenvs.evaluation.segmented_tokens import token_ends

Ask = Callable[[str, int | None], Awaitable["Answer"]]
"""Asks the model to go on after the message so far, for so many tokens at most (None: as it likes)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request brought.

    Attributes:
        generation: as it came.
        skipped: characters at the beginning of its text that repeat the message so far (as a model may that got no
            assistant prefix) and do not count.
        glue: what belongs between the message so far and the rest.
    """

    generation: Generation
    skipped: int = 0
    glue: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """A segment, and the part of a generation that spells it; None when no model wrote any of it."""

    text: str
    generation: Generation | None
    ends: bool = False
    tool_calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class _Token:
    """A token that no segment has yet; `end` is where it ends in the message."""

    end: int
    id: int
    logprob: TokenLogprob


@dataclass(slots=True)
class _Request:
    """A generation whose text is in the message from `begin` to `end`.

    `aligned`: whether it is known which token spells what. `apart`: its prompt spells the message so far with
    other ids than were generated. `counted`: what is counted once (the prompt, the time) is handed out.
    """

    generation: Generation
    begin: int
    end: int
    aligned: bool
    apart: bool
    counted: bool = False


class MessageWriter:
    """Writes one message.

    What the model writes beyond a segment is kept and handed out next, so as long as nobody intervenes a message
    costs one request (or one for every `chunk_tokens`).

    Args:
        segmenter: where segments end.
        ask: makes a request.
        committed: the message so far, taken already.
        sequence: the ids that the model read and wrote up to there, None when they are not known.
        given: text after it that is not the model's, a part of the next segment.
        max_tokens: tokens of the response at most, None for no limit of ours.
        chunk_tokens: tokens of one request at most, None for no limit.
    """

    def __init__(
        self,
        segmenter: Segmenter,
        ask: Ask,
        *,
        committed: str = "",
        sequence: tuple[int, ...] | None = None,
        given: str = "",
        max_tokens: int | None = None,
        chunk_tokens: int | None = None,
    ) -> None:
        self._segmenter = segmenter
        self._ask = ask
        self._taken = len(committed)
        self._text = committed + given
        self._given = len(self._text)
        self._spelled = self._given
        self._sequence = sequence
        self._is_new = not committed
        self._left = max_tokens
        self.chunk_tokens = chunk_tokens
        self._requests: list[_Request] = []
        self._tokens: deque[_Token] = deque()
        self._calls: tuple[ToolCall, ...] = ()
        self._finish: FinishReason | None = None
        self._boundaries: deque[int] | None = None

    @property
    def tokens_left(self) -> int | None:
        """Tokens of the response that may still be generated when the text beyond the last segment taken is thrown
        away; None for no limit. Where it is not known which tokens spell that text, they are estimated from its
        length."""
        if self._left is None:
            return None
        beyond = len(self._tokens) + sum(self._estimated(r) for r in self._requests if not r.aligned)
        return self._left + beyond

    def _estimated(self, request: _Request) -> int:
        length = request.end - request.begin
        beyond = request.end - max(request.begin, self._taken)
        return request.generation.usage.completion_tokens * max(0, beyond) // max(1, length)

    async def next(self) -> Piece:
        """The next segment; the last one says so."""
        while True:
            boundary = self._next_boundary()
            if boundary is not None:
                return self._take(boundary)
            if self._finish is not None:
                return self._take(len(self._text), ends=True)
            await self._write()

    async def rest(self) -> Piece:
        """All that is left as one segment."""
        while self._finish is None:
            await self._write()
        return self._take(len(self._text), ends=True)

    # -- requests -----------------------------------------------------------------------------------------

    async def _write(self) -> None:
        if self._left is not None and self._left < 1:
            self._finish, self._boundaries = FinishReason.LENGTH, None
            return
        wanted = min((n for n in (self._left, self.chunk_tokens) if n is not None), default=None)
        answer = await self._ask(self._text, wanted)
        generation = answer.generation
        text = answer.glue + generation.text[answer.skipped :]
        begin = len(self._text) + len(answer.glue)
        self._receive(generation, begin, answer.skipped)
        self._text += text
        self._boundaries = None
        used = generation.usage.completion_tokens
        if self._left is not None:
            self._left -= used
        cut = generation.finish_reason is FinishReason.LENGTH and self.chunk_tokens is not None
        context_full = wanted is not None and 0 < used < wanted
        if not cut or not text or context_full or (self._left is not None and self._left < 1):
            self._finish = generation.finish_reason
            self._calls = without_control(generation.tool_calls)

    def _receive(self, generation: Generation, begin: int, skipped: int) -> None:
        ends = token_ends(generation)
        apart = not self._is_new and self._sequence is not None and generation.prompt_token_ids != self._sequence
        end = begin + len(generation.text) - skipped
        self._requests.append(_Request(generation, begin, end, ends is not None, apart))
        self._sequence = None
        if ends is not None:
            ids, logprobs = generation.completion_token_ids or (), generation.logprobs or ()
            kept = [
                _Token(begin + end - skipped, token, logprob)
                for end, token, logprob in zip(ends, ids, logprobs, strict=True)
                if end > skipped or end == len(generation.text)
            ]
            self._tokens.extend(kept)
            if generation.prompt_token_ids is not None:
                self._sequence = generation.prompt_token_ids + tuple(token.id for token in kept)
        self._is_new = False

    # -- segments -----------------------------------------------------------------------------------------

    def _next_boundary(self) -> int | None:
        if self._boundaries is None:
            complete = self._finish is not None
            self._boundaries = deque(self._segmenter.boundaries_after(self._taken, self._text, complete=complete))
        return self._boundaries.popleft() if self._boundaries else None

    def _take(self, end: int, *, ends: bool = False) -> Piece:
        begin, self._taken = self._taken, end
        generation = self._generation(begin, end, ends)
        return Piece(self._text[begin:end], generation, ends, self._calls if ends else ())

    def _generation(self, begin: int, end: int, ends: bool) -> Generation | None:
        """What of the requests spells the message from `begin` to `end`."""
        sources = [r for r in self._requests if (r.end > begin and r.begin < end) or (ends and not r.counted)]
        if not sources:
            return None
        tokens: list[_Token] = []
        while self._tokens and (ends or self._tokens[0].end <= end):
            tokens.append(self._tokens.popleft())
            self._spelled = tokens[-1].end
        new = [request for request in sources if not request.counted]
        for request in new:
            request.counted = True
        aligned = all(request.aligned for request in sources)
        once = sum((_counted_once(request) for request in new), Usage())
        first, last = new[0].generation if new else None, sources[-1].generation
        metadata = dict(last.metadata)
        if any(request.apart for request in new):
            metadata[APART] = True
        if aligned and self._tokens and self._spelled < end:
            metadata[SPLIT] = True
        return Generation(
            text=self._text[max(begin, self._given) : end],
            tool_calls=self._calls if ends else (),
            finish_reason=self._finish if ends and self._finish is not None else FinishReason.STOP,
            usage=replace(once, completion_tokens=once.completion_tokens + len(tokens)),
            prompt_token_ids=None if first is None else first.prompt_token_ids,
            completion_token_ids=tuple(token.id for token in tokens) if aligned else None,
            logprobs=tuple(token.logprob for token in tokens) if aligned else None,
            reasoning=None if first is None else first.reasoning,
            model=last.model,
            latency=sum(request.generation.latency for request in new),
            metadata=metadata,
        )


def _counted_once(request: _Request) -> Usage:
    """What of a request's usage is no single token's: the prompt, and tokens that are not among its ids."""
    usage = request.generation.usage
    placed = len(request.generation.completion_token_ids or ()) if request.aligned else 0
    return replace(usage, completion_tokens=max(0, usage.completion_tokens - placed))
