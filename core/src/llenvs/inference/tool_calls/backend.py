"""Tools for a backend that has none: described in the prompt, read from the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from llenvs.core.generation import FinishReason, Generation
from llenvs.inference.backend import Backend
from llenvs.inference.errors import BadRequest, UnsupportedFeature
from llenvs.inference.request import GenerationRequest
from llenvs.inference.tool_calls.catalog import make_parser
from llenvs.inference.tool_calls.grammar import call_grammar
from llenvs.inference.tool_calls.parser import ToolCallParser
from llenvs.inference.tool_calls.rendering import RESPONSE_TEXT, render_chat


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
        if _forces(tool_choice):
            self._need_grammar(tool_choice)

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
        generations = await self.backend._generate(plain, n)
        return [self._parsed(each, request.prefix) for each in generations] if told else generations

    def _grammar(self, request: GenerationRequest, choice: str | None) -> str | None:
        if not _forces(choice) or not request.tools:
            return request.grammar
        self._need_grammar(choice)
        if request.grammar is not None or request.json_schema is not None:
            raise BadRequest(self.name, f"tool_choice {choice!r} excludes a grammar and a json_schema")
        tools = request.tools
        if choice != "required":
            tools = tuple(tool for tool in tools if tool.name == choice)
            if not tools:
                names = ", ".join(tool.name for tool in request.tools)
                raise BadRequest(self.name, f"tool_choice {choice!r} is no tool of the request; valid: {names}")
        return call_grammar(tools, self.parser, max_calls=self.max_calls)

    def _need_grammar(self, choice: str | None) -> None:
        if not self.backend.capabilities.grammar:
            detail = f"backend {self.backend.name} takes no grammar, which is what forces a call"
            raise UnsupportedFeature(self.name, f"tool_choice {choice!r}", detail)

    def _parsed(self, generation: Generation, prefix: str) -> Generation:
        written = prefix + generation.text
        parsed = self.parser.parse(written)
        if not parsed.calls:
            return generation
        metadata: dict[str, Any] = {**generation.metadata, RESPONSE_TEXT: written}
        cut_off = generation.finish_reason is FinishReason.LENGTH
        return replace(
            generation,
            text=parsed.text.removeprefix(prefix.strip()) if prefix else parsed.text,
            tool_calls=parsed.calls,
            finish_reason=generation.finish_reason if cut_off else FinishReason.TOOL_CALLS,
            metadata=metadata,
        )


def _forces(choice: str | None) -> bool:
    return choice not in (None, "auto", "none")
