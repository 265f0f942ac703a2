"""The judge of assertions in natural language: the upstream's prompt and verdict, on one of our backends."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, SimpleNamespace
from typing import Any

from llenvs.core.message import ChatMessage
from llenvs.inference.backend import Backend
from llenvs.inference.request import GenerationRequest
from llenvs.inference.sampling import SamplingParams


class Judge:
    """Decides whether a conversation meets the assertions of its task.

    Args:
        evaluator: the upstream's class, which words the question and reads the answer.
        backend: the model.
        sampling: how to sample it.
        owned: whether to close the backend with this judge.
    """

    def __init__(self, evaluator: Any, backend: Backend, sampling: SamplingParams, *, owned: bool) -> None:
        self._evaluator = evaluator
        self._backend = backend
        self._sampling = sampling
        self._owned = owned

    def judge(self, task: Any, messages: list[Any], heard: Callable[[Callable[[], str]], str]) -> Any:
        """The upstream's reward info.

        Args:
            task: whose assertions.
            messages: the whole conversation.
            heard: takes the call that asks the model and returns its answer, live or recorded.

        Raises:
            BackendError: the model could not be asked.
            Exception: what the upstream raises for an answer that it cannot read.
        """

        def generate(model: str, messages: list[Any], **options: Any) -> Any:
            chat = tuple(ChatMessage(message.role, message.content) for message in messages)
            request = GenerationRequest(chat, self._sampling)
            return SimpleNamespace(content=heard(lambda: self._backend.generate_sync(request).text))

        return _asking(self._evaluator, generate).calculate_reward(task=task, full_trajectory=messages)

    def close(self) -> None:
        """Close the backend if it was made here."""
        if self._owned:
            self._backend.close()


def _asking(evaluator: Any, generate: Callable[..., Any]) -> Any:
    """The upstream's evaluator with another function in place of its call of litellm, for this call alone."""
    original = evaluator.evaluate_nl_assertions.__func__
    asks = FunctionType(original.__code__, {**original.__globals__, "generate": generate}, original.__name__)
    return type(evaluator.__name__, (evaluator,), {"evaluate_nl_assertions": classmethod(asks)})
