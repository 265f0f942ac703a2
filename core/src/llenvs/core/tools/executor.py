"""Executors: they take the calls of one action and give a result for each, whatever happens."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from llenvs.core.closing import Closing
from llenvs.core.errors import InvalidOption, listed, nearest
from llenvs.core.tools.arguments import ArgumentChecker
from llenvs.core.tools.call import ToolCall, ToolResult, ToolStatus
from llenvs.core.tools.definition import ToolDefinition
from llenvs.core.tools.invocation import Invocation, Outcome, invalid_arguments
from llenvs.core.tools.tool import Tool, make_tools

MAX_CHARACTERS = 100_000
"""Characters of a result that a model is given, unless an executor is told otherwise."""


@dataclass(frozen=True, slots=True)
class Execution:
    """What the calls of one action led to.

    Attributes:
        results: one per call, in their order.
        hidden: the hidden state after all of them.
        ended_by: name of the terminal tool that succeeded, or None.
    """

    results: tuple[ToolResult, ...]
    hidden: Any = None
    ended_by: str | None = None


class ToolExecutor(Closing, ABC):
    """Runs tool calls.

    A tool that raises, an unknown tool, arguments that do not fit: each becomes a result that a model can read. An
    executor raises only what is its owner's fault. The calls after a terminal tool that succeeded are not run.

    Args:
        tools: functions and `Tool` objects: a mapping from their names, or any iterable.
        max_characters: of a result; longer ones are cut and say so. None: no limit.

    Raises:
        ToolNotDescribable, InvalidToolSchema, InvalidOption: what is wrong with a tool.
    """

    def __init__(
        self, tools: Mapping[str, Any] | Iterable[Any], *, max_characters: int | None = MAX_CHARACTERS
    ) -> None:
        if max_characters is not None and max_characters < 1:
            raise InvalidOption("max_characters", max_characters, "must be positive, or None")
        self.tools: tuple[Tool, ...] = make_tools(tools)
        self.max_characters = max_characters
        self._tools = {tool.name: tool for tool in self.tools}
        self._checkers = {tool.name: ArgumentChecker(tool.definition) for tool in self.tools}

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What a model is told of the tools."""
        return tuple(tool.definition for tool in self.tools)

    @abstractmethod
    def execute(self, calls: Sequence[ToolCall], hidden: Any = None) -> Execution:
        """Run `calls`; `hidden` goes to the stateful tools and is not changed."""

    async def aexecute(self, calls: Sequence[ToolCall], hidden: Any = None) -> Execution:
        """`execute` for async code; in a worker thread unless an executor is async itself."""
        return await asyncio.to_thread(self.execute, calls, hidden)

    # -- for the executors --------------------------------------------------------------------------------

    def _prepare(self, call: ToolCall, hidden: Any) -> Invocation | Outcome:
        """The call ready to be made, or the outcome of one that cannot be."""
        if call.problem:
            return Outcome(f"Error: {call.problem}", ToolStatus.INVALID_ARGUMENTS, hidden)
        tool = self._tools.get(call.name)
        if tool is None:
            return Outcome(self._unknown(call.name), ToolStatus.UNKNOWN_TOOL, hidden)
        try:
            problems = self._checkers[call.name].problems(call.arguments)
        except Exception as error:  # noqa: BLE001 - a number too large for a float, a reference to nowhere, ...
            # found out only now: what the check of the schema does not look at
            return Outcome(f"Error: the tool {call.name!r} is broken: {error}", ToolStatus.ERROR, hidden)
        if problems:
            return Outcome(invalid_arguments(call.name, problems), ToolStatus.INVALID_ARGUMENTS, hidden)
        return Invocation(tool, call.arguments, hidden, self.max_characters)

    def _unknown(self, name: str) -> str:
        shown = repr(name if len(name) <= 80 else f"{name[:80]}...")
        close = nearest(name[:200], self._tools)
        hint = f"Did you mean {' or '.join(map(repr, close))}? " if close else ""
        return f"Error: there is no tool {shown}. {hint}Available tools: {listed(self._tools, 30) or 'none'}."


class Tally:
    """The results so far of an action's calls, and the hidden state after them."""

    def __init__(self, executor: ToolExecutor, hidden: Any) -> None:
        self._terminal = {tool.name for tool in executor.tools if tool.terminal}
        self.results: list[ToolResult] = []
        self.hidden = hidden
        self.ended_by: str | None = None

    def add(self, call: ToolCall, outcome: Outcome) -> None:
        """Take the outcome of the next call."""
        self.results.append(ToolResult(call.id, outcome.content, outcome.status, call.name))
        self.hidden = outcome.hidden
        if outcome.status is ToolStatus.SUCCESS and call.name in self._terminal:
            self.ended_by = call.name

    def skip(self, call: ToolCall) -> None:
        """Take a call that comes after the end."""
        content = f"Error: not run, since {self.ended_by!r} had ended the episode."
        self.results.append(ToolResult(call.id, content, ToolStatus.ERROR, call.name))

    @property
    def execution(self) -> Execution:
        """All of it."""
        return Execution(tuple(self.results), self.hidden, self.ended_by)


def with_ids(calls: Iterable[ToolCall], prefix: str) -> tuple[ToolCall, ...]:
    """`calls` with an id for each that has none or one that occurred before: results are matched by it."""
    calls = tuple(calls)
    given = {call.id for call in calls}
    seen: set[str] = set()
    named = []
    for number, call in enumerate(calls):
        if not call.id or call.id in seen:
            id = f"{prefix}_{number}"
            while id in given:  # a model may write ids that look like ours
                id += "_"
            call = replace(call, id=id)
        seen.add(call.id)
        named.append(call)
    return tuple(named)
