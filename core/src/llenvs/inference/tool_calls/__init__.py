"""Tool calls as text, for models without native ones.

Prompts that describe tools, parsers that read calls, grammars that force them, and a backend that does it all.
"""

from llenvs.inference.tool_calls.backend import PromptedToolsBackend
from llenvs.inference.tool_calls.catalog import PARSERS, make_parser
from llenvs.inference.tool_calls.grammar import call_grammar
from llenvs.inference.tool_calls.hermes import HermesToolCallParser
from llenvs.inference.tool_calls.llama3 import Llama3JsonToolCallParser, Llama3PythonicToolCallParser
from llenvs.inference.tool_calls.mistral import MistralToolCallParser
from llenvs.inference.tool_calls.parser import ParsedResponse, ToolCallParser
from llenvs.inference.tool_calls.rendering import render_chat

__all__ = [
    "PARSERS",
    "HermesToolCallParser",
    "Llama3JsonToolCallParser",
    "Llama3PythonicToolCallParser",
    "MistralToolCallParser",
    "ParsedResponse",
    "PromptedToolsBackend",
    "ToolCallParser",
    "call_grammar",
    "make_parser",
    "render_chat",
]
