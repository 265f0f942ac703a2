"""One episode of a segmented environment being played."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from llenvs.core.action import Action
from llenvs.core.generation import Generation, Usage
from llenvs.core.message import ChatMessage
from llenvs.core.observation import Observation
from llenvs.core.segmentation.control import Segment, final_segment, user_feedback
from llenvs.core.segmentation.environment import SegmentedEnvironment
from llenvs.core.segmentation.generations import joined
from llenvs.core.segmentation.response import Response, hidden_of
from llenvs.core.state import State
from llenvs.core.trajectory import Trajectory, Transition
from llenvs.evaluation.conversation import Conversation
from llenvs.evaluation.rollout import Rollout, RolloutError
from llenvs.evaluation.runner import Attempt, Episode
from llenvs.evaluation.segmented_decisions import (
    Branch,
    Decision,
    Feedback,
    Finish,
    ForceNext,
    SegmentStep,
    Stop,
    checked_decision,
    decide,
)
from llenvs.evaluation.segmented_rollout import SegmentedRollout
from llenvs.evaluation.segmented_writer import Answer, MessageWriter, Piece
from llenvs.inference.backend import Backend
from llenvs.inference.prompts import PromptBuilder
from llenvs.inference.request import GenerationRequest

if TYPE_CHECKING:
    from llenvs.evaluation.segmented_runner import SegmentedTrajectoryRunner

CONTINUE = (
    "Your last message is not finished. Continue it from exactly where it ends: repeat nothing of it and say "
    "nothing about this request."
)
"""What a model is told that is to go on with its message, when its backend takes no assistant prefix."""


class SegmentedEpisode(Episode):
    """Generates segment by segment, asking the callback after each."""

    runner: SegmentedTrajectoryRunner

    def __init__(
        self,
        runner: SegmentedTrajectoryRunner,
        attempt: Attempt,
        start: Trajectory | None = None,
        *,
        branch: tuple[int, ...] = (),
        given: str = "",
    ) -> None:
        super().__init__(runner, attempt, start)
        self.environment: SegmentedEnvironment = runner.environment
        self.branch = branch
        self.generations: list[Generation] = []
        self.branch_starts: list[tuple[tuple[int, ...], Trajectory]] = []
        self.continued_by_message = False
        self._first_step = 0
        self._given = given
        self._asks = runner.step_callback is not None
        self._stopped = False
        self._parts = 0
        self._left: int | None = None
        self._writer: MessageWriter | None = None
        self._conversation = Conversation()

    # -- the course of it ---------------------------------------------------------------------------------

    async def play(self) -> None:
        """Reset, unless it begins with a trajectory, and write until the episode ends or is stopped."""
        runner = self.runner
        if self.trajectory is None:
            self.trajectory = Trajectory(await runner._threads.reset(self.attempt.task_index, self.seed))
        self._first_step = len(self.trajectory)
        self._conversation = conversation_of(self.trajectory, runner.builder)
        self._left = runner.sampling.max_tokens
        while not self.trajectory.done and not self._stopped:
            response = Response.of(self.trajectory.final_state)
            if response.actions == 0 and runner.max_steps is not None and self._turns() >= runner.max_steps:
                self.cut_off = True
                return
            piece = await self._next_piece(response)
            asks = self._asks  # it may be another response afterwards
            await self._take(self._action_of(piece), piece)
            if asks:
                await self._obey(await self._decision())

    def _turns(self) -> int:
        """Responses that have ended."""
        assert self.trajectory is not None
        return sum(_ended_response(transition) for transition in self.trajectory)

    def _action_of(self, piece: Piece) -> Action:
        if not piece.ends:
            return Action(piece.text)
        calls = self._conversation.action_of(Generation(tool_calls=piece.tool_calls)).tool_calls  # with ids
        return final_segment(piece.text, calls)

    async def _next_piece(self, response: Response) -> Piece:
        if self._writer is None:
            self._writer = self._new_writer(response)
        ends_the_response = response.actions + 1 >= self.environment.max_segments
        if ends_the_response:  # so all that is left belongs there
            return await self._writer.rest()
        return await self._writer.next()

    def _new_writer(self, response: Response) -> MessageWriter:
        runner, text = self.runner, response.text
        given = self._given
        if response.actions == 0:
            given = given or runner.builder.assistant_prefix or ""
        self._given = ""
        # without a prefix each further request would change what the model says
        in_chunks = self._asks and takes_prefix(runner.backend, runner.builder)
        return MessageWriter(
            self.environment.segmenter,
            self._ask,
            committed=text,
            sequence=self._sequence() if text else None,
            given=given,
            max_tokens=self._left,
            chunk_tokens=runner.chunk_tokens if in_chunks else None,
        )

    def _sequence(self) -> tuple[int, ...] | None:
        """The ids that the model read and wrote up to here in its message, as far as the trajectory has them."""
        assert self.trajectory is not None
        message: list[Transition] = []
        for transition in reversed(self.trajectory.transitions):
            if _ended_response(transition) or Segment.of(transition.action).feedback is not None:
                break
            message.append(transition)
        whole = joined(message[::-1])
        if whole is None or whole.prompt_token_ids is None or whole.completion_token_ids is None:
            return None
        return whole.prompt_token_ids + whole.completion_token_ids

    async def _take(self, action: Action, piece: Piece | None = None) -> None:
        """Take `action`, and keep trajectory, chat and writer in step."""
        assert self.trajectory is not None
        state = self.trajectory.final_state
        messages = self._conversation.messages()
        result = await self.runner._threads.step(state, action)
        self.trajectory = self.trajectory.append(action, result, None if piece is None else piece.generation)
        self.requests.append(messages)
        last = self.trajectory.transitions[-1]
        _follow(self._conversation, last, self._message_generation)
        if self._writer is not None:
            self._left = self._writer.tokens_left
        if _ended_response(last):
            self._writer = None
            self._parts = 0
            self._left = self.runner.sampling.max_tokens
            self._asks = self.runner.step_callback is not None
        elif piece is None:  # somebody else has spoken: what the model wrote ahead no longer follows
            self._writer = None

    def _message_generation(self) -> Generation | None:
        """The generation of the message that just ended: what its backend may need back of it."""
        if self._writer is None or self._parts != 1 or not self.generations:
            return None
        return self.generations[-1]

    # -- requests -----------------------------------------------------------------------------------------

    async def _ask(self, written: str, max_tokens: int | None) -> Answer:
        """Have the model go on after `written`."""
        runner = self.runner
        turn, part = self._turns(), self._parts
        sampling = runner.request_sampling(self.attempt, turn, part, self.branch)
        sampling = sampling.model_copy(update={"max_tokens": max_tokens})
        messages, prefix = self._conversation.messages(), written
        by_message = bool(written) and not takes_prefix(runner.backend, runner.builder)
        if by_message and part == 0 and written == (runner.builder.assistant_prefix or ""):
            by_message = False  # the prompt's own prefix: the backend refuses it, as it does for every runner
        if by_message:
            messages = (*messages, ChatMessage.assistant(written), ChatMessage.user(CONTINUE))
            prefix = ""
        request = GenerationRequest(messages, sampling, self._conversation.tools, prefix=prefix)
        async with runner.request_slot():
            generation = await runner.backend.generate(request)
        self.generations.append(generation)
        self._parts += 1
        if not by_message:
            return Answer(generation)
        self.continued_by_message = True
        return continued(written, generation)

    # -- the callback -------------------------------------------------------------------------------------

    async def _decision(self) -> Decision:
        callback, trajectory = self.runner.step_callback, self.trajectory
        assert callback is not None
        assert trajectory is not None
        step = SegmentStep(self.attempt.task_index, self.attempt.repeat, self.branch, trajectory)
        if inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(type(callback).__call__):
            return checked_decision(await callback(step))  # type: ignore[misc]
        given: Any = await self.runner._callback_threads.call(partial(decide, callback, step))
        return checked_decision(await given if inspect.isawaitable(given) else given)

    async def _obey(self, decision: Decision) -> None:
        assert self.trajectory is not None
        if self.trajectory.done:
            return
        match decision:
            case Feedback(text):
                await self._take(user_feedback(text))
            case ForceNext(text, end):
                await self._take(final_segment(text) if end else Action(text))
            case Finish():
                self._asks = Response.of(self.trajectory.final_state).actions == 0
                if self._writer is not None:
                    self._writer.chunk_tokens = None
            case Stop(submit):
                if submit and Response.of(self.trajectory.final_state).actions:
                    await self._take(final_segment())
                self._stopped = True
                self.cut_off = not self.trajectory.done
            case Branch(count):
                self._branch(count)
            case _:
                pass

    def _branch(self, count: int) -> None:
        assert self.trajectory is not None
        self.runner.count_branches(self.attempt, count - 1)
        for _ in range(count - 1):
            path = (*self.branch, len(self.branch_starts) + 1)
            self.branch_starts.append((path, self.trajectory))

    # -- what came of it ----------------------------------------------------------------------------------

    def rollout(self, success: bool | None, error: RolloutError | None, seconds: float) -> SegmentedRollout:
        """See `Episode.rollout`; without the branches."""
        made: Rollout = super().rollout(success, error, seconds)
        shared: dict[str, Any] = {each.name: getattr(made, each.name) for each in fields(Rollout)}
        paid = sum((generation.usage for generation in self.generations), Usage())
        own = [] if self.trajectory is None else self.trajectory.transitions[self._first_step :]
        kept = sum(t.generation.usage.completion_tokens for t in own if t.generation is not None)
        return SegmentedRollout(
            **{**shared, "paid": paid},
            generations=tuple(self.generations),
            branch=self.branch,
            discarded_tokens=paid.completion_tokens - kept,
            continued_by_message=self.continued_by_message,
        )


def takes_prefix(backend: Backend, builder: PromptBuilder) -> bool:
    """Whether the model can be made to go on with a message: its backend and its family both can."""
    return backend.capabilities.prefix and builder.profile.assistant_prefix


def continued(written: str, generation: Generation) -> Answer:
    """An answer to the request in words: what it repeats of `written` at its beginning does not count."""
    text = generation.text
    skipped = len(written) if text.startswith(written) else 0
    if not skipped:
        # it often begins again with the last line
        last = written.rstrip().rpartition("\n")[2].strip()
        gap = written[len(written.rstrip()) :]
        another_word = bool(gap) and text[len(last) :][:1].isalnum()  # "It" after "I "
        if last and text.startswith(last) and not another_word:
            skipped = len(last + gap) if text.startswith(last + gap) else len(last)
    # what follows a repetition fits as it is, also within a word
    needs_space = not skipped and text[:1].isalnum() and not written[-1:].isspace()
    return Answer(generation, skipped, " " if needs_space else "")


def conversation_of(trajectory: Trajectory, builder: PromptBuilder) -> Conversation:
    """The chat of the base environment after all steps of `trajectory`, the message that is begun left out."""
    conversation = Conversation(builder)
    state = trajectory.initial_state
    response = Response.of(state)
    shown = hidden_of(state)["base"].observation
    if response.actions or len(response.chat) > 1:  # it begins in the middle: the chat up to there is in the state
        shown = replace(shown, messages=response.chat)
    conversation.observe(shown)
    message: list[Transition] = []
    for transition in trajectory:
        message.append(transition)
        if _ends_message(transition):
            parts, message = message, []
            _follow(conversation, transition, partial(joined, parts))
    return conversation


def _follow(
    conversation: Conversation, transition: Transition, generation: Callable[[], Generation | None]
) -> None:
    """Add to the chat what `transition` ended, if it ended a message."""
    if not _ends_message(transition) or transition.state is None:
        return
    segment, before = Segment.of(transition.action), Response.of(transition.state)
    text = before.text + segment.text
    if _ended_response(transition):
        conversation.act(Action(text, segment.tool_calls), generation())
        if not transition.next_state.is_terminal:
            conversation.observe(hidden_of(transition.next_state)["base"].observation)
        return
    if text:
        conversation.act(Action(text), generation())
    conversation.observe(Observation(segment.feedback or "", available_tools=conversation.tools))


def _ends_message(transition: Transition) -> bool:
    return _ended_response(transition) or Segment.of(transition.action).feedback is not None


def _ended_response(transition: Transition) -> bool:
    after: State[Any] = transition.next_state
    return after.is_terminal or Response.of(after).actions == 0
