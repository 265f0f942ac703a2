"""Environments and backends for these tests, as fixtures that hand out classes and factories."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from llenvs.core import (
    Action,
    Advance,
    Environment,
    EnvironmentSpec,
    Generation,
    Observation,
    Signal,
    SingleTurnEnvironment,
    Start,
    State,
    ToolDefinition,
    ToolResult,
)
from llenvs.core.extraction import make_extractor
from llenvs.inference import GenerationRequest, ScriptedBackend


class AdditionEnvironment(SingleTurnEnvironment[dict[str, str]]):
    """Task i asks for i + 1. `breaks` maps a task index to what happens at its step."""

    def __init__(self, size: int = 10, breaks: Mapping[int, Any] | None = None, answer_extractor: Any = "raw"):
        spec = EnvironmentSpec("addition", "test", success_signal="score", metadata={"size": size})
        super().__init__(spec, make_extractor(answer_extractor))
        self.size = size
        self.breaks = dict(breaks or {})
        self.closed = 0

    @property
    def num_tasks(self) -> int:
        return self.size

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        return Start(Observation(f"What is {task_index} + 1?"), {"answer": str(task_index + 1), "secret": "XYZZY"})

    def _score(self, hidden: dict[str, str], answer: str | None) -> Iterable[Signal]:
        broken = self.breaks.get(int(hidden["answer"]) - 1)
        if isinstance(broken, BaseException):
            raise broken
        if callable(broken):
            broken()
        if isinstance(broken, Signal):
            yield broken
            return
        right = answer is not None and answer.strip() == hidden["answer"]
        yield Signal("score", reward=float(right))
        yield Signal("length", reward=float(len(answer or "")), weight=0.0)

    def close(self) -> None:
        self.closed += 1


class CountdownEnvironment(Environment[int]):
    """Say "down" until the number is 0; task i starts at i + 1. A tool does the same."""

    def __init__(self, size: int = 5, with_tools: bool = False, max_steps: int | None = 20):
        spec = EnvironmentSpec(
            "countdown",
            "test",
            max_steps=max_steps,
            is_multi_turn=True,
            success_signal="done",
            supports_tools=True,
        )
        super().__init__(spec)
        self.size = size
        self._tools = (ToolDefinition("lower", "Lower the number."),) if with_tools else ()

    @property
    def num_tasks(self) -> int:
        return self.size

    def _start(self, task_index: int, seed: int, options: Mapping[str, Any]) -> Start:
        number = task_index + 1
        return Start(
            Observation(f"The number is {number}.", task="Count down to 0.", available_tools=self._tools), number
        )

    def _advance(self, state: State[int], action: Action) -> Advance:
        lowered = action.text.strip() == "down" or any(call.name == "lower" for call in action.tool_calls)
        number = state.hidden - lowered
        results = tuple(ToolResult(call.id, str(number)) for call in action.tool_calls)
        prompt = "" if results else f"The number is {number}."
        seen = Observation(prompt, tool_results=results, available_tools=self._tools)
        return Advance(seen, number, terminated=number == 0)

    def _signals(self, state: State[int], action: Action, next_state: State[int]) -> Iterable[Signal]:
        yield Signal("lowered", reward=float(state.hidden - next_state.hidden))
        yield Signal("done", reward=float(next_state.hidden == 0), weight=0.0)


def sum_asked_for(request: GenerationRequest) -> int:
    """The right answer to the last message of an `AdditionEnvironment`."""
    return int(request.messages[-1].content.split("What is ")[1].split(" + ")[0]) + 1


class Recorder:
    """A script that answers additions, right unless the task index is in `wrong`, and counts requests."""

    def __init__(self, wrong: Iterable[int] = (), fail: Mapping[int, Exception] | None = None) -> None:
        self.wrong, self.fail = set(wrong), dict(fail or {})
        self.requests: list[GenerationRequest] = []
        self.asked: list[int] = []
        self._lock = threading.Lock()

    def __call__(self, request: GenerationRequest) -> str | Generation:
        answer = sum_asked_for(request)
        with self._lock:
            self.requests.append(request)
            self.asked.append(answer - 1)
        if answer - 1 in self.fail:
            raise self.fail[answer - 1]
        return "no idea" if answer - 1 in self.wrong else str(answer)


@pytest.fixture
def addition() -> type[AdditionEnvironment]:
    return AdditionEnvironment


@pytest.fixture
def countdown() -> type[CountdownEnvironment]:
    return CountdownEnvironment


@pytest.fixture
def recorder() -> type[Recorder]:
    return Recorder


@pytest.fixture
def scripted() -> Callable[..., ScriptedBackend]:
    return ScriptedBackend
