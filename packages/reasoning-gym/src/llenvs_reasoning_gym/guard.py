"""What may reach the upstream's scorers that execute text.

Nine scorers hand the answer to `eval` or to sympy's parser (which evals what it makes of it), and four evaluate
text of the item, which may have come back from an untrusted client. The guard parses that text, never runs it,
and lets through only what cannot do anything but arithmetic of bounded size:

- answers that must be Python lists: what `ast.literal_eval` takes;
- expressions: the code that sympy would evaluate, checked node by node against an allow-list of numbers, symbols,
  operators and elementary functions, with an upper bound on the size of every number on the way.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Set
from decimal import Decimal
from typing import Any

MAX_LENGTH = 20_000
"""Characters; longer text is refused unparsed."""
MAX_BITS = 20_000
"""Bound on log2 of any number in an expression."""
MAX_POWER = 1_024
"""Bound on a numeric exponent of something symbolic."""

LITERAL = frozenset({"binary_matrix", "n_queens", "spiral_matrix", "string_insertion"})
"""Datasets whose scorer evaluates the answer as a Python literal."""
EXPRESSION = frozenset(
    {"countdown", "puzzle24", "polynomial_multiplication", "simple_integration", "intermediate_integration"}
)
"""Datasets whose scorer parses the answer with sympy."""
EXECUTING = LITERAL | EXPRESSION
"""Datasets whose scorer executes the answer."""

_ELEMENTARY = """
    sin cos tan cot sec csc asin acos atan acot asec acsc sinh cosh tanh coth sech csch
    asinh acosh atanh acoth asech acsch log ln sqrt cbrt Abs abs sign
"""
_FUNCTIONS = frozenset(_ELEMENTARY.split())
_EXPONENTIALS = frozenset({"exp", "sinh", "cosh", "tanh", "coth", "sech", "csch"})
_FACTORIALS = frozenset({"factorial", "factorial2"})
_CONSTANTS = frozenset({"pi", "E", "I", "oo", "zoo", "nan"})
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.BitXor)
_SHIFTING = (*_OPERATORS, ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr)
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class Refused(Exception):
    """Text that is not handed on; `str()` says why."""


def check_answer(dataset: str, answer: str, entry: Mapping[str, Any], *, integrals: bool = False) -> None:
    """Raise `Refused` unless the scorer of `dataset` can be given `answer`.

    `integrals`: whether an unevaluated ``Integral(f, x)`` may stand in an expression. The integration scorers
    differentiate the answer, so the question wrapped in Integral would be right.
    """
    if dataset in LITERAL:
        if answer.strip() != _text(entry["answer"]).strip():  # equal text is right as it is, and not evaluated
            _check_literal(answer)
    elif dataset in EXPRESSION:
        _check_expression(answer, _variables(dataset, entry), integrals)


def check_entry(dataset: str, entry: Mapping[str, Any]) -> None:
    """Raise `Refused` unless the text in `entry` that the scorer of `dataset` evaluates is harmless."""
    if dataset in ("simple_integration", "intermediate_integration"):
        _check_expression(_text(entry["metadata"]["integrand"]), _variables(dataset, entry))
    elif dataset == "polynomial_multiplication":
        _check_expression(_text(entry["answer"]), frozenset())
    elif dataset == "number_sorting":
        _check_literal(_text(entry["answer"]))
    elif dataset == "bitwise_arithmetic":
        _check_code(_text(entry["metadata"]["problem"]), frozenset(), _SHIFTING)


def _variables(dataset: str, entry: Mapping[str, Any]) -> Set[str]:
    if dataset in ("simple_integration", "intermediate_integration"):
        return {_text(entry["metadata"]["variable"]), "C"}
    return frozenset()


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Refused(f"expected text, got {type(value).__name__}")
    return value


def _check_length(text: str) -> None:
    if len(text) > MAX_LENGTH:
        raise Refused(f"longer than {MAX_LENGTH} characters")


def _check_literal(text: str) -> None:
    _check_length(text)
    try:
        ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise Refused(f"not a Python literal ({type(error).__name__})") from None


def _check_expression(text: str, variables: Set[str], integrals: bool = False) -> None:
    _check_length(text)
    _check_code(_sympy_code(text, variables), variables, _OPERATORS, integrals)


def _sympy_code(text: str, variables: Set[str]) -> str:
    """The Python code that `sympy.parse_expr` would evaluate for `text`; making it evaluates nothing."""
    from sympy.parsing.sympy_parser import standard_transformations, stringify_expr

    try:
        code: str = stringify_expr(text, dict.fromkeys(variables), _sympy_names(), standard_transformations)
    except Exception as error:  # noqa: BLE001 - sympy's tokenising fails in many ways, all of them mean "unparsable"
        raise Refused(f"not an expression ({type(error).__name__})") from None
    return code


def _sympy_names() -> dict[str, Any]:
    """The names that `sympy.parse_expr` leaves alone: sympy's own and Python's built-in functions."""
    import builtins
    import types

    import sympy

    if not _names:
        _names.update({name: getattr(sympy, name) for name in sympy.__all__})
        functions = {n: f for n, f in vars(builtins).items() if isinstance(f, types.BuiltinFunctionType)}
        _names.update(functions, max=sympy.Max, min=sympy.Min)
    return _names


_names: dict[str, Any] = {}


def _check_code(
    code: str, variables: Set[str], operators: tuple[type[ast.operator], ...], integrals: bool = False
) -> None:
    try:
        tree = ast.parse(code.strip(), mode="eval")
        _Bounds(variables, operators, integrals).of(tree.body)
    except (SyntaxError, ValueError, ArithmeticError, MemoryError, RecursionError) as error:
        raise Refused(f"not an expression ({type(error).__name__})") from None


class _Bounds:
    """An upper bound of the absolute log2 of every number in an expression; None for what holds a symbol."""

    def __init__(self, variables: Set[str], operators: tuple[type[ast.operator], ...], integrals: bool) -> None:
        self.variables = variables
        self.operators = operators
        self.integrals = integrals

    def of(self, node: ast.expr) -> float | None:
        bits = self._of(node)
        if bits is not None and bits > MAX_BITS:
            raise Refused(f"a number of more than {MAX_BITS} bits")
        return bits

    def _of(self, node: ast.expr) -> float | None:
        match node:
            case ast.Constant(value=bool() | int() | float() as number):
                return _bits(number)
            case ast.Name(id=name) if name in self.variables:
                return None
            case ast.Name(id=name) if name in _CONSTANTS:
                return 2.0
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                return self.of(operand)
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, self.operators):
                return self._operation(op, self.of(left), self.of(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if isinstance(op, _COMPARISONS):
                self.of(left)
                self.of(right)
                return 1.0
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name not in self.variables:
                return self._call(name, args)
        raise Refused(f"{type(node).__name__} is no part of an expression")

    def _operation(self, op: ast.operator, left: float | None, right: float | None) -> float | None:
        if isinstance(op, ast.Pow | ast.LShift):
            return self._power(op, left, right)
        if left is None or right is None:
            return None
        if isinstance(op, ast.Mult | ast.Div | ast.FloorDiv | ast.Mod | ast.RShift):
            return left + right
        return max(left, right) + 1

    def _power(self, op: ast.operator, base: float | None, exponent: float | None) -> float | None:
        if exponent is None:
            return None
        if exponent > math.log2(MAX_BITS):
            raise Refused("an exponent that is too large")
        largest = 2.0**exponent
        if isinstance(op, ast.LShift):
            return None if base is None else base + largest
        if base is None:
            if largest > MAX_POWER:
                raise Refused(f"an exponent above {MAX_POWER}")
            return None
        return max(base, 1.0) * largest

    def _call(self, name: str, args: list[ast.expr]) -> float | None:
        match name, args:
            case "Symbol", [ast.Constant(value=str())]:
                return None
            case "Float", [ast.Constant(value=str() as text)]:
                return _bits_of_decimal(text)
            case "Integer", [number]:
                return self.of(number)
            case "Rational", [top, bottom]:
                return self._operation(ast.Div(), self.of(top), self.of(bottom))
            case "Integral", [integrand, ast.Name(id=variable)] if self.integrals and variable in self.variables:
                self.of(integrand)
                return None
        if name not in _FUNCTIONS | _EXPONENTIALS | _FACTORIALS or not 1 <= len(args) <= 2:
            raise Refused(f"{name} is no function of an expression")
        bounds = [self.of(arg) for arg in args]
        if any(bound is None for bound in bounds):
            return None
        largest = max(bound for bound in bounds if bound is not None)
        if name not in _EXPONENTIALS | _FACTORIALS:
            return largest
        if largest > 10:
            raise Refused(f"{name} of a number that is too large")
        value = 2.0**largest
        return value * max(largest, 1.0) if name in _FACTORIALS else 2 * value


def _bits(value: float) -> float:
    if isinstance(value, int):
        return float(max(abs(value).bit_length(), 1))
    if not math.isfinite(value):
        raise Refused("a number out of range")
    return abs(math.log2(abs(value))) + 1 if value else 1.0


def _bits_of_decimal(text: str) -> float:
    number = Decimal(text)
    if not number:
        return 1.0
    if not number.is_finite() or abs(number.adjusted()) > MAX_BITS:
        raise Refused("a number out of range")
    value = abs(float(number))
    return _bits(value) if 0 < value < math.inf else math.log2(10) * (abs(number.adjusted()) + 1)
