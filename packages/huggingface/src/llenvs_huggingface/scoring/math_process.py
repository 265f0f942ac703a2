"""The child process that runs math-verify, see `verifiers`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from llenvs.core.simulator.confinement import confine

Handler = Callable[[dict[str, Any], bytes], tuple[Any, bytes]]


def verifier() -> Handler:
    """A handler that says whether two LaTeX answers, without delimiters, are equal.

    Called by `llenvs.core.simulator.engine_child`. math-verify runs without its own time limit, which is a signal
    that only works in a main thread; the parent ends this process instead. Only its LaTeX parser is used: the
    other one hands text to sympy's ``parse_expr``, which evaluates it.
    """
    logging.disable(logging.CRITICAL)
    from math_verify import LatexExtractionConfig, parse, verify

    def parsed(answer: str) -> Any:
        return parse(f"${answer}$", extraction_config=[LatexExtractionConfig()], parsing_timeout=None)

    def handle(request: dict[str, Any], _: bytes) -> tuple[Any, bytes]:
        expected, answer = parsed(request["expected"]), parsed(request["answer"])
        return bool(verify(expected, answer, timeout_seconds=None)), b""

    verify(parsed("\\frac{1}{2}"), parsed("0.5"), timeout_seconds=None)  # the first use loads the rest
    confine()
    return handle
