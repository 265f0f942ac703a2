"""One rollout of the upstream, its loop turned inside out: it goes on when the policy has replied.

The upstream's `MultiTurnEnv.rollout` calls the model; here the same methods are called in the same order, and the
loop stops where it would ask the model.
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Awaitable, Mapping
from contextvars import ContextVar
from typing import Any, TypeVar

import verifiers.legacy as vf
from verifiers.legacy.types import State
from verifiers.legacy.utils.message_utils import concat_messages, from_raw_message, maybe_normalize_messages

from llenvs.core.action import Action
from llenvs_verifiers.policy_client import PolicyClient

T = TypeVar("T")

ENDINGS = (vf.ToolError, vf.InvalidModelResponseError)
"""Errors with which an environment answers what the model did; any other is a failure of the environment."""

_REBUILT = ("client", "usage", "usage_tracker")  # not copied: the upstream makes them again where it needs them
_tool_errors: ContextVar[list[tuple[str, Exception]] | None] = ContextVar("llenvs_tool_errors", default=None)


class CopyFailed(Exception):
    """The state of an episode cannot be copied."""


class Episode:
    """A rollout of `env` that waits for the policy.

    Attributes:
        env: the upstream's environment (no group).
        state: the upstream's state of the rollout.
        prompt: what the model is to be asked next; None when the episode is over.
        tool_errors: text and exception of each tool call of the last turn that failed.
    """

    def __init__(self, env: Any) -> None:
        self.env = env
        self.state: Any = None
        self.prompt: list[Any] | None = None
        self.tool_errors: list[tuple[str, Exception]] = []
        self._client = PolicyClient()
        self._made_of_tools = is_made_of_tools(env)

    async def start(self, row: Mapping[str, Any]) -> None:
        """Begin with a row of the data set."""
        self.state = await self.env.init_state(dict(row), self._client, "llenvs", dict(self.env.sampling_args))
        await self._within_limit(self._begin())

    async def act(self, action: Action, heard: list[dict[str, Any]] | None = None) -> list[dict[str, Any]] | None:
        """Take the policy's reply, and go on to the next question or the end.

        Args:
            action: the reply.
            heard: what `act` returned when this turn was first taken: the environment's messages, given instead of
                calling the tools again.

        Returns:
            The environment's messages as plain data, where the environment is made of tools alone (see
            `is_made_of_tools`); else None.
        """
        self._client.say(action, with_tools=bool(self.state["tool_defs"]))
        token = _tool_errors.set([])
        try:
            return await self._within_limit(self._turn(heard))
        finally:
            self.tool_errors = _tool_errors.get() or []
            _tool_errors.reset(token)

    def copied(self) -> Episode:
        """Another episode that stands where this one does.

        Raises:
            CopyFailed: something in the state cannot be copied.
        """
        twin = Episode(self.env)
        memo: dict[int, Any] = {id(self._client): twin._client}
        state = State()
        try:
            for key, value in dict.items(self.state):
                if key not in _REBUILT:
                    dict.__setitem__(state, key, copy.deepcopy(value, memo))
            twin.prompt = copy.deepcopy(self.prompt, memo)
        except Exception as error:
            raise CopyFailed(f"{type(error).__name__}: {error}") from error
        dict.__setitem__(state, "client", twin._client)
        twin.state = state
        return twin

    async def finish(self) -> None:
        """What the upstream does between the end of a rollout and its scoring."""
        await self.env.cleanup(self.state)

    async def _begin(self) -> None:
        timing = self.state["timing"]
        timing.generation.start = timing.setup.start = time.time()
        try:
            changed = await self.env.setup_state(self.state)
            if changed is not None:
                self.state = changed
        except vf.Error as error:
            self.state["error"] = error
        finally:
            timing.setup.end = time.time()
        await self._to_next_question(None)

    async def _turn(self, heard: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
        try:
            response = await self.env.get_model_response(self.state, self.prompt)
            await self.env.add_model_response(self.state, self.prompt, response)
        except vf.Error as error:
            self._record(error)
        self.prompt = None
        return await self._to_next_question(heard)

    async def _to_next_question(self, heard: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
        said: list[dict[str, Any]] | None = None
        while not await self.env.is_completed(self.state):
            try:
                if self.state["trajectory"] and self._made_of_tools:
                    prompt, said = await self._tool_answers(heard)
                else:
                    prompt = await self.env.get_prompt_messages(self.state)
                prompt = maybe_normalize_messages(prompt, field_name="prompt_messages")
                if self.state.get("final_env_response") is not None:
                    continue
                self.prompt = prompt
                break
            except vf.Error as error:
                self._record(error)
        return said

    async def _tool_answers(self, heard: list[dict[str, Any]] | None) -> tuple[list[Any], list[dict[str, Any]]]:
        """What `MultiTurnEnv.get_prompt_messages` gives, from recorded answers where there are some."""
        last = self.state["trajectory"][-1]
        before = concat_messages([last["prompt"], last["completion"]])
        if heard is None:
            new = maybe_normalize_messages(
                await self.env.env_response(before, self.state), field_name="env_response"
            )
            heard = [message.model_dump() for message in new]
        else:
            new = [from_raw_message(dict(message)) for message in heard]
        return concat_messages([before, new]), heard

    def _record(self, error: vf.Error) -> None:
        if isinstance(error, vf.OverlongPromptError):
            self.state["prompt_too_long"] = self.state["is_truncated"] = True
        else:
            self.state["error"] = error

    async def _within_limit(self, work: Awaitable[T]) -> T | None:
        """The environment's own limit of time, here for each turn: the policy's time is not the environment's."""
        try:
            return await asyncio.wait_for(work, self.env.timeout_seconds)
        except TimeoutError:
            if self.env.timeout_seconds is None:
                raise
            self.env.mark_timed_out(self.state)
            self.prompt = None
            return None


def is_made_of_tools(env: Any) -> bool:
    """Whether an environment does nothing between turns but call tools, which the upstream requires to keep no
    state: its class and what it inherits are the upstream's own there."""
    if type(env).env_response not in (vf.ToolEnv.env_response, vf.SingleTurnEnv.env_response):
        return False
    methods = ("setup_state", "call_tool", "get_prompt_messages", "add_trajectory_step", "add_model_response")
    found = (getattr(type(env), name, None) for name in (*methods, "get_model_response"))
    return all(each is None or each.__module__.startswith("verifiers.") for each in found)


def watch_tool_errors(env: Any) -> None:
    """Note what `env` says of failing tools (it puts the text into a tool message alone)."""
    formatter = getattr(env, "error_formatter", None)
    if formatter is None or getattr(formatter, "watched", False):
        return

    def watched(error: Exception) -> str:
        text: str = formatter(error)
        noted = _tool_errors.get()
        if noted is not None:
            noted.append((text, error))
        return text

    watched.watched = True  # type: ignore[attr-defined]
    env.error_formatter = watched
