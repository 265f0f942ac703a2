"""Whether arguments fit the JSON Schema of a tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from llenvs.core.tools.definition import ToolDefinition
from llenvs.core.tools.errors import InvalidToolSchema

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

_SHOWN = 5


class ArgumentChecker:
    """Checks arguments against the schema of one tool (JSON Schema draft 2020-12).

    References to other documents are not followed: a schema from a foreign server must not make this process
    send requests.

    Raises:
        InvalidToolSchema: the schema itself is wrong.
    """

    def __init__(self, definition: ToolDefinition) -> None:
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError
        from referencing import Registry

        if not isinstance(definition.parameters, Mapping):
            raise InvalidToolSchema(definition.name, "it must be a mapping")
        schema = dict(definition.parameters)
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            place = ".".join(map(str, error.absolute_path)) or "the whole"
            raise InvalidToolSchema(definition.name, f"{place}: {error.message}") from None
        self._tool = definition.name
        self._validator = Draft202012Validator(schema, registry=Registry())

    def problems(self, arguments: Mapping[str, Any]) -> list[str]:
        """What is wrong with `arguments`, in words for a model; [] when nothing is.

        Raises:
            InvalidToolSchema: the schema refers to something that it does not contain.
        """
        from referencing.exceptions import Unresolvable

        try:
            errors = sorted(self._validator.iter_errors(dict(arguments)), key=lambda e: list(map(str, e.path)))
        except Unresolvable as error:
            raise InvalidToolSchema(self._tool, f"it refers to {error.ref!r}, which it does not contain") from None
        texts = list(dict.fromkeys(_text(error) for error in errors))
        if len(texts) > _SHOWN:
            texts = [*texts[:_SHOWN], f"and {len(texts) - _SHOWN} more"]
        return texts


def _text(error: ValidationError) -> str:
    place = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path).lstrip(".")
    message = error.message
    if error.validator in ("anyOf", "oneOf") and error.context:
        # "is not valid under any of the given schemas" helps nobody; the branch that came closest does
        branches: dict[Any, list[ValidationError]] = {}
        for inner in error.context:
            branches.setdefault(inner.schema_path[0], []).append(inner)
        reasons = list(dict.fromkeys(_text(branch[0]) for branch in branches.values()))
        message = " or ".join(reasons)
        return message if len(message) <= 400 else f"{message[:400]}..."
    if len(message) > 300:  # it quotes the value, which may be of any size
        message = f"{message[:150]} ... {message[-140:]}"
    return f"{place}: {message}" if place else message
