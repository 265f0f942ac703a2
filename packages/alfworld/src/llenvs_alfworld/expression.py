"""Expressions in a game's text rules, such as ``o.indefinite + ' ' + o.name`` or ``r.name or r.id``.

The upstream hands them to `eval`, so that a game file is code. Here only names of the rule's own variables, their
public attributes, strings, ``+`` and ``or`` are understood.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

Variables = Mapping[str, Any]


class ForeignExpression(ValueError):
    """An expression in a game file that is more than a text of its variables."""


@lru_cache(maxsize=4096)
def compiled(text: str) -> Callable[[Variables], Any]:
    """`text` as a function of the variables.

    Raises:
        ForeignExpression: it holds anything else than what is understood; nothing of it was run.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ForeignExpression(f"the game's text rule {text!r} is no expression") from None
    return _compiled(tree.body, text)


def _compiled(node: ast.expr, text: str) -> Callable[[Variables], Any]:
    match node:
        case ast.Constant(value=str(value)):
            return lambda _: value
        case ast.Name(id=name):
            return lambda variables: variables[name]
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if not attribute.startswith("_"):
            return lambda variables: getattr(variables[name], attribute)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            one, other = _compiled(left, text), _compiled(right, text)
            return lambda variables: one(variables) + other(variables)
        case ast.BoolOp(op=ast.Or(), values=values):
            choices = [_compiled(value, text) for value in values]

            def first(variables: Variables) -> Any:
                value = None
                for choice in choices:
                    value = choice(variables)
                    if value:
                        break
                return value

            return first
    raise ForeignExpression(
        f"the game's text rule {text!r} is not run: only attributes of its variables, strings, + and 'or' are"
    )
