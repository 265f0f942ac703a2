"""Errors of whoever writes or runs tools. What a model does wrong is a `ToolResult`, never an exception."""

from __future__ import annotations

from llenvs.core.errors import LLEnvsError


class ToolNotDescribable(LLEnvsError):
    """A function that no tool definition can be made from.

    Attributes: `tool`, `parameter` ("" when it is the function as a whole).
    """

    def __init__(self, tool: str, parameter: str, problem: str) -> None:
        self.tool = tool
        self.parameter = parameter
        where = f"parameter {parameter!r} of tool {tool!r}" if parameter else f"tool {tool!r}"
        super().__init__(f"{where}: {problem}")


class InvalidToolSchema(LLEnvsError):
    """The `parameters` of a tool definition are no valid JSON Schema."""

    def __init__(self, tool: str, problem: str) -> None:
        self.tool = tool
        super().__init__(f"parameters of tool {tool!r} are no valid JSON Schema: {problem}")


class ToolServerFailed(LLEnvsError):
    """A server of tools does not start, or does not speak the protocol."""


class ToolFailed(LLEnvsError):
    """Raised by a tool to give the model this text as an error. (Any other exception does too, with its type.)"""
