"""The simulator: one environment object of the upstream."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from llenvs.core.action import Action
from llenvs.core.errors import UpstreamFailed
from llenvs.core.extraction import Extractor
from llenvs.core.message import ChatMessage, ImageContent
from llenvs.core.observation import Observation
from llenvs.core.signals import RewardType, Signal
from llenvs.core.simulator import Frame, Simulator, Snapshots
from llenvs.core.tools import ToolCall, ToolDefinition, ToolResult, ToolStatus
from llenvs.core.tools.executor import with_ids
from llenvs.core.tools.messages import turn_messages
from llenvs_aviary.calls import CallChecker
from llenvs_aviary.copying import shared_by_copies
from llenvs_aviary.messages import chat_message, contents, definition, is_plain, request
from llenvs_aviary.options import AviaryOptions
from llenvs_aviary.randomness import seeded
from llenvs_aviary.tasks import TaskSource
from llenvs_aviary.upstream import load, run

logger = logging.getLogger(__name__)

SUBMIT = "submit_answer"
"""The tool that ends an episode with an answer."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a simulator stands, besides what the environment object knows.

    Attributes:
        task_index, seed: of the episode.
        turns: actions so far.
        tools, checker: those that the reset offered.
        chat: all messages so far.
        dictates: whether observations carry the chat, since it is not one that is made from prompts and actions.
        total: sum of the rewards.
        task_id: the upstream's name of the task, if it has one.
        copyable: whether the environment object may be copied.
    """

    task_index: int
    seed: int
    turns: int
    tools: tuple[ToolDefinition, ...]
    checker: CallChecker
    chat: tuple[ChatMessage, ...]
    dictates: bool
    total: float
    task_id: str | None
    copyable: bool


class AviarySimulator(Simulator):
    """Holds one environment object at a time; its coroutines run on the shared loop.

    `snapshots` is what simulators of most sources can do; a source that cannot be copied says so itself.
    """

    snapshots: ClassVar[Snapshots] = Snapshots.LOCAL

    def __init__(self, name: str, source: TaskSource, options: AviaryOptions, extractor: Extractor | None) -> None:
        self._name, self._source, self._options, self._extractor = name, source, options, extractor
        self._env: Any = None
        self._here: Standing | None = None

    # -- the contract -------------------------------------------------------------------------------------

    def start(self, task_index: int, seed: int) -> Frame:
        """See `Simulator`."""
        self.close()
        env = self._env = self._source.make(task_index)
        messages, tools, task_id = self._heard(seed, 0, "resetting it", lambda: _begun(env))
        self._equip()
        definitions = tuple(definition(tool) for tool in tools)
        chat = tuple(chat_message(message) for message in messages)
        here = self._here = Standing(
            task_index,
            seed,
            0,
            definitions,
            CallChecker(definitions),
            chat,
            not is_plain(chat),
            0.0,
            task_id,
            self._is_copyable(env),
        )
        observation = Observation(
            chat[-1].content if chat else "",
            self._source.task,
            messages=chat if here.dictates else (),
            images=chat[-1].images if chat and not here.dictates else (),
            available_tools=definitions,
        )
        info = {} if task_id is None else {"task_id": task_id}
        return Frame(observation, info=info, truth=self._truth(here))

    def act(self, action: Action) -> Frame:
        """See `Simulator`."""
        here = self._here
        assert here is not None, "act comes after start or restore"
        action = self._understood(action, here)
        results = self._refused(action.tool_calls, here)
        calls = [call for call in action.tool_calls if call.id not in results]
        messages, reward, done, truncated = [], 0.0, False, False
        if calls or not action.tool_calls:
            sent = request(action, calls)
            answer = self._heard(here.seed, here.turns + 1, "stepping it", lambda: self._env.step(sent))
            messages, reward, done, truncated = answer
        return self._frame(action, results, messages, float(reward), bool(done), bool(truncated), here)

    def save(self) -> Any:
        """A copy of the environment object; None where it must not be copied."""
        assert self._here is not None, "save comes after start or act"
        if not self._here.copyable:
            return None
        try:
            return self._here, self._source.copied(self._env)
        except Exception as error:  # noqa: BLE001 - what an object raises when it cannot be copied is its own choice
            logger.debug("%s: the environment object cannot be copied, so it is replayed: %r", self._name, error)
            return None

    def restore(self, snapshot: Any, task_index: int, seed: int) -> None:
        """See `Simulator`."""
        self.close()
        self._here, kept = snapshot
        self._env = self._source.copied(kept)
        self._equip()

    def snapshot_size(self, snapshot: Any) -> int:
        """Bytes of the object; the chat is shared with states."""
        return self._source.size_of(snapshot[1])

    def close(self) -> None:
        """Close the environment object. What it raises is logged: nobody can do anything about it."""
        env, self._env, self._here = self._env, None, None
        if env is None:
            return
        try:
            run(env.close(), self._options.time_limit, waits=self._source.waits)
        except Exception as error:  # noqa: BLE001
            logger.warning("%s: closing an environment object failed: %r", self._name, error)

    # -- what goes in -------------------------------------------------------------------------------------

    def _understood(self, action: Action, here: Standing) -> Action:
        """The action with ids for its calls; with an answer found in its text as a call that submits it."""
        calls = with_ids(action.tool_calls, f"call_{here.turns}")
        if not calls and self._extractor is not None:
            answer = self._extractor.extract(action.text)
            if answer is not None:
                calls = (ToolCall(SUBMIT, {"answer": answer}, f"call_{here.turns}_0"),)
        return Action(action.text, calls)

    def _refused(self, calls: Sequence[ToolCall], here: Standing) -> dict[str, ToolResult]:
        if self._options.tool_errors == "raise":
            return {}
        found = (here.checker.refused(call) for call in calls)
        return {result.call_id: result for result in found if result is not None}

    # -- what comes out -----------------------------------------------------------------------------------

    def _frame(
        self,
        action: Action,
        results: dict[str, ToolResult],
        messages: Sequence[Any],
        reward: float,
        done: bool,
        truncated: bool,
        here: Standing,
    ) -> Frame:
        calls = {call.id: call for call in action.tool_calls}
        others: list[ChatMessage] = []
        images: list[ImageContent] = []
        for message in messages:
            call = calls.get(getattr(message, "tool_call_id", None) or "")
            if call is None or call.id in results:
                others.append(chat_message(message) if message.role != "tool" else _as_user(message))
                continue
            text, shown = contents(message)
            images += shown
            results[call.id] = self._result(call, text, here)
        for call in action.tool_calls:  # a call that the environment did not answer
            results.setdefault(call.id, ToolResult(call.id, "", ToolStatus.SUCCESS, call.name))
        ordered = tuple(results[call.id] for call in action.tool_calls)
        said = tuple(others) if not images else (*others, ChatMessage.user("", tuple(images)))
        here = self._here = replace(
            here,
            turns=here.turns + 1,
            chat=here.chat + turn_messages(action, ordered) + said,
            dictates=here.dictates or not is_plain(said),
            total=here.total + reward,
        )
        observation = Observation(
            others[-1].content if others else "",
            self._source.task,
            messages=here.chat if here.dictates else (),
            images=() if here.dictates else tuple(image for message in said for image in message.images),
            tool_results=ordered,
            available_tools=here.tools,
        )
        kind = RewardType.OUTCOME if done or truncated else RewardType.STEP
        return Frame(
            observation,
            (Signal("reward", kind, reward),),
            terminated=done,
            truncated=truncated,
            resolved_action=action,
            truth=self._truth(here),
        )

    def _result(self, call: ToolCall, text: str, here: Standing) -> ToolResult:
        if call.problem:
            return ToolResult(call.id, f"Error: {call.problem}", ToolStatus.INVALID_ARGUMENTS, call.name)
        status = ToolStatus.SUCCESS
        if not here.checker.knows(call):
            status = ToolStatus.UNKNOWN_TOOL
        elif text.startswith(self._source.failure_prefixes):
            status = ToolStatus.ERROR
        return ToolResult(call.id, text, status, call.name)

    def _truth(self, here: Standing) -> Mapping[str, Any]:
        return {
            "task_id": here.task_id,
            "total_reward": here.total,
            **self._source.truth(self._env),
            "outcome": dict(self._source.outcome(self._env)),
        }

    # -- running the upstream -----------------------------------------------------------------------------

    def _heard(self, seed: int, turn: int, doing: str, make: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """What the coroutine gives; what the environment hears from outside meanwhile is recorded, or repeated."""
        if not self._source.records:
            return self._run(seed, turn, doing, make)
        given: list[Any] = []

        def live() -> Any:
            given.append(self._run(seed, turn, doing, make))
            return self._source.heard(self._env)

        heard = self.outside.ask(live)
        if not given:  # a replay
            self._source.tell(self._env, heard)
            given.append(self._run(seed, turn, doing, make))
            self._source.heard(self._env)
        return given[0]

    def _run(self, seed: int, turn: int, doing: str, make: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        with seeded(seed, turn) if self._source.uses_random else nullcontext():
            try:
                given = run(make(), self._options.time_limit, waits=self._source.waits)
            except TimeoutError as error:
                limit = f"it took longer than time_limit={self._options.time_limit} seconds"
                raise UpstreamFailed(self._name, doing, str(error) or limit) from error
            except Exception as error:
                raise UpstreamFailed(self._name, doing, _said(error)) from error
        failure = self._source.failure(self._env)
        if failure is not None:
            raise UpstreamFailed(self._name, doing, failure)
        return given

    def _equip(self) -> None:
        if self._options.tool_errors == "result":
            self._env.exec_tool_calls = functools.partial(_exec_tool_calls, self._env)

    def _is_copyable(self, env: Any) -> bool:
        if self._source.snapshots is Snapshots.NONE or self._source.branching == "replay":
            return False
        if self._source.branching == "copy":
            return True
        if isinstance(env, load("aviary.env_client").EnvironmentClient):
            return False  # a copy would be the same environment on the server
        shared = shared_by_copies(env)
        if shared is not None:
            logger.debug("%s: %s, so older states are replayed to", self._name, shared)
        return shared is None


async def _begun(env: Any) -> tuple[Any, Any, str | None]:
    messages, tools = await env.reset()
    try:
        task_id = str(await env.get_id())
    except (NotImplementedError, ValueError):  # how upstream says that there is none
        task_id = None
    # some give out the very lists that they go on to change
    return list(messages), list(tools), task_id


async def _exec_tool_calls(env: Any, message: Any, *args: Any, **kwargs: Any) -> Any:
    """The environment's own way to run tool calls, one after the other, an exception becoming its tool's answer.

    At once, as is the default, tools that draw random numbers or change one thing would give now this, now that.
    """
    names = ("concurrency", "handle_tool_exc", "handle_invalid_tool_calls", "exec_timeout")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    return await type(env).exec_tool_calls(
        env, message, **{**given, "concurrency": False, "handle_tool_exc": True}
    )


def _as_user(message: Any) -> ChatMessage:
    """An answer to no call that was made, which no chat may hold: as words of the environment."""
    text, images = contents(message)
    return ChatMessage.user(text, images)


def _said(error: BaseException) -> BaseException | str:
    """The error, with the end of what a server answered."""
    response = getattr(error, "response", None)
    try:
        body = getattr(response, "text", None)
    except Exception:  # noqa: BLE001 - the body of a response that was not read
        body = None
    return f"{type(error).__name__}: {error}\n{body[-2000:]}" if isinstance(body, str) and body else error
