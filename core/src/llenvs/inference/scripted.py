"""A backend whose answers are given beforehand: for tests, baselines and measuring everything but a model."""

from __future__ import annotations

import asyncio
import itertools
import math
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from llenvs.core.errors import InvalidOption
from llenvs.core.generation import FinishReason, Generation, Usage
from llenvs.inference.backend import Backend
from llenvs.inference.request import Capabilities, GenerationRequest

Script = str | Iterable[str] | Callable[[GenerationRequest], str | Generation]


class ScriptedBackend(Backend):
    """Answers by script.

    Args:
        script: one text for all requests; texts that are taken in turn, over and over; or a function of the
            request, which may raise.
        latency: seconds to wait before each answer.
        model: the name it goes by.

    Tokens in the usage are counted as words, since there is no tokenizer.
    """

    name: ClassVar[str] = "scripted"
    capabilities = Capabilities(
        prefix=True,
        tools=True,
        images=True,
        seed=True,
        top_k=True,
        min_p=True,
        penalties=True,
        reasoning_effort=True,
    )

    def __init__(
        self, script: Script = "", *, latency: float = 0.0, model: str = "scripted", max_concurrency: int = 64
    ) -> None:
        super().__init__(model, max_concurrency=max_concurrency)
        if isinstance(latency, bool) or not isinstance(latency, int | float) or not 0 <= latency < math.inf:
            raise InvalidOption("latency", latency, "must be a number of seconds, 0 or more")
        self._latency = latency
        self._lock = threading.Lock()
        if callable(script):
            self._answer = script
        else:
            answers = [script] if isinstance(script, str) else list(script) if isinstance(script, Iterable) else []
            if not answers or not all(isinstance(each, str) for each in answers):
                raise InvalidOption(
                    "script", script, "must be a text, a list of texts, or a function of the request"
                )
            texts = itertools.cycle(answers)
            self._answer = lambda request: next(texts)

    async def _generate(self, request: GenerationRequest, n: int) -> Sequence[Generation]:
        if self._latency:
            await asyncio.sleep(self._latency)
        return [self._one(request) for _ in range(n)]

    def _one(self, request: GenerationRequest) -> Generation:
        with self._lock:
            answer = self._answer(request)
        if isinstance(answer, Generation):
            return answer
        prompt_words = sum(len(message.content.split()) for message in request.messages)
        return Generation(
            text=answer,
            finish_reason=FinishReason.STOP,
            usage=Usage(prompt_tokens=prompt_words, completion_tokens=len(answer.split())),
            model=self.model,
        )
