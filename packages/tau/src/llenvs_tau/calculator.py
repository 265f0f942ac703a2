"""Powers that would keep Python busy for years, kept from the upstream's calculator."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from functools import wraps
from typing import Any

_MOST_BITS = 1 << 20
"""Of a number on the way; the result has to fit a float, which has 1024 at most."""
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}


class TooLarge(OverflowError):
    """A number on the way has more than a million bits."""


def guard(environment: Any) -> Any:
    """Let the tool ``calculate`` of an upstream environment, if it has one, refuse such powers.

    The error is in Python's own words for a result that is too large, which is what the upstream's tool would say
    in the end.
    """
    if hasattr(environment.tools, "calculate"):
        toolkit = type(environment.tools)
        if toolkit not in _guarded:
            _guarded[toolkit] = _with_guard(toolkit)
        environment.tools.__class__ = _guarded[toolkit]
    return environment


_guarded: dict[Any, Any] = {}


def _with_guard(toolkit: Any) -> Any:
    original = toolkit.calculate

    @wraps(original)  # with the marks that make it a tool
    def calculate(self: Any, *arguments: Any, **named: Any) -> Any:
        for expression in (*arguments, *named.values()):
            if isinstance(expression, str) and "**" in expression:
                check(expression)
        return original(self, *arguments, **named)

    return type(toolkit)(toolkit.__name__, (toolkit,), {"calculate": calculate})


def check(expression: str) -> None:
    """Refuse an expression with a power that is too large; whatever else is wrong with it is left to the upstream.

    Raises:
        TooLarge: it has one.
    """
    try:
        _value(ast.parse(expression.strip(), mode="eval").body)
    except TooLarge:
        raise
    except Exception:  # noqa: BLE001 - the upstream evaluates it again, and says what is wrong
        return


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp):
        value = _value(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Pow) and isinstance(left, int) and isinstance(right, int):
            _check_power(left, right)
        return _OPERATORS[type(node.op)](left, right)
    raise ValueError(f"not arithmetic: {ast.dump(node)}")


def _check_power(base: int, exponent: int) -> None:
    if abs(base) > 1 and exponent > 0 and base.bit_length() * exponent > _MOST_BITS:
        raise TooLarge("int too large to convert to float")
