"""The simulator of tasks that need nothing but a reply: scored in place, without the upstream's rollout."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from verifiers.v1 import graph
from verifiers.v1.configs.agent import AgentConfig
from verifiers.v1.dialects.chat import ChatDialect, message_to_wire
from verifiers.v1.envs.single_agent import SingleAgentEnv
from verifiers.v1.state import state_cls
from verifiers.v1.task import Task
from verifiers.v1.trace import AgentInfo, ModelCall, Trace, TraceTask
from verifiers.v1.utils.decorators import discover_decorated

from llenvs.core.action import Action
from llenvs.core.observation import Observation
from llenvs.core.simulator import Frame, Simulator
from llenvs.core.tools.executor import with_ids
from llenvs_verifiers_v1.episode import MODEL, Stage
from llenvs_verifiers_v1.frames import shown, truth_of
from llenvs_verifiers_v1.judges import judged_by
from llenvs_verifiers_v1.messages import completion
from llenvs_verifiers_v1.scoring import forget, signals_of, watch

_DIALECT = ChatDialect()


def is_pure(env: Any, tasks: Sequence[Task[Any, Any, Any]]) -> bool:
    """Whether the tasks of `env` need no runtime, tool, hook or second seat: a reply and its score are all."""
    if type(env) is not SingleAgentEnv or env.taskset.toolsets(env.taskset.config) or not tasks:
        return False
    task = tasks[0]
    cls = type(task)
    if cls.setup is not Task.setup or cls.finalize is not Task.finalize or cls.toolsets(task.config):
        return False
    if discover_decorated(task, "intercept") or task.hooks("stop") or task.data.image is not None:
        return False
    scorers = [*task.hooks("reward"), *task.hooks("metric"), *(judge.score for judge in task.plugged_judges())]
    return not any(map(_needs_runtime, scorers)) and all(t.data.prompt is not None for t in tasks)


def _needs_runtime(function: Callable[..., Any]) -> bool:
    parameter = inspect.signature(function).parameters.get("runtime")
    return parameter is not None and parameter.default is inspect.Parameter.empty


def opening(task: Task[Any, Any, Any]) -> list[dict[str, Any]]:
    """The chat with which a task begins, as the harness sends it."""
    system, prompt = task.data.system_prompt, task.data.prompt
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    if isinstance(prompt, str):
        return [*messages, {"role": "user", "content": prompt}]
    return messages + [message_to_wire(message) for message in prompt or ()]


class PureSimulator(Simulator):
    """One reply to one task."""

    def __init__(self, tasks: Sequence[Task[Any, Any, Any]], agent: AgentConfig, stage: Stage) -> None:
        self._tasks, self._agent, self._stage = tasks, agent, stage
        self._task = tasks[0]

    def start(self, task_index: int, seed: int) -> Frame:
        """See `Simulator`."""
        self._task = self._tasks[task_index]
        return Frame(shown(opening(self._task)), info=info_of(self._task), truth=truth_of(self._task.data))

    def act(self, action: Action) -> Frame:
        """See `Simulator`."""
        understood = Action(action.text, with_ids(action.tool_calls, "call_0"))
        trace = self._stage.run(self._scored(understood))
        records = {trace.id: watch(trace)}
        forget(trace)
        signals = signals_of([trace], records, trace.agent.name)
        messages = [message_to_wire(message) for message in trace.messages]
        over = Observation(messages=shown(messages).messages)
        info = {"stop_condition": trace.stop_condition}
        return Frame(over, signals, terminated=True, resolved_action=understood, info=info, truth=self._truth())

    def _truth(self) -> dict[str, Any]:
        return truth_of(self._task.data)

    async def _scored(self, action: Action) -> Trace[Any, Any, Any]:
        task = self._task
        trace: Trace[Any, Any, Any] = Trace(
            task=TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash),
            state=state_cls(type(task))(),
            agent=AgentInfo(config=self._agent),
        )
        watch(trace)
        asked = _DIALECT.parse_request({"model": MODEL, "messages": opening(task)})
        response = _DIALECT.parse_response(_DIALECT.validate_response(completion(action, MODEL)))
        node = graph.prepare_turn(trace, asked.messages, asked.tools).commit(response)
        trace.calls.append(ModelCall(node=node, model=MODEL, finish_reason=response.finish_reason))
        trace.stop("agent_completed")
        try:
            async with asyncio.timeout(task.data.timeout.scoring):
                with judged_by(self._stage.judge):
                    await task.score(trace, None)
            trace.ok = True
        except Exception as error:  # noqa: BLE001 - recorded as the upstream's rollout does
            trace.record_error(error)
        return trace


def info_of(task: Task[Any, Any, Any]) -> dict[str, Any]:
    """What identifies a task, for people."""
    data = task.data
    named = {"idx": data.idx, "id": data.id, "name": data.name}
    return {key: value for key, value in named.items() if value is not None}
