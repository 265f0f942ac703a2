"""Environments in the form that TRL's `environment_factory` takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from llenvs.core.action import Action
from llenvs.core.chat import opening_text
from llenvs.core.environment import Environment
from llenvs.core.errors import InvalidOption, LLEnvsError
from llenvs.core.observation import Observation
from llenvs.core.tools import ToolCall, ToolDefinition
from llenvs.integrations.checks import names, whole
from llenvs.integrations.control_text import broken_up
from llenvs.integrations.environment_user import check_whole_turns
from llenvs.integrations.episode import EPISODE_OVER, Episode
from llenvs.integrations.scorer_pool import ScorerPool
from llenvs.integrations.trl_tools import tool_method

ACT = ToolDefinition(
    "act",
    "Do something in the environment.",
    {
        "type": "object",
        "properties": {"action": {"type": "string", "description": "What to do, in the environment's own words."}},
        "required": ["action"],
    },
)
"""The one tool of environments that are acted in by text."""


class EnvironmentFailed(LLEnvsError):
    """What a tool raises when the environment failed; TRL shows it to the model, so it tells nothing more."""

    def __init__(self) -> None:
        super().__init__("The environment failed. " + EPISODE_OVER)


class TRLEnvironment:
    """An episode for TRL. All public functions of its class but `reset` and `get_reward` are tools.

    A tool may have any name that a method can have, since all of its own begins with ``_``.
    """

    _pool: ScorerPool
    _retries: int
    _acts_by_text: bool
    _controls: tuple[str, ...] | None

    def __init__(self) -> None:
        self._episode: Episode | None = None

    def reset(self, **row: Any) -> str | None:
        """Begin the episode of a row of `make_trl_dataset`.

        All completions of a group have one row, so they begin in one state. The row's prompt is the first
        observation, and None is returned; where it is empty the observation is returned, to be added to it.

        Raises:
            InvalidOption: the row names no task.
            TaskMismatch: it is of another version of the task.
        """
        self._episode = Episode(self._pool, row, retries=self._retries)
        self._episode.begin()
        if _is_empty(row.get("prompt")):
            return broken_up(_opening(self._episode.observation), self._controls)
        return None

    def get_reward(self) -> float | None:
        """The reward of what was done; None where the environment failed, which TRL leaves out of the group."""
        return None if self._episode is None else self._episode.result().reward

    def _call(self, name: str, arguments: Mapping[str, Any]) -> str:
        episode = self._episode
        if episode is None:
            raise InvalidOption("episode", None, "is needed: call reset first")
        if episode.done:
            if episode.failure is not None:
                raise EnvironmentFailed
            return EPISODE_OVER  # TRL goes on as long as the model calls tools
        if self._acts_by_text:
            action = Action(str(arguments.get("action", "")))
        else:
            action = Action("", (ToolCall(name, dict(arguments), f"call_{episode.turns}"),))
        episode.act(action)
        if episode.failure is not None:
            raise EnvironmentFailed
        said = broken_up(_answer(episode.observation), self._controls)
        return said or (EPISODE_OVER if episode.done else "")


class TRLEnvironmentFactory:
    """Makes environments for `GRPOTrainer(environment_factory=...)`; see `make_trl_environment`.

    Attributes:
        environment_class: what it makes instances of.
    """

    def __init__(
        self,
        env: Environment[Any] | str | None,
        *,
        tools: Iterable[ToolDefinition] | None = None,
        name: str | None = None,
        retries: int = 1,
        timeout: float | None = None,
        controls: Iterable[str] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        whole("retries", retries, at_least=0)
        self._made_from: dict[str, Any] = {
            "tools": tools if tools is None else tuple(tools),
            "name": name,
            "retries": retries,
            "timeout": timeout,
            "controls": controls if controls is None else names("controls", controls),
        }
        self.pool = ScorerPool(env, options, timeout=timeout)
        check_whole_turns(self.pool.environment)
        chosen = self._made_from["tools"]
        if chosen is None:
            chosen = _tools_of(self.pool.environment)
        definitions = chosen or (ACT,)
        given = [tool.name for tool in definitions]
        twice = next((each for each in given if given.count(each) > 1), None)
        if twice is not None:
            raise InvalidOption("tools", twice, "is the name of two tools")
        members: dict[str, Any] = {tool.name: tool_method(tool, TRLEnvironment._call) for tool in definitions}
        members.update(
            _pool=self.pool,
            _retries=retries,
            _acts_by_text=not chosen,
            _controls=self._made_from["controls"],
            __doc__=f"An episode of {self.pool.name} for TRL.",
            __module__=__name__,
        )
        self.environment_class: type[TRLEnvironment] = type(name or self.pool.name, (TRLEnvironment,), members)

    def __call__(self) -> TRLEnvironment:
        """A new one; TRL keeps it and resets it for each row."""
        return self.environment_class()

    def __getstate__(self) -> dict[str, Any]:
        return {"pool": self.pool, "made_from": self._made_from}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__(state["pool"].environment, **state["made_from"])  # type: ignore[misc]


def make_trl_environment(
    env: Environment[Any] | str | None,
    *,
    tools: Iterable[ToolDefinition] | None = None,
    name: str | None = None,
    retries: int = 1,
    timeout: float | None = None,
    controls: Iterable[str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> TRLEnvironmentFactory:
    """An `environment_factory` for `GRPOTrainer`: multi-turn episodes in which the model acts by calling tools.

    The class it makes instances of has one method for each tool of the environment; an environment without tools
    has one, ``act(action: str)``, whose text is the action. Give the trainer the rows of `make_trl_dataset`.

    - The reward is the sum of all steps, logged as ``rewards/<name>/mean``.
    - A failure of the environment (tried again `retries` times first) gives the model an error without details and
      the reward None, which TRL leaves out.
    - An action that the benchmark refuses is answered in the benchmark's own words. Texts of control tokens in
      what it says are broken up (``< |im_end|>``), since TRL would read them as such.
    - TRL's loop ends when the model calls no tool, and the environment does not hear that last text: environments
      that are answered by text at the end need `make_trl_rollout_fn`. After the end of an episode each further
      call is answered with "The episode is over." and changes nothing.
    - TRL runs calls one by one: two calls of one message are two steps.
    - TRL's own limits count: ``max_completion_length`` (512 tokens, observations included) and
      ``max_tool_calling_iterations`` (none).

    Args:
        env: the environment, or its address; None when all rows have an identity (then give `tools`, or all act by
            text).
        tools: those to offer; None for those of the environment.
        name: of the class, and in TRL's metrics; None for ``llenvs_<environment>``.
        retries: see `llenvs.integrations.episode.Episode`.
        timeout: seconds for one reset or step, then it is a failure; None for no limit. What hangs in this process
            goes on in its thread: to have it ended, isolate the environment (``container="process"``).
        controls: texts of control tokens that are broken up in what the environment says: those of
            ``llenvs.integrations.control_text.control_texts(tokenizer)``; None for those of common chat formats,
            which other models may read as plain text (``</s>``).
        options: of the environment, when `env` is an address.

    Raises:
        InvalidOption: a tool whose name TRL cannot take.
    """
    return TRLEnvironmentFactory(
        env, tools=tools, name=name, retries=retries, timeout=timeout, controls=controls, options=options
    )


def _tools_of(environment: Environment[Any] | None) -> tuple[ToolDefinition, ...]:
    """Those it declares, else those that the first task offers."""
    if environment is None:
        return ()
    declared = tuple(environment.available_tools)
    if declared or not environment.spec.supports_tools or not len(environment):
        return declared
    return environment.reset(seed=0, options={"task_index": 0})[0].observation.available_tools


def _is_empty(prompt: Any) -> bool:
    if not prompt:
        return True
    return not isinstance(prompt, str) and not any(message.get("content") for message in prompt)


def _opening(observation: Observation) -> str:
    """What the first observation says."""
    if observation.messages:
        return _joined(message.content for message in observation.messages if message.role == "user")
    return opening_text(observation)


def _answer(observation: Observation) -> str:
    """What a later observation says, tool results first."""
    if not observation.messages:
        return _joined([*(result.content for result in observation.tool_results), observation.prompt])
    new: list[str] = []
    for message in reversed(observation.messages):
        if message.role == "assistant":
            break
        new.insert(0, message.content)
    return _joined(new)


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part)
