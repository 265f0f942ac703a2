"""One call of one tool: whatever the tool does, an outcome comes back."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from llenvs.core.tools.call import ToolStatus
from llenvs.core.tools.errors import ToolFailed, ToolServerFailed
from llenvs.core.tools.result_text import result_text
from llenvs.core.tools.signature import ArgumentsRefused
from llenvs.core.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call led to: the text for the model, its status, and the hidden state after it."""

    content: str
    status: ToolStatus
    hidden: Any = None


@dataclass(frozen=True, slots=True)
class Invocation:
    """A tool, arguments that fit its schema, and the hidden state before the call."""

    tool: Tool
    arguments: Mapping[str, Any]
    hidden: Any = None
    max_characters: int | None = None

    @property
    def is_async(self) -> bool:
        """Whether the function is declared async (or is an object whose ``__call__`` is)."""
        function = self.tool.function
        while isinstance(function, functools.partial):
            function = function.func
        return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004
        )

    def run(self) -> Outcome:
        """Call a plain function, here and now. Raises nothing but the KeyboardInterrupt of a Ctrl-C."""
        try:
            return self._success(self._call())
        except BaseException as error:
            if _is_ctrl_c(error):
                raise
            return self._failure(error)

    async def arun(self) -> Outcome:
        """Call an async function. Raises nothing but CancelledError, and the KeyboardInterrupt of a Ctrl-C."""
        try:
            value = self._call()
            return self._success(await value if inspect.isawaitable(value) else value)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            if _is_ctrl_c(error):
                raise
            return self._failure(error)

    def _call(self) -> Any:
        tool = self.tool
        args, kwargs = tool.signature.bind(self.arguments) if tool.signature else ((), dict(self.arguments))
        if tool.stateful:
            args = (copy.deepcopy(self.hidden), *args)
        return tool.function(*args, **kwargs)

    def _success(self, value: Any) -> Outcome:
        hidden = self.hidden
        if self.tool.stateful:
            if not isinstance(value, tuple) or len(value) != 2:
                raise ToolFailed(f"the tool is broken: it returned {type(value).__name__}, not (result, hidden)")
            value, hidden = value
        return Outcome(result_text(value, self.max_characters), ToolStatus.SUCCESS, hidden)

    def _failure(self, error: BaseException) -> Outcome:
        if isinstance(error, ArgumentsRefused):
            return Outcome(invalid_arguments(self.tool.name, error.problems), _INVALID, self.hidden)
        try:
            said = str(error)
        except BaseException as failed:  # an exception whose own text fails
            if _is_ctrl_c(failed):
                raise
            said = "(no message)"
        if not isinstance(error, ToolFailed | ToolServerFailed):
            said = f"{type(error).__name__}: {said}" if said else type(error).__name__
        return Outcome(f"Error: {result_text(said, self.max_characters)}", ToolStatus.ERROR, self.hidden)


def _is_ctrl_c(error: BaseException) -> bool:
    """Whether a person at the keyboard is behind it: only the main thread is interrupted by one."""
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


_INVALID = ToolStatus.INVALID_ARGUMENTS


def cancelled_itself(hidden: Any) -> Outcome:
    """That of an async tool which ended by a cancellation that nobody asked for."""
    return Outcome("Error: the tool cancelled itself.", ToolStatus.ERROR, hidden)


def invalid_arguments(tool: str, problems: list[str]) -> str:
    """What a model reads when its arguments do not fit."""
    return f"Error: invalid arguments for {tool!r}: " + "; ".join(problems)
