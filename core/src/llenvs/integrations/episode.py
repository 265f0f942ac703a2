"""An episode that a trainer's own loop drives: the chat, the rewards, and what went wrong."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, TypeVar

from llenvs.core.action import Action
from llenvs.core.environment import StepResult
from llenvs.core.errors import InvalidOption
from llenvs.core.generation import FinishReason, Generation
from llenvs.core.loop import run_sync
from llenvs.core.message import ChatMessage
from llenvs.core.observation import Observation
from llenvs.core.state import State
from llenvs.core.tools import ToolDefinition
from llenvs.evaluation.conversation import Conversation
from llenvs.evaluation.rollout import RolloutError
from llenvs.inference.tool_calls.reading import with_tool_calls
from llenvs.integrations.chat_ids import ChatIds, PrefixBreak, first_difference
from llenvs.integrations.checks import whole
from llenvs.integrations.environment_user import check_whole_turns
from llenvs.integrations.scorer_pool import ScorerPool
from llenvs.integrations.scoring import MISTAKES, Scorer, ScoringResult

EPISODE_OVER = "The episode is over."
"""What a model is told that goes on after the end."""

T = TypeVar("T")

_log = logging.getLogger("llenvs.integrations")


class Episode:
    """One episode of the task of a row.

    A failure of the environment is tried again (exactly, for a step depends on its arguments alone), then logged
    at ERROR and kept: the episode ends and its result has an `error` and no reward. Mistakes of the caller are
    raised.

    Args:
        pool: finds the environment of a row.
        row: has ``llenvs`` or ``task_index``; see `ScorerPool.find`.
        retries: how often a reset or step that raised, or took longer than the `timeout` of the pool's scorers,
            is tried again, >= 0.
    """

    def __init__(self, pool: ScorerPool, row: Mapping[str, Any], *, retries: int = 1) -> None:
        self.scorer: Scorer
        self.scorer, self.task_index, self._digest = pool.find(row)
        check_whole_turns(self.scorer.env)
        self._retries = whole("retries", retries, at_least=0)
        self._state: State[Any] | None = None
        self._results: list[StepResult] = []
        self._conversation = Conversation()
        self._before: tuple[ChatMessage, ...] = ()  # the chat up to the last action
        self.failure: str | None = None
        """What the environment failed of."""

    # -- what happens -------------------------------------------------------------------------------------

    def begin(self) -> None:
        """`abegin`, for callers without a loop."""
        run_sync(self.abegin())

    async def abegin(self) -> None:
        """Reset.

        Raises:
            TaskMismatch: the row is of another task.
        """
        for attempt in range(self._retries + 1):
            try:
                self._begun(await self._within(self.scorer.afirst_state(self.task_index, self._digest)))
                return
            except MISTAKES:
                raise
            except Exception as error:  # noqa: BLE001 - kept as the failure that it is
                self._failed(error, attempt)

    def act(self, action: Action, generation: Generation | None = None) -> None:
        """`aact`, for callers without a loop."""
        run_sync(self.aact(action, generation))

    async def aact(self, action: Action, generation: Generation | None = None) -> None:
        """Take a step; nothing happens after the end. Raises nothing: the action is the model's doing."""
        for attempt in range(self._retries + 1):
            if self.done or self._state is None:
                return
            try:
                self._stepped(action, generation, await self._within(self.scorer.astep(self._state, action)))
                return
            except Exception as error:  # noqa: BLE001 - as above
                self._failed(error, attempt)

    async def _within(self, work: Awaitable[T]) -> T:
        """`work`, for as long as one call of the environment may take."""
        limit = self.scorer.timeout
        try:
            async with asyncio.timeout(limit) as clock:
                return await work
        except TimeoutError as error:
            if clock.expired():
                raise TimeoutError(f"no answer within {limit} s") from error
            raise

    def fail(self, said: str) -> None:
        """End the episode as a failure, for a reason outside of the environment."""
        self.failure = said
        self._log(said)

    # -- what there is ------------------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """Whether it ended, or failed."""
        return self.failure is not None or (self._state is not None and self._state.is_terminal)

    @property
    def observation(self) -> Observation:
        """The newest one; an empty one before `begin` and after a failed one."""
        return Observation() if self._state is None else self._state.observation

    @property
    def turns(self) -> int:
        """Actions taken."""
        return len(self._results)

    @property
    def tools(self) -> tuple[ToolDefinition, ...]:
        """What may be called now."""
        return self._conversation.tools

    @property
    def answer(self) -> ChatMessage:
        """What was done last, as a message."""
        return self._before[-1]

    def messages_before(self) -> tuple[ChatMessage, ...]:
        """The chat before the last action, without what a data set adds to it."""
        return self._before[:-1]

    def new_messages(self) -> tuple[ChatMessage, ...]:
        """What was said to the model since its last action.

        Raises:
            PrefixBreak: the environment rewrote what came before.
        """
        chat = self._conversation.chat
        index = first_difference(self._before, chat)
        if index is not None:
            raise PrefixBreak(self.turns, index, "messages; the environment rewrites its chat")
        return chat[len(self._before) :]

    def action_of(self, generation: Generation) -> Action:
        """The action that a generation is, its tool calls with ids."""
        return self._conversation.action_of(generation)

    def result(self) -> ScoringResult:
        """The score of what was done so far."""
        if self.failure is not None or self._state is None:
            said = self.failure or "the episode did not begin"
            info = {"task_index": self.task_index, "steps": self.turns, "done": False}
            return ScoringResult(None, error=said, metadata=info)
        result = self.scorer.result_of(self._results, self._state, self.task_index)
        if result.error is not None and self.failure is None:
            self._log(result.error)
            self.failure = result.error
        return result

    # -- the rest -----------------------------------------------------------------------------------------

    def _begun(self, state: State[Any]) -> None:
        if state.observation.images:
            raise InvalidOption(
                "env", self.scorer.env.spec.id, "shows images, and the hooks of trainers carry text alone"
            )
        self.failure = None
        self._state = state
        self._conversation.observe(state.observation)

    def _stepped(self, action: Action, generation: Generation | None, result: StepResult) -> None:
        self.failure = None
        self._results.append(result)
        self._state = result.next_state
        self._conversation.act(action, generation)
        self._before = self._conversation.chat
        self._conversation.observe(result.next_state.observation)

    def _failed(self, error: Exception, attempt: int) -> None:
        if attempt < self._retries:
            return
        self.failure = str(RolloutError.of(error))
        self._log(self.failure)

    def _log(self, said: str) -> None:
        _log.error("%s: task %d has no reward: %s", self.scorer.env.spec.id, self.task_index, said)


def signal_metrics(result: ScoringResult) -> dict[str, float]:
    """Numbers to log of one episode: ``llenvs/<signal>``, ``llenvs/error`` (0 or 1) and ``llenvs/turns``."""
    metrics = {f"llenvs/{name}": float(value) for name, value in result.signals.items()}
    metrics["llenvs/error"] = float(result.error is not None)
    metrics["llenvs/turns"] = float(result.metadata.get("steps", 0))
    return metrics


def message_of(message: Mapping[str, Any]) -> ChatMessage:
    """A message as trainers have it (``role`` and ``content``, a text or parts of one).

    Raises:
        InvalidOption: it has parts that are no text.
    """
    content = message.get("content") or ""
    if not isinstance(content, str):
        other = next((part for part in content if "text" not in part), None)
        if other is not None:
            raise InvalidOption("prompt", other, "is no text, and the hooks of trainers carry text alone")
        content = "".join(part["text"] for part in content)
    return ChatMessage(str(message.get("role")), content)


def generation_of(
    chat: ChatIds, before: Sequence[int], ids: Sequence[int], ended: bool, *, with_tools: bool
) -> Generation:
    """What sampled ids say: text, and tool calls where the model was told of tools.

    Args:
        chat: spells ids and parses calls.
        before: what the model had read.
        ids: what it sampled.
        ended: whether the last of them is the end of the turn, which is no part of the text.
        with_tools: whether to look for calls.
    """
    said = ids[:-1] if ended else ids
    generation = Generation(
        chat.tokenizer.decode(before, said),
        finish_reason=FinishReason.STOP if ended else FinishReason.LENGTH,
        prompt_token_ids=tuple(before),
        completion_token_ids=tuple(ids),
    )
    if not with_tools:
        return generation
    return with_tool_calls(
        generation, chat.tokenizer.parser, written=chat.tokenizer.decode(before, said, special=True)
    )
