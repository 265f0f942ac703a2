"""Chats, observations and tools, as a model would see them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from llenvs_cli.terminal import visible

if TYPE_CHECKING:
    from llenvs.core.message import ChatMessage, ImageContent
    from llenvs.core.observation import Observation
    from llenvs.core.tools import ToolCall, ToolDefinition, ToolResult

_STYLES = {"system": "magenta", "user": "cyan", "assistant": "green", "tool": "yellow", "task": "magenta"}


def show_messages(out: Console, messages: Iterable[ChatMessage]) -> None:
    """Each message under a line with its role."""
    for message in messages:
        show_text(out, message.role, message.content, message.images, message.tool_calls)


def show_text(
    out: Console,
    role: str,
    text: str,
    images: Sequence[ImageContent] = (),
    tool_calls: Sequence[ToolCall] = (),
    *,
    style: str = "",
) -> None:
    """`text` below a line that says who speaks; the text itself is not wrapped, so that it can be copied."""
    out.print(Text(f"--- {visible(role)} ---", style=style or _STYLES.get(role, "bold")))
    if text:
        out.print(Text(visible(text)), soft_wrap=True)
    for image in images:
        out.print(Text(_describe_image(image), style="dim"), soft_wrap=True)
    for call in tool_calls:
        out.print(Text(visible(f"calls {call.name} {compact_json(dict(call.arguments))}")), soft_wrap=True)


def show_observation(out: Console, observation: Observation, *, first: bool) -> None:
    """What is new in `observation`: the task once, results of tools, then the prompt with its images."""
    if first and observation.task and observation.task not in observation.prompt:
        show_text(out, "task", observation.task)
    if first and observation.messages:
        # The chat that the environment dictates ends with this turn's prompt, which is shown below.
        earlier = [m for m in observation.messages if m.content != observation.prompt]
        show_messages(out, earlier)
    for result in observation.tool_results:
        show_tool_result(out, result)
    if observation.prompt or observation.images:
        show_text(out, "observation", observation.prompt, observation.images, style="cyan")
    elif not first and observation.messages and not observation.tool_results:
        show_messages(out, observation.messages[-1:])


def show_tool_result(out: Console, result: ToolResult) -> None:
    """What a tool call brought, and how it ended when it did not succeed."""
    status = "" if result.ok else f" ({result.status.value.replace('_', ' ')})"
    show_text(out, f"result of {result.name or result.call_id}{status}", result.content, style="yellow")


def show_tools(out: Console, tools: Sequence[ToolDefinition], *, full: bool = False) -> None:
    """One line for each tool, its parameters with their types; `full` adds descriptions and the whole schema."""
    for tool in tools:
        line = Text("  ")
        line.append(visible(signature(tool)), style="yellow")
        summary = tool.description.strip().split("\n", 1)[0]
        if summary and not full:
            line.append(f"  {visible(summary)}")
        out.print(line, soft_wrap=True)
        if full:
            if tool.description:
                out.print(Text(visible(tool.description)), soft_wrap=True)
            out.print(Text(visible(compact_json(dict(tool.parameters))), style="dim"), soft_wrap=True)


def signature(tool: ToolDefinition) -> str:
    """``name(argument: type, optional?: type)`` from the JSON Schema of a tool's parameters."""
    properties = tool.parameters.get("properties")
    required = tool.parameters.get("required")
    needed = required if isinstance(required, list | tuple) else ()
    if not isinstance(properties, dict):
        return f"{tool.name}()"
    parts = [f"{name}{'' if name in needed else '?'}: {_type_of(schema)}" for name, schema in properties.items()]
    return f"{tool.name}({', '.join(parts)})"


def compact_json(value: Any) -> str:
    """`value` as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, default=repr)


def _type_of(schema: Any) -> str:
    if not isinstance(schema, dict):
        return "any"
    if "enum" in schema:
        return " | ".join(json.dumps(choice, ensure_ascii=False, default=repr) for choice in schema["enum"])
    kind = schema.get("type", "any")
    return " | ".join(str(each) for each in kind) if isinstance(kind, list | tuple) else str(kind)


def _describe_image(image: ImageContent) -> str:
    if image.url is not None:
        return visible(f"[image at {image.url[:200]}]")
    return f"[image {image.media_type}, {len(image.data or b'')} bytes]"
