"""From the signature of a Python function to JSON Schema, and from JSON arguments back to Python values."""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from llenvs.core.tools.definition import ToolDefinition
from llenvs.core.tools.errors import ToolNotDescribable

if typing.TYPE_CHECKING:
    from docstring_parser import Docstring

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what OpenAI takes; Anthropic takes more
_VARIADIC = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


class ArgumentsRefused(Exception):
    """Arguments that fit the schema and that the hints of the function refuse all the same.

    `problems`: one text each, with the dotted place.
    """

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


@dataclass(frozen=True, slots=True)
class CallSignature:
    """How a function is called with JSON arguments.

    Attributes:
        definition: what a model is told.
        model: has one field per parameter, under an alias that is the parameter's name.
        positional: names of the parameters that take no keyword.
    """

    definition: ToolDefinition
    model: type[BaseModel]
    positional: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        skip_first: bool = False,
    ) -> CallSignature:
        """Read `function`. With `skip_first` its first parameter is not the model's to give.

        Raises:
            ToolNotDescribable: see `ToolDefinition.from_callable`.
        """
        tool = _tool_name(function, name)
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            raise ToolNotDescribable(tool, "", "is no function whose signature can be read") from None
        if skip_first:
            parameters = _without_first(parameters, tool)
        doc = _docstring(function)
        hints = _hints(function, tool, [p.name for p in parameters])
        told = {p.arg_name.lstrip("*"): (p.description or "").strip() for p in doc.params}
        fields: dict[str, Any] = {}
        for number, parameter in enumerate(parameters):
            # fields are numbered: a parameter may be called "copy", "_x" or "model_config"
            hint = _hint(parameter, hints, tool)
            fields[f"argument_{number}"] = (hint, _field(parameter, hint, told.get(parameter.name, "")))
        model = create_model("Arguments", __config__=ConfigDict(arbitrary_types_allowed=False), **fields)
        schema = model.model_json_schema(by_alias=True, schema_generator=_Untitled)
        schema.pop("title", None)
        schema.setdefault("properties", {})
        schema["additionalProperties"] = False
        if description is None:
            description = "\n\n".join(part for part in (doc.short_description, doc.long_description) if part)
        positional = tuple(p.name for p in parameters if p.kind is inspect.Parameter.POSITIONAL_ONLY)
        return cls(ToolDefinition(tool, description, schema), model, positional)

    def bind(self, arguments: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """`arguments` as Python values: positional ones and keywords. What is absent is left to the defaults.

        Raises:
            ArgumentsRefused: they do not fit the hints.
        """
        try:
            made = self.model.model_validate(dict(arguments))
        except ValidationError as error:
            raise ArgumentsRefused([_problem(each) for each in error.errors(include_url=False)]) from None
        names = {key: str(info.alias) for key, info in self.model.model_fields.items()}
        values = {
            names[key]: getattr(made, key) for key in self.model.model_fields if key in made.model_fields_set
        }
        if len(self.positional) > 0:
            by_name = {names[key]: getattr(made, key) for key in self.model.model_fields}
            given = [name in values for name in self.positional]
            upto = len(given) - given[::-1].index(True) if any(given) else 0
            args = tuple(by_name[name] for name in self.positional[:upto])
            return args, {k: v for k, v in values.items() if k not in self.positional}
        return (), values


class _Untitled(GenerateJsonSchema):
    """pydantic's schema without the titles it makes of field names, and without warnings about defaults."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _tool_name(function: Callable[..., Any], name: str | None) -> str:
    found = name if name is not None else getattr(function, "__name__", None) or type(function).__name__
    if not _NAME.fullmatch(found):
        raise ToolNotDescribable(
            found, "", "the name must be 1 to 64 letters, digits, '_' or '-'; give one with name=..."
        )
    return found


def _without_first(parameters: list[inspect.Parameter], tool: str) -> list[inspect.Parameter]:
    if not parameters or parameters[0].kind in (*_VARIADIC, inspect.Parameter.KEYWORD_ONLY):
        raise ToolNotDescribable(tool, "", "a stateful tool takes the hidden state as its first parameter")
    return parameters[1:]


def _underlying(function: Callable[..., Any]) -> Any:
    """What holds hints and docstring: the function under a ``functools.partial``, an object's ``__call__``."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    return getattr(function, "__call__", function)  # noqa: B004


def _docstring(function: Callable[..., Any]) -> Docstring:
    from docstring_parser import Docstring, ParseError, parse

    text = inspect.getdoc(_underlying(function)) or inspect.getdoc(function) or ""
    try:
        return parse(text)
    except ParseError:
        plain = Docstring()
        plain.short_description = text or None
        return plain


def _hints(function: Callable[..., Any], tool: str, names: list[str]) -> dict[str, Any]:
    target = inspect.unwrap(_underlying(function))
    try:
        return typing.get_type_hints(target, include_extras=True)
    except NameError as error:
        written = getattr(target, "__annotations__", {})
        culprit = next((n for n in names if str(error.name) in str(written.get(n, ""))), "")
        raise ToolNotDescribable(
            tool, culprit, f"its type hint names {error.name!r}, which is not defined"
        ) from None
    except TypeError as error:
        raise ToolNotDescribable(tool, "", f"its type hints cannot be read ({error})") from None


def _hint(parameter: inspect.Parameter, hints: Mapping[str, Any], tool: str) -> Any:
    """The hint of one parameter, known to have a JSON Schema."""
    if parameter.kind in _VARIADIC:
        stars = _VARIADIC[parameter.kind]
        raise ToolNotDescribable(
            tool, parameter.name, f"{stars}{parameter.name} stands for arguments without a name"
        )
    if parameter.name not in hints:
        raise ToolNotDescribable(tool, parameter.name, "has no type hint")
    hint = hints[parameter.name]
    try:
        TypeAdapter(hint).json_schema()
    except Exception as error:  # noqa: BLE001 - a type may make its own schema, and fail at it as it likes
        said = (str(error) or type(error).__name__).splitlines()[0].split(". Set `arbitrary")[0]
        raise ToolNotDescribable(
            tool, parameter.name, f"no JSON can stand for its type {hint!r} ({said})"
        ) from None
    return hint


def _field(parameter: inspect.Parameter, hint: Any, told: str) -> FieldInfo:
    """The pydantic field: default, name, and the description that stands nearest to the parameter."""
    words = told or None
    if typing.get_origin(hint) is Annotated:
        extras = typing.get_args(hint)[1:]
        texts = [extra for extra in extras if isinstance(extra, str)]
        own = [extra.description for extra in extras if isinstance(extra, FieldInfo) and extra.description]
        words = next(iter([*own, *texts]), words)
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    return typing.cast(FieldInfo, Field(default, alias=parameter.name, description=words))


def _problem(error: Any) -> str:
    place = ".".join(str(part) for part in error["loc"])
    return f"{place}: {error['msg']}" if place else str(error["msg"])
