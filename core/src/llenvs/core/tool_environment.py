"""Environments in which the model acts by calling tools."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic

from llenvs.core.action import Action
from llenvs.core.environment import Advance, Environment, EnvironmentSpec, Start
from llenvs.core.message import ChatMessage
from llenvs.core.observation import Observation
from llenvs.core.rewards import RewardFunction
from llenvs.core.state import HiddenT, State
from llenvs.core.tool_use import ToolUse, monitored
from llenvs.core.tools.async_executor import AsyncToolExecutor
from llenvs.core.tools.call import ToolResult
from llenvs.core.tools.definition import ToolDefinition
from llenvs.core.tools.executor import ToolExecutor, with_ids
from llenvs.core.tools.messages import turn_messages


@dataclass(frozen=True, slots=True)
class TaskStart:
    """How an episode of a `ToolEnvironment` begins: the words for the model and the hidden state."""

    prompt: str
    hidden: Any
    task: str | None = None
    info: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Turn:
    """What happens after an action: words for the model beside the tool results, and whether the episode ends."""

    hidden: Any
    prompt: str = ""
    terminated: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)


class ToolEnvironment(Environment[HiddenT], Generic[HiddenT]):
    """The model calls tools; their results are the next observation; a terminal tool ends the episode.

    A subclass gives `num_tasks`, `_begin` and `_signals`, and may override `_react`. What the tools are to change
    between steps belongs into the hidden state, by way of tools that are `stateful`: so an old state can be
    stepped again. A tool that keeps something in its own object breaks that promise.

    Observations offer the tools and hold one result per call of the last action, in the order of the calls and
    with their ids. Calls without an id, or with one that occurs twice in an action, are given one;
    `StepResult.resolved_action` is the action with the ids that the results have.

    `ToolValidityReward` and `ToolEfficiencyReward` are among the signals of every step, with weight 0 unless
    `reward_functions` has one of them with a weight.

    Args:
        spec: what it is; `supports_tools` is set.
        tools: functions, `Tool` objects, or an executor; the first two are run by an `AsyncToolExecutor`.
        reward_functions: added to the environment's own signals.
        record_chat: put the whole chat into ``observation.messages``, for callers that build none themselves.
            (The runner builds its own, which also keeps what a backend needs back, so it is off by default.)
    """

    def __init__(
        self,
        spec: EnvironmentSpec,
        tools: ToolExecutor | Mapping[str, Any] | Iterable[Any],
        *,
        reward_functions: Iterable[RewardFunction] = (),
        record_chat: bool = False,
    ) -> None:
        super().__init__(replace(spec, supports_tools=True), reward_functions=monitored(tuple(reward_functions)))
        self.executor = tools if isinstance(tools, ToolExecutor) else AsyncToolExecutor(tools)
        self.record_chat = record_chat

    @property
    def available_tools(self) -> Sequence[ToolDefinition]:
        """All tools, for every state."""
        return self.executor.definitions

    def close(self) -> None:
        """Close the executor too."""
        self.executor.close()

    # -- what a subclass gives ----------------------------------------------------------------------------

    @abstractmethod
    def _begin(self, task_index: int, seed: int, options: Mapping[str, Any]) -> TaskStart:
        """The beginning of task `task_index` (checked to be in range). Must be a function of its arguments."""

    def _react(self, action: Action, results: tuple[ToolResult, ...], turn: Turn) -> Turn:
        """What follows an action. `turn` is what would: with ``terminated`` after a terminal tool, and with a
        reminder as prompt when no tool was called. Must be a function of its arguments."""
        return turn

    # -- the contract -------------------------------------------------------------------------------------

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        begin = self._begin(task_index, seed, options)
        shown = Observation(begin.prompt, begin.task, available_tools=self.executor.definitions)
        if self.record_chat:
            parts = [begin.task] if begin.task and begin.task not in begin.prompt else []
            text = "\n\n".join([*parts, *([begin.prompt] if begin.prompt else [])])
            shown = replace(shown, messages=(ChatMessage.user(text),))
        return Start(shown, begin.hidden, begin.info)

    def _advance(self, state: State[HiddenT], action: Action) -> Advance:
        action = Action(action.text, with_ids(action.tool_calls, f"call_{state.metadata.step}"))
        execution = self.executor.execute(action.tool_calls, state.hidden)
        prompt = "" if action.tool_calls else self._reminder()
        turn = Turn(execution.hidden, prompt, terminated=execution.ended_by is not None)
        turn = self._react(action, execution.results, turn)
        use = ToolUse.of(state).after(action.tool_calls, execution.results)
        shown = Observation(
            turn.prompt,
            state.observation.task,
            tool_results=execution.results,
            available_tools=self.executor.definitions,
        )
        if self.record_chat:
            chat = state.observation.messages + turn_messages(action, execution.results)
            shown = replace(shown, messages=chat + ((ChatMessage.user(turn.prompt),) if turn.prompt else ()))
        return Advance(shown, turn.hidden, turn.terminated, resolved_action=action, info={**turn.info, **use.info})

    def _reminder(self) -> str:
        names = ", ".join(definition.name for definition in self.executor.definitions)
        return f"You called no tool. Answer by calling one of: {names}."
