"""The parsers by name."""

from __future__ import annotations

from typing import Any

from llenvs.core.errors import InvalidOption, UnknownName
from llenvs.inference.tool_calls.hermes import HermesToolCallParser
from llenvs.inference.tool_calls.llama3 import Llama3JsonToolCallParser, Llama3PythonicToolCallParser
from llenvs.inference.tool_calls.mistral import MistralToolCallParser
from llenvs.inference.tool_calls.parser import ToolCallParser

PARSERS: dict[str, type[ToolCallParser]] = {
    parser.name: parser
    for parser in (
        HermesToolCallParser,
        Llama3JsonToolCallParser,
        Llama3PythonicToolCallParser,
        MistralToolCallParser,
    )
}
"""Names that a configuration may use."""


class UnknownToolCallParser(UnknownName):
    """No tool-call parser of this name exists."""

    kind = "tool-call parser"


def make_parser(parser: Any) -> ToolCallParser:
    """A parser from its name; one that is made already is kept.

    Raises:
        UnknownToolCallParser: with the nearest names.
        InvalidOption: it is neither a name nor a parser.
    """
    if isinstance(parser, ToolCallParser):
        return parser
    if not isinstance(parser, str):
        raise InvalidOption("parser", parser, "must be a name or a ToolCallParser", valid=", ".join(PARSERS))
    if parser not in PARSERS:
        raise UnknownToolCallParser(parser, list(PARSERS))
    return PARSERS[parser]()
