"""The upstream's client for models, answered by whoever steps the environment."""

from __future__ import annotations

import json
from typing import Any

from verifiers.legacy.clients.client import Client
from verifiers.legacy.types import Messages, Response, ResponseMessage, SamplingArgs, Tool, ToolCall

from llenvs.core.action import Action


class PolicyClient(Client[Any, Any, Response, Any]):
    """Gives the reply that was put into it to the one request of a turn."""

    def __init__(self) -> None:
        super().__init__(None)
        self._reply: Response | None = None

    def say(self, action: Action, *, with_tools: bool) -> None:
        """Make `action` the reply to the next request; `with_tools` says whether that offers any."""
        self._reply = response_of(action, with_tools)

    async def get_native_response(
        self,
        prompt: Any,
        model: str,
        sampling_args: SamplingArgs,
        tools: list[Any] | None = None,
        **kwargs: Any,
    ) -> Response:
        """The reply.

        Raises:
            RuntimeError: the environment asks its model more than once a turn.
        """
        reply, self._reply = self._reply, None
        if reply is None:
            raise RuntimeError("the environment asked the policy's model for more than one reply in a turn")
        return reply

    def setup_client(self, config: Any) -> Any:
        """None is needed."""
        return None

    async def to_native_tool(self, tool: Tool) -> Any:
        """As it is."""
        return tool

    async def to_native_prompt(self, messages: Messages) -> tuple[Any, dict[str, Any]]:
        """As it is."""
        return messages, {}

    async def raise_from_native_response(self, response: Response) -> None:
        """Every reply is valid."""

    async def from_native_response(self, response: Response) -> Response:
        """As it is."""
        return response

    async def close(self) -> None:
        """Nothing to close."""

    def __deepcopy__(self, memo: dict[int, Any]) -> PolicyClient:
        return self


def response_of(action: Action, with_tools: bool) -> Response:
    """`action` as a model's response.

    A call that could not be read is passed on as the model wrote it, so that the environment's own parser says
    what is wrong with it. A response that is calls alone has no content, as models have it, but where no tools are
    offered: no model answers so there, and environments take the content for a text.
    """
    calls = [
        ToolCall(id=call.id, name=call.name, arguments=call.source if call.problem else _json(call.arguments))
        for call in action.tool_calls
    ]
    message = ResponseMessage(
        content=action.text or (None if calls and with_tools else ""),
        tool_calls=calls or None,
        finish_reason="tool_calls" if calls else "stop",
        is_truncated=False,
    )
    return Response(id="llenvs", created=0, model="llenvs", message=message)


def _json(arguments: Any) -> str:
    return json.dumps(dict(arguments), ensure_ascii=False)
