"""What a model may call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from llenvs.core.encoding import record


@record
@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool that a model may call.

    Attributes:
        name: as the model calls it.
        description: what the model reads.
        parameters: JSON Schema (draft 2020-12) of an object with the arguments.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})

    def to_openai(self) -> dict[str, Any]:
        """The ``tools`` entry of OpenAI's Chat Completions."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": self._object_schema(),
            },
        }

    def to_anthropic(self) -> dict[str, Any]:
        """The ``tools`` entry of Anthropic's Messages API."""
        return {"name": self.name, "description": self.description, "input_schema": self._object_schema()}

    def _object_schema(self) -> dict[str, Any]:
        # both APIs refuse a schema that does not say that it is of an object
        return {"type": "object", **self.parameters}

    @classmethod
    def from_callable(
        cls, function: Callable[..., Any], *, name: str | None = None, description: str | None = None
    ) -> ToolDefinition:
        """The definition of a Python function, made from its type hints and its docstring.

        Args:
            function: plain or async, a bound method, or an object with ``__call__``. Any type that pydantic knows
                can be a hint: nested models and dataclasses, enums, ``Literal``, unions, ``Annotated`` with a
                ``pydantic.Field`` or with a plain text as description.
            name: instead of the function's own.
            description: instead of what the docstring (Google, NumPy or reST) says before its parameters.

        Raises:
            ToolNotDescribable: naming the parameter that has no hint, or one that no JSON can stand for.
        """
        from llenvs.core.tools.signature import CallSignature

        return CallSignature.of(function, name=name, description=description).definition
