"""Tools: what a model may call, what it called, what came back; and executors that run the calls.

The values are here at once; the rest is imported at first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from llenvs.core.tools.call import ToolCall, ToolResult, ToolStatus
from llenvs.core.tools.definition import ToolDefinition

if TYPE_CHECKING:
    from llenvs.core.tools.async_executor import AsyncToolExecutor
    from llenvs.core.tools.errors import InvalidToolSchema, ToolNotDescribable, ToolServerFailed
    from llenvs.core.tools.executor import Execution, ToolExecutor
    from llenvs.core.tools.mcp_executor import MCPToolExecutor
    from llenvs.core.tools.mcp_server import HttpServer, StdioServer
    from llenvs.core.tools.simple_executor import SimpleToolExecutor
    from llenvs.core.tools.tool import Tool

_HOME_OF = {
    "AsyncToolExecutor": "async_executor",
    "Execution": "executor",
    "HttpServer": "mcp_server",
    "InvalidToolSchema": "errors",
    "MCPToolExecutor": "mcp_executor",
    "SimpleToolExecutor": "simple_executor",
    "StdioServer": "mcp_server",
    "Tool": "tool",
    "ToolExecutor": "executor",
    "ToolNotDescribable": "errors",
    "ToolServerFailed": "errors",
}

__all__ = [
    "AsyncToolExecutor",
    "Execution",
    "HttpServer",
    "InvalidToolSchema",
    "MCPToolExecutor",
    "SimpleToolExecutor",
    "StdioServer",
    "Tool",
    "ToolCall",
    "ToolDefinition",
    "ToolExecutor",
    "ToolNotDescribable",
    "ToolResult",
    "ToolServerFailed",
    "ToolStatus",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
