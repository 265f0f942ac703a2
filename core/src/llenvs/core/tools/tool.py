"""Tools that can be run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from llenvs.core.errors import InvalidOption
from llenvs.core.tools.definition import ToolDefinition
from llenvs.core.tools.signature import CallSignature


@dataclass(frozen=True, slots=True)
class Tool:
    """A definition and the function behind it.

    Attributes:
        definition: what the model is told.
        function: plain or async; called with the arguments by name.
        stateful: the function works on an environment's hidden state. It gets a copy of it as first argument,
            which it may change, and returns ``(result, hidden)``. When it raises or runs out of time, the hidden
            state stays as it was.
        terminal: a successful call ends the episode.
        timeout: seconds, instead of the executor's own.
        signature: how JSON arguments become the function's own types; None passes them as they are.
    """

    definition: ToolDefinition
    function: Callable[..., Any]
    stateful: bool = False
    terminal: bool = False
    timeout: float | None = None
    signature: CallSignature | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.definition.name

    @property
    def in_order(self) -> bool:
        """Whether a call of it must wait for the calls before it, and those after it for the call."""
        return self.stateful or self.terminal

    @classmethod
    def from_callable(
        cls,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        stateful: bool = False,
        terminal: bool = False,
        timeout: float | None = None,
    ) -> Tool:
        """The tool that a Python function is; see `ToolDefinition.from_callable`.

        Raises:
            ToolNotDescribable: naming the parameter.
        """
        signature = CallSignature.of(function, name=name, description=description, skip_first=stateful)
        return cls(signature.definition, function, stateful, terminal, timeout, signature)


def make_tools(tools: Mapping[str, Any] | Iterable[Any]) -> tuple[Tool, ...]:
    """Tools from functions and tools: a mapping from names, or any iterable.

    Raises:
        ToolNotDescribable: naming the parameter of the function.
        InvalidOption: something else, or two tools of one name.
    """
    if isinstance(tools, Mapping):
        made = [_named(name, each) for name, each in tools.items()]
    else:
        made = [each if isinstance(each, Tool) else Tool.from_callable(_callable(each)) for each in tools]
    names = [tool.name for tool in made]
    for name in names:
        if names.count(name) > 1:
            raise InvalidOption("tools", name, "two tools have this name")
    return tuple(made)


def _named(name: str, tool: Any) -> Tool:
    if not isinstance(tool, Tool):
        return Tool.from_callable(_callable(tool), name=name)
    if tool.name != name:
        raise InvalidOption("tools", name, f"is the key of a tool that is called {tool.name!r}")
    return tool


def _callable(tool: Any) -> Callable[..., Any]:
    if not callable(tool):
        raise InvalidOption("tools", tool, "must hold functions or Tool objects")
    function: Callable[..., Any] = tool
    return function
