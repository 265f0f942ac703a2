"""Tools for a backend that has none: described in the prompt, read from the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from llenvs.core.generation import Generation
from llenvs.inference.backend import Backend
from llenvs.inference.errors import UnsupportedFeature
from llenvs.inference.request import GenerationRequest
from llenvs.inference.tool_calls.catalog import make_parser
from llenvs.inference.tool_calls.choice import forces_a_call, grammar_of_choice
from llenvs.inference.tool_calls.parser import ToolCallParser
from llenvs.inference.tool_calls.reading import with_tool_calls
from llenvs.inference.tool_calls.rendering import render_chat


class PromptedToolsBackend(Backend):
    """Another backend, with tools: what it is sent is plain chat, what it answers is parsed.

    A call that cannot be read comes back as a call with a `problem`, which an executor answers with words about
    it: the model can try again. What the model wrote is kept in the generation's metadata, so that later turns
    repeat it word for word; token ids, logprobs and usage are the other backend's own.

    Args:
        backend: the one that generates. It is closed with this one.
        parser: the form of the calls, by name ("hermes", "llama3_json", "llama3_pythonic", "mistral") or made.
        tool_choice: for requests that have none. "required" or the name of a tool forces a call by a grammar, for
            backends that take one.
        max_calls: at most so many calls in one answer, when they are forced.

    Raises:
        UnknownToolCallParser: with the nearest names.
        UnsupportedFeature: `tool_choice` forces calls and the backend takes no grammar.
    """

    name: ClassVar[str] = "prompted_tools"

    def __init__(
        self,
        backend: Backend,
        parser: str | ToolCallParser = "hermes",
        *,
        tool_choice: str | None = None,
        max_calls: int = 1,
    ) -> None:
        super().__init__(backend.model, max_concurrency=backend.max_concurrency)
        self.backend = backend
        self.parser = make_parser(parser)
        self.tool_choice = tool_choice
        self.max_calls = max_calls
        self.capabilities = replace(backend.capabilities, tools=True)
        if forces_a_call(tool_choice):
            self._need_grammar(tool_choice)

    def identity(self) -> Mapping[str, Any] | None:
        """See `Backend.identity`."""
        inner = self.backend.identity()
        if inner is None:
            return None
        return {
            "backend": self.name,
            "on": inner,
            "parser": self.parser.name,
            "tool_choice": self.tool_choice,
            "max_calls": self.max_calls,
        }

    async def check(self) -> None:
        """See `Backend.check`."""
        await self.backend.check()

    async def aclose(self) -> None:
        """Close the other backend."""
        await self.backend.aclose()

    async def _generate(self, request: GenerationRequest, n: int) -> Sequence[Generation]:
        choice = request.tool_choice or self.tool_choice
        told = request.tools if choice != "none" else ()
        plain = replace(
            request,
            messages=render_chat(request.messages, told, self.parser),
            tools=(),
            tool_choice=None,
            grammar=self._grammar(request, choice),
        )
        self.backend.capabilities.check(plain, self.backend.name)
        generations = await self.backend.answers(plain, n)
        return (
            [with_tool_calls(each, self.parser, request.prefix) for each in generations] if told else generations
        )

    def _grammar(self, request: GenerationRequest, choice: str | None) -> str | None:
        if forces_a_call(choice) and request.tools:
            self._need_grammar(choice)
        return grammar_of_choice(request, choice, self.parser, backend=self.name, max_calls=self.max_calls)

    def _need_grammar(self, choice: str | None) -> None:
        if not self.backend.capabilities.grammar:
            detail = f"backend {self.backend.name} takes no grammar, which is what forces a call"
            raise UnsupportedFeature(self.name, f"tool_choice {choice!r}", detail)
