"""The upstream alone: its own rollouts, with a policy for a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from verifiers.legacy.clients.client import Client
from verifiers.legacy.types import Response, ResponseMessage, ToolCall

Policy = Callable[[list[dict[str, Any]]], "str | tuple[str, dict[str, Any]]"]
"""From the chat to a text, or to the name and the arguments of a tool."""


class PolicyClient(Client[Any, Any, Any, Any]):
    """Answers by a function of the chat."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(None)
        self._policy = policy

    async def get_native_response(
        self, prompt: Any, model: str, sampling_args: Any, tools: Any = None, **kwargs: Any
    ) -> Response:
        said = self._policy([{"role": m.role, "content": m.content or ""} for m in prompt])
        if isinstance(said, str):
            message = ResponseMessage(content=said, finish_reason="stop", is_truncated=False)
        else:
            call = ToolCall(id="call_0", name=said[0], arguments=json.dumps(said[1]))
            message = ResponseMessage(
                content=None, tool_calls=[call], finish_reason="tool_calls", is_truncated=False
            )
        return Response(id="x", created=0, model=model, message=message)

    def setup_client(self, config: Any) -> Any:
        return None

    async def to_native_tool(self, tool: Any) -> Any:
        return tool

    async def to_native_prompt(self, messages: Any) -> tuple[Any, dict[str, Any]]:
        return messages, {}

    async def raise_from_native_response(self, response: Any) -> None:
        return None

    async def from_native_response(self, response: Any) -> Any:
        return response

    async def close(self) -> None:
        return None


def evaluate(env: Any, policy: Policy, episodes: int) -> list[dict[str, Any]]:
    """What `evaluate_sync` gives: one rollout for each of the first tasks, in their order."""
    results = env.evaluate_sync(PolicyClient(policy), "m", num_examples=min(episodes, len(env.get_eval_dataset())))
    return sorted(results["outputs"], key=lambda output: output["example_id"])
