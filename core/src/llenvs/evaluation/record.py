"""The record of a trajectory: one line of ``trajectories.jsonl``.

A record is for people and their scripts: strict JSON, UTF-8, one object a line, with the prompts, the responses
and what came of them. A number that JSON lacks is written as the text "NaN", "Infinity" or "-Infinity" (`float`
reads it). Hidden state is not in it. The exact trajectory, with token ids and states, is added under
``trajectory`` when the run asks for it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llenvs.core.generation import Usage
from llenvs.core.message import ChatMessage, ImageContent
from llenvs.core.signals import SignalBundle
from llenvs.core.tools import ToolCall
from llenvs.core.trajectory import Transition
from llenvs.evaluation.rollout import Rollout

TrajectoryKey = tuple[str, int, int]
"""Label of the environment, task index, number of the attempt: unique in a run."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the figures need of a record."""

    environment: str
    task_index: int
    repeat: int
    success: bool | None
    reward: float
    signals: Mapping[str, float]
    error: str | None
    """Type of the error, or None."""
    usage: Usage
    seconds: float
    num_turns: int
    length_limited: bool

    @classmethod
    def of(cls, environment: str, rollout: Rollout) -> Outcome:
        """From a rollout."""
        return cls(
            environment,
            rollout.task_index,
            rollout.repeat,
            rollout.success,
            rollout.reward,
            rollout.signals,
            None if rollout.error is None else rollout.error.type,
            rollout.usage,
            rollout.seconds,
            rollout.num_turns,
            rollout.length_limited,
        )

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Outcome:
        """From a line of the run folder; KeyError, TypeError or ValueError when it is none."""
        usage = record["usage"]
        return cls(
            str(record["environment"]),
            int(record["task_index"]),
            int(record["repeat"]),
            record["success"],
            float(record["reward"]),
            {name: float(value) for name, value in record["signals"].items()},
            None if record["error"] is None else str(record["error"]["type"]),
            Usage(**usage),
            float(record["seconds"]),
            int(record["num_turns"]),
            any(turn["finish_reason"] == "length" for turn in record["turns"]),
        )


def make_record(environment: str, rollout: Rollout, *, exact: bool = False) -> dict[str, Any]:
    """The record of `rollout` as JSON data; `exact` adds the trajectory itself."""
    trajectory = rollout.trajectory
    record: dict[str, Any] = {
        "environment": environment,
        "task_index": rollout.task_index,
        "repeat": rollout.repeat,
        "success": rollout.success,
        "reward": _number(rollout.reward),
        "signals": {name: _number(value) for name, value in rollout.signals.items()},
        "error": None,
        "terminated": False,
        "truncated": rollout.cut_off,
        "num_turns": rollout.num_turns,
        "usage": _usage(rollout.usage),
        "seconds": round(rollout.seconds, 6),
        "seed": rollout.seed,
        "turns": [],
    }
    if rollout.error is not None:
        record["error"] = {"type": rollout.error.type, "message": rollout.error.message}
        if rollout.error.traceback:
            record["error"]["traceback"] = rollout.error.traceback
    if trajectory is None:
        return record
    if len(trajectory):
        last = trajectory.transitions[-1].result
        record["terminated"] = last.terminated
        record["truncated"] = last.truncated or rollout.cut_off
    shown: tuple[ChatMessage, ...] = ()
    # a trajectory that began as a branch has steps without a request of this run
    first = len(trajectory) - len(rollout.requests)
    for number, transition in enumerate(trajectory):
        request = rollout.requests[number - first] if number >= first else ()
        record["turns"].append(_turn(transition, _new_messages(request, shown)))
        shown = request
    if rollout.branches:
        record["branches"] = [make_record(environment, branch, exact=exact) for branch in rollout.branches]
    if exact:
        record["trajectory"] = json.loads(trajectory.to_json())
    return record


def dump_line(record: Mapping[str, Any]) -> bytes:
    """`record` as one line of UTF-8, line feed included."""
    text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(", ", ": "))
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # lone surrogates, as broken model output may have
        return json.dumps(record, allow_nan=False).encode() + b"\n"


def _new_messages(request: Sequence[ChatMessage], shown: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """The messages of `request` after those of the request before, its answer left out (it has its own place)."""
    if not shown or tuple(request[: len(shown)]) != tuple(shown):
        return request
    new = request[len(shown) :]
    return new[1:] if new and new[0].role == "assistant" else new


def _turn(transition: Transition, prompt: Sequence[ChatMessage]) -> dict[str, Any]:
    action, result, generation = transition.action, transition.result, transition.generation
    turn: dict[str, Any] = {
        "prompt": [_message(message) for message in prompt],
        "response": action.text,
        "finish_reason": None,
    }
    if action.tool_calls:
        turn["tool_calls"] = [_call(call) for call in action.tool_calls]
    if generation is not None:
        turn["finish_reason"] = generation.finish_reason.value
        turn["usage"] = _usage(generation.usage)
        turn["seconds"] = round(generation.latency, 6)
        if generation.reasoning:
            turn["reasoning"] = generation.reasoning
    understood = result.resolved_action
    turn["resolved_action"] = None if understood is None else understood.text
    if understood is not None and understood.tool_calls and understood.tool_calls != action.tool_calls:
        turn["resolved_tool_calls"] = [_call(call) for call in understood.tool_calls]
    turn["reward"] = _number(result.rewards.total)
    turn["signals"] = _signals(result.rewards)
    feedback = {signal.name: signal.feedback for signal in result.rewards if signal.feedback}
    if feedback:
        turn["feedback"] = feedback
    return turn


def _message(message: ChatMessage) -> dict[str, Any]:
    data: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        data["tool_calls"] = [_call(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        data["tool_call_id"] = message.tool_call_id
    if message.images:
        data["images"] = [_image(image) for image in message.images]
    return data


def _image(image: ImageContent) -> dict[str, Any]:
    """Enough to recognise an image; its bytes would make the line unreadable."""
    if image.data is None:
        return {"url": image.url}
    digest = hashlib.sha256(image.data).hexdigest()
    return {"media_type": image.media_type, "bytes": len(image.data), "sha256": digest}


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": plain(call.arguments)}


def _signals(rewards: SignalBundle) -> dict[str, float | str | None]:
    return {s.name: None if s.reward is None else _number(s.reward) for s in rewards}


def _usage(usage: Usage) -> dict[str, Any]:
    data: dict[str, Any] = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
    }
    if usage.cached_tokens:
        data["cached_tokens"] = usage.cached_tokens
    if usage.reasoning_tokens:
        data["reasoning_tokens"] = usage.reasoning_tokens
    if usage.cost is not None:
        data["cost"] = usage.cost
    return data


def _number(value: float) -> float | str:
    value = float(value)
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def plain(value: Any) -> Any:
    """`value` as JSON data for a reader: what JSON lacks becomes text."""
    if value is None or isinstance(value, bool | str):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes | bytearray):
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return [plain(v) for v in items]
    return str(value)
