"""Definitions from functions: schema, descriptions, and errors that name the parameter."""

from __future__ import annotations

import dataclasses
import enum
import functools
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from llenvs.core.tools import Tool, ToolCall, ToolDefinition, ToolNotDescribable
from llenvs.core.tools.signature import ArgumentsRefused, CallSignature


class Unit(enum.Enum):
    CELSIUS = "celsius"
    KELVIN = "kelvin"


@dataclasses.dataclass
class Place:
    city: str
    country: str = "France"


class Order(BaseModel):
    item: str
    amount: int = Field(1, ge=1, description="How many.")
    parts: list[Order] = []


async def google(
    place: Place,
    unit: Unit = Unit.CELSIUS,
    days: Annotated[int, Field(ge=1, le=7)] = 1,
    style: Literal["short", "long"] | None = None,
    tag: Annotated[str, "A label."] = "",
) -> str:
    """Tell the weather.

    It is only
    a forecast.

    Args:
        place: Where.
        unit (Unit): Of the temperatures,
            on every line.
        days: How many days.
        tag: Loses against the annotation.

    Returns:
        The forecast.
    """
    return f"{place.city} {unit.value} {days} {style} {tag}"


def numpy_style(a: int, b: float):
    """Add.

    Parameters
    ----------
    a : int
        The first.
    b : float
        The second.
    """
    return a + b


def rest_style(a: int, b: float) -> float:
    """Add.

    :param a: The first.
    :param b: The second.
    """
    return a + b


def test_the_schema_says_all_that_the_signature_says() -> None:
    definition = ToolDefinition.from_callable(google)
    assert definition.name == "google"
    assert definition.description == "Tell the weather.\n\nIt is only\na forecast."
    assert definition.parameters == {
        "type": "object",
        "properties": {
            "place": {"$ref": "#/$defs/Place", "description": "Where."},
            "unit": {
                "$ref": "#/$defs/Unit",
                "default": "celsius",
                "description": "Of the temperatures,\non every line.",
            },
            "days": {"type": "integer", "minimum": 1, "maximum": 7, "default": 1, "description": "How many days."},
            "style": {"anyOf": [{"enum": ["short", "long"], "type": "string"}, {"type": "null"}], "default": None},
            "tag": {"type": "string", "default": "", "description": "A label."},
        },
        "required": ["place"],
        "additionalProperties": False,
        "$defs": {
            "Place": {
                "type": "object",
                "title": "Place",
                "properties": {"city": {"type": "string"}, "country": {"type": "string", "default": "France"}},
                "required": ["city"],
            },
            "Unit": {"type": "string", "title": "Unit", "enum": ["celsius", "kelvin"]},
        },
    }


@pytest.mark.parametrize("function", [numpy_style, rest_style])
def test_descriptions_come_from_other_docstring_styles_too(function: Callable[..., Any]) -> None:
    definition = ToolDefinition.from_callable(function)
    assert definition.description == "Add."
    assert {k: v["description"] for k, v in definition.parameters["properties"].items()} == {
        "a": "The first.",
        "b": "The second.",
    }


def test_forms_of_the_apis() -> None:
    definition = ToolDefinition.from_callable(rest_style)
    assert definition.to_openai() == {
        "type": "function",
        "function": {"name": "rest_style", "description": "Add.", "parameters": definition.parameters},
    }
    assert definition.to_anthropic() == {
        "name": "rest_style",
        "description": "Add.",
        "input_schema": definition.parameters,
    }
    bare = ToolDefinition("t", "", {})
    assert bare.to_anthropic()["input_schema"] == bare.to_openai()["function"]["parameters"] == {"type": "object"}


def test_arguments_become_the_types_of_the_hints() -> None:
    signature = CallSignature.of(google)
    args, kwargs = signature.bind({"place": {"city": "Lyon"}, "unit": "kelvin", "style": None})
    assert args == ()
    assert kwargs == {"place": Place("Lyon", "France"), "unit": Unit.KELVIN, "style": None}


def test_nested_models_that_refer_to_themselves() -> None:
    def buy(order: Order) -> int:
        return order.amount

    _, kwargs = CallSignature.of(buy).bind({"order": {"item": "a", "parts": [{"item": "b", "amount": 3}]}})
    assert kwargs["order"].parts[0].amount == 3


def test_what_json_schema_cannot_say_is_checked_by_the_hints() -> None:
    def weekday(date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")], other: bytes) -> str:
        return date

    with pytest.raises(ArgumentsRefused) as caught:
        CallSignature.of(weekday).bind({"date": "today", "other": "x"})
    assert "date: String should match pattern" in str(caught.value)


def test_parameters_with_awkward_names_and_kinds() -> None:
    def awkward(a: int, b: int = 2, /, copy: str = "c", *, model_config: int, _x: int = 1) -> tuple[Any, ...]:
        return a, b, copy, model_config, _x

    signature = CallSignature.of(awkward)
    assert list(signature.definition.parameters["properties"]) == ["a", "b", "copy", "model_config", "_x"]
    args, kwargs = signature.bind({"model_config": 4, "a": 1, "_x": 5})
    assert awkward(*args, **kwargs) == (1, 2, "c", 4, 5)
    args, kwargs = signature.bind({"model_config": 4, "a": 1, "b": 7})
    assert awkward(*args, **kwargs) == (1, 7, "c", 4, 1)


def test_methods_partials_and_objects() -> None:
    class Shop:
        """Not this."""

        def find(self, name: str) -> str:
            """Find it."""
            return name

        def __call__(self, amount: int) -> int:
            """Buy it."""
            return amount

    assert ToolDefinition.from_callable(Shop().find).parameters["required"] == ["name"]
    bought = ToolDefinition.from_callable(Shop())
    assert (bought.name, bought.description, bought.parameters["required"]) == ("Shop", "Buy it.", ["amount"])
    partial = ToolDefinition.from_callable(functools.partial(rest_style, 1.0), name="add_one")  # type: ignore[arg-type]
    assert (partial.name, partial.description, partial.parameters["required"]) == ("add_one", "Add.", ["b"])


def test_a_default_that_is_no_json_is_left_out_without_a_warning() -> None:
    def sentinel(a: int = object()) -> int:  # type: ignore[assignment]
        return a

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        definition = ToolDefinition.from_callable(sentinel)
    assert definition.parameters["properties"] == {"a": {"type": "integer"}}
    assert CallSignature.of(sentinel).bind({}) == ((), {})


def test_a_docstring_that_no_style_knows_is_the_description() -> None:
    def odd(a: int) -> int:
        """Do it: Args and Parameters : are - words::"""
        return a

    assert ToolDefinition.from_callable(odd).description.startswith("Do it: Args and Parameters")


class Opaque:
    pass


def untyped(a: int, b) -> None:  # type: ignore[no-untyped-def]
    pass


def opaque(a: int, b: Opaque) -> None:
    pass


def function_argument(a: int, b: Callable[[int], int]) -> None:
    pass


def stars(a: int, *b: int) -> None:
    pass


def double_stars(a: int, **b: int) -> None:
    pass


def undefined(a: int, b: Missing) -> None:  # type: ignore[name-defined]  # noqa: F821
    pass


class Failing(BaseModel):
    @classmethod
    def __get_pydantic_json_schema__(cls, *_: Any) -> Any:
        raise RuntimeError("no schema today")


def failing(a: int, b: Failing) -> None:
    pass


@pytest.mark.parametrize("function", [untyped, opaque, function_argument, stars, double_stars, undefined, failing])
def test_what_cannot_be_described_names_the_parameter(function: Callable[..., Any]) -> None:
    with pytest.raises(ToolNotDescribable, match=f"parameter 'b' of tool '{function.__name__}'") as caught:
        ToolDefinition.from_callable(function)
    assert caught.value.parameter == "b"


def test_a_tool_needs_a_name_that_apis_take() -> None:
    with pytest.raises(ToolNotDescribable, match=r"tool '<lambda>'.*name="):
        ToolDefinition.from_callable(lambda: None)
    assert ToolDefinition.from_callable(lambda: None, name="nothing").parameters["properties"] == {}


def test_a_stateful_tool_hides_its_first_parameter() -> None:
    def put(hidden: Opaque, item: str) -> tuple[str, Opaque]:
        return item, hidden

    assert Tool.from_callable(put, stateful=True).definition.parameters["required"] == ["item"]
    with pytest.raises(ToolNotDescribable, match="first parameter"):
        Tool.from_callable(lambda: None, name="f", stateful=True)


def test_arguments_from_the_json_text_of_a_model() -> None:
    assert ToolCall.from_json("f", '{"a": 1}', "id") == ToolCall("f", {"a": 1}, "id")
    assert ToolCall.from_json("f", "").arguments == {}
    assert ToolCall.from_json("f", '```json\n{"a": 1}\n```').arguments == {"a": 1}
    for text, said in {
        '{"a": ': "ends too early",
        '{"a": "x': "ends too early",
        "{a: 1}": "property name",
        "[1]": "a list, not a JSON object",
        "3": "a number, not a JSON object",
        '{"a": 1} and': "text after the JSON object",
        '{"a": Infinity}': "Infinity is not a JSON value",
        "[" * 10_000: "nested deeper|ends too early",
    }.items():
        call = ToolCall.from_json("f", text, "id")
        assert (call.arguments, call.id, call.source) == ({}, "id", text)
        assert any(part in call.problem for part in said.split("|")), call.problem


def test_importing_tools_imports_nothing_heavy() -> None:
    code = (
        "import sys, llenvs.core.tools, llenvs.core.tool_environment\n"
        "print([m for m in ('jsonschema', 'docstring_parser', 'mcp', 'numpy', 'httpx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
