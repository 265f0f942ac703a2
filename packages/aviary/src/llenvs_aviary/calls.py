"""Whether a tool call has the arguments that its tool takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from llenvs.core.tools import ToolCall, ToolDefinition, ToolResult, ToolStatus


class CallChecker:
    """Checks the names of arguments: a missing or foreign one would make the call itself fail in the upstream.

    Types are left to the tools, which take more than their schemas say (a number as an answer, a year to search).
    """

    def __init__(self, tools: Iterable[ToolDefinition]) -> None:
        self._names = {tool.name: _names(tool.parameters) for tool in tools}

    def knows(self, call: ToolCall) -> bool:
        """Whether there is such a tool."""
        return call.name in self._names

    def refused(self, call: ToolCall) -> ToolResult | None:
        """The result for a call that does not fit its tool; None for one that can be made."""
        if call.problem or call.name not in self._names:
            return None  # the upstream has an answer to these
        all_names, needed = self._names[call.name]
        problems = [f"{name!r} is missing" for name in needed if name not in call.arguments]
        problems += [f"there is no {name!r}" for name in call.arguments if name not in all_names]
        if not problems:
            return None
        takes = f"it takes: {', '.join(all_names)}" if all_names else "it takes none"
        text = f"Error: invalid arguments for {call.name!r}: {'; '.join(problems)} ({takes})"
        return ToolResult(call.id, text, ToolStatus.INVALID_ARGUMENTS, call.name)


def _names(parameters: Mapping[str, object]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    properties, required = parameters.get("properties"), parameters.get("required")
    return (
        tuple(properties) if isinstance(properties, Mapping) else (),
        tuple(map(str, required)) if isinstance(required, list | tuple) else (),
    )
