"""Tools in prompts and answers of llama.cpp.

The server's own tool handling is not used: it ignores tools that a template does not know, lets a demanded call be
skipped, and answers with status 500 where the model writes a call that cannot be parsed. So tools are rendered
into the prompt, the answer is generated as plain text, and a `ToolCallParser` reads it; a demanded call is forced
by a grammar. A call that cannot be read is the model's own doing and comes back as such (`ToolCall.problem`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files

from llenvs.core.errors import InvalidOption
from llenvs.core.generation import FinishReason, Generation
from llenvs.core.message import ChatMessage
from llenvs.core.tools import ToolDefinition
from llenvs.inference.errors import BadRequest
from llenvs.inference.local.stop_strings import cut_at_stop
from llenvs.inference.request import GenerationRequest
from llenvs.inference.tool_calls import ToolCallParser, render_chat
from llenvs.inference.tool_calls.choice import forces_a_call, grammar_of_choice
from llenvs.inference.tool_calls.reading import with_tool_calls
from llenvs.inference.tool_calls.rendering import as_written
from llenvs_llamacpp.client import NAME, EngineClient

TEMPLATES = ("chatml_tools",)
"""Chat templates that come with this package, by name."""

_PROBE = ToolDefinition("probe_of_template")


@cache
def chat_template_named(template: str) -> str:
    """The Jinja text of a template: `template` itself, or one of `TEMPLATES` by name.

    Raises:
        InvalidOption: it is neither.
    """
    if template in TEMPLATES:
        return (files("llenvs_llamacpp") / "templates" / f"{template}.jinja").read_text(encoding="utf-8")
    if "{" not in template:
        valid = f"Jinja text, {', '.join(TEMPLATES)}"
        raise InvalidOption("chat_template", template, "is no template", valid=valid)
    return template


async def knows_tools(client: EngineClient) -> bool:
    """Whether the model's chat template says anything about tools."""
    messages = [{"role": "user", "content": "probe"}]
    without = await client.post("/apply-template", {"messages": messages})
    with_tool = await client.post("/apply-template", {"messages": messages, "tools": [_PROBE.to_openai()]})
    return bool(without["prompt"] != with_tool["prompt"])


def needs_tools(request: GenerationRequest) -> bool:
    """Whether anything in `request` is about tools."""
    return bool(request.tools) or any(m.tool_calls or m.role == "tool" for m in request.messages)


def for_template(
    request: GenerationRequest, parser: ToolCallParser, *, known: bool, control_text: re.Pattern[str] | None
) -> tuple[Sequence[ChatMessage], Sequence[ToolDefinition]]:
    """Messages and tools of `request` for the chat template.

    Args:
        request: what is asked.
        parser: the form of tool calls.
        known: whether the template knows tools; else they become part of the messages' texts.
        control_text: matches the texts of control tokens.
    """
    tools = () if request.tool_choice == "none" else request.tools
    if not known:
        return render_chat(request.messages, tools, parser), ()

    def as_it_was(message: ChatMessage) -> ChatMessage:
        # word for word, so that the token ids of this turn continue those of the last
        written = as_written(message, parser) if message.tool_calls else None
        if written is None or (control_text is not None and control_text.search(written)):
            return message
        return replace(message, content=written, tool_calls=())

    return [as_it_was(message) for message in request.messages], tools


def with_forced_call(request: GenerationRequest, parser: ToolCallParser, max_calls: int) -> GenerationRequest:
    """`request` with the grammar of the call that its tool choice demands, if it does.

    Raises:
        BadRequest: the choice is no tool of the request, or excludes something else in it.
        GrammarImpossible: a schema says what no grammar can.
    """
    if not request.tools or not forces_a_call(request.tool_choice):
        return request
    if request.prefix:
        raise BadRequest(NAME, f"tool_choice {request.tool_choice!r} excludes a prefix")
    grammar = grammar_of_choice(request, request.tool_choice, parser, backend=NAME, max_calls=max_calls)
    return replace(request, grammar=grammar)


async def read_calls(
    client: EngineClient,
    generation: Generation,
    request: GenerationRequest,
    parser: ToolCallParser,
    control_text: re.Pattern[str] | None,
) -> Generation:
    """`generation` with the calls that its text holds.

    Some models mark calls with control tokens, which the server leaves out of the text; they are looked for in the
    ids.
    """
    if not request.tools or request.tool_choice == "none":
        return generation
    ids = list(generation.completion_token_ids or ())
    stop = generation.metadata.get("stop")
    if generation.finish_reason is FinishReason.STOP and stop is None:
        ids.pop()  # the end of turn
    written: str = (await client.post("/detokenize", {"tokens": ids}))["content"]
    if stop is not None:
        written, _ = cut_at_stop(written, (stop,))
    marked = control_text is not None and control_text.search(written) is not None
    return with_tool_calls(generation, parser, request.prefix, written=written if marked else None)
