"""What text may reach the parts of the upstreams that execute text. For the worker process.

sympy's parser turns text into Python code and evaluates it, and so do some scorers of reasoning_gym by `eval`;
the text comes from a model, or from a state that a client sent. In the worker the code that sympy is about to
evaluate is checked first, and these scorers are given an `eval` that takes literals and sums alone. Numbers that
grow beyond measure are a matter of the worker's limits.
"""

from __future__ import annotations

import ast
import importlib
from functools import cache
from typing import Any

MAX_LENGTH = 20_000
"""Characters; longer text is refused unparsed."""

_LITERALS = ("algorithmic.string_insertion", "algorithmic.spiral_matrix", "algorithmic.binary_matrix")
_MORE_LITERALS = ("algorithmic.number_sorting", "games.n_queens")
_SUMS = ("arithmetic.bitwise_arithmetic",)
_TEXT_TAKERS = frozenset({"Symbol", "Integer", "Float", "Rational", "Function"})
_FUNCTIONS = frozenset({"sqrt", "cbrt", "root", "real_root"})
_HARMLESS = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Call, ast.keyword, ast.Tuple, ast.List, ast.Set),
    *(ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)


class Refused(ValueError):
    """Text that is not executed; `str()` says why."""


def install() -> None:
    """Put the guard before sympy's parser and the scorers of reasoning_gym that evaluate text."""
    from sympy.parsing import sympy_parser

    stringify = sympy_parser.stringify_expr

    def checked(text: str, *args: Any) -> str:
        if len(text) > MAX_LENGTH:
            raise Refused(f"longer than {MAX_LENGTH} characters")
        code: str = stringify(text, *args)
        check_code(code)
        return code

    sympy_parser.stringify_expr = checked
    for names, evaluate in ((_LITERALS + _MORE_LITERALS, literal), (_SUMS, arithmetic)):
        for name in names:
            importlib.import_module(f"reasoning_gym.{name}").eval = evaluate  # type: ignore[attr-defined]


def check_code(code: str) -> None:
    """Raise `Refused` unless `code`, made by sympy's parser, only builds an expression.

    It may call what sympy makes expressions of (numbers, symbols, functions) by name; texts may stand only where
    sympy's parser puts them.
    """
    try:
        tree = ast.parse(code.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise Refused(f"not an expression ({type(error).__name__})") from None
    for node in ast.walk(tree):
        if not isinstance(node, _HARMLESS):
            raise Refused(f"{type(node).__name__} is no part of an expression")
        if isinstance(node, ast.Call):
            _check_call(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not getattr(node, "taken", False):
            raise Refused("a text is no part of an expression")


def _check_call(node: ast.Call) -> None:
    function = node.func
    if isinstance(function, ast.Call):  # Function('f')(x)
        if not (isinstance(function.func, ast.Name) and function.func.id == "Function"):
            raise Refused("a call of a call is no part of an expression")
        return
    if not isinstance(function, ast.Name) or not _is_expression(function.id):
        raise Refused(f"{ast.unparse(function)[:80]} is no function of an expression")
    if function.id in _TEXT_TAKERS:
        for each in node.args:
            each.taken = True  # type: ignore[attr-defined]


@cache
def _is_expression(name: str) -> bool:
    """Whether calling sympy's `name` makes an expression."""
    import sympy

    found = getattr(sympy, name, None)
    return name in _FUNCTIONS or (isinstance(found, type) and issubclass(found, sympy.Basic))


def literal(text: Any, *_: Any) -> Any:
    """`eval` for a Python literal.

    Raises:
        Refused: it is none.
    """
    if not isinstance(text, str) or len(text) > MAX_LENGTH:
        raise Refused("no text, or too long")
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise Refused(f"not a Python literal ({type(error).__name__})") from None


def arithmetic(text: Any, *_: Any) -> Any:
    """`eval` for whole numbers and the operators between them.

    Raises:
        Refused: it is something else.
    """
    if not isinstance(text, str) or len(text) > MAX_LENGTH:
        raise Refused("no text, or too long")
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, MemoryError, RecursionError) as error:
        raise Refused(f"not a sum ({type(error).__name__})") from None


def _value(node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int() as number):
            return int(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _value(left), _value(right)
            match op:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case ast.LShift() if 0 <= b <= MAX_LENGTH:
                    return a << b
                case ast.RShift() if b >= 0:
                    return a >> b
                case ast.BitAnd():
                    return a & b
                case ast.BitOr():
                    return a | b
                case ast.BitXor():
                    return a ^ b
    raise Refused(f"{type(node).__name__} is no part of a sum")
