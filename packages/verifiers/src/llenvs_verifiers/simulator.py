"""The simulator: a rollout of the upstream that goes on when the policy has replied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from llenvs.core.action import Action
from llenvs.core.errors import InvalidOption, UpstreamFailed
from llenvs.core.loop_thread import EventLoopThread
from llenvs.core.message import ChatMessage
from llenvs.core.observation import Observation
from llenvs.core.signals import RewardType, Signal
from llenvs.core.simulator import Frame, Simulator, Snapshots
from llenvs.core.tools import ToolResult
from llenvs.core.tools.call import ToolStatus
from llenvs.core.tools.executor import with_ids
from llenvs_verifiers.episode import ENDINGS, CopyFailed, Episode
from llenvs_verifiers.messages import chat_messages, text_of, tool_definitions
from llenvs_verifiers.scoring import STEP, score, with_all
from llenvs_verifiers.tasks import Tasks

LIMITS = ("max_turns_reached", "prompt_too_long", "timeout_reached", "max_total_completion_tokens_reached")
"""Stop conditions that are limits, not the environment's verdict that it is over."""


@dataclass(frozen=True, slots=True)
class _Copy:
    episode: Episode
    size: int


class _NotRecorded(Exception):
    """Nothing was recorded: this turn is taken for the first time."""


class VerifiersSimulator(Simulator):
    """One rollout at a time of any of the tasks; `signals` are names that the end of each must have.

    Each turn has one reply from outside: what the tools said, where the environment is made of tools alone, and
    the signals, which may come from a judge. A replay repeats them; no tool and no judge is asked twice.
    """

    snapshots: ClassVar[Snapshots] = Snapshots.LOCAL

    def __init__(self, name: str, tasks: Tasks, loop: EventLoopThread, signals: Sequence[str]) -> None:
        self._name, self._tasks, self._loop, self._signal_names = name, tasks, loop, signals
        self._episode: Episode | None = None
        self._turn = 0

    @property
    def episode(self) -> Episode:
        """The rollout that was begun last."""
        assert self._episode is not None
        return self._episode

    def start(self, task_index: int, seed: int) -> Frame:
        """See `Simulator`."""
        env, row, info = self._tasks[task_index]
        self._episode, self._turn = Episode(env), 0
        self._loop.run(self.episode.start(row))
        if self.episode.prompt is None:
            self._check_error()
            condition = self.episode.state.get("stop_condition")
            raise UpstreamFailed(self._name, f"starting task {task_index}", f"it ended at once: {condition}")
        chat = chat_messages(self.episode.prompt)
        asked = [message for message in chat if message.role != "system"][-1:]
        shown = Observation(
            text_of(asked),
            messages=chat,
            images=tuple(image for message in asked for image in message.images),
            available_tools=tool_definitions(self.episode.state["tool_defs"]),
        )
        return Frame(shown, info=info, truth=self._truth())

    def act(self, action: Action) -> Frame:
        """See `Simulator`."""
        episode = self.episode
        understood = Action(action.text, with_ids(action.tool_calls, f"call_{self._turn}"))
        self._turn += 1
        recorded = self._recorded()
        said = self._loop.run(episode.act(understood, None if recorded is None else recorded["said"]))
        self._check_error()
        step = self._step_signals()
        ended = self._loop.run(self._ended(scored=recorded is None)) if episode.prompt is None else ()
        if recorded is None:
            recorded = {"said": said, "signals": ended}
            self.outside.ask(lambda: recorded)
        return self._frame(understood, (*step, *recorded["signals"]))

    def save(self) -> _Copy:
        """See `Simulator`."""
        try:
            twin = self.episode.copied()
        except CopyFailed as error:
            problem = f"the state of an episode of {self._name} cannot be copied ({error})"
            raise InvalidOption("branching", "copy", problem, valid="replay") from None
        characters = sum(len(str(message.get("content"))) for message in twin.prompt or ())
        return _Copy(twin, 4 * characters + 4096 * (self._turn + 1))

    def restore(self, snapshot: _Copy, task_index: int, seed: int) -> None:
        """See `Simulator`."""
        self._episode = snapshot.episode.copied()
        self._turn = len(self.episode.state["trajectory"])

    def snapshot_size(self, snapshot: _Copy) -> int:
        """An estimate from the length of the chat."""
        return snapshot.size

    def _recorded(self) -> dict[str, Any] | None:
        def live() -> dict[str, Any]:
            raise _NotRecorded

        try:
            return self.outside.ask(live)
        except _NotRecorded:
            return None

    async def _ended(self, scored: bool) -> tuple[Signal, ...]:
        await self.episode.finish()
        if not scored:
            return ()
        signals = await score(self.episode.env, [self.episode.state])
        return with_all(signals[0], self._signal_names)

    def _step_signals(self) -> tuple[Signal, ...]:
        trajectory = self.episode.state["trajectory"]
        reward = trajectory[-1]["reward"] if trajectory else None
        return () if reward is None else (Signal(STEP, RewardType.STEP, reward, weight=0.0),)

    def _check_error(self) -> None:
        error = self.episode.state.get("error")
        if error is not None and not isinstance(error, ENDINGS):
            cause = error.__cause__
            said = f"{type(error).__name__}: {error}" + (f" ({type(cause).__name__}: {cause})" if cause else "")
            raise UpstreamFailed(self._name, "stepping", said)

    def _frame(self, understood: Action, signals: tuple[Signal, ...]) -> Frame:
        episode, state = self.episode, self.episode.state
        over = episode.prompt is None
        chat = chat_messages([*state["prompt"], *(state["completion"] or ())] if over else episode.prompt or ())
        new = _after_the_reply(chat)
        results = tuple(self._result(message, understood) for message in new if message.role == "tool")
        shown = Observation(
            text_of([message for message in new if message.role != "tool"]),
            messages=chat,
            images=tuple(image for message in new for image in message.images),
            tool_results=results,
            available_tools=() if over else tool_definitions(state["tool_defs"]),
        )
        condition = state.get("stop_condition") if over else None
        truncated = over and self._is_limit(condition)
        info: dict[str, Any] = {}
        if over:
            info = {"stop_condition": condition}
            if state.get("error") is not None:
                error = state["error"]
                info["error"] = f"{type(error).__name__}: {error.__cause__ or error}"
        return Frame(shown, signals, over and not truncated, truncated, understood, info, self._truth())

    def _truth(self) -> dict[str, Any]:
        answer = self.episode.state.get("answer")
        return {"answer": answer if isinstance(answer, str | int | float | bool) else None}

    def _is_limit(self, condition: str | None) -> bool:
        """Whether an end is a truncation; the one turn of a single-turn environment is no limit."""
        if condition == "max_turns_reached" and self.episode.env.max_turns == 1:
            return bool(self.episode.state.get("is_truncated"))
        return condition in LIMITS or bool(self.episode.state.get("is_truncated"))

    def _result(self, message: ChatMessage, action: Action) -> ToolResult:
        call = next((each for each in action.tool_calls if each.id == message.tool_call_id), None)
        status = ToolStatus.SUCCESS
        for number, (text, error) in enumerate(self.episode.tool_errors):
            if text == message.content:
                status = _status(error, call.name if call else "", self.episode.env)
                del self.episode.tool_errors[number]
                break
        return ToolResult(message.tool_call_id or "", message.content, status, call.name if call else "")


def _status(error: Exception, name: str, env: Any) -> ToolStatus:
    if name not in getattr(env, "tool_map", {}):
        return ToolStatus.UNKNOWN_TOOL
    return ToolStatus.INVALID_ARGUMENTS if isinstance(error, TypeError | ValueError) else ToolStatus.ERROR


def _after_the_reply(chat: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """What follows the last message of the assistant."""
    last = max((i for i, message in enumerate(chat) if message.role == "assistant"), default=-1)
    return tuple(chat[last + 1 :])
